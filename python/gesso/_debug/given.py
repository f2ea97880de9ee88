"""What a call in debug mode is given: a batch, a set of batches, or a constant; and what may differ from one run to the
next."""

from typing import Any, NamedTuple

import numpy as np

from .._tensors.tensor_list import TensorListCPU, TensorListGPU
from .node import DataNodeDebug

BATCH, SET, CONSTANT = "batch", "set of batches", "constant"


class Given(NamedTuple):
    """An input or an argument. `data`: of a batch what can be fed, of a set a list of `Given`s, of a constant the
    value. `is_node`: whether an operator made it."""

    kind: str
    device: str
    data: Any
    is_node: bool = False

    def batches(self):
        """The batches in it."""
        if self.kind == SET:
            return [one for part in self.data for one in part.batches()]
        return [self.data] if self.kind == BATCH else []


def _is_array(value):
    return hasattr(value, "shape") and not isinstance(value, type)


def _device_of(value):
    on_gpu = hasattr(value, "__cuda_array_interface__") or isinstance(value, TensorListGPU)
    is_host = isinstance(value, np.ndarray) or getattr(getattr(value, "device", None), "type", None) == "cpu"
    return "gpu" if on_gpu and not is_host else "cpu"


def classify(value, where):
    """What `value` is. A list of arrays is a batch, a list of batches a set of them."""
    if isinstance(value, DataNodeDebug):
        return Given(BATCH, value.device, value.get(), True)
    if isinstance(value, TensorListCPU):
        return Given(BATCH, _device_of(value), value)
    if not isinstance(value, list) or not value or not all(map(_is_part, value)):
        return Given(CONSTANT, _device_of(value) if _is_array(value) else "cpu", value)
    parts = [classify(element, where) for element in value]
    if len({part.device for part in parts}) > 1:
        raise RuntimeError(f"{where} has batches of data on CPU and on GPU, which is not supported.")
    if len({part.kind == CONSTANT for part in parts}) > 1:
        raise RuntimeError(f"{where} has batches and single arrays in one list, expected either.")
    if parts[0].kind == CONSTANT:
        return Given(BATCH, parts[0].device, value)
    return Given(SET, parts[0].device, parts, all(part.is_node for part in parts))


def _is_part(value):
    return isinstance(value, (DataNodeDebug, TensorListCPU)) or _is_array(value)


def is_same(before, now):
    """Whether a constant is what it was. A function is: a definition may make it anew in each run."""
    if before is now or callable(before) and callable(now):
        return True
    try:
        if np.shape(before) != np.shape(now):
            return False
        are_not = (before != before) & (now != now) if isinstance(before, float) else False
        return bool(np.all((before == now) | are_not))
    except (TypeError, ValueError):
        return before == now


def check_same(before, now, where, name):
    """Raises if a call is given something of another kind, or on another device, than the one before."""
    if before.kind != now.kind:
        raise RuntimeError(
            f"{where} for operator '{name}' is a {now.kind} but was a {before.kind} when created. A definition in debug mode "
            "calls the same operators with values of the same kinds in each run."
        )
    if before.device != now.device:
        raise RuntimeError(
            f"{where} for operator '{name}' is on '{now.device}' but was on '{before.device}' when created."
        )
    if before.kind == SET and len(before.data) != len(now.data):
        raise RuntimeError(f"{where} for operator '{name}' has {len(now.data)} batches, before {len(before.data)}.")
