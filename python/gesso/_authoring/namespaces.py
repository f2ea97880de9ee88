"""Makes the modules, classes and functions of `ops` and `fn` from what the library says of its operators."""

import sys
import types as python_types

from .. import _context
from ..data_node import DataNode
from . import arguments, signature
from . import schema as _schema
from .operator import Operator, choose_device
from .video_input import TARGET, VideoInput

# By their names in files.
_classes = {}


def class_of(schema_name):
    """The class of an operator by its name in files."""
    return _classes[schema_name]


def submodule(parent, path):
    """The module `path` below `parent`, made where it is not there."""
    module = parent
    for name in path:
        child = getattr(module, name, None)
        if child is None:
            full = f"{module.__name__}.{name}"
            child = sys.modules.get(full) or python_types.ModuleType(full, f"Operators of {full}.")
            sys.modules[full] = child
            setattr(module, name, child)
        module = child
    return module


def make_class(schema, named):
    """The class of an operator in `ops`; `named` is the schema of the name, which may be an alias."""
    body = {
        "schema": schema,
        "named_schema": named,
        "schema_name": named.name,
        "__doc__": signature.documentation(schema, named),
    }
    base = VideoInput if schema.target == TARGET else Operator
    return type(named.class_name, (base,), body)


def make_function(operator_class, name):
    """The function of an operator in `fn`."""

    def function(*inputs, **keywords):
        at_once = _context.at_once()
        if at_once is not None:
            return at_once.call(function, inputs, keywords)
        scalars, tensors = arguments.separate(keywords, DataNode)
        scalars.setdefault("device", choose_device(inputs))
        scalars["_module"] = _context.shown(function.__module__)
        scalars["_display_name"] = name
        return operator_class(**scalars)(*inputs, **tensors)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = operator_class.__doc__
    function._schema_name = operator_class.schema_name
    function._operator_class = operator_class
    schema = operator_class.schema
    if schema is not None:
        function.__signature__ = signature.of_function(schema)
    return function


def install(ops, fn):
    """Fills `ops` and `fn` with every operator that is not there yet."""
    for named in list(_schema.all_schemas().values()):
        add(ops, fn, named)


def add(ops, fn, named):
    """Adds one operator to both."""
    schema = _schema.find(named.name)
    path = named.modules + (["hidden"] if named.hidden else [])
    place = submodule(ops, path)
    if hasattr(place, named.class_name):
        return
    operator_class = make_class(schema, named)
    attach(ops, fn, operator_class, path, named)


def attach(ops, fn, operator_class, path, named, function=None):
    """Puts a class and its function where they belong; hidden ones also a level up, where they are found but not
    listed."""
    place, parents = submodule(ops, path), submodule(ops, named.modules)
    _classes[named.name] = operator_class
    operator_class.__module__ = place.__name__
    operator_class.__qualname__ = named.class_name
    setattr(place, named.class_name, operator_class)
    setattr(parents, named.class_name, operator_class)
    if named.name in ("ExternalSource",):
        return
    place, parents = submodule(fn, path), submodule(fn, named.modules)
    function = function or make_function(operator_class, named.function_name)
    function.__module__ = place.__name__
    setattr(place, named.function_name, function)
    setattr(parents, named.function_name, function)
