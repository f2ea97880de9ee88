"""Structs, enums and constants that kernels share with Rust, as kernels/layouts/ has them: who makes rows in Python
takes names, places and numbers from there."""

import functools
import re
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[2] / "kernels" / "layouts"
TYPES = {"float": "f4", "double": "f8", "Border": "u4"} | {
    f"{sign}int{bits}_t": f"{'u' if sign else 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
CONSTANT = re.compile(r"^constexpr \w+ (\w+) = (-?\d+);$", re.M)
STRUCT = re.compile(r"^struct (\w+)(?: : (\w+))? \{\n(.*?)^\};\nstatic_assert\(sizeof\(\w+\) == (\d+),", re.M | re.S)
ENUM = re.compile(r"^enum \w+ : uint32_t \{ (.*) \};$", re.M)
FIELD = re.compile(r"^  (.*?)(\w+)((?:\[\d+\])*);", re.M)


class Layout:
    """The structs and the constants of a header's text, with those of its enums."""

    def __init__(self, text):
        numbered = [part.split(" = ") for constants in ENUM.findall(text) for part in constants.split(", ")]
        self.constants = {name: int(value) for name, value in [*CONSTANT.findall(text), *numbered]}
        self.structs = {}
        for name, base, fields, size in STRUCT.findall(text):
            made = list(self.structs[base].descr) if base else []
            for declared, field, lengths in FIELD.findall(fields):
                declared = declared.strip()
                known = "u8" if declared.endswith("*") else self.structs.get(declared) or TYPES[declared]
                made.append((field, known, tuple(int(length) for length in re.findall(r"\d+", lengths))))
            self.structs[name] = np.dtype(made)
            assert self.structs[name].itemsize == int(size), f"{name} is not {size} bytes in Python"

    def __getattr__(self, name):
        """A struct or a constant by its name."""
        found = self.structs.get(name, self.constants.get(name))
        if found is None:
            raise AttributeError(f"there is no {name}")
        return found


@functools.cache
def layout(name):
    """What kernels/layouts/`name`.cuh says."""
    return Layout((FOLDER / f"{name}.cuh").read_text())


def packed(struct, names, *values):
    """The bytes of a struct: `values` of the fields `names`, one after the other, those of an array too. Of structs in
    it, `axis:extent,stride` are the fields of each."""
    made, rest, given = np.zeros(1, struct), iter(values), set()
    for name in names.split():
        name, _, inner = name.partition(":")
        given.add(name)
        if not inner:
            field = made[name].reshape(-1)
            field[:] = [next(rest) for _ in range(field.size)]
            continue
        assert set(inner.split(",")) == set(made[name].dtype.names), f"other fields than those of `{name}`"
        elements = made[name].reshape(-1)
        for i in range(elements.size):
            for own in inner.split(","):
                field = elements[own][i : i + 1].reshape(-1)
                field[:] = [next(rest) for _ in range(field.size)]
    missing = {name for name in made.dtype.names if not name.startswith("unused")} - given
    assert not missing, f"no values of {missing}"
    assert next(rest, None) is None, "more values than fields"
    return made.tobytes()


def with_exchanged(folder, name, struct, first, second):
    """Writes kernels/layouts/`name`.cuh to `folder`, where what is compiled there finds it first, with two fields of a
    struct exchanged: a kernel that has them in another order than Rust."""
    text = (FOLDER / f"{name}.cuh").read_text()
    begin = text.index(f"struct {struct} ")
    end = text.index("};", begin)
    lines = text[begin:end].split("\n")
    first, second = (
        next(i for i, line in enumerate(lines) if re.search(rf"\b{f}(\[|;)", line)) for f in (first, second)
    )
    lines[first], lines[second] = lines[second], lines[first]
    (folder / "layouts").mkdir()
    (folder / "layouts" / f"{name}.cuh").write_text(text[:begin] + "\n".join(lines) + text[end:])
