"""No circle of imports among the modules of the package or its folders: each can be read with those that it uses, and
none leads back. The parts of a pipeline do not know each other, and nobody reaches into a pipeline."""

import ast
import re
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
    """The modules that a module imports, at its top or inside of functions: name > where. The packages around them do
    not count."""
    package, found = name if file.stem == "__init__" else name.rpartition(".")[0], {}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            names = [full if (full := f"{origin}.{alias.name}") in known else origin for alias in node.names]
        found.update(
            {each: f"{file.relative_to(ROOT.parent)}:{node.lineno}" for each in names if each in known and each != name}
        )
    return found


def folder(name):
    """The folder that a module is in, or the module where it lies at the top. `as_dali`, which names all parts of it,
    is no folder."""
    parts = name.split(".")
    return name if "as_dali" in parts else ".".join(parts[:2])


def circle(graph):
    """A circle as a list, the first again at the end; empty where there is none."""
    done = set()

    def follow(name, path):
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        found = next(filter(None, (follow(other, [*path, name]) for other in graph[name])), [])
        done.add(name)
        return found

    return next(filter(None, (follow(name, []) for name in graph)), [])


def test_no_circle_of_imports():
    known = modules()
    graph = {name: imported(name, file, known) for name, file in known.items()}
    assert len(graph) > 100 and graph["gesso.math"], "modules that import others"
    folders = {folder(name): {} for name in graph}
    for name, others in graph.items():
        folders[folder(name)].update(
            {folder(other): line for other, line in others.items() if folder(other) != folder(name)}
        )
    for kind in (graph, folders):
        around = circle(kind)
        steps = "\n".join(f"{one} > {other} ({kind[one][other]})" for one, other in zip(around, around[1:]))
        assert not around, f"a circle of imports:\n{steps}"


def test_circles_are_found():
    assert circle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]
    assert circle({"a": ["b", "c"], "b": ["c"], "c": []}) == []


RUN = "gesso._run."
PARTS = {"gesso._authoring.settings", *(RUN + name for name in ("definition", "epochs", "feeds", "external_sources"))}
# Attributes of functions that make pipelines.
MARKS = {"_is_pipeline_def", "_is_autoserialize"}


def test_parts_of_a_pipeline_do_not_know_each_other():
    known = modules()
    above = {"gesso.pipeline", RUN + "runner", RUN + "execution"}
    for part in PARTS:
        found = imported(part, known[part], known).keys() & (PARTS | above)
        assert not found, f"{part} imports {sorted(found)}"


def private_of_pipelines(tree):
    """Where something private of a pipeline is used by others: (line, what)."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not re.fullmatch("_(?!_).*", node.attr) or node.attr in MARKS:
            continue
        owner = node.value
        while isinstance(owner, (ast.Subscript, ast.Call)):
            owner = owner.value if isinstance(owner, ast.Subscript) else owner.func
        name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        if "pipe" in name.lower() or name in ("current", "parts"):
            yield node.lineno, ast.unparse(node)


def test_nobody_reaches_into_a_pipeline():
    found = [
        f"{file.relative_to(ROOT.parent)}:{line} {what}"
        for file in ROOT.rglob("*.py")
        if file != ROOT / "pipeline.py"
        for line, what in private_of_pipelines(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert not found, "\n".join(found)
    assert vars(gesso.Pipeline(1, 1, None)).keys() == {"runner"}


def test_reaching_into_a_pipeline_is_found():
    lines = ("pipeline._seed", "node.pipeline._next()", "self._pipes[0]._runs", "_context.current()._conditions")
    for line in lines:
        assert [what for _, what in private_of_pipelines(ast.parse(line))] == [line.removesuffix("()")]
    for line in ("pipeline.seed", "self._pipes", "pipeline.__class__", "create_pipeline._is_pipeline_def"):
        assert not list(private_of_pipelines(ast.parse(line)))
