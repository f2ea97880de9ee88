"""Values of the user's as `TensorCPU`, `TensorGPU` and lists of them; moving these between devices and types."""

from enum import Enum

import numpy as np

from .._tensors import dlpack
from .._tensors.arrays import is_torch_tensor
from .._tensors.device_array import DeviceArray
from .._tensors.enums import DALIDataType, DALIImageType, DALIInterpType, dtype_of, to_numpy_type
from .._tensors.feeding import to_array
from .._tensors.feeding_device import device_arrays
from .._tensors.tensor import TensorCPU, TensorGPU
from .._tensors.tensor_list import TensorListCPU, TensorListGPU
from . import plans
from .device import Device

ENUMS = {
    DALIDataType: DALIDataType.DATA_TYPE,
    DALIImageType: DALIDataType.IMAGE_TYPE,
    DALIInterpType: DALIDataType.INTERP_TYPE,
}
_STORAGES = (TensorCPU, TensorListCPU)


def device_of(storage):
    """Where a tensor or a batch lies."""
    if isinstance(storage, (TensorGPU, TensorListGPU)):
        return Device("gpu", storage.device_id())
    return Device.CPU


def is_array(value):
    """Whether a value is one array of any library, and not numbers or lists of Python's."""
    if isinstance(value, (np.ndarray, np.generic, bytes, bytearray, *_STORAGES)) or is_torch_tensor(value):
        return True
    return any(
        hasattr(value, name) for name in ("__dlpack__", "__array__", "__array_interface__", "__cuda_array_interface__")
    )


def of_python(value, dtype=None):
    """Numbers and nested lists of Python's as a `TensorCPU`: integers have 32 bits, real numbers, too."""
    array = np.array(value)
    if array.dtype.kind == "O" or isinstance(value, Enum):
        return _of_enums(value, dtype)
    if dtype is not None:
        wanted = to_numpy_type(dtype)
        if array.dtype.kind in "iu" and np.dtype(wanted).kind in "iu" and array.size:
            limits = np.iinfo(wanted)
            for number in (int(array.min()), int(array.max())):
                if not limits.min <= number <= limits.max:
                    raise OverflowError(f"the number {number} does not fit {limits.dtype}")
        array = array.astype(wanted)
    elif array.dtype.kind in "iu":
        array = _smallest(array)
    elif array.dtype.kind == "f":
        array = array.astype(np.float32)
    elif array.dtype.kind != "b":
        raise TypeError(f"expected numbers, truth values, or lists of them; found {value!r}"[:200])
    return TensorCPU._of(array, "", "", dtype)


def _smallest(array):
    low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
    for kind in (np.int32, np.uint32):
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return array.astype(kind)
    raise OverflowError(f"a number of {low} to {high} does not fit 32 bits; give a `dtype`, or an array of numpy's")


def _of_enums(value, dtype):
    flat = np.array(value, dtype=object)
    kinds = {type(element) for element in flat.flat}
    if len(kinds) != 1 or next(iter(kinds)) not in ENUMS:
        raise TypeError(f"expected numbers, or values of one enumeration; found {value!r}"[:200])
    numbers = np.array([int(element) for element in flat.flat], np.int32).reshape(flat.shape)
    own = ENUMS[next(iter(kinds))]
    made = TensorCPU._of(numbers, "", "", own)
    return made if dtype in (None, own) else cast(made, dtype)


def of_array(value, layout=""):
    """An array of any library as a `TensorCPU` or `TensorGPU`, which shares its memory where that can be."""
    if isinstance(value, TensorCPU):
        return value
    if isinstance(value, TensorListCPU):
        raise TypeError("expected one tensor, found a batch")
    if isinstance(value, (bytes, bytearray)):
        value = np.frombuffer(value, np.uint8)
    on_gpu = hasattr(value, "__cuda_array_interface__") and not (is_torch_tensor(value) and value.device.type == "cpu")
    if on_gpu and not isinstance(value, np.ndarray):
        return _of_gpu(value)
    array = value if isinstance(value, np.ndarray) else _on_host(value)
    if not array.flags.c_contiguous or not array.dtype.isnative:
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
    if dtype_of(array) is None:
        raise TypeError(f"a tensor has no elements of the type {array.dtype}")
    return TensorCPU._of(array, "", "", None)


