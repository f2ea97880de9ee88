"""From a graph to the bytes of a file, as DALI's `Pipeline.serialize` writes them. The library writes the file
itself."""

import ctypes
import json
import math

import numpy as np

from .._native import library
from .._tensors.enums import DALIDataType, to_numpy_type
from .constants import CPU_ONLY_DEVICE_ID

SOURCE = "ExternalSource"


def _dtype_name(dtype):
    if dtype is None or dtype == DALIDataType.NO_TYPE:
        return None
    return np.dtype(to_numpy_type(dtype)).name


def _json_value(kind, value):
    if kind == "float":
        value = float(np.float32(value))
        if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def _arguments(node):
    """(values by keyword, how each is stored)"""
    values, stored = {}, []
    for name, value in node.values.items():
        if value.kind == "object":
            raise RuntimeError(
                f"The operator `{node.operator.display}` has a Python object as `{name}`: it cannot be serialized."
            )
        stored.append({"name": name, "type": value.kind, **({"list": True} if value.is_list else {})})
        if name != "device":
            values[name] = [_json_value(value.kind, element) for element in value.values]
    return values, stored


def _source(node, place, logical_id):
    values, stored = _arguments(node)
    described = {"name": node.name, "edge": node.name, "device": node.device, "operator": SOURCE, "place": place}
    dtype = values.pop("dtype", None)
    if dtype:
        described["dtype"] = _dtype_name(DALIDataType(dtype[0]))
    ndim, layout = values.pop("ndim", None), values.pop("layout", None)
    if ndim:
        described["ndim"] = ndim[0]
    if layout and layout[0]:
        described["layout"] = layout[0]
    elif layout:
        stored = [entry for entry in stored if entry["name"] != "layout"]
    return {**described, "logical_id": logical_id, "arguments": values, "stored": stored}


def _operator(node, logical_id, is_whole):
    if not getattr(node.operator, "in_files", True):
        raise RuntimeError(f"The operator `{node.operator.display}` runs in Python only: it cannot be serialized.")
    if is_whole and (only := getattr(node.operator, "only_in_python", [])):
        raise RuntimeError(
            f"The operator `{node.operator.display}` has `{only[0]}`, which no file can hold: it cannot be serialized."
        )
    values, stored = _arguments(node)
    return {
        "name": node.schema.target,
        "instance": node.name,
        "device": node.device,
        "inputs": [edge.name for edge in node.inputs],
        "input_devices": [edge.device for edge in node.inputs],
        "argument_inputs": {name: edge.name for name, edge in node.tensors.items()},
        "outputs": [edge.name for edge in node.outputs],
        "logical_id": logical_id,
        "arguments": values,
        "stored": stored,
    }


def describe(operators, outputs, parameters, is_whole=True):
    """The description of a graph that `gesso_author` takes.

    `outputs` are (name, device, dtype, ndim); `parameters` the fields of the description that say how it runs.
    `is_whole`: what no file can hold is an error; else it is left out.
    """
    groups, inputs, others = {}, [], []
    for place, node in enumerate(operators):
        logical_id = groups.setdefault(node.group, len(groups))
        if node.schema.target == SOURCE:
            inputs.append(_source(node, place, logical_id))
        else:
            others.append(_operator(node, logical_id, is_whole))
    described = []
    for name, device, dtype, ndim in outputs:
        one = {"name": name, "device": device}
        if dtype is not None:
            one["dtype"] = _dtype_name(dtype)
        if ndim is not None:
            one["ndim"] = ndim
        described.append(one)
    return {**parameters, "inputs": inputs, "operators": others, "outputs": described}


def write(description):
    """The bytes of the file."""
    text = json.dumps(description).encode()
    data, length = ctypes.POINTER(ctypes.c_uint8)(), ctypes.c_size_t()
    library.call("gesso_author", text, len(text), ctypes.byref(data), ctypes.byref(length))
    try:
        return ctypes.string_at(data, length.value)
    finally:
        library.library().gesso_bytes_free(data, length)


NO_DEVICE = CPU_ONLY_DEVICE_ID
