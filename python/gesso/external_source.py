"""`fn.external_source`: data from the user's program as an input of a pipeline."""

import functools
from typing import Any

from . import _context
from ._authoring import schema as _schema
from ._authoring.arguments import TypedValue, convert, lookup
from ._authoring.operator import Node, Operator, unwrap
from ._callbacks.source_group import SourceGroup
from ._callbacks.sources import SourceKind, get_callback_from_source
from ._conditionals.convert import is_converted
from ._tensors.enums import DALIDataType

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
    schema: Any = None
    named_schema: Any

    def __init__(
        self, source=None, num_outputs=None, *, cycle=None, name=None, device="cpu", repeat_last=False, **keywords
    ):
        if type(self).schema is None:
            type(self).schema = type(self).named_schema = _schema.find("ExternalSource")
        self.options = {key: keywords.pop(key, None) for key in _PER_CALL}
        blocking = keywords.pop("blocking", None)
        super().__init__(device=device, **keywords)
        self._callback, self._described = get_callback_from_source(source, cycle, self.options["batch_info"] or False)
        if name is not None and num_outputs is not None:
            raise ValueError(f"`{self.display}` has one name for one input: `num_outputs` does not go with `name`")
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
                    "`cycle` is for an iterable or a generator function that is given in this call; for one that is given to "
                    "`__init__`, it belongs there."
                )
            raise ValueError("`cycle` is for an iterable that can begin anew, or a generator function.")
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
                f"`repeat_last` is for inputs that are fed by hand: with a `source` leave it out in `{self.display}`."
            )
        options["parallel"] = options["parallel"] or False
        if options["batch"] is None:
            options["batch"] = not options["parallel"]
        (_check_parallel if options["parallel"] else _check_sequential)(options, described)
        name = self._name if name is None else name
        if name is not None and self._num_outputs is not None:
            raise RuntimeError(f"`{self.display}` has one name for one input: `num_outputs` does not go with `name`.")
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
        raise ValueError("`no_copy=False` does not go with `parallel=True`: batches of workers are never copied.")
    for name in ("prefetch_queue_depth", "bytes_per_sample_hint"):
        value = options[name]
        if value is not None and value < 1:
            raise ValueError(f"``{name}`` must be a positive integer, got {value}.")
    if described is None:
        raise ValueError(
            "The argument `parallel` needs a `source`: without one there is nothing that a worker could run."
        )
    if described.kind is SourceKind.CALLABLE:
        if not described.has_inputs:
            raise TypeError(
                _context.add_words(
                    "a source with `parallel=True` takes one argument: with `batch=False` a "
                    f"`{_context.package}.types.SampleInfo`, with `batch=True` a `{_context.package}.types.BatchInfo` or the "
                    "number of the batch. This one takes none."
                )
            )
    elif not options["batch"]:
        what = "an iterable" if described.kind is SourceKind.ITERABLE else "a generator function"
        raise TypeError(_context.add_words(f"a parallel source that is {what} gives whole batches: set `batch=True`"))
    if is_converted(described.source):
        raise ValueError(
            "To allow the `source` to be correctly used by a parallel external source, it must remain unconverted: it was made inside of a "
            "definition with `enable_conditionals`, whose functions are rewritten. Define it "
            f"outside, or mark the function that makes it with `@{_context.package}.pipeline.do_not_convert`."
        )


def _check_sequential(options, described):
    for name in ("prefetch_queue_depth", "bytes_per_sample_hint"):
        if options[name] is not None:
            raise ValueError(f"`{name}` is for external sources with `parallel=True`.")


def _or_at_once(function):
    """In debug mode a source gives its batch when it is called."""

    @functools.wraps(function)
    def call(source=None, num_outputs=None, **keywords):
        at_once = _context.at_once()
        if at_once is not None:
            return at_once.source(call, source, num_outputs, keywords)
        return function(source, num_outputs, **keywords)

    return call


@_or_at_once
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

    Without `source`, each batch is given by `Pipeline.feed_input(name, data)` or `Pipeline.run(name=data)`. `source` is
    a function (without arguments, or called with the number of the batch, a `BatchInfo` if `batch_info`, or a
    `SampleInfo` if not `batch`), an iterable, or a generator function; it gives a batch, or with `batch=False` a
    sample, and ends the epoch by `StopIteration`.

    num_outputs: the source gives that many results as a tuple; so many `DataNode`s are returned.
    cycle: "quiet" or True begins the iterable again at its end, "raise" ends the epoch first.
    layout, dtype, ndim: what the data is; data of another type or rank is refused.
    repeat_last: the last batch again when none was fed.
    parallel: the source runs in worker processes (`py_num_workers` of the pipeline).
    prefetch_queue_depth: batches that the workers prepare ahead.
    """
    if num_outputs is not None and source is None:
        raise ValueError(
            _context.add_words(
                "`num_outputs` needs a `source`, which gives them. For several inputs that are fed by hand make several external sources."
            )
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
