"""`TensorListCPU` and `TensorListGPU`: a batch. Its samples share a type and a number of dimensions, not a shape."""

import ctypes

import numpy as np

from . import formatting
from .device_array import DeviceArray, on_host, side_by_side, stacked
from .enums import DALIDataType, dtype_of
from .tensor import (
    TensorCPU,
    TensorGPU,
    _fetch,
    address_in,
    address_of,
    check_layout,
    host_array,
    layout_text,
    reinterpreted,
)

_NOT_DENSE = (
    "Cannot produce a numpy array: the tensors in the list do not all have the same shape. "
    "Pad or crop the samples to a common shape, or check is_dense_tensor() beforehand."
)
_NOT_TENSOR = (
    "The batch must be representable as a tensor - it must have uniform shape and be allocated in contiguous memory."
)


def _dense(arrays):
    """One array with all samples: a view where they lie side by side in memory, else a copy."""
    first = arrays[0]
    size = first.nbytes
    base = getattr(first, "base", None)
    start = address_of(first)
    if size and all(address_of(array) == start + i * size for i, array in enumerate(arrays)):
        whole = getattr(base, "shape", None)
        if isinstance(base, np.ndarray) and whole == (len(arrays), *first.shape) and base.flags.c_contiguous:
            return base
        owner = getattr(base, "owner", None)
        if (
            owner is not None
            and first.flags.c_contiguous
            and all(getattr(array.base, "owner", None) is owner for array in arrays)
        ):
            return np.lib.stride_tricks.as_strided(first, (len(arrays), *first.shape), (size, *first.strides))
    return np.stack(arrays)


