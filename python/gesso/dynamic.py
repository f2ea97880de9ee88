"""Operators on arrays, at once and without a pipeline: `dynamic.resize(image, size=[224, 224])`.

Every operator of `fn` is here under its name. Arrays by position are inputs; a list of arrays is a batch, and gives a
list. Keyword arguments are those of `fn`; arrays among them are values for each sample. A plan is made for each
combination of types and arguments, and kept.

What an operator returns is an array that has its `layout`, such as `HWC`, which the next operator sees; what numpy
makes of it has none. A `TensorCPU` has one, too, and the keyword `layout` gives one. To filters an array of three
dimensions without a layout is a picture if the last dimension is 1, 3 or 4: its colours are not mixed.

Called with a `Tensor` or a `Batch` (or with `batch_size` or `rng`), operators return such, and can be deferred; these,
readers as iterators, random generators, checkpoints, devices and modes are here, too, as DALI's
`experimental.dynamic` has them. docs/guides/dynamic.md shows them.
"""

import functools

import numpy as np

from . import fn as _fn
from ._dynamic import batching as _batching
from ._dynamic import plans as _plans
from ._native.prepared_call import Array, as_dense
from ._tensors.enums import dtype_of
from ._tensors.feeding import to_array
from ._tensors.tensor import TensorCPU
from ._threads.fork import process_id as _process_id

_THREADS = 2
# Operators that work along every dimension which no layout says to be channels.
_FILTERS = ("gaussian_blur", "laplacian", "filter")
_CHANNELS = (1, 3, 4)


def _is_batch(value):
    return isinstance(value, (list, tuple)) and all(hasattr(element, "shape") for element in value) and len(value) > 0


def _hashable(value):
    return tuple(value) if isinstance(value, list) else value


def _batch(value):
    """A value as a list of dense arrays of one kind."""
    arrays = [as_dense(to_array(x)) for x in value] if _is_batch(value) else [as_dense(to_array(value))]
    first = arrays[0]
    for i, array in enumerate(arrays):
        if array.dtype != first.dtype or array.ndim != first.ndim:
            raise ValueError(
                f"The samples of a batch must have one type and rank: sample {i} is {array.dtype} of {array.ndim} dimensions, the first one "
                f"{first.dtype} of {first.ndim}."
            )
    if dtype_of(first) is None:
        raise TypeError(f"Data of the type {first.dtype} cannot be fed: expected numbers or truth values.")
    return arrays


def _argument(value):
    arrays = _batch(value)
    return [array.astype(np.float32) for array in arrays] if arrays[0].dtype == np.float64 else arrays


def _layout_of(value, function):
    """The layout of an input, or None."""
    samples = value if _is_batch(value) else [value]
    first = samples[0]
    own = first.layout() if isinstance(first, TensorCPU) else first.layout if isinstance(first, Array) else ""
    if own:
        return own
    if function.__name__ in _FILTERS and all(
        np.ndim(sample) == 3 and np.shape(sample)[-1] in _CHANNELS for sample in map(to_array, samples)
    ):
        return "HWC"
    return None


def _prepare(function, inputs, layout, seed, arguments):
    """(the plan, its batches)"""
    batches, tensors, fixed = [_batch(value) for value in inputs], [], []
    for name, value in sorted(arguments.items()) if len(arguments) > 1 else arguments.items():
        if isinstance(value, np.ndarray) or _is_batch(value):
            batches.append(_argument(value))
            tensors.append(name)
        else:
            fixed.append((name, _hashable(value)))
    size = 1
    for batch in batches:
        if len(batch) != size and len(batch) != 1:
            if size != 1:
                raise ValueError(
                    f"The batches have different numbers of samples: {sorted({len(batch) for batch in batches})}."
                )
            size = len(batch)
    batches = [batch * size if len(batch) == 1 else batch for batch in batches]
    count = len(inputs)
    layouts = list(layout) if isinstance(layout, (list, tuple)) else [layout, *(None,) * (count - 1)]
    layouts = [given or _layout_of(value, function) for given, value in zip(layouts, inputs)]
    layouts += [None] * (len(batches) - count)
    kinds = tuple([(dtype_of(batch[0]), batch[0].ndim, at, "cpu") for batch, at in zip(batches, layouts)])
    return _plans.kept(
        _process_id(), function, kinds, tuple(tensors), tuple(fixed), size, None, _THREADS, seed
    ), batches


def _call(function, *inputs, layout=None, seed=None, **arguments):
    plan, batches = _prepare(function, inputs, layout, seed, arguments)
    outputs = plan.run_arrays(batches)
    if not any(map(_is_batch, inputs)):
        outputs = [arrays[0] if len(arrays) == 1 else arrays for arrays in outputs]
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _is_new(inputs, arguments):
    """Whether a call is of `Tensor`s and `Batch`es, and not of arrays."""
    if "batch_size" in arguments or "rng" in arguments:
        return True
    return any(map(_batching.is_ours, inputs)) or any(map(_batching.is_ours, arguments.values()))


class _Namespace:
    """The operators of one module of `fn`, and what dynamic mode has beside them."""

    def __init__(self, module, path):
        self._module, self._path = module, path

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if hasattr(self._module, name):
            found = _wrapped(getattr(self._module, name), f"{self._path}.{name}")
        else:
            found = _names().get(f"{self._path}.{name}")
        if found is None:
            raise AttributeError(f"`gesso.dynamic.{self._path}` has no `{name}`")
        self.__dict__[name] = found
        return found

    def __dir__(self):
        names = [name for name in dir(self._module) if not name.startswith("_")]
        return names + [path.split(".")[1] for path in _names() if path.startswith(f"{self._path}.")]


def _wrapped(found, path):
    if not callable(found):
        return _Namespace(found, path)

    @functools.wraps(found)
    def call(*inputs, **arguments):
        if _is_new(inputs, arguments):
            return _function(path)(*inputs, **arguments)
        return _call(found, *inputs, **arguments)

    return call


@functools.cache
def _function(path):
    from ._dynamic import api

    if path not in api.FUNCTIONS:
        raise TypeError(f"`{path}` takes arrays here, and no `Tensor` or `Batch`")
    return api.FUNCTIONS[path]


@functools.cache
def _names():
    """Path > what dynamic mode has beside the operators."""
    from ._dynamic import api

    return {**api.NAMES, **api.READERS, **api.MORE}


def __getattr__(name):
    if name.startswith("_") or not hasattr(_fn, name) and name not in __dir__():
        raise AttributeError(f"module `gesso.dynamic` has no operator `{name}`")
    if hasattr(_fn, name):
        found = _wrapped(getattr(_fn, name), name)
    else:
        found = _names().get(name) or _Namespace(None, name)
    globals()[name] = found
    return found


def __dir__():
    own = {path.split(".")[0] for path in _names()}
    return sorted(own | {name for name in dir(_fn) if not name.startswith("_")})
