"""Arithmetic and functions of numbers on tensors and batches, element by element."""

import functools

import numpy as np

from .. import math as _math
from .._authoring import arithmetic as _nodes
from .._tensors.enums import to_numpy_type
from .._tensors.tensor_list import TensorListCPU
from . import batching, plans
from .device import Device
from .expressions import Step
from .invocation import Invocation

_MIXED = "Cannot mix GPU and CPU inputs. Found an input on the GPU and one on the CPU: bring both to one place, with `.cpu()` or `.gpu()`."
# (function, place) > values of numbers that were seen there.
_seen = {}


class Arithmetic:
    """One function of elements, as invocations run it: `constants` has None for each tensor, and the numbers."""

    def __init__(self, name, constants, device):
        self._key = tuple((None if value is None else type(value), value) for value in constants)
        self._name, self._device = name, device

    def _infer_num_outputs(self, *_, **__):
        return 1

    def _infer_output_devices(self, *_, **__):
        return [self._device]

    def _infer(self, _index, inputs, _args):
        kinds = tuple([(value.dtype.type_id, value.ndim, value.layout or "") for value in inputs])
        return _facts(self._name, self._key, kinds)

    def _step(self, _inputs):
        return Step(plans.arithmetic_of(self._name, self._key), (), self._device.device_id)

    def _run(self, context, *inputs, batch_size=None):
        batches = [batching.batch_storage(value, batch_size) for value in inputs]
        function = plans.arithmetic_of(self._name, self._key)
        outputs = plans.run(function, batches, {}, (), batch_size or 1, self._device.device_id, context.num_threads)
        return batching.results(outputs, batch_size)


@functools.lru_cache(maxsize=plans.KEPT)
def _facts(name, key, kinds):
    """Types, ranks and layouts do not depend on values: those of one element tell them."""
    ones = [TensorListCPU._of([np.ones((1,) * ndim, to_numpy_type(dtype))], layout) for dtype, ndim, layout in kinds]
    (found,) = plans.run(plans.arithmetic_of(name, key), ones, {}, (), 1)
    return {"dtype": found.dtype, "ndim": found.ndim(), "layout": found.layout()}


def _varies(name, position, value):
    """Whether a number differs from call to call, so that it is fed and no plan is made for it."""
    seen = _seen.setdefault((name, position), set())
    if len(seen) < plans.MOST_VALUES:
        seen.add((type(value), value))
    return (type(value), value) not in seen


def apply(name, *operands):
    """`name` of tensors, batches, arrays, lists and numbers: a batch if there is one among them, else a tensor."""
    tensors = [value for value in operands if batching.is_ours(value)]
    gpu = next((value.device for value in tensors if value.device.device_type == "gpu"), None)
    inputs, constants = [], []
    for position, value in enumerate(operands):
        if type(value) in (bool, int, float) and tensors and not _varies(name, position, value):
            _check_integer(value)
            constants.append(value)
            continue
        constants.append(None)
        if not batching.is_ours(value):
            is_python = isinstance(value, (bool, int, float, list, tuple))
            value = batching.KINDS[False](value, device=gpu if gpu is not None and is_python else None)
        if (value.device.device_type == "gpu") != (gpu is not None):
            raise ValueError(_MIXED)
        inputs.append(value)
    device = gpu or Device.CPU
    size = batching.size_of(inputs)
    invocation = Invocation(Arithmetic(name, constants, device), None, inputs, {}, size is not None, size)
    return batching.outputs_of(invocation, any(value._is_external() for value in inputs))[0]


def _check_integer(value):
    if type(value) is int and not -(1 << 31) <= value < 1 << 31:
        raise OverflowError(f"Integer {value} is out of range for int32: make it a tensor with a `dtype`.")


def _array_ufunc(self, function, method, *inputs, **keywords):
    """What numpy calls for `array + tensor`."""
    name = _nodes._UFUNCS.get(function.__name__)
    if name is None or method != "__call__" or keywords:
        return getattr(function, method)(*(np.asarray(x) if x is self else x for x in inputs), **keywords)
    return apply(name, *inputs)


def install(kind):
    """Gives a class the operators of numbers."""
    for python, name in _nodes.BOTH.items():
        setattr(kind, f"__{python}__", lambda self, other, name=name: apply(name, self, other))
        setattr(kind, f"__r{python}__", lambda self, other, name=name: apply(name, other, self))
    for python, name in _nodes.COMPARISONS.items():
        setattr(kind, f"__{python}__", lambda self, other, name=name: apply(name, self, other))
    kind.__neg__ = lambda self: apply("minus", self)
    kind.__pos__ = lambda self: self
    kind.__invert__ = lambda self: apply("bitnot", self)
    kind.__abs__ = lambda self: apply("abs", self)
    kind.__array_ufunc__ = _array_ufunc
    # Comparisons give tensors; as keys they are themselves.
    kind.__hash__ = object.__hash__


def functions():
    """Name > function, of `math`."""
    made = {}
    for name in (*_math._UNARY, *_math._BINARY, "clamp"):
        made[name] = _function(name, getattr(_math, name).__doc__)
    return made


def _function(name, doc):
    def function(*operands):
        return apply(name, *operands)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