class TensorListCPU:
    """A batch in host memory: a sequence of samples.

    Made of one array whose first dimension counts samples, or of a list of tensors.
    """

    device_name = "cpu"
    _sample_type = TensorCPU

    def __init__(self, value, layout=None, contiguous=True, is_pinned=False):
        self._infos = None
        if isinstance(value, TensorListCPU):
            self._data, self._layout, self._dtype = list(value.arrays), value._layout, value._dtype
        elif isinstance(value, list):
            self._take_list(value, contiguous)
        else:
            array = host_array(value.array if isinstance(value, TensorCPU) else value, type(self).__name__)
            if array.ndim == 0:
                raise RuntimeError("Cannot create TensorList from 0-dim array.")
            self._data, self._layout, self._dtype = [array[i, ...] for i in range(len(array))], "", dtype_of(array)
            self._ndim = array.ndim - 1
        if not hasattr(self, "_ndim"):
            self._ndim = self._data[0].ndim if self._data else 0
        if layout is not None:
            self.set_layout(layout)

    @classmethod
    def _of(cls, arrays, layout="", dtype=None, infos=None):
        """A batch of dense arrays of one type, which are not checked."""
        batch = cls.__new__(cls)
        batch._data, batch._layout, batch._infos = arrays, layout, infos
        batch._dtype = dtype or (dtype_of(arrays[0]) if arrays else DALIDataType.NO_TYPE)
        batch._ndim = len(arrays[0].shape) if arrays else 0
        return batch

    def _take_list(self, values, contiguous):
        kind = self._sample_type
        tensors = []
        for i, value in enumerate(values):
            if isinstance(value, TensorCPU) and type(value) is not kind:
                raise TypeError(f"Object at position {i} cannot be converted to {kind.__name__}.")
            try:
                tensor = value if isinstance(value, kind) else kind(value)
            except (TypeError, RuntimeError) as error:
                raise TypeError(f"Object at position {i} cannot be converted to {kind.__name__}.") from error
            tensors.append(tensor)
            if tensor.dtype != tensors[0].dtype:
                raise TypeError(
                    f"Tensors cannot have different data types. Tensor at position {i} has type '{tensor.dtype}' expected to have "
                    f"type '{tensors[0].dtype}'."
                )
            if tensor.ndim() != tensors[0].ndim():
                raise TypeError(f"Object at position {i} cannot be converted to {kind.__name__}.")
        self._data = [tensor.array.copy() if contiguous else tensor.array for tensor in tensors]
        self._layout = tensors[0].layout() if tensors else ""
        self._dtype = tensors[0].dtype if tensors else DALIDataType.NO_TYPE

    @classmethod
    def from_dlpack_list(cls, list_of_objects, layout=None, contiguous=False):
        """A batch of DLPack objects."""
        return cls([cls._sample_type(value) for value in list_of_objects], layout, contiguous)

    @staticmethod
    def broadcast(tensor, count):
        """A batch that has the same tensor `count` times."""
        return TensorListCPU._of([tensor.array] * count, tensor.layout(), tensor.dtype)

    @property
    def arrays(self):
        """The samples as numpy arrays."""
        return self._data

    @property
    def dtype(self):
        """The type of the elements."""
        return self._dtype

    def shape(self):
        """The shape of each sample."""
        return [array.shape for array in self._data]

    def ndim(self):
        """The number of dimensions of a sample."""
        return self._ndim

    def layout(self):
        """One letter for each dimension, or nothing."""
        return self._layout

    def set_layout(self, layout):
        """Gives the samples another layout."""
        layout = layout_text(layout)
        check_layout(layout, self._ndim, "TensorList")
        self._layout = layout

    def reinterpret(self, new_type):
        """Reads the same bytes as another type of the same size."""
        self._data = [reinterpreted(array, new_type) for array in self._data]
        self._dtype = new_type

    def is_dense_tensor(self):
        """Whether all samples have the same shape."""
        return len({array.shape for array in self._data}) <= 1

    def __len__(self):
        return len(self._data)

    def __getitem__(self, index):
        count = len(self._data)
        if not -count <= index < count:
            raise IndexError(f"Index {index} is out of range for a batch of {count} samples.")
        info = self._infos[index] if self._infos else ""
        return self._sample_type._of(self._data[index], self._layout, info, self._dtype)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def at(self, index):
        """A sample as a numpy array."""
        if not 0 <= index < len(self.arrays):
            raise RuntimeError(f"Index is out-of-range: {index} of a batch of {len(self.arrays)} samples.")
        return np.asarray(self.arrays[index])

    def as_array(self):
        """All samples in one numpy array, if they have the same shape."""
        if not self.is_dense_tensor():
            raise RuntimeError(_NOT_DENSE)
        if not self.arrays:
            return np.empty((0,), np.float32)
        return _dense(self.arrays)

    def as_tensor(self):
        """All samples in one tensor, if they have the same shape."""
        if not self.is_dense_tensor():
            raise RuntimeError(_NOT_TENSOR)
        layout = "N" + self._layout if self._layout else ""
        whole = self.as_array()
        self._data = [whole[i, ...] for i in range(len(self._data))]
        return self._sample_type(whole, layout)

    def as_reshaped_tensor(self, shape):
        """All elements in one tensor of another shape."""
        total = sum(array.size for array in self.arrays)
        if not self.is_dense_tensor():
            raise RuntimeError(_NOT_TENSOR)
        if int(np.prod(shape, dtype=np.int64)) != total:
            raise RuntimeError(
                "To create a view Tensor, requested shape need to have the same volume as the batch, "
                f"requested: {int(np.prod(shape, dtype=np.int64))} expected: {total}"
            )
        return self._sample_type(self.as_array().reshape(shape))

    def as_cpu(self):
        """Itself."""
        return self

    def _as_gpu(self):
        return TensorListGPU._of(list(self._data), self._layout, self._dtype, self._infos)

    def _make_copy(self):
        return type(self)._of([array.copy() for array in self.arrays], self._layout, self._dtype, self._infos)

    def data_ptr(self):
        """The address of the first sample's elements."""
        return address_of(self.arrays[0]) if self.arrays else 0

    def copy_to_external(self, pointer, *_, **__):
        """Copies all elements, one sample behind the other, to an address (`ctypes.c_void_p`)."""
        address = address_in(pointer, sum(array.nbytes for array in self.arrays))
        for array in self.arrays:
            ctypes.memmove(address, address_of(array), array.nbytes)
            address += array.nbytes

    def reset(self):
        """Lets the samples go."""
        self._data, self._infos = [], None

    def __array__(self, dtype=None, copy=None):
        array = self.as_array()
        return array if dtype is None else array.astype(dtype)

    def __str__(self):
        return formatting.format_batch(self)

    def __repr__(self):
        return formatting.format_batch(self, show_data=False)


