"""`Tensor`: one sample, or what will be one when it is asked for; `tensor` and `as_tensor` make it of anything."""

import numpy as np

from .._tensors.formatting import format_tensor
from .._tensors.tensor import TensorGPU
from .._tensors.tensor_list import TensorListCPU
from . import arithmetic, batching, plans, slicing
from . import storage as _storage
from .device import Device
from .device import device as _device
from .dtypes import DType
from .dtypes import dtype as _dtype
from .expressions import Step
from .invocation import Invocation
from .modes import EvalMode


class Tensor(batching._Ours):
    """A tensor on a device: `shape`, `dtype`, `layout` and `device` say what it is, `evaluate` makes sure that it is
    there.

    `data`: numbers and lists, an array of any library, or a `Tensor`. What is an array already is not copied unless
    `copy` is set, or unless its type or place changes."""

    def __init__(self, data, dtype=None, device=None, layout=None, *, copy=False):
        self._result = self._batch = self._index = None
        self._external = False
        if layout is not None and not isinstance(layout, str):
            raise ValueError(f"Layout must be a string, got {type(layout)}")
        wanted = None if dtype is None else _dtype(dtype).type_id
        if isinstance(data, Tensor):
            stored, self._external = data.evaluate()._storage, data._external
        elif _storage.is_array(data):
            stored, self._external = _storage.of_array(data), True
        else:
            stored, copy = _storage.of_python(data, wanted), False
        before = stored
        if wanted is not None:
            stored = _storage.cast(stored, wanted)
        target = _storage.device_of(stored) if device is None else _device(device)
        if target != _storage.device_of(stored) or copy and stored is before:
            stored = _storage.moved(stored, target, force=True)
        self._external = self._external and stored is before
        self._storage = stored if layout is None else _storage.with_layout(stored, layout)

    @classmethod
    def _of_result(cls, result):
        """What a call will give."""
        made = cls.__new__(cls)
        made._result, made._storage, made._batch, made._index, made._external = result, None, None, None, False
        return made

    @classmethod
    def _of_storage(cls, stored):
        """What a call gave."""
        made = cls._of_result(None)
        made._storage = stored
        return made

    @classmethod
    def _of_sample(cls, batch, index):
        """A sample of a batch that is not there yet."""
        made = cls._of_result(None)
        made._batch, made._index = batch, index
        return made

    # DALI's name.
    _invocation_result = property(lambda self: self._result)

    def _is_external(self):
        """Whether its memory is somebody else's, who may change it."""
        return self._external

    def evaluate(self):
        """Makes sure that the data is there; itself."""
        if self._storage is None:
            if self._batch is not None:
                self._storage = _storage.sample(self._batch.evaluate()._storage, self._index)
            else:
                self._storage = self._result.value()
        return self

    def _fact(self, name):
        """Of the data, or what is known before."""
        source = self._result if self._result is not None else self._batch
        return getattr(source, name)

    @property
    def shape(self):
        """Extents, a tuple."""
        return tuple(self.evaluate()._storage.shape())

    @property
    def dtype(self):
        """The type of the elements."""
        return DType.from_type_id(self._storage.dtype) if self._storage is not None else _dtype(self._fact("dtype"))

    @property
    def ndim(self):
        """The number of dimensions."""
        return self._storage.ndim() if self._storage is not None else self._fact("ndim")

    @property
    def layout(self):
        """A letter for each dimension, or None."""
        return (self._storage.layout() if self._storage is not None else self._fact("layout")) or None

    @property
    def device(self):
        """Where it is, or will be."""
        return _storage.device_of(self._storage) if self._storage is not None else self._fact("device")

    size = property(lambda self: int(np.prod(self.shape, dtype=np.int64)), doc="The number of elements.")
    itemsize = property(lambda self: self.dtype.bytes, doc="Bytes of an element.")
    nbytes = property(lambda self: self.size * self.itemsize, doc="Bytes of all elements.")

    def to_device(self, device, force_copy=False):
        """The tensor on another device; itself if it is there and no copy is asked for."""
        target = _device(device)
        if target == self.device and not force_copy:
            return self
        invocation = Invocation(Moved(target), None, [self], {})
        return batching.outputs_of(invocation, self._external)[0]

    def cpu(self):
        """The tensor in host memory."""
        return self.to_device(Device.CPU)

    def gpu(self, index=None):
        """The tensor in memory of a GPU, by default the current one."""
        return self.to_device(Device("gpu", index))

    def item(self):
        """Its only element, as a number of Python's."""
        if self.size != 1:
            raise ValueError(f"Tensor has {self.size} elements, expected 1")
        return self.cpu().evaluate()._storage.array.item()

    def __getitem__(self, ranges):
        return slicing.part_of(self, ranges)

    def __len__(self):
        if not self.ndim:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __bool__(self):
        return bool(self.item())

    def _number(self, kind):
        return kind(self.item())

    __int__ = lambda self: self._number(int)
    __float__ = lambda self: self._number(float)
    __index__ = lambda self: self._number(int)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype=None, copy=None):
        stored = self.evaluate()._storage
        if isinstance(stored, TensorGPU):
            raise TypeError("This is not a CPU tensor. Use `.cpu()` to get the array interface.")
        return stored.__array__(dtype, copy)

    @property
    def __cuda_array_interface__(self):
        stored = self.evaluate()._storage
        if not isinstance(stored, TensorGPU):
            raise AttributeError("This is not a GPU tensor. Use `.gpu()` to get the CUDA array interface.")
        return stored.__cuda_array_interface__

    def __dlpack__(self, **named):
        return self.evaluate()._storage.__dlpack__(**named)

    def __dlpack_device__(self):
        return self.evaluate()._storage.__dlpack_device__()

    def torch(self, copy=False):
        """As a tensor of PyTorch's, which shares the memory unless `copy`."""
        made = _torch().from_dlpack(self)
        return made.clone() if copy else made

    def _is_same_tensor(self, other):
        """Whether both are one piece of memory, or one call's result."""
        mine, others = self.evaluate()._storage, other.evaluate()._storage
        return mine is others or mine._data is others._data

    def __repr__(self):
        return format_tensor(_Shown(self))


