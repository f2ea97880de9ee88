"""Writes docs/reference/c-functions.md: every function, struct and constant of include/gesso.h, with its declaration
and what its comment says.

python3 scripts/lib/c_reference.py > docs/reference/c-functions.md
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "include" / "gesso.h"
TOP = """\
# Functions and structs of the C API

Made of `include/gesso.h` by `scripts/lib/c_reference.py`; not edited by hand. [The C API](c-api.md) explains how they go together.
"""
# What a function is called, by the first word behind `gesso_`.
GROUPS = {
    "pipeline": "Pipelines",
    "describe": "Pipelines",
    "author": "Pipelines",
    "instance": "Instances",
    "stream": "Streams",
    "dataset": "Data sets",
    "result": "Results",
    "operators": "Operators",
    "load": "Operators",
    "register": "Operators",
}
ORDER = (
    "Pipelines",
    "Instances",
    "Streams",
    "Data sets",
    "Results",
    "Operators",
    "Everything else",
    "Structs and types",
    "Constants",
)


def items(text):
    """(name, comment, declaration, group) of each thing that the header declares."""
    comment, lines = [], iter(text.splitlines())
    for line in lines:
        if line.startswith("//"):
            comment.append(line[2:].removeprefix(" "))
            continue
        if comment and line:
            declaration = [line]
            # Braces and parentheses may go on over lines; a struct ends with its name.
            while not declaration[-1].endswith(";") or (
                declaration[0].endswith("{") and not declaration[-1].startswith("}")
            ):
                if line.startswith("#define"):
                    break
                declaration.append(next(lines))
            yield named("\n".join(declaration), "\n".join(comment))
        comment = []


def named(declaration, comment):
    """An item of `items`."""
    if declaration.startswith("#define"):
        return declaration.split()[1].partition("(")[0], comment, declaration, "Constants"
    if declaration.startswith("typedef"):
        pointer = re.search(r"\(\*(\w+)\)", declaration.splitlines()[0])
        return (
            pointer[1] if pointer else re.search(r"(\w+);$", declaration)[1],
            comment,
            declaration,
            "Structs and types",
        )
    name = re.search(r"\b(gesso_\w+)\(", declaration)[1]
    return name, comment, declaration, GROUPS.get(name.split("_")[1], "Everything else")


def page():
    """The page."""
    found = list(items(HEADER.read_text(encoding="utf-8")))
    parts = [TOP]
    groups = {group: [item for item in found if item[3] == group] for group in ORDER}
    for group, held in groups.items():
        if held:
            links = ", ".join(f"[`{name}`](#{name.lower()})" for name, *_ in held)
            parts.append(f"**{group}**: {links}\n")
    for group, held in groups.items():
        if held:
            parts.append(f"## {group}\n")
        for name, comment, declaration, _ in held:
            parts.append(f"### {name}\n\n{comment}\n\n```c\n{declaration}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
