"""`TensorCPU` and `TensorGPU`: one sample."""

import ctypes
import operator

import numpy as np

from . import dlpack, formatting
from .device_array import DeviceArray, on_host
from .enums import DALIDataType, dtype_of, to_numpy_type


def address_of(array):
    """Where an array's elements are."""
    return array.__array_interface__["data"][0]


def layout_text(layout):
    """A layout as a text; None is the empty one."""
    return "" if layout is None else str(layout)


def check_layout(layout, ndim, what):
    """Raises unless a layout has a letter for each dimension, or none."""
    if layout and len(layout) != ndim:
        raise ValueError(
            f"layout `{layout}` has {len(layout)} letters, expected {ndim}: one for each dimension of the {what}"
        )


def host_array(value, what):
    """`value` as a dense array without a copy: of anything that has a buffer, the array interface or DLPack."""
    if isinstance(value, np.ndarray):
        array = value
    elif dlpack.is_capsule(value):
        array = dlpack.from_capsule(value)
    elif isinstance(value, (bool, int, float, str, list, tuple)):
        raise TypeError(
            f"{what}(): incompatible constructor arguments. Expected an array or a DLPack object, got {type(value)}."
        )
    elif dlpack.is_host(value):
        array = np.from_dlpack(value)
    elif hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        array = np.asarray(value)
    else:
        try:
            array = np.asarray(memoryview(value))
        except TypeError:
            raise TypeError(
                f"{what}(): incompatible constructor arguments. Expected an array or a DLPack object, got {type(value)}."
            ) from None
    if dtype_of(array) is None:
        raise RuntimeError(f"Cannot create type for unknown format string: {array.dtype.str}")
    if not array.flags.c_contiguous:
        raise RuntimeError(
            f"Strided data not supported. The array of shape {array.shape} has strides {array.strides}; densely packed data is needed."
        )
    return array


def _axes_to_squeeze(shape, dim):
    if dim is None:
        return [i for i, extent in enumerate(shape) if extent == 1]
    axis = dim + len(shape) if dim < 0 else dim
    if not 0 <= axis < len(shape):
        raise IndexError(f"Dimension {dim} is out of range for a tensor with {len(shape)} dimensions.")
    return [axis] if shape[axis] == 1 else []


class TensorCPU:
    """A tensor in host memory; shares the memory of what it is made of. numpy reads it without a copy."""

    device_name = "cpu"

    def __init__(self, value, layout=None, is_pinned=False, *, _info="", _dtype=None):
        array = value.array if isinstance(value, TensorCPU) else host_array(value, "TensorCPU")
        self._data = array
        self._layout = layout_text(layout)
        self._info = _info
        self._dtype = _dtype
        check_layout(self._layout, array.ndim, "Tensor")

    @classmethod
    def _of(cls, array, layout, info, dtype):
        """A tensor of a dense array, which is not checked."""
        tensor = cls.__new__(cls)
        tensor._data, tensor._layout, tensor._info, tensor._dtype = array, layout, info, dtype
        return tensor

    @property
    def array(self):
        """The elements as a numpy array."""
        return self._data

    @property
    def dtype(self):
        """The type of the elements."""
        return self._dtype or dtype_of(self._data)

    def shape(self):
        """Extents."""
        return list(self._data.shape)

    def ndim(self):
        """The number of dimensions."""
        return self._data.ndim

    def layout(self):
        """One letter for each dimension, or nothing."""
        return self._layout

    def set_layout(self, layout):
        """Gives it another layout."""
        check_layout(layout_text(layout), self._data.ndim, "Tensor")
        self._layout = layout_text(layout)

    def source_info(self):
        """Where it comes from."""
        return self._info

    def get_property(self, key):
        """`layout` or `source_info`; None for what is not known."""
        return {"layout": self._layout or None, "source_info": self._info or None}.get(key)

    def data_ptr(self):
        """The address of the elements."""
        return address_of(self.array)

    def squeeze(self, dim=None):
        """Removes dimensions of extent 1, or only `dim`; says whether there were any."""
        axes = _axes_to_squeeze(self._data.shape, dim)
        if axes:
            self._data = self._data.squeeze(tuple(axes))
            self._layout = "".join(letter for i, letter in enumerate(self._layout) if i not in axes)
        return bool(axes)

    def reinterpret(self, new_type):
        """Reads the same bytes as another type of the same size."""
        self._data = reinterpreted(self._data, new_type)
        self._dtype = None

    def as_cpu(self):
        """Itself."""
        return self

    def _as_gpu(self):
        return TensorGPU(self)

    def _make_copy(self):
        return TensorCPU(self.array.copy(), self._layout)

    def copy_to_external(self, pointer, *_, **__):
        """Copies the elements to an address (`ctypes.c_void_p`)."""
        ctypes.memmove(address_in(pointer, self.array.nbytes), self.data_ptr(), self.array.nbytes)

    @property
    def __array_interface__(self):
        interface = self.array.__array_interface__
        interface["data"] = (interface["data"][0], False)
        return interface

    def __array__(self, dtype=None, copy=None):
        return (
            np.array(self.array, dtype=dtype, copy=copy)
            if copy
            else self.array.astype(dtype or self.array.dtype, copy=False)
        )

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        dlpack.check_device(dlpack.HOST, dl_device)
        array = self.array
        # numpy lends no array that nobody may write to.
        if copy or copy is None and not array.flags.writeable:
            array = array.copy()
        return array.__dlpack__()

    def __dlpack_device__(self):
        return dlpack.HOST

    def __str__(self):
        return formatting.format_tensor(self)

    def __repr__(self):
        return formatting.format_tensor(self, show_data=False)


