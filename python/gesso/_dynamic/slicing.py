"""`tensor[1:3, ..., 0]` and `batch.slice[start:stop]`: parts of samples, as numpy takes them."""

import numpy as np

from .. import fn
from .._tensors.tensor_list import TensorListCPU, TensorListGPU
from . import batching, plans
from . import storage as _storage
from .expressions import Step
from .invocation import Invocation


def _is_full(part):
    return isinstance(part, slice) and part.start is part.stop is part.step is None


def _bounds(part):
    return (part.start, part.stop, part.step) if isinstance(part, slice) else (part,)


def _number(value, index):
    """A bound for one sample."""
    if value is None or isinstance(value, int):
        return value
    if batching.is_ours(value):
        value = _storage.sample(batching.batch_storage(value, index + 1), index).array
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iu":
        raise TypeError(f"an index or a bound: expected a whole number, found an array of shape {array.shape}")
    return int(array.reshape(())[()])


class Part:
    """Takes a part of each sample; `parts` are indices, slices and at most one `...`."""

    def __init__(self, parts, ndim, device):
        # Tensors have a `==` of their own.
        places = [i for i, part in enumerate(parts) if part is Ellipsis]
        if len(places) > 1:
            raise ValueError("Only one Ellipsis is allowed.")
        count = len(parts) - len(places)
        if count > ndim:
            raise ValueError(
                f"Number of ranges ({count}) is greater than the number of dimensions of the tensor ({ndim})"
            )
        whole = [slice(None)] * (ndim - count)
        place = places[0] if places else len(parts)
        self._parts = [*parts[:place], *whole, *parts[place + len(places) :]]
        self._device = device
        for part in self._parts:
            if isinstance(part, slice) and isinstance(part.step, int) and part.step == 0:
                raise ValueError("slice step cannot be zero")
            if part is None or isinstance(part, (float, str)):
                raise TypeError(f"Invalid type for an index: {type(part)}")

    def _infer_num_outputs(self, *_, **__):
        return 1

    def _infer_output_devices(self, *_, **__):
        return [self._device]

    def _kept(self):
        return [isinstance(part, slice) for part in self._parts]

    def _layout(self, layout):
        return "".join(letter for letter, kept in zip(layout or "", self._kept()) if kept)

    def _infer(self, _index, inputs, _args):
        source = inputs[0]
        return {"dtype": source.dtype.type_id, "ndim": sum(self._kept()), "layout": self._layout(source.layout)}

    def _step(self, inputs):
        """Numbers alone, and no steps: the rest is taken from samples that are there."""
        fixed = []
        for dimension, part in enumerate(self._parts):
            bounds = _bounds(part)
            if any(bound is not None and type(bound) is not int for bound in bounds) or bounds[2:] not in ((), (None,)):
                return None
            names = ("lo", "hi") if isinstance(part, slice) else ("at",)
            fixed += [(f"{name}_{dimension}", bound) for name, bound in zip(names, bounds) if bound is not None]
        device = self._device
        fixed += [("device", device.device_type), ("num_subscripts", len(self._parts))]
        return Step(fn._tensor_subscript, tuple(fixed), device.device_id)

    def _run(self, context, source, batch_size=None):
        data = batching.batch_storage(source, batch_size)
        if isinstance(data, TensorListGPU) and data._is_on_device():
            made = self._on_gpu(data, context)
        else:
            arrays = [self._of(array, i) for i, array in enumerate(data.arrays)]
            made = type(data)._of(arrays, self._layout(data.layout()), data.dtype, data._infos)
            made._ndim = sum(self._kept())
        return batching.results([made], batch_size)

    def _of(self, array, index):
        parts = []
        for dimension, part in enumerate(self._parts):
            if isinstance(part, slice):
                parts.append(slice(*(_number(bound, index) for bound in _bounds(part))))
                continue
            number = _number(part, index)
            if not -array.shape[dimension] <= number < array.shape[dimension]:
                raise IndexError(
                    f"Index {number} is out of bounds for dimension {dimension} with size {array.shape[dimension]}"
                )
            parts.append(number)
        return np.ascontiguousarray(array[tuple(parts)]).reshape(array[tuple(parts)].shape)

    def _on_gpu(self, data, context):
        named, fixed = {}, []
        for dimension, part in enumerate(self._parts):
            names = ("lo", "hi", "step") if isinstance(part, slice) else ("at",)
            for name, value in zip(names, _bounds(part)):
                if value is None:
                    continue
                numbers = [np.array(_number(value, i), np.int32) for i in range(len(data))]
                if name == "step":
                    fixed.append((f"step_{dimension}", int(numbers[0])))
                else:
                    named[f"{name}_{dimension}"] = TensorListCPU._of(numbers)
        fixed.append(("device", "gpu"))
        function = fn._tensor_subscript
        return plans.run(function, [data], named, tuple(fixed), len(data), data.device_id(), context.num_threads)[0]


def part_of(source, ranges):
    """A part of a tensor, or of each sample of a batch."""
    parts = list(ranges) if isinstance(ranges, tuple) else [ranges]
    if all(_is_full(part) or part is Ellipsis for part in parts) and sum(part is Ellipsis for part in parts) <= 1:
        return source
    bounds = [bound for part in parts for bound in _bounds(part) if batching.is_ours(bound)]
    size = batching.size_of([source, *bounds])
    invocation = Invocation(Part(parts, source.ndim, source.device), None, [source], {}, size is not None, size)
    return batching.outputs_of(invocation, source._is_external() or any(bound._is_external() for bound in bounds))[0]
