"""`DataNode`: what an operator in a pipeline's definition returns, a batch that is not there yet. Its operators are in
`_authoring.arithmetic`, `node[...]` in `_authoring.subscript`."""

from typing import TYPE_CHECKING, Any

from . import _context, fn


class _NewAxis:
    """A new dimension in an index: `x[newaxis, :]`, or with a letter for the layout, `x[newaxis("C"), :]`."""

    def __init__(self, name=None):
        if name is not None and not isinstance(name, str):
            raise TypeError("the name of an axis is one letter")
        if name is not None and len(name) != 1:
            raise ValueError("the name of an axis is one letter")
        self._name = name

    @property
    def name(self):
        """The letter, or None."""
        return self._name

    def __call__(self, name=None):
        return _NewAxis(name)


newaxis = _NewAxis()


# What people look for in a `DataNode`, and where it is.
_RUN = "it holds no data before the pipeline runs. Return it as an output, and look at what `run` gives"
_NOT_HERE = {
    **dict.fromkeys(("get", "numpy", "as_array", "as_cpu", "at", "item", "tolist"), _RUN),
    **{name: f"use `fn.reductions.{name}`" for name in ("mean", "sum", "min", "max")},
    "std": "use `fn.reductions.std_dev`",
    "var": "use `fn.reductions.variance`",
    "astype": "use `fn.cast(data, dtype=...)`",
    "reshape": "use `fn.reshape(data, shape=...)`",
    "transpose": "use `fn.transpose(data, perm=...)`",
    "T": "use `fn.transpose(data, perm=...)`",
    "squeeze": "use `fn.squeeze(data, axes=...)`",
    "dtype": "its type is known when the pipeline runs",
}


# What is there for functions of numpy that take no `DataNode`.
_INSTEAD = {
    **{name: f"fn.reductions.{name}" for name in ("mean", "sum", "min", "max")},
    **dict(
        amin="fn.reductions.min", amax="fn.reductions.max", std="fn.reductions.std_dev", var="fn.reductions.variance"
    ),
    **dict(
        clip="math.clamp",
        stack="fn.stack",
        concatenate="fn.cat",
        transpose="fn.transpose",
        reshape="fn.reshape",
        pad="fn.pad",
    ),
    **dict(
        squeeze="fn.squeeze",
        expand_dims="fn.expand_dims",
        flip="fn.flip",
        zeros_like="fn.zeros_like",
        ones_like="fn.ones_like",
    ),
    **dict(full_like="fn.full_like", shape="fn.shapes", rsqrt="math.rsqrt"),
}


def _numpy_cannot(name):
    package = _context.package
    instead = (
        f"`{package}.{_INSTEAD[name]}` computes it"
        if name in _INSTEAD
        else f"operators of `{package}.fn` and `{package}.math` compute"
    )
    return (
        f"numpy's `{name}` cannot take a `DataNode`, which holds no data before the pipeline runs: {instead}. A function of numpy's runs as "
        f"`{package}.fn.python_function(data, function=...)`."
    )


if TYPE_CHECKING:

    class _Operators:
        """What `_authoring.arithmetic` and `_authoring.subscript` put into `DataNode`, for type checkers."""

        def _of_one(self) -> "DataNode": ...
        def _of_two(self, other: Any) -> "DataNode": ...

        __array_ufunc__: Any
        __neg__ = __invert__ = __abs__ = _of_one
        __add__ = __sub__ = __mul__ = __pow__ = __truediv__ = __floordiv__ = __mod__ = _of_two
        __radd__ = __rsub__ = __rmul__ = __rpow__ = __rtruediv__ = __rfloordiv__ = __rmod__ = _of_two
        __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = _of_two
        __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = _of_two
        __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = _of_two
        __eq__ = __ne__ = _of_two  # type: ignore[assignment]

else:
    _Operators = object


class DataNode(_Operators):
    """A batch of tensors in a pipeline that is being defined. It holds no data.

    Give it to operators as an input or as an argument, calculate with it (`+ - * / // % **`, comparisons,
    `& | ^ ~ << >>`), take parts (`x[1:, 0]`), and return it from the definition as an output.
    """

    def __init__(self, name, device="cpu", source=None, index=0, ndim=None, dtype=None, layout=None):
        self.name = name
        self.device = device
        self.source = source
        self.index = index
        self.ndim = ndim
        self.dtype = dtype
        self.layout = layout

    @property
    def key(self):
        """What tells it from others of its pipeline."""
        return (self.name, self.device)

    def __str__(self):
        text = f'DataNode(name="{self.name}", device="{self.device}", source="{self.source}", index="{self.index}"'
        for name in ("ndim", "dtype", "layout"):
            value = getattr(self, name)
            if value is not None:
                text += f", {name}={value!r}" if name == "layout" else f", {name}={value}"
        return text + ")"

    __repr__ = __str__
    __hash__ = object.__hash__

    def gpu(self):
        """The same data in memory of the GPU."""
        return self._on("gpu")

    def cpu(self):
        """The same data in host memory."""
        self._check_gpu2cpu()
        return self._on("cpu")

    def _on(self, device):
        if self.device == device:
            return self
        conditions = _context.conditions()
        node = conditions.use(self) if conditions is not None else self
        moved = DataNode(node.name, device, node.source, node.index, self.ndim, self.dtype, self.layout)
        if conditions is not None:
            conditions.register([moved])
        return moved

    def shape(self, *, dtype=None, device="cpu"):
        """The shapes of the samples, as a batch of one-dimensional tensors."""
        if device == "cpu":
            self._check_gpu2cpu()
        return fn._shape(self, dtype=dtype, device=device)

    def property(self, key, *, device="cpu"):
        """What is known of the samples: `"source_info"` (the file or record) or `"layout"`, as text in `uint8`
        tensors."""
        if device == "cpu":
            self._check_gpu2cpu()
        return fn.get_property(self, key=key, device=device)

    def source_info(self, *, device="cpu"):
        """Where the samples come from: `property("source_info")`."""
        return self.property("source_info", device=device)

    def _check_gpu2cpu(self):
        pipeline = self.source.pipeline if self.device == "gpu" and self.source is not None else None
        if pipeline is not None:
            pipeline.runner.settings.require_exec_dynamic(
                "this pipeline brings nothing from the GPU back to the CPU: that needs "
            )

    def __pos__(self):
        return self

    def __bool__(self):
        message = (
            "a `DataNode` was asked whether it is true, by `if`, `and`, `or`, `not` or `bool`: it has no value before the pipeline runs. With "
            f"`enable_conditionals=True` in `@{_context.package}.pipeline_def` these become operators; `cast` makes "
            "bools of numbers."
        )
        raise TypeError(_context.add_words(message))

    def __getattr__(self, name):
        hint = _NOT_HERE.get(name)
        raise AttributeError(f"a `DataNode` has no `{name}`" + (f": {hint}" if hint else ""))

    def __array_function__(self, function, *_):
        """What numpy calls for functions that are not computed element by element."""
        raise TypeError(_numpy_cannot(function.__name__))

    def __array__(self, *_, **__):
        raise TypeError(_numpy_cannot("array"))

    # Not iterable, and not an `Iterable` for those who ask, though it has `__getitem__`.
    __iter__ = None


def _check(maybe_node):
    if not isinstance(maybe_node, DataNode):
        raise TypeError(f"a `{type(maybe_node).__name__}` was returned, expected a `DataNode`")
