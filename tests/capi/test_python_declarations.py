"""What Python declares of the C API by ctypes is what include/gesso.h says: of the package, of the example that does
without it, and of whatever else loads the library with the package's declarations."""

import ctypes
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples" / "python"), str(ROOT / "python" / "gesso" / "_native")]

import ctypes_without_the_package as example  # noqa: E402
import declarations as package  # noqa: E402

HEADER = re.sub(r"//[^\n]*|/\*.*?\*/", "", (ROOT / "include" / "gesso.h").read_text(encoding="utf-8"), flags=re.DOTALL)
SCALARS = {
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "size_t": ctypes.c_size_t,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    # An enumeration is an `int` where it is no larger.
    "gesso_status": ctypes.c_int32,
}
VARIABLE = re.compile(r"(?P<type>[\w ]+?)\s*(?P<stars>(?:\*\s*(?:const\s*)?)*)(?P<name>\w+)(?:\[(?P<count>\w+)\])?")


def described(declaration):
    """(name, (type, pointers, elements)) of a field or an argument in C."""
    found = VARIABLE.fullmatch(" ".join(declaration.split()))
    assert found, declaration
    words = [word for word in found["type"].split() if word not in ("const", "struct")]
    return found["name"], (words[-1], found["stars"].count("*"), found["count"])


STRUCTS = {
    name: [described(field) for field in body.split(";") if field.strip()]
    for body, name in re.findall(r"typedef struct \{([^{}]*)\} (\w+);", HEADER)
    # Those whose fields are functions are in no Python.
    if "(*" not in body
}
FUNCTIONS = {
    name: (result.split()[-1] if "*" not in result else result, [described(a) for a in arguments.split(",")])
    for result, name, arguments in re.findall(r"^([\w ]+?[ *]+)(gesso_\w+)\(([^;{]*?)\);", HEADER, re.MULTILINE)
    if "typedef" not in result and arguments.strip() != "void"
}


def fits(declared, meant):
    """Whether a type of ctypes is that of the header, as far as ctypes tells pointers apart."""
    kind, pointers, count = meant
    if count is not None:
        size = int(re.search(rf"#define {count} (\d+)", HEADER)[1])
        return issubclass(declared, ctypes.Array) and (declared._type_, declared._length_) == (SCALARS[kind], size)
    if not pointers:
        return declared is SCALARS[kind]
    if declared is ctypes.c_void_p:
        return True
    if declared is ctypes.c_char_p:
        return (kind in ("char", "uint8_t")) and pointers == 1
    if not issubclass(declared, ctypes._Pointer):
        return False
    target = declared._type_
    if issubclass(target, ctypes.Structure):
        return pointers == 1 and target.__doc__ == kind
    if pointers > 1:
        return fits(target, (kind, pointers - 1, None))
    return target is {**SCALARS, "uint8_t": ctypes.c_uint8}.get(kind)


def structures(module):
    return [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, ctypes.Structure)]


@pytest.mark.parametrize("module", [package, example], ids=["package", "example"])
def test_structures_have_the_fields_of_the_header(module):
    assert structures(module)
    for structure in structures(module):
        meant = STRUCTS[structure.__doc__]
        assert [name for name, _ in structure._fields_] == [name for name, _ in meant][: len(structure._fields_)]
        # A program may know the first fields alone; the package knows all.
        assert module is example or len(structure._fields_) == len(meant), structure.__doc__
        for (name, declared), (_, kind) in zip(structure._fields_, meant):
            assert fits(declared, kind), f"{structure.__doc__}.{name}: {declared} is not {kind}"


class Recorded:
    """In place of a loaded library: keeps what is declared of each function."""

    def __init__(self):
        self.functions = {}

    def __getattr__(self, name):
        if not name.startswith("gesso_"):
            raise AttributeError(name)
        return self.functions.setdefault(name, Function(name))


class Function:
    """A function of it."""

    def __init__(self, name):
        self.name, self.argtypes, self.restype = name, None, ctypes.c_int32


def test_functions_have_the_arguments_and_results_of_the_header():
    library = Recorded()
    package.declare(library)
    declared = library.functions
    assert len(declared) > 25
    for name, function in declared.items():
        if function.argtypes is None:
            assert re.search(rf"\b{name}\(void\)", HEADER), f"`{name}` has arguments, which are not declared"
            continue
        result, arguments = FUNCTIONS[name]
        assert len(function.argtypes) == len(arguments), name
        for given, (argument, kind) in zip(function.argtypes, arguments):
            assert fits(given, kind), f"{name}({argument}): {given} is not {kind}"
        _, returned = described(f"{result} result")
        assert function.restype is None if result == "void" else fits(function.restype, returned), name


def test_numbers_are_those_of_the_header():
    numbers = dict(re.findall(r"#define (\w+) (\d+)", HEADER)) | dict(
        re.findall(r"^\s+(GESSO_\w+) = (\d+)", HEADER, re.M)
    )
    assert int(numbers["GESSO_ABI_VERSION"]) == package.ABI_VERSION
    assert int(numbers["GESSO_MAX_NDIM"]) == package.MAX_NDIM
    assert [int(numbers[f"GESSO_DEVICE_{name}"]) for name in ("CPU", "GPU")] == [package.CPU, package.GPU]
    assert (example.OK, example.UINT8, example.CPU) == (
        int(numbers["GESSO_STATUS_OK"]),
        int(numbers["GESSO_DTYPE_UINT8"]),
        int(numbers["GESSO_DEVICE_CPU"]),
    )


@pytest.mark.parametrize(
    ("declared", "meant"),
    [
        (ctypes.c_int64, ("int32_t", 0, None)),
        (ctypes.c_char_p, ("char", 2, None)),
        (ctypes.POINTER(ctypes.c_int32), ("int64_t", 1, None)),
        (ctypes.POINTER(package.Sample), ("gesso_input", 1, None)),
        (ctypes.c_int64 * 15, ("int64_t", 0, "GESSO_MAX_NDIM")),
    ],
)
def test_another_type_is_seen(declared, meant):
    assert not fits(declared, meant)
