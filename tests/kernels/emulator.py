"""Compiles kernels as C++ that runs on the host, a thread a fiber (emulator.h), with every access checked; or with
$GESSO_KERNEL_CHECK=thread that no two threads of a block touch the same memory without a barrier between."""

import functools
import os
import re
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from layouts import layout, packed

HERE = Path(__file__).resolve().parent
KERNELS = HERE.parents[1] / "kernels"
COMPILER = shutil.which("c++")
CHECK = os.environ.get("GESSO_KERNEL_CHECK", "address")
# The checker of addresses would follow stacks that fibers switch.
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0", "TSAN_OPTIONS": "report_thread_leaks=0"}

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here")


def source(name):
    """A file of kernels/. What is written in the device's assembly is written in C++, here or in a file of the same
    name, or not used."""
    if (HERE / name).exists():
        return (HERE / name).read_text()
    text = (KERNELS / name).read_text()
    saturated = "(v < 0 ? 0 : v > 255 ? 255 : v)"
    packed = f"{saturated.replace('v', 'low')} | {saturated.replace('v', 'next')} << 8 | rest << 16"
    text = re.sub(r'asm\("cvt\.pack\.sat\.u8\.s32[^;]*;"[^;]*;', f"r = {packed};", text)
    text = re.sub(r'asm\("cvt\.rni\.sat\.u8\.f32[^;]*;"[^;]*;', "r = v > 0 ? v < 255 ? (int)rintf(v) : 255 : 0;", text)
    return re.sub(r'asm\("cvt\.[^;]*;"[^;]*;', "", text).replace('extern "C" ', "")


@functools.cache
def runs_here(check):
    """Whether the compiler has this checker, and what it makes runs: that of threads wants a certain layout of
    memory."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        command = [COMPILER, f"-fsanitize={check}", "-x", "c++", "-", "-o", str(program)]
        made = subprocess.run(command, input="int main() { return 0; }", capture_output=True, text=True)
        return made.returncode == 0 and subprocess.run([program], capture_output=True).returncode == 0


@functools.cache
def compiled(program, files, options, definitions):
    """The path of what the compiler makes of `program`, a C++ file here, beside `files`, pairs of a name and a text.
    The same is compiled once."""
    folder = Path(tempfile.mkdtemp(dir=_folder().name))
    for name, text in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    command = [COMPILER, "-std=c++17", "-O1", "-w", *options, *(f"-D{name}={value}" for name, value in definitions)]
    command += [f"-I{folder}", f"-I{HERE}", f"-I{KERNELS}", str(HERE / program), "-o", str(folder / "compiled")]
    subprocess.run(command, check=True)
    return folder / "compiled"


@functools.cache
def _folder():
    """Where compiled programs lie until the tests end."""
    return tempfile.TemporaryDirectory(prefix="gesso-kernels-")


def built(folder, program, headers, kernels, definitions=(), check=CHECK):
    """`program`, a C++ file here, with `kernels` as its kernels.inc, and with the headers in `folder` before those of
    kernels/: takes arrays, returns the bytes that it makes of them."""
    if not runs_here(check):
        pytest.skip(f"skipped: no program with -fsanitize={check} runs here")
    options = ("-fpermissive", f"-fsanitize={check}")
    files = {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.cuh"))}
    files |= {"kernels.inc": kernels, **{name: source(name) for name in headers}}
    binary = compiled(f"{program}.cpp", tuple(files.items()), options, tuple(definitions))

    def run(arrays):
        given, made = folder / "in", folder / "out"
        given.write_bytes(b"".join(len(array).to_bytes(8, "little") + array for array in arrays))
        done = subprocess.run([binary, given, made], env=os.environ | OPTIONS, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
        return made.read_bytes()

    return run


def place(array, offset=0):
    """An address in memory, see rows.cpp."""
    return 0xA5 << 56 | array << 32 | offset


def table_kernel(folder, name, row, entry=None, params="", header=None, **definitions):
    """Function `entry` of kernels/`name`.cu for rows with values of the fields `row`, and parameters with values of the
    fields `params`: takes rows and memory, returns the memory as it is then. `header` is the name of its layout."""
    structs = layout(header or name)
    has_params = "Params" in structs.structs
    flags = dict(ENTRY=entry or name, PARAMS="Params" if has_params else "NoParams") | definitions
    program = built(folder, "rows", ["common.cuh"], source(f"{name}.cu"), flags.items())

    def run(rows, memory, blocks=2, threads=256, param=()):
        # A kernel without rows of its own gets one number.
        has_rows = "Row" in structs.structs
        table = b"".join(packed(structs.Row, row, *values) for values in rows) if has_rows else bytes(4)
        own = packed(structs.Params, params, *param) if has_params else bytes(4)
        made = program([struct.pack("<QQ", blocks, threads), own, table, *(array.tobytes() for array in memory)])
        ends = np.cumsum([array.nbytes for array in memory])
        parts = (made[end - array.nbytes : end] for array, end in zip(memory, ends))
        return [np.frombuffer(part, array.dtype).reshape(array.shape) for part, array in zip(parts, memory)]

    return run
