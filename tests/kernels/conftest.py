"""What tests of several kernels share."""

import ctypes
import subprocess

import pytest
from emulator import COMPILER, HERE, KERNELS, source
from layouts import layout, packed


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """Compiles a function of a kernel file for rows with values of the fields `row`, and parameters with values of the
    fields `params`; returns what runs it on a table."""
    folder = tmp_path_factory.mktemp("kernels")
    for header in ("border.cuh", "common.cuh", "poisson.cuh", "random.cuh", "sampled.cuh", "weights.cuh"):
        (folder / header).write_text(source(header))

    def build(name, row, entry=None, params="", **definitions):
        structs = layout(name)
        has_params = "Params" in structs.structs
        library = folder / f"{name}{len(list(folder.iterdir()))}.so"
        (folder / f"{name}.cu").write_text(source(f"{name}.cu"))
        flags = (
            dict(KERNEL=f'"{name}.cu"', ENTRY=entry or name, PARAMS="Params" if has_params else "NoParams")
            | definitions
        )
        subprocess.run(
            [
                COMPILER,
                "-std=c++17",
                "-O1",
                "-ffp-contract=off",
                "-shared",
                "-fPIC",
                "-w",
                "-x",
                "c++",
                *(f"-D{k}={v}" for k, v in flags.items()),
                f"-I{folder}",
                f"-I{KERNELS}",
                str(HERE / "elementwise.hpp"),
                "-o",
                str(library),
            ],
            check=True,
        )
        run = ctypes.CDLL(str(library)).run

        def launch(*rows, param=()):
            table = ctypes.create_string_buffer(b"".join(packed(structs.Row, row, *values) for values in rows))
            own = packed(structs.Params, params, *param) if has_params else bytes(4)
            run(table, len(rows), ctypes.create_string_buffer(own))

        return launch

    return build
