"""Fills `fn` and `ops` when the package is imported."""

# `_arithmetic` and `_subscript` set the operators of `DataNode`.
from . import _arithmetic, _modules, _naming, _schema, _subscript  # noqa: F401
from ._compose import Compose
from ._python_function import DLTensorPythonFunction, PythonFunction
from ._readers.registry import OLD_NAMES, READERS
from .external_source import ExternalSource, external_source


def assemble(ops, fn):
    """Adds every operator, and those that are written in Python."""
    ExternalSource.schema = ExternalSource.named_schema = _schema.find("ExternalSource")
    ExternalSource.__module__ = "gesso.ops"
    external_source.__module__ = "gesso.fn"
    external_source._schema_name = "ExternalSource"
    ops.ExternalSource, fn.external_source = ExternalSource, external_source
    ops.Compose = Compose
    for kind in (PythonFunction, DLTensorPythonFunction):
        _modules.attach(ops, fn, kind, [], kind.named_schema)
    _modules.install(ops, fn)
    for name, kind in READERS.items():
        if _schema.find(name) is None:
            _modules.attach(ops, fn, kind, kind.schema.modules, kind.schema)
    for old, kind in OLD_NAMES.items():
        if _schema.find(old) is None:
            setattr(ops, old, kind)
            setattr(fn, _naming.snake_case(old), getattr(fn.readers, kind.schema.function_name))
