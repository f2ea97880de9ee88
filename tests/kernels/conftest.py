"""What tests of several kernels share."""

import ctypes

import pytest
from emulator import compiled, source
from layouts import layout, packed

HEADERS = ("border.cuh", "common.cuh", "poisson.cuh", "random.cuh", "sampled.cuh", "weights.cuh")


@pytest.fixture(scope="module")
def kernel():
    """Compiles a function of a kernel file for rows with values of the fields `row`, and parameters with values of the
    fields `params`; returns what runs it on a table."""

    def build(name, row, entry=None, params="", **definitions):
        structs = layout(name)
        has_params = "Params" in structs.structs
        flags = (
            dict(KERNEL=f'"{name}.cu"', ENTRY=entry or name, PARAMS="Params" if has_params else "NoParams")
            | definitions
        )
        files = tuple((file, source(file)) for file in (*HEADERS, f"{name}.cu"))
        options = ("-ffp-contract=off", "-shared", "-fPIC", "-x", "c++")
        library = compiled("elementwise.hpp", files, options, tuple(flags.items()))
        run = ctypes.CDLL(str(library)).run

        def launch(*rows, param=()):
            table = ctypes.create_string_buffer(b"".join(packed(structs.Row, row, *values) for values in rows))
            own = packed(structs.Params, params, *param) if has_params else bytes(4)
            run(table, len(rows), ctypes.create_string_buffer(own))

        return launch

    return build
