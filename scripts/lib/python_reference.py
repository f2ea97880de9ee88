#!/usr/bin/env python3
"""Prints docs/reference/python-api.md: every public name of the Python package with its signature and docstring.

PYTHONPATH=python GESSO_LIBRARY=target/release/libtriton_gesso.so python3 scripts/lib/python_reference.py >
docs/reference/python-api.md"""

import ast
import importlib
import inspect
import re
from pathlib import Path

HEAD = """# Reference of the Python package

Made from the docstrings by `scripts/lib/python_reference.py`. Operators, which are functions of `gesso.fn`, classes of `gesso.ops` and, on arrays,
functions of `gesso.dynamic`, are on a page of their own: [operators](operators.md); `help(fn.resize)` says the same.
"""
# (module, what of it: names, or None for all public ones that are defined there)
MODULES = (
    (
        "gesso",
        (
            "pipeline_def",
            "do_not_convert",
            "Pipeline",
            "DataNode",
            "TensorCPU",
            "TensorListCPU",
            "TensorGPU",
            "TensorListGPU",
            "peek_video_shape",
            "compare",
            "Comparison",
            "GessoError",
        ),
    ),
    ("gesso.fn", ("external_source", "python_function")),
    ("gesso.types", ("Constant", "SampleInfo", "BatchInfo")),
    ("gesso.math", None),
    (
        "gesso.dynamic",
        (
            *("Tensor", "tensor", "as_tensor", "Batch", "batch", "as_batch", "EvalMode", "EvalContext", "Device"),
            *("device", "DType", "dtype", "ThreadPool", "get_num_threads", "set_num_threads", "Stream", "stream"),
            *("ExternalSource", "imread"),
        ),
    ),
    ("gesso.triton", None),
    ("gesso.convert", ("transformers", "timm", "torchvision", "ultralytics", "open_clip", "prove", "ConversionError")),
    ("gesso.hf", ("ImageProcessor", "TokenCounter", "count_tokens")),
    ("gesso.augment", None),
    ("gesso.exact_augment", None),
    ("gesso.auto_aug.rand_augment", None),
    ("gesso.auto_aug.auto_augment", None),
    ("gesso.auto_aug.trivial_augment", None),
    ("gesso.auto_aug.core", ("augmentation", "select", "signed_bin", "Policy")),
    ("gesso.auto_aug.augmentations", None),
    ("gesso.plugin.base_iterator", None),
    ("gesso.as_dali", ()),
)
# Classes and functions of modules that need a framework: read, not imported.
PLUGINS = (
    ("gesso.plugin.pytorch", ("iterator.py", "data.py", "nodes.py")),
    ("gesso.plugin.pytorch.experimental", ("proxy.py",)),
    (
        "gesso.torchvision",
        ("compose.py", "geometry.py", "resize.py", "color.py", "values.py", "markers.py", "functional.py"),
    ),
    ("gesso.plugin.jax", ("iterator.py", "clu.py", "decorator.py")),
    ("gesso.plugin.tf", ("dataset.py", "experimental.py", "iterator.py")),
    ("gesso.plugin.paddle", ("iterator.py",)),
)
# What classes of several of them begin with.
BASES = ("base_iterator.py", "dictionary_iterator.py")
PACKAGE = Path(__file__).resolve().parents[2] / "python"
# What a line of code begins with, where a docstring has code that is not indented.
CODE = re.compile(r"(import|from|def|class|for|with) .*|@\w+.*|[\w(][\w, .()]* = .*")


def fenced(doc):
    """A docstring in which paragraphs of code are blocks of code."""
    parts = []
    for part in doc.split("\n\n"):
        is_code = CODE.fullmatch(part.splitlines()[0]) if part.strip() and not part.startswith(" ") else None
        if is_code and parts and parts[-1].endswith("\n```"):
            parts[-1] = parts[-1].removesuffix("```") + f"\n{part}\n```"
        else:
            parts.append(f"```python\n{part}\n```" if is_code else part)
    return "\n\n".join(parts)


def classes(paths):
    """The classes of files, by name."""
    nodes = (node for path in paths for node in ast.parse(path.read_text(encoding="utf-8")).body)
    return {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}


def initializer(node, known):
    """The `__init__` of a class, its own or that of a base among the classes `known`; None if there is none."""
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            return one
    bases = (known.get(ast.unparse(base).rpartition(".")[2]) for base in node.bases)
    return next((found for base in bases if base and (found := initializer(base, known))), None)


def read(module, files):
    """The public classes and functions of a module's files, as `documented` has them, without running any of it."""
    folder = PACKAGE / module.replace(".", "/")
    paths = [folder / name for name in files if (folder / name).exists()]
    known, lines = classes([*(PACKAGE / "gesso" / "plugin" / name for name in BASES), *paths]), []
    for path in paths:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name.startswith("_"):
                continue
            call = node if isinstance(node, ast.FunctionDef) else initializer(node, known)
            words = re.sub(r"^self(, |$)", "", ast.unparse(call.args)) if call else ""
            lines += [f"### `{node.name}({words})`", "", ast.get_docstring(node) or "", ""]
    return lines


def signature(thing):
    """As in a definition, without annotations: these are in the stubs."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    plain = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in found.parameters.values()
        if p.name not in ("self", "cls")
    ]
    text = str(inspect.Signature(plain))
    # Objects that have no literal show where they are in memory.
    return text if " at 0x" not in text and len(text) < 700 else "(...)"


def documented(name, thing, level):
    """A heading and the docstring; of a class also its public methods."""
    doc = inspect.getdoc(thing) or ""
    shown = f"{name}{signature(thing)}" if callable(thing) else name
    lines = [f"{'#' * level} `{shown}`", "", doc, ""]
    if inspect.isclass(thing):
        lines += members(thing)
    return lines


def members(kind):
    """The public methods and properties of a class, a line each."""
    lines = []
    for name, found in sorted(inspect.getmembers(kind)):
        # What a plain value has is its type's.
        doc = inspect.getdoc(found) if inspect.isroutine(found) or inspect.isdatadescriptor(found) else ""
        if (
            name.startswith("_")
            or not doc
            or getattr(found, "__module__", "gesso").split(".")[0] not in ("gesso", "builtins")
        ):
            continue
        call = signature(found) if inspect.isroutine(found) else ""
        lines.append(f"- `{name}{call}`: {' '.join(doc.split())}")
    return [*lines, ""] if lines else []


def names_of(module):
    """What a module defines itself, in the order of its file."""
    own = [
        (name, thing) for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__
    ]
    return [
        name
        for name, thing in own
        if not name.startswith("_") and (inspect.isfunction(thing) or inspect.isclass(thing))
    ]


def page():
    """The whole page."""
    lines = [HEAD]
    for name, wanted in MODULES:
        module = importlib.import_module(name)
        lines += [f"## `{name}`", "", fenced((module.__doc__ or "").strip()), ""]
        for member in names_of(module) if wanted is None else wanted:
            lines += documented(member, getattr(module, member), 3)
    for module, files in PLUGINS:
        text = ast.get_docstring(
            ast.parse((PACKAGE / module.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))
        )
        lines += [f"## `{module}`", "", fenced(text or ""), "", *read(module, files)]
    text = "\n".join(line.rstrip() for line in "\n".join(lines).splitlines())
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
