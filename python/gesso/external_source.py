"""`fn.external_source`: data from the user's program as an input of a pipeline."""

from . import _context, _schema
from ._conditionals.convert import is_converted
from ._arguments import TypedValue, convert, lookup
from ._groups import SourceGroup
from ._operator import Node, Operator, unwrap
from ._sources import SourceKind, get_callback_from_source
from .types import DALIDataType

_PER_CALL = (
    "cuda_stream",
    "use_copy_kernel",
    "batch",
    "parallel",
    "no_copy",
    "prefetch_queue_depth",
    "bytes_per_sample_hint",
    "batch_info",
    "layout",
    "dtype",
    "ndim",
)
# These raise RuntimeError when they are given twice, the others ValueError, as in DALI.
_STRICT = ("layout", "dtype", "ndim", "cuda_stream", "use_copy_kernel")


class ExternalSource(Operator):
    """Data from the user's program as an input of a pipeline; see `fn.external_source`, whose arguments it has."""

    schema_name = "ExternalSource"
    schema = None

    def __init__(self, source=None, num_outputs=None, *, cycle=None, name=None, device="cpu", repeat_last=False, **keywords):
        if type(self).schema is None:
            type(self).schema = type(self).named_schema = _schema.find("ExternalSource")
        self.options = {key: keywords.pop(key, None) for key in _PER_CALL}
        blocking = keywords.pop("blocking", None)
        super().__init__(device=device, **keywords)
        self._callback, self._described = get_callback_from_source(source, cycle, self.options["batch_info"] or False)
        if name is not None and num_outputs is not None:
            raise ValueError(f"`num_outputs` is not compatible with named `{self.display}`")
        self._name = name
        self._num_outputs = num_outputs
        self._repeat_last = repeat_last
        self.values["repeat_last"] = TypedValue("bool", False, [bool(repeat_last)])
        if blocking is not None:
            self.values["blocking"] = TypedValue("bool", False, [bool(blocking)])

    def output_facts(self, node):
        dtype = node.values_of("dtype")
        layout = node.values_of("layout")
        ndim = node.values_of("ndim", len(layout) if layout else None)
        return ndim, None if dtype is None else DALIDataType(dtype), layout

    def _option(self, name, given):
        if given is None:
            return self.options[name]
        if self.options[name] is not None:
            error = RuntimeError if name in _STRICT else ValueError
            what = f"``{name}``" if name in _STRICT else f"The argument ``{name}``"
            raise error(f"{what} already specified in constructor.")
        return given

    def _source_of_call(self, source, cycle, batch_info):
        if source is not None:
            if self._callback is not None:
                raise RuntimeError("``source`` already specified in constructor.")
            return get_callback_from_source(source, cycle, batch_info)
        if cycle is not None:
            if self._callback:
                raise ValueError(
                    "The argument ``cycle`` can only be specified if ``source`` is an iterable object or a generator function "
                    "specified in this call. To cycle through an iterable specified in ``__init__``, set ``cycle`` there."
                )
            raise ValueError(
                "The argument ``cycle`` can only be specified if ``source`` is a reusable iterable or a generator function."
            )
        return self._callback, self._described

    def __call__(self, *, source=None, cycle=None, name=None, repeat_last=False, **keywords):
        unknown = keywords.keys() - set(_PER_CALL)
        if unknown:
            raise TypeError(f"`{self.display}` got an unexpected argument `{sorted(unknown)[0]}`.")
        options = {key: self._option(key, keywords.get(key)) for key in _PER_CALL}
        options["batch_info"] = options["batch_info"] or False
        callback, described = self._source_of_call(source, cycle, options["batch_info"])
        if callback is not None and (repeat_last or self._repeat_last):
            raise ValueError(
                "``repeat_last`` must not be set when using the ``source`` argument It's usable only with manually fed "
                f"`{self.display}`."
            )
        options["parallel"] = options["parallel"] or False
        if options["batch"] is None:
            options["batch"] = not options["parallel"]
        (_check_parallel if options["parallel"] else _check_sequential)(options, described)
        name = self._name if name is None else name
        if name is not None and self._num_outputs is not None:
            raise RuntimeError(f"``num_outputs`` is not compatible with named `{self.display}`.")
        group = SourceGroup(callback, described, self._num_outputs is not None, options)
        outputs = [
            self._node(group, i, options, name) for i in range(1 if self._num_outputs is None else self._num_outputs)
        ]
        return unwrap(outputs) if self._num_outputs is None else outputs

    def _node(self, group, i, options, name):
        def part(key, missing):
            value = options[key]
            if self._num_outputs is not None and isinstance(value, (list, tuple)):
                return value[i] if i < len(value) else missing
            return value

        facts = {"no_copy": options["no_copy"]}
        facts["dtype"] = part("dtype", DALIDataType.NO_TYPE)
        facts["ndim"] = part("ndim", None)
        facts["layout"] = part("layout", "")
        scalars = {key: value for key, value in facts.items() if value is not None}
        self._check_types(scalars)
        node = Node(self, [], {}, {**scalars, "name": name})
        node.layout = facts["layout"]
        node.group_of_sources = group
        node.output_index = i if self._num_outputs is not None else None
        group.add(node)
        return node.outputs[0]

    def _check_types(self, scalars):
        for name, value in scalars.items():
            convert(lookup(self.schema, name), value, self.display)


