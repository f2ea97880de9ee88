#!/usr/bin/env python3
"""Asks an installed DALI which operators it has and what each of them takes, and writes that to dali-arguments.json
beside this file: facts to compare our own table with. Needs the package nvidia-dali-cuda130, no GPU.

For every operator that can be created: its function in `fn`, where it runs, fewest and most inputs, and for every
argument its kind (as src/operator/spec.rs calls it), its default, and what else is so of it. What every operator takes
is left out, and so is what cannot be told: the kind of deprecated arguments.
"""

import ast
import json
import pathlib

import nvidia.dali
from nvidia.dali import backend, fn

KINDS = {
    "BOOL": "bool", "UINT32": "int", "INT32": "int", "INT64": "int", "FLOAT": "float", "STRING": "string",
    "_INT32_VEC": "ints", "_INT64_VEC": "ints", "_FLOAT_VEC": "floats", "_STRING_VEC": "strings",
    "DATA_TYPE": "dtype", "IMAGE_TYPE": "image_type", "INTERP_TYPE": "interp_type", "TENSOR_LAYOUT": "layout",
}  # fmt: skip
EVERYWHERE = {"preserve", "bytes_per_sample_hint"}


def argument(schema, name):
    told = {}
    if schema.IsDeprecatedArg(name):
        told["deprecated"] = True
    else:
        told["kind"] = KINDS.get(schema.GetArgumentType(name).name, schema.GetArgumentType(name).name.lower())
    if not schema.IsArgumentOptional(name):
        told["required"] = True
    elif schema.HasArgumentDefaultValue(name):
        told["default"] = ast.literal_eval(schema.GetArgumentDefaultValueString(name))
    if schema.IsTensorArgument(name):
        told["tensor"] = True
    if schema.ArgSupportsPerFrameInput(name):
        told["per_frame"] = True
    return told


def operator(name):
    schema = backend.GetSchema(name)
    devices = {
        "cpu": backend.RegisteredCPUOps(),
        "gpu": backend.RegisteredGPUOps(),
        "mixed": backend.RegisteredMixedOps(),
    }
    told = {
        "fn": ".".join([*schema.ModulePath(), fn._to_snake_case(schema.OperatorName())]),
        "devices": [device for device, names in devices.items() if name in names],
        "inputs": [schema.MinNumInput(), schema.MaxNumInput()],
    }
    if schema.IsDeprecated():
        told["deprecated"] = schema.DeprecatedInFavorOf()
    if schema.AllowsSequences():
        told["sequences"] = True
    names = sorted(set(schema.GetArgumentNames()) - EVERYWHERE)
    told["arguments"] = {name: argument(schema, name) for name in names}
    return told


def main():
    names = {*backend.RegisteredCPUOps(), *backend.RegisteredGPUOps(), *backend.RegisteredMixedOps()}
    lines = [f"{json.dumps(name)}: {json.dumps(operator(name))}" for name in sorted(names)]
    text = f'{{"version": "{nvidia.dali.__version__}",\n"operators": {{\n' + ",\n".join(lines) + "\n}}\n"
    pathlib.Path(__file__).with_name("dali-arguments.json").write_text(text)
    print(f"{len(names)} operators of DALI {nvidia.dali.__version__}")


main()
