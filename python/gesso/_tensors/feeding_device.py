"""Data that users give for a batch in memory of a GPU: it stays there."""

import numpy as np

from .device_array import LEGACY_STREAM, DeviceArray, Memory, device_of_address, wait_for
from .tensor import TensorGPU
from .tensor_list import TensorListGPU


def device_arrays(data, copy):
    """The samples of `data` on a GPU: of a batch or a list those in it, of an array those along its first dimension.
    None: something of it is in host memory, or not dense. With `copy` its owner may change it afterwards."""
    if isinstance(data, TensorListGPU):
        return list(data._data) if data._is_on_device() else None
    if isinstance(data, (list, tuple)):
        arrays = [_device_array(value, copy) for value in data] if data and _is_device(data[0]) else [None]
        return None if None in arrays else arrays
    whole = _device_array(data, copy) if _is_device(data) else None
    return whole.parts() if whole is not None and whole.ndim else None


def _is_device(value):
    if isinstance(value, (np.ndarray, bytes)):
        return False
    return (
        isinstance(value, TensorGPU)
        and isinstance(value._data, DeviceArray)
        or hasattr(_plain(value), "__cuda_array_interface__")
    )


def _plain(value):
    """Of PyTorch's tensors those that do not want gradients have the interface."""
    return value.detach() if hasattr(value, "detach") else value


def _device_array(value, copy):
    if isinstance(value, TensorGPU):
        return value._data if isinstance(value._data, DeviceArray) else None
    value = _plain(value)
    if not hasattr(value, "__cuda_array_interface__"):
        return None
    if copy:
        duplicate = getattr(value, "clone", None) or getattr(value, "copy", None)
        if duplicate is None:
            return None
        value = duplicate()
    interface = value.__cuda_array_interface__
    address = interface["data"][0]
    if interface.get("strides") is not None or not address:
        return None
    device_id = device_of_address(address)
    # Without a stream of its own it may come from any: that of PyTorch is its current one.
    wait_for(
        device_id, interface.get("stream") or getattr(_current_stream(value), "cuda_stream", None) or LEGACY_STREAM
    )
    return DeviceArray(address, interface["shape"], interface["typestr"], Memory(value, device_id))


def _current_stream(value):
    if type(value).__module__.split(".")[0] != "torch":
        return None
    import torch

    return torch.cuda.current_stream(value.device)