def _check_parallel(options, described):
    if options["prefetch_queue_depth"] is None:
        options["prefetch_queue_depth"] = 1
    if options["no_copy"] is None:
        options["no_copy"] = True
    if not options["no_copy"]:
        raise ValueError("The argument ``no_copy`` cannot be specified to False  when used with ``parallel=True``.")
    for name in ("prefetch_queue_depth", "bytes_per_sample_hint"):
        value = options[name]
        if value is not None and value < 1:
            raise ValueError(f"``{name}`` must be a positive integer, got {value}.")
    if described is None:
        raise ValueError("The argument `parallel` needs a `source`: without one there is nothing that a worker could run.")
    if described.kind is SourceKind.CALLABLE:
        if not described.has_inputs:
            raise TypeError(
                "Callable passed to External Source in parallel mode (when `parallel=True`) must accept exactly one argument: "
                f"`{_context.package}.types.SampleInfo` if run with `batch=False` or either `{_context.package}.types.BatchInfo` or "
                "integer that represents the index of the batch within the epoch if `batch=True`. Got a callable that does not "
                "accept arguments instead."
            )
    elif not options["batch"]:
        what = "an iterable" if described.kind is SourceKind.ITERABLE else "a generator function"
        raise TypeError(
            f"Parallel external source with {what} must be run in a batch mode (specify `batch=True` in the external source "
            "definition and make sure your source returns batches)"
        )
    if is_converted(described.source):
        raise ValueError(
            "To allow the `source` to be correctly used with parallel external source, it must remain unconverted: it was created in a "
            "scope that was converted with AutoGraph, that is inside of a pipeline definition with `enable_conditionals`. Define it "
            f"outside, or mark the function that makes it with `@{_context.package}.pipeline.do_not_convert`."
        )


def _check_sequential(options, described):
    for name in ("prefetch_queue_depth", "bytes_per_sample_hint"):
        if options[name] is not None:
            raise ValueError(
                f"The argument `{name}` is valid only for parallel external sources (when ``parallel`` is True)."
            )


def external_source(
    source=None,
    num_outputs=None,
    *,
    cycle=None,
    name=None,
    device="cpu",
    layout=None,
    dtype=None,
    ndim=None,
    cuda_stream=None,
    use_copy_kernel=None,
    blocking=None,
    batch=True,
    repeat_last=False,
    parallel=None,
    no_copy=None,
    prefetch_queue_depth=None,
    bytes_per_sample_hint=None,
    batch_info=None,
    **keywords,
):
    """An input of the pipeline.

    Without `source`, each batch is given by `Pipeline.feed_input(name, data)` or `Pipeline.run(name=data)`. `source` is a function (without
    arguments, or called with the number of the batch, a `BatchInfo` if `batch_info`, or a `SampleInfo` if not `batch`), an iterable, or a
    generator function; it gives a batch, or with `batch=False` a sample, and ends the epoch by `StopIteration`.

    num_outputs: the source gives that many results as a tuple; so many `DataNode`s are returned.
    cycle: "quiet" or True begins the iterable again at its end, "raise" ends the epoch first.
    layout, dtype, ndim: what the data is; data of another type or rank is refused.
    repeat_last: the last batch again when none was fed.
    parallel: the source runs in worker processes (`py_num_workers` of the pipeline).
    prefetch_queue_depth: batches that the workers prepare ahead.
    """
    if num_outputs is not None and source is None:
        raise ValueError(
            "The parameter ``num_outputs`` is only valid when using ``source`` to provide data. To feed multiple external sources "
            "in ``feed_input``, use multiple `external_source` nodes."
        )
    operator = ExternalSource(
        source,
        num_outputs,
        cycle=cycle,
        device=device,
        layout=layout,
        dtype=dtype,
        ndim=ndim,
        cuda_stream=cuda_stream,
        use_copy_kernel=use_copy_kernel,
        blocking=blocking,
        batch=True if batch is None else batch,
        repeat_last=repeat_last,
        parallel=parallel,
        no_copy=no_copy,
        prefetch_queue_depth=prefetch_queue_depth,
        bytes_per_sample_hint=bytes_per_sample_hint,
        batch_info=batch_info,
        _module=f"{_context.package}.fn",
        _display_name="external_source",
        **keywords,
    )
    return operator(name=name)
