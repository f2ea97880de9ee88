"""`Device`: where data lies and operators run; a context that makes it the current one.

On a host without a GPU the device `gpu` is there too: a warning says so, and what it is asked for runs on the CPU."""

import ctypes
import functools
import threading
import warnings

from .._native.engine import has_gpu

_NO_GPU = 'there is no GPU on this host: what has `device="gpu"` runs on the CPU'


@functools.cache
def gpu_count():
    """How many GPUs there are."""
    count = ctypes.c_int()
    if has_gpu():
        ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(count))
    return count.value


@functools.cache
def _warn_once():
    warnings.warn(_NO_GPU, RuntimeWarning, stacklevel=4)


class _Stack(threading.local):
    def __init__(self):
        self.devices = []


_stack = _Stack()


def _current_gpu():
    """The number of the thread's current GPU."""
    for device in reversed(_stack.devices):
        if device.device_type == "gpu":
            return device.device_id
    return 0


class Device:
    """`cpu`, `gpu` (the current one) or `gpu:1`. `with Device("gpu:1"):` makes it the current one."""

    CPU = None

    def __init__(self, name, device_id=None):
        if not isinstance(name, str):
            raise TypeError(f"Invalid device name: expected a text, found {name!r}")
        kind, colon, number = name.partition(":")
        kind = "gpu" if kind == "cuda" else kind
        if colon:
            if device_id is not None:
                raise ValueError(f"Invalid device name: {name}. It has a number, and `device_id` is given too.")
            if not number.isdigit():
                raise ValueError(f"Invalid device name: {name}. Expected a number behind the colon.")
            device_id = int(number)
        if kind not in ("cpu", "gpu"):
            raise ValueError(f"Invalid device type: {kind}. Expected `cpu` or `gpu`.")
        if kind == "cpu" and device_id is not None:
            raise ValueError(f"Invalid device id: {device_id}. The CPU has no number.")
        if kind == "gpu":
            device_id = _checked_id(device_id)
        self.device_type, self.device_id = kind, device_id

    def __str__(self):
        return self.device_type if self.device_id is None else f"{self.device_type}:{self.device_id}"

    def __repr__(self):
        number = "" if self.device_id is None else f", device_id={self.device_id}"
        return f"Device(device_type={self.device_type!r}{number})"

    def __eq__(self, other):
        if not isinstance(other, Device):
            return NotImplemented
        return self.device_type == other.device_type and self.device_id == other.device_id

    def __hash__(self):
        return hash((self.device_type, self.device_id))

    @staticmethod
    def current():
        """The device of the innermost context; else the first GPU, or the CPU where there is none."""
        if _stack.devices:
            return _stack.devices[-1]
        return Device("gpu") if gpu_count() else Device.CPU

    @staticmethod
    def default_device_id(device_type):
        """The number of the current device of a kind; None for the CPU."""
        if device_type not in ("cpu", "gpu"):
            raise ValueError(f"Invalid device type: {device_type}")
        return None if device_type == "cpu" else _current_gpu()

    @staticmethod
    def type_from_dlpack(device_type):
        """`cpu` or `gpu` for a number of DLPack."""
        kind = {1: "cpu", 2: "gpu", 3: "cpu"}.get(int(device_type))
        if kind is None:
            raise ValueError(f"Unsupported device type: {device_type}")
        return kind

    @staticmethod
    def from_dlpack(value):
        """The device of an object that DLPack describes."""
        kind, number = value.__dlpack_device__()
        kind = Device.type_from_dlpack(kind)
        return Device(kind, number if kind == "gpu" else None)

    def __enter__(self):
        _stack.devices.append(self)
        return self

    def __exit__(self, *_):
        _stack.devices.pop()


def _checked_id(number):
    count = gpu_count()
    number = _current_gpu() if number is None else number
    if count == 0 and number == 0:
        _warn_once()
        return 0
    if not 0 <= number < count:
        raise ValueError(f"Invalid device id: {number} for device type: gpu. This host has {count}.")
    return number


Device.CPU = Device("cpu")


def device(value, id=None):
    """A `Device` for its name, a device of PyTorch, or itself; None for None."""
    if isinstance(value, str):
        return Device(value, id)
    if id is not None and value is not None:
        raise ValueError(f"`id` goes with a name; found it with a `{type(value).__name__}`")
    if value is None or isinstance(value, Device):
        return value
    if type(value).__module__ == "torch" and hasattr(value, "type") and hasattr(value, "index"):
        return Device(value.type, value.index)
    raise TypeError(f"expected the name of a device or a `Device`, found a `{type(value).__name__}`")