class _Shown:
    """A tensor as the module that prints tensors sees it."""

    def __init__(self, value):
        stored = value.evaluate()._storage
        self.dtype, self.device_name = value.dtype, str(value.device)
        self.layout, self.shape, self.as_cpu = stored.layout, stored.shape, stored.as_cpu


_Shown.__name__ = "Tensor"


class Moved:
    """Brings data to a device, in memory of its own."""

    def __init__(self, device):
        self._target = device

    def _infer_num_outputs(self, *_, **__):
        return 1

    def _infer_output_devices(self, *_, **__):
        return [self._target]

    def _infer(self, _index, inputs, _args):
        source = inputs[0]
        return {"dtype": source.dtype.type_id, "ndim": source.ndim, "layout": source.layout or ""}

    def _step(self, inputs):
        if self._target.device_type == "cpu" or inputs[0].device.device_type != "cpu":
            return None
        return Step(plans.moved_node, (), self._target.device_id)

    def _run(self, _context, source, batch_size=None):
        return _storage.moved(source.evaluate()._storage, self._target, force=True)


class Joined:
    """Makes one tensor of a batch: the samples behind each other, padded with zeros if `pad`."""

    def __init__(self, pad, dtype, device, layout, copy):
        self._pad, self._dtype, self._device, self._layout, self._copy = pad, dtype, device, layout, copy

    def _infer_num_outputs(self, *_, **__):
        return 1

    def _infer_output_devices(self, source, **_):
        return [self._device or source.device]

    def _run(self, _context, source, batch_size=None):
        stored = source.evaluate()._storage
        place = self._device or _storage.device_of(stored)
        if not stored.is_dense_tensor():
            if not self._pad:
                raise ValueError(
                    f"The batch has a non-uniform shape: {stored.shape()}. With `pad=True` it becomes a tensor."
                )
            stored = _padded(stored)
        whole = stored.as_tensor()
        layout = "N" + stored.layout() if stored.layout() else ""
        made = _storage.with_layout(whole, layout if self._layout is None else self._layout)
        made = made if self._dtype is None else _storage.cast(made, self._dtype)
        return _storage.moved(made, place, force=self._copy)


def _padded(stored):
    """A batch on the host whose samples have one shape: behind the smaller ones there are zeros."""
    arrays = stored.arrays
    extents = [max(sizes) for sizes in zip(*(array.shape for array in arrays))]
    whole = np.zeros((len(arrays), *extents), arrays[0].dtype)
    for place, array in zip(whole, arrays):
        place[tuple(slice(extent) for extent in array.shape)] = array
    return TensorListCPU._of(list(whole), stored.layout(), stored.dtype)


def _torch():
    try:
        import torch
    except ImportError:
        raise RuntimeError("`.torch()` requires PyTorch to be installed.") from None
    return torch


def _made(data, dtype, device, layout, pad, copy):
    if isinstance(data, batching._Ours) and data._is_batch:
        wanted = None if dtype is None else _dtype(dtype).type_id
        operator = Joined(pad, wanted, _device(device), layout, copy)
        return batching.outputs_of(Invocation(operator, None, [data], {}), data._is_external())[0]
    if isinstance(data, Tensor) and EvalMode.current() is EvalMode.deferred and not copy:
        same = dtype is None and layout is None and (device is None or _device(device) == data.device)
        if same:
            return data
    return Tensor(data, dtype, device, layout, copy=copy)


def tensor(data, dtype=None, device=None, layout=None, pad=False):
    """A tensor in memory of its own: a copy of numbers, an array, a `Tensor`, or a `Batch` (with `pad`, of samples of
    several shapes)."""
    return _made(data, dtype, device, layout, pad, True)


def as_tensor(data, dtype=None, device=None, layout=None, pad=False):
    """As `tensor`, without a copy where that can be."""
    return _made(data, dtype, device, layout, pad, False)


def _of_type(self, data, **named):
    """A tensor of a type: `int16([1, 2])`."""
    if "dtype" in named:
        raise ValueError("`dtype` is given twice: the type that is called is the type of the tensor")
    return tensor(data, dtype=self, **named)


DType.__call__ = _of_type
batching.KINDS[False] = Tensor
arithmetic.install(Tensor)
__all__ = ["Tensor", "as_tensor", "tensor"]