class TensorListGPU(TensorListCPU):
    """A batch that a pipeline makes on a GPU, in memory of the GPU: other libraries take its samples, or all of them as
    a tensor, by DLPack or `__cuda_array_interface__`. On a host without a GPU, and of what is made of host arrays, it
    is in host memory."""

    device_name = "gpu"
    _sample_type = TensorGPU

    def __init__(self, value, layout=None, contiguous=True, device_id=None):
        if isinstance(value, list) and value and all(isinstance(tensor, TensorGPU) for tensor in value):
            value = TensorListGPU._of([tensor._data for tensor in value], value[0].layout(), value[0].dtype)
        elif not isinstance(value, (list, TensorListCPU)):
            value = _fetch(value)
        super().__init__(value, layout, contiguous)
        if isinstance(value, TensorListGPU):
            self._data = list(value._data)

    @property
    def arrays(self):
        """The samples as numpy arrays; those in memory of the GPU are copied."""
        return [on_host(array) for array in self._data]

    def at(self, index):
        """A sample as a `TensorGPU`."""
        if not 0 <= index < len(self._data):
            raise RuntimeError(f"Index is out-of-range: {index} of a batch of {len(self._data)} samples.")
        return self[index]

    def _is_on_device(self):
        return bool(self._data) and set(map(type, self._data)) == {DeviceArray}

    def as_array(self):
        """All samples in one numpy array, if they have the same shape; copied from the GPU."""
        whole = side_by_side(self._data) if self._is_on_device() else None
        return on_host(whole) if whole is not None else super().as_array()

    def _whole(self):
        """All samples as one array on the GPU, copied unless they lie side by side; None: they are not there, or not of
        one shape."""
        if not self._is_on_device():
            return None
        whole = side_by_side(self._data)
        if whole is not None and whole.strides is None:
            return whole
        return stacked(self._data) if self.is_dense_tensor() else None

    def as_tensor(self):
        """All samples in one tensor, if they have the same shape; on the GPU, if they are there."""
        whole = self._whole()
        if whole is None:
            return super().as_tensor()
        return TensorGPU._of(whole, "N" + self._layout if self._layout else "", "", self._dtype)

    def as_reshaped_tensor(self, shape):
        """All elements in one tensor of another shape."""
        whole = self._whole()
        if whole is None or int(np.prod(shape, dtype=np.int64)) != whole.size:
            return super().as_reshaped_tensor(shape)
        return TensorGPU(whole.reshape(tuple(shape)))

    def as_cpu(self):
        """The same batch in host memory."""
        return TensorListCPU._of(self.arrays, self._layout, self._dtype, self._infos)

    def _as_gpu(self):
        return self

    def data_ptr(self):
        """The address of the first sample's elements."""
        return self[0].data_ptr() if self._data else 0

    def copy_to_external(self, pointer, *_, **__):
        """Copies all elements, one sample behind the other, to an address (`ctypes.c_void_p`) on the host or a GPU."""
        address = address_in(pointer, sum(array.nbytes for array in self._data))
        for sample, array in zip(self, self._data):
            sample.copy_to_external(address)
            address += array.nbytes

    def device_id(self):
        """The number of the GPU."""
        return self[0].device_id() if self._data else 0

    @property
    def stream(self):
        """The stream that writes it; None: it is written."""
        return None
