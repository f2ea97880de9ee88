"""Fills `fn` and `ops` when the package is imported."""

# `arithmetic` and `subscript` set the operators of `DataNode`.
from ._authoring import arithmetic, namespaces, naming, schema, subscript  # noqa: F401
from ._authoring.compose import Compose
from ._callbacks.python_function import DLTensorPythonFunction, PythonFunction
from ._readers.registry import OLD_NAMES, READERS
from .external_source import ExternalSource, external_source


def assemble(ops, fn):
    """Adds every operator, and those that are written in Python."""
    ExternalSource.schema = ExternalSource.named_schema = schema.find("ExternalSource")
    ExternalSource.__module__ = "gesso.ops"
    external_source.__module__ = "gesso.fn"
    external_source._schema_name = "ExternalSource"
    ops.ExternalSource, fn.external_source = ExternalSource, external_source
    ops.Compose = Compose
    for kind in (PythonFunction, DLTensorPythonFunction):
        namespaces.attach(ops, fn, kind, [], kind.named_schema)
    namespaces.install(ops, fn)
    for name, kind in READERS.items():
        if schema.find(name) is None:
            namespaces.attach(ops, fn, kind, kind.schema.modules, kind.schema)
    for old, kind in OLD_NAMES.items():
        if schema.find(old) is None:
            setattr(ops, old, kind)
            setattr(fn, naming.snake_case(old), getattr(fn.readers, kind.schema.function_name))
