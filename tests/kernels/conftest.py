"""What tests of several kernels share."""

import ctypes
import struct
import subprocess

import pytest
from emulator import COMPILER, HERE, KERNELS, source


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """Compiles a function of a kernel file for rows of a `struct` format, and returns what runs it on a table."""
    folder = tmp_path_factory.mktemp("kernels")
    for header in ("border.cuh", "common.cuh", "poisson.cuh", "random.cuh", "sampled.cuh", "weights.cuh"):
        (folder / header).write_text(source(header))

    def build(name, row, entry=None, params="NoParams", param_bytes=4, **definitions):
        library = folder / f"{name}{len(list(folder.iterdir()))}.so"
        (folder / f"{name}.cu").write_text(source(f"{name}.cu"))
        flags = (
            dict(
                KERNEL=f'"{name}.cu"',
                ENTRY=entry or name,
                PARAMS=params,
                ROW_BYTES=struct.calcsize(row),
                PARAM_BYTES=param_bytes,
            )
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

        no_parameters = (ctypes.c_uint(0),)

        def launch(*rows, param=no_parameters):
            table = ctypes.create_string_buffer(b"".join(struct.pack(row, *values) for values in rows))
            # A struct of one or two words travels as its members do.
            run(table, len(rows), *param)

        return launch

    return build
