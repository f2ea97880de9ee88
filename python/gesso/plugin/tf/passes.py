"""One pass over a pipeline for TensorFlow: a pipeline of its own, what feeds it, and its batches as arrays of the types
and shapes that were promised. Knows no data sets."""

import itertools

import numpy as np

from ... import _context
from ..._authoring.settings import Settings
from ..._callbacks.source_group import SourceGroup
from ..._callbacks.sources import get_callback_from_source
from ..._tensors.tensor_list import TensorListGPU
from ..._threads import under_way
from ...pipeline import Pipeline

_NOT_A_FILE = (
    "a pipeline for TensorFlow is run from its file, and this one cannot be written into one: operators of Python and "
    "readers that run in Python have no place there"
)


def serialized(pipeline):
    """The pipeline as the bytes of a file."""
    if not isinstance(pipeline, Pipeline):
        raise TypeError(f"`pipeline`: expected a `Pipeline`, found a `{type(pipeline).__name__}`")
    try:
        return pipeline.serialize()
    except RuntimeError as error:
        raise RuntimeError(_context.add_words(_NOT_A_FILE)) from error


def checked(settings):
    """Settings that replace those of a file, before any batch is asked for."""
    settings = Settings.checked_for_file(settings)
    for name in ("batch_size", "num_threads"):
        if settings[name] is not None and settings[name] < 1:
            raise ValueError(f"`{name}`: expected a number of at least 1, found {settings[name]}")
    return settings


def nodes_of(pipeline):
    """The operators of a pipeline that was defined in Python; None of one that comes from a file."""
    if not isinstance(pipeline, Pipeline):
        raise TypeError(f"`pipeline`: expected a `Pipeline`, found a `{type(pipeline).__name__}`")
    pipeline.runner.define(pipeline)
    return pipeline.runner.definition.operators


def inputs_of(pipeline):
    """The external sources of a pipeline, in two lists: those that are fed from outside, and groups with a source."""
    nodes = [node for node in nodes_of(pipeline) or () if getattr(node, "group_of_sources", None) is not None]
    groups = dict.fromkeys(node.group_of_sources for node in nodes if node.group_of_sources.callback is not None)
    return [node for node in nodes if node.group_of_sources.callback is None], list(groups)


def _begun(group):
    """The same source at its beginning."""
    told = group.source_desc
    callback, described = get_callback_from_source(told.source, told.cycle, told.batch_info)
    options = {name: getattr(group, name) for name in ("batch", "batch_info", "no_copy", "prefetch_queue_depth")}
    made = SourceGroup(callback, described, group.is_multioutput, {**options, "parallel": False})
    made.nodes = made.used = group.used
    return made


class Pass:
    """Batches of a pipeline from its beginning. `settings` replace those of the file; `groups` are external sources
    with a function, `layouts` those of inputs that have one beside the file's."""

    def __init__(self, file, settings, groups=(), layouts=None):
        self._groups, self._layouts = [_begun(group) for group in groups], layouts or {}
        self._size = settings["batch_size"]
        if groups or self._layouts:
            # Batches that are fed one by one cannot be prepared ahead.
            settings = {**settings, "prefetch_queue_depth": 1}
        self._pipeline = Pipeline.deserialize(file, **settings)

    def next(self, fed=None):
        """The outputs of the next batch; `fed`: name > list of samples. StopIteration at the end of a source, and
        of the program: TensorFlow's threads ask for batches ahead, and do not know of it."""
        with under_way.call() as goes_on:
            if not goes_on:
                raise StopIteration
            return self._next(fed or {})

    def _next(self, fed):
        for name, samples in fed.items():
            self._pipeline.feed_input(name, samples, layout=self._layouts.get(name))
        gathered = [(group, group.next(self._size, 0)) for group in self._groups]
        for group, data in gathered:
            for node, part in group.split(data, self._size):
                self._pipeline.feed_input(node.name, part, layout=getattr(node, "layout", None) or None)
        return self._pipeline.run()


class Shaped:
    """Makes arrays of outputs, and checks them: `dtypes` are numpy's, a shape is a tuple with None for what is not
    known, or None."""

    def __init__(self, dtypes, shapes):
        self._dtypes, self._shapes = [np.dtype(dtype) for dtype in dtypes], shapes

    def __call__(self, outputs):
        if len(outputs) != len(self._dtypes):
            raise ValueError(f"the pipeline has {len(outputs)} outputs, and {len(self._dtypes)} types were given")
        return tuple(self._one(i, output) for i, output in enumerate(outputs))

    def _one(self, index, output):
        array = dense(index, output)
        wanted = self._dtypes[index]
        if array.dtype != wanted:
            raise ValueError(
                _context.add_words(f"output `{index}` of the pipeline is {array.dtype}, and {wanted} was promised")
            )
        shape = fitted(array.shape, self._shapes[index])
        if shape is None:
            raise ValueError(
                _context.add_words(
                    f"output `{index}` of the pipeline has the shape {array.shape}, and {self._shapes[index]} was promised"
                )
            )
        return array.reshape(shape)


def batches(begin, shaped):
    """The batches of a pass, until a source of the pipeline ends."""
    made = begin()
    while True:
        try:
            outputs = made.next()
        except StopIteration:
            return
        yield shaped(outputs)


def check_types(name, dtypes):
    """Refuses types of TensorFlow's that are no types of numbers or truth values."""
    for dtype in dtypes:
        if not (dtype.is_integer or dtype.is_floating or dtype.is_bool):
            raise TypeError(f"`{name}`: expected types of numbers or truth values, found {dtype!r}")


def dense(index, output):
    """The array of an output whose samples have one shape."""
    output = output.as_cpu() if isinstance(output, TensorListGPU) else output
    if not output.is_dense_tensor():
        raise RuntimeError(
            _context.add_words(
                f"samples of output `{index}` have several shapes, and a tensor has one: {output.shape()}"[:400]
            )
        )
    return np.ascontiguousarray(output.as_array())


def fitted(shape, wanted):
    """`shape`, without so many extents of 1 that it fits `wanted`; None if it does not."""
    if wanted is None:
        return shape
    ones, too_many = [i for i, extent in enumerate(shape) if extent == 1], len(shape) - len(wanted)
    if too_many < 0:
        return None
    for left_out in itertools.combinations(ones, too_many):
        found = tuple(extent for i, extent in enumerate(shape) if i not in left_out)
        if all(want in (None, extent) for want, extent in zip(wanted, found)):
            return found
    return None
