"""Operators on arrays, at once and without a pipeline: `dynamic.resize(image, size=[224, 224])`.

Every operator of `fn` is here under its name. Arrays by position are inputs; a list of arrays is a batch, and gives a list. Keyword arguments are
those of `fn`; arrays among them are values for each sample. A plan is made for each combination of types and arguments, and kept.
"""

import functools
import os
import threading

import numpy as np

from . import fn as _fn
from ._feeding import to_array
from ._pipeline_def import pipeline_def

_KEPT = 256


def _is_batch(value):
    return isinstance(value, (list, tuple)) and all(hasattr(element, "shape") for element in value) and len(value) > 0


class _Plan:
    """One operator, ready for inputs of one kind."""

    def __init__(self, function, count, tensors, fixed, layouts, batch_size, seed):
        @pipeline_def(batch_size=batch_size, num_threads=2, prefetch_queue_depth=1, exec_async=False, seed=seed)
        def define():
            inputs = [_fn.external_source(name=f"input_{i}", layout=layouts[i], no_copy=True) for i in range(count)]
            named = {name: _fn.external_source(name=f"argument_{name}", no_copy=True) for name in tensors}
            results = function(*inputs, **named, **dict(fixed))
            return tuple(results) if isinstance(results, (list, tuple)) else results

        self.pipeline = define()
        self.lock = threading.Lock()

    def run(self, feed):
        with self.lock:
            return [[np.asarray(array) for array in output.arrays] for output in self.pipeline.run(**feed)]


@functools.lru_cache(maxsize=_KEPT)
def _plan(_process, function, kinds, tensors, fixed, layouts, batch_size, seed):
    return _Plan(function, len(kinds), tensors, fixed, layouts, batch_size, seed)


def _hashable(value):
    return tuple(value) if isinstance(value, list) else value


def _call(function, *inputs, layout=None, seed=None, **arguments):
    batches = [[to_array(x) for x in value] if _is_batch(value) else [to_array(value)] for value in inputs]
    sizes = {len(batch) for batch in batches if len(batch) != 1} or {1}
    if len(sizes) > 1:
        raise ValueError(f"The batches have different numbers of samples: {sorted(sizes)}.")
    size = sizes.pop()
    batches = [batch * size if len(batch) == 1 else batch for batch in batches]
    tensors = {name: value for name, value in arguments.items() if _is_batch(value) or isinstance(value, np.ndarray)}
    fixed = tuple(sorted((name, _hashable(value)) for name, value in arguments.items() if name not in tensors))
    layouts = layout if isinstance(layout, (list, tuple)) else [layout] + [None] * (len(batches) - 1)
    kinds = tuple((batch[0].dtype.str, batch[0].ndim) for batch in batches)
    plan = _plan(os.getpid(), function, kinds, tuple(sorted(tensors)), fixed, tuple(layouts), max(size, 1), seed)
    feed = {f"input_{i}": batch for i, batch in enumerate(batches)}
    for name, value in tensors.items():
        values = [np.asarray(x) for x in value] if _is_batch(value) else [value] * size
        feed[f"argument_{name}"] = [v.astype(np.float32) if v.dtype == np.float64 else v for v in values]
    outputs = plan.run(feed)
    if not any(_is_batch(value) for value in inputs):
        outputs = [arrays[0] if len(arrays) == 1 else arrays for arrays in outputs]
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


class _Namespace:
    """The operators of one module of `fn`."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        return _wrapped(getattr(self._module, name), name)

    def __dir__(self):
        return [name for name in dir(self._module) if not name.startswith("_")]


def _wrapped(found, name):
    if callable(found):
        wrapper = functools.partial(_call, found)
        wrapper.__doc__ = found.__doc__
        return wrapper
    return _Namespace(found)


def __getattr__(name):
    if name.startswith("_") or not hasattr(_fn, name):
        raise AttributeError(f"module `gesso.dynamic` has no operator `{name}`")
    return _wrapped(getattr(_fn, name), name)


def __dir__():
    return [name for name in dir(_fn) if not name.startswith("_")]