def _on_host(value):
    """An array of another library as one of numpy's."""
    try:
        if is_torch_tensor(value):
            value = value.detach()
        array = np.from_dlpack(value) if dlpack.is_host(value) else to_array(value)
    except Exception as error:
        raise TypeError(f"a `{type(value).__name__}` cannot be read as an array: {error}") from error
    if array.dtype.kind == "O" and hasattr(value, "__dlpack_device__"):
        raise TypeError(
            f"a `{type(value).__name__}` is in memory that cannot be read here: DLPack's device is {value.__dlpack_device__()}"
        )
    return array


def _of_gpu(value):
    """What another library has in memory of the GPU; brought there from the host if it is not dense."""
    arrays = device_arrays([value], copy=False)
    if arrays is not None:
        return TensorGPU._of(arrays[0], "", "", None)
    return sample(plans.moved(TensorListCPU([TensorGPU(value).as_cpu()]), "gpu"), 0)


def parts(stored, layout):
    """A batch of what lies along the first dimension of a tensor."""
    kind = TensorListGPU if isinstance(stored, TensorGPU) else TensorListCPU
    data = stored._data
    arrays = data.parts() if isinstance(data, DeviceArray) else [data[i, ...] for i in range(len(data))]
    made = kind._of(arrays, stored.layout()[1:] if layout is None else layout, stored.dtype)
    made._ndim = stored.ndim() - 1
    return made


def with_layout(storage, layout):
    """The same data with another layout."""
    if len(layout or "") not in (0, storage.ndim()):
        raise ValueError(f"the layout `{layout}` has {len(layout)} letters, and the data {storage.ndim()} dimensions")
    if isinstance(storage, TensorListCPU):
        made = type(storage)._of(list(storage._data), layout or "", storage.dtype, storage._infos)
        made._ndim = storage.ndim()
        return made
    return type(storage)._of(storage._data, layout or "", storage._info, storage._dtype)


def cast(storage, dtype):
    """The same data with elements of another type, rounded and cut off as the operator `cast` does."""
    if storage.dtype == dtype:
        return storage
    batch = storage if isinstance(storage, TensorListCPU) else listed(storage)
    target = DALIDataType.INT32 if dtype in ENUMS.values() else dtype
    if not len(batch):
        return type(batch)._of([], batch.layout(), dtype)
    if batch.dtype not in ENUMS.values() or target != DALIDataType.INT32:
        batch = plans.cast(batch, target)
    batch = type(batch)._of(list(batch._data), batch.layout(), dtype)
    return batch if isinstance(storage, TensorListCPU) else sample(batch, 0)


def moved(storage, device, force=False):
    """The same data on a device; a copy if it is moved, or if `force`."""
    if device == device_of(storage) and not force:
        return storage
    is_list = isinstance(storage, TensorListCPU)
    batch = storage if is_list else listed(storage)
    if device.device_type == "cpu":
        made = TensorListCPU._of([array.copy() for array in batch.arrays], batch.layout(), batch.dtype, batch._infos)
    elif len(batch):
        made = plans.moved(batch, "gpu", device.device_id)
        made = type(made)._of(list(made._data), made.layout(), batch.dtype, batch._infos)
    else:
        made = TensorListGPU._of([], batch.layout(), batch.dtype)
    made._ndim = batch._ndim
    return made if is_list else sample(made, 0)


def listed(storage, count=1):
    """A batch of one tensor, `count` times."""
    kind = TensorListGPU if isinstance(storage, TensorGPU) else TensorListCPU
    infos = [storage.source_info()] * count if storage.source_info() else None
    return kind._of([storage._data] * count, storage.layout(), storage.dtype, infos)


def sample(batch, index):
    """A sample of a batch."""
    if not -len(batch) <= index < len(batch):
        raise IndexError(f"the batch has {len(batch)} samples, there is none with the number {index}")
    info = batch._infos[index] if batch._infos else ""
    return batch._sample_type._of(batch._data[index], batch.layout(), info, batch.dtype)


def joined(samples, layout=None):
    """A batch of tensors that lie on one device and have one type and rank."""
    first = samples[0]
    for i, one in enumerate(samples):
        if one.dtype != first.dtype or one.ndim() != first.ndim() or type(one) is not type(first):
            raise ValueError(
                f"The samples of a batch must have one type, rank and device: sample {i} is {_facts(one)}, the first one {_facts(first)}."
            )
    kind = TensorListGPU if isinstance(first, TensorGPU) else TensorListCPU
    infos = [one.source_info() for one in samples]
    return kind._of(
        [one._data for one in samples],
        first.layout() if layout is None else layout,
        first.dtype,
        infos if any(infos) else None,
    )


def _facts(storage):
    return f"{storage.dtype.name} of {storage.ndim()} dimensions on {storage.device_name}"
