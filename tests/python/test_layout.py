"""No circle of imports among the modules of the package: each can be read with those that it uses, and none of these leads back."""

import ast
from pathlib import Path

import gesso

ROOT = Path(gesso.__file__).parent


def modules():
    """The modules of the package: name > file."""
    found = {}
    for file in sorted(ROOT.rglob("*.py")):
        parts = ("gesso", *file.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(name, file, known):
    """The modules that a module imports, at its top or inside of functions: name > line. The packages that it is in do not count."""
    package, found = name if file.stem == "__init__" else name.rpartition(".")[0], {}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            names = [full if (full := f"{origin}.{alias.name}") in known else origin for alias in node.names]
        found.update({each: node.lineno for each in names if each in known and each != name})
    return found


def circle(graph):
    """A circle as a list of modules, the first again at the end; None where there is none."""
    done = set()

    def follow(name, path):
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return None
        found = next(filter(None, (follow(other, [*path, name]) for other in graph[name])), None)
        done.add(name)
        return found

    return next(filter(None, (follow(name, []) for name in graph)), None)


def test_no_circle_of_imports():
    known = modules()
    assert len(known) > 100
    graph = {name: imported(name, file, known) for name, file in known.items()}
    assert graph["gesso.math"], "a module that imports others"
    around = circle(graph)
    steps = "\n".join(f"{one} > {other} (line {graph[one][other]})" for one, other in zip(around or [], (around or [])[1:]))
    assert around is None, f"a circle of imports:\n{steps}"


def test_circles_are_found():
    assert circle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]
    assert circle({"a": ["b", "c"], "b": ["c"], "c": []}) is None
