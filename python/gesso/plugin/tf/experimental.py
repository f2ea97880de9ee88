"""`DALIDatasetWithInputs`: a `DALIDataset` of a pipeline with external sources, which other data sets feed, or
functions of the pipeline."""

import functools
import itertools
import threading
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from ... import _context
from . import passes
from .dataset import _Batches

_SHAPE = "a dictionary of names of external sources and what feeds them: a `tf.data.Dataset`, or an `Input` of one"


class Input:
    """A data set that feeds an external source: samples, or with `batch=True` batches of them. `layout` and `batch`
    count before what the pipeline says; None: what the pipeline says."""

    def __init__(self, dataset, *, layout=None, batch=False):
        if not isinstance(dataset, tf.data.Dataset):
            raise TypeError(
                _context.add_words(f"an input: expected a `tf.data.Dataset`, found a `{type(dataset).__name__}`")
            )
        spec = dataset.element_spec
        one = spec[0] if isinstance(spec, tuple) and len(spec) == 1 else spec
        if not isinstance(one, tf.TensorSpec):
            raise TypeError(f"an input: expected a data set whose elements are one tensor each, found {spec!r}"[:400])
        if layout is not None and not isinstance(layout, str):
            raise TypeError(f"`layout` of an input: expected a text or None, found a `{type(layout).__name__}`")
        if not isinstance(batch, (bool, type(None))):
            raise TypeError(f"`batch` of an input: expected True, False or None, found a `{type(batch).__name__}`")
        self.dataset, self.layout, self.batch = dataset, layout, batch


def _checked(pipeline, given):
    """Node > `Input` of the external sources without a function, and groups of the others."""
    if not isinstance(given or {}, Mapping):
        raise TypeError(_context.add_words(f"`input_datasets`: expected {_SHAPE}; found {given!r}"))
    for name, value in (given or {}).items():
        if not isinstance(name, str) or not isinstance(value, (tf.data.Dataset, Input)):
            raise TypeError(_context.add_words(f"`input_datasets`: expected {_SHAPE}; found {name!r}: {value!r}"))
    if passes.nodes_of(pipeline) is None and given:
        raise ValueError("`input_datasets` need a pipeline that is defined in Python: this one comes from a file")
    fed, groups = passes.inputs_of(pipeline)
    if any(not node.is_named for node in fed):
        raise ValueError(
            _context.add_words("an external source without a `source` has no `name`, and cannot be fed by a data set")
        )
    nodes = {node.name: node for node in fed}
    named = {node.name for group in groups for node in group.nodes}
    inputs = {}
    for name, value in (given or {}).items():
        if name not in nodes:
            what = "has a `source` of its own" if name in named else "is not there"
            raise ValueError(
                _context.add_words(
                    f"no external source that can be fed is called `{name}`: it {what}; there are {sorted(nodes)}"
                )
            )
        inputs[nodes[name]] = value if isinstance(value, Input) else Input(value)
    missing = sorted(nodes.keys() - {node.name for node in inputs})
    if missing:
        raise ValueError(_context.add_words(f"`input_datasets` has nothing for the external sources {missing}"))
    return inputs, groups


class DALIDatasetWithInputs(_Batches):
    """As `DALIDataset`, of a pipeline with external sources. `input_datasets`: name of an external source > a
    `tf.data.Dataset` of samples, or an `Input`. The data set ends where one of them does; samples that make no whole
    batch are left out. Sources that are functions of the pipeline are called."""

    def _of_inputs(self, pipeline, input_datasets, begin, shaped):
        inputs, groups = _checked(pipeline, input_datasets)
        for group in groups:
            if group.source_desc.cycle == "raise":
                raise NotImplementedError("an external source with `cycle='raise'`: a data set has one epoch")
        layouts = {node.name: value.layout for node, value in inputs.items()}
        begin = functools.partial(begin, groups, layouts)
        if not inputs:
            generate = functools.partial(passes.batches, begin, shaped)
            return tf.data.Dataset.from_generator(generate, output_signature=self._signature())
        return _fed(inputs, begin, shaped, self._dtypes, self._shapes, pipeline.max_batch_size)


class _Passes:
    """The passes of the iterators of one data set, by number. TensorFlow ends the generator of an iterator with it."""

    def __init__(self, begin):
        self._begin, self._numbers, self.passes, self._lock = begin, itertools.count(), {}, threading.Lock()

    def generate(self):
        """The number of a new pass, again and again."""
        with self._lock:
            number = next(self._numbers)
        self.passes[number] = self._begin()
        try:
            while True:
                yield number
        finally:
            del self.passes[number]


def _fed(inputs, begin, shaped, dtypes, shapes, batch_size):
    """The data set of a pipeline that others feed."""
    made = _Passes(begin)
    numbers = tf.data.Dataset.from_generator(made.generate, output_signature=tf.TensorSpec((), tf.int64))
    is_batched = [node.group_of_sources.batch if value.batch is None else value.batch for node, value in inputs.items()]
    coded = [
        value.dataset if batched else _gathered(value.dataset, batch_size)
        for value, batched in zip(inputs.values(), is_batched)
    ]
    names = [node.name for node in inputs]

    def step(number, *arrays):
        rest = iter(arrays)
        fed = {}
        for name, batched in zip(names, is_batched):
            fed[name] = _parts(name, next(rest)) if batched else _samples(next(rest), next(rest))
        try:
            return False, *shaped(made.passes[int(number)].next(fed))
        except StopIteration:
            return True, *(np.zeros((0,), dtype.as_numpy_dtype) for dtype in dtypes)

    def call(number, coded):
        is_over, *outputs = tf.numpy_function(step, [number, *tf.nest.flatten(coded)], [tf.bool, *dtypes])
        is_over.set_shape(())
        return is_over, tuple(outputs)

    def promised(_, outputs):
        for output, shape in zip(outputs, shapes):
            output.set_shape(shape)
        return outputs

    whole = tf.data.Dataset.zip((numbers, tuple(coded))).map(call)
    return whole.take_while(lambda is_over, _: tf.logical_not(is_over)).map(promised)


def _gathered(dataset, batch_size):
    """Samples of any shapes as batches of their elements, and of their shapes."""
    flat = dataset.map(lambda sample: (tf.reshape(sample, [-1]), tf.shape(sample, out_type=tf.int64)))
    return flat.padded_batch(batch_size, padded_shapes=([None], [None]), drop_remainder=True)


def _parts(name, batch):
    """The samples of a batch as a data set gives it."""
    if not np.ndim(batch):
        raise ValueError(f"the input `{name}`: expected batches, whose first dimension counts samples, found a scalar")
    return list(batch)


def _samples(elements, shapes):
    """The samples of such a batch."""
    return [flat[: int(np.prod(shape))].reshape(shape) for flat, shape in zip(elements, shapes)]