def reinterpreted(array, new_type):
    """The same bytes as `new_type`."""
    kind = np.dtype(to_numpy_type(new_type))
    if kind.itemsize != array.dtype.itemsize:
        raise RuntimeError(f"Cannot reinterpret {array.dtype} as {new_type}: the types have different element sizes.")
    return array.view(kind)


class TensorGPU(TensorCPU):
    """A tensor that a pipeline makes on a GPU, in memory of the GPU: other libraries take it by DLPack or
    `__cuda_array_interface__`. On a host without a GPU, and of what is made of host arrays, it is in host memory."""

    device_name = "gpu"

    def __init__(self, value, layout=None, device_id=None, *, _info="", _dtype=None):
        layout = layout or getattr(value, "_layout", None)
        device = value._data if isinstance(value, TensorGPU) else value
        if not isinstance(device, DeviceArray):
            super().__init__(_fetch(value), layout, _info=_info, _dtype=_dtype)
            return
        self._data, self._layout, self._info, self._dtype = device, layout_text(layout), _info, _dtype
        check_layout(self._layout, device.ndim, "Tensor")

    @property
    def array(self):
        """The elements as a numpy array; those in memory of the GPU are copied."""
        return on_host(self._data)

    @property
    def stream(self):
        """The stream that writes it; None: it is written."""
        return None

    def device_id(self):
        """The number of the GPU."""
        return self._data.device_id if isinstance(self._data, DeviceArray) else 0

    def data_ptr(self):
        """The address of the elements."""
        return self._on_device().address if isinstance(self._data, DeviceArray) else super().data_ptr()

    def _on_device(self):
        self._data.memory.lent = True
        return self._data

    def as_cpu(self):
        """The same tensor in host memory."""
        return TensorCPU(self.array, self._layout, _info=self._info, _dtype=self._dtype)

    def _as_gpu(self):
        return self

    def copy_to_external(self, pointer, *arguments, **named):
        """Copies the elements to an address (`ctypes.c_void_p`) on the host or a GPU; returns when that is done."""
        if isinstance(self._data, DeviceArray):
            self._data.copied_to(address_in(pointer, self._data.nbytes))
        else:
            super().copy_to_external(pointer, *arguments, **named)

    @property
    def __cuda_array_interface__(self):
        if not isinstance(self._data, DeviceArray):
            raise AttributeError("the tensor is in host memory: there is no GPU")
        return self._data.__cuda_array_interface__

    def __dlpack__(self, **named):
        return self._data.__dlpack__(**named) if isinstance(self._data, DeviceArray) else super().__dlpack__(**named)

    def __dlpack_device__(self):
        return self._data.__dlpack_device__() if isinstance(self._data, DeviceArray) else super().__dlpack_device__()


def address_in(pointer, length):
    """The number in an address to which `length` bytes are copied. Null is refused, unless there are none: what is
    copied there would end the process."""
    value = pointer.value if isinstance(pointer, ctypes.c_void_p) else pointer
    try:
        address = operator.index(0 if value is None else value)
    except TypeError:
        raise TypeError(
            f"an address: expected a number or a `ctypes.c_void_p`, found a `{type(value).__name__}`"
        ) from None
    if not 0 <= address < 1 << 64 or length and not address:
        raise ValueError(f"an address: expected a number above 0 of at most 64 bits, found {address}")
    return address


def _fetch(value):
    """Host memory with what an object on the GPU holds."""
    if isinstance(value, TensorCPU):
        return value
    for method in ("get", "cpu"):
        fetch = getattr(value, method, None)
        if fetch is not None and hasattr(value, "__cuda_array_interface__"):
            value = fetch()
            break
    return value.numpy() if hasattr(value, "numpy") else value


NO_TYPE = DALIDataType.NO_TYPE
