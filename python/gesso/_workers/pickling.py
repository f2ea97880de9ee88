"""Sources on their way into worker processes: functions that cannot be imported there travel as code."""

import importlib
import io
import marshal
import pickle
import sys
import types


def pickle_by_value(function):
    """Marks a function that workers get as code, though they could import it."""
    if not isinstance(function, types.FunctionType):
        raise TypeError("only functions are pickled by value")
    function._gesso_by_value = True  # type: ignore[attr-defined]
    return function


def _needs_code(function):
    if getattr(function, "_gesso_by_value", False) or function.__module__ == "__main__":
        return True
    module = sys.modules.get(function.__module__)
    found = module
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is not function


def _names(code):
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _make_function(code, module, name, qualname, defaults, keyword_defaults, count):
    globals_ = {"__name__": module, "__builtins__": __builtins__}
    cells = tuple(types.CellType() for _ in range(count))
    function = types.FunctionType(marshal.loads(code), globals_, name, defaults, cells or None)
    function.__kwdefaults__, function.__qualname__, function.__module__ = keyword_defaults, qualname, module
    return function


def _fill_function(function, state):
    globals_, contents = state
    function.__globals__.update(globals_)
    for cell, content in zip(function.__closure__ or (), contents):
        cell.cell_contents = content
    return function


class _Pickler(pickle.Pickler):
    def reducer_override(self, value):
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        if not isinstance(value, types.FunctionType) or not _needs_code(value):
            return NotImplemented
        code = value.__code__
        names = _names(code)
        globals_ = {name: value.__globals__[name] for name in names if name in value.__globals__}
        contents = [cell.cell_contents for cell in value.__closure__ or ()]
        made = (
            marshal.dumps(code),
            value.__module__,
            value.__name__,
            value.__qualname__,
            value.__defaults__,
            value.__kwdefaults__,
            len(contents),
        )
        return _make_function, made, (globals_, contents), None, None, _fill_function


def dumps(value):
    """`value` as bytes, functions by code where they cannot be imported."""
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def _with_custom(pickler):
    if hasattr(pickler, "dumps") and hasattr(pickler, "loads"):
        return pickler.dumps, pickler.loads
    if isinstance(pickler, (tuple, list)) and pickler:
        module, dump_options, load_options = (list(pickler) + [None, None])[:3]
        return (lambda value: module.dumps(value, **(dump_options or {})), _Loader(module, load_options or {}))
    raise ValueError("Unsupported py_callback_pickler value provided.")


class _Loader:
    def __init__(self, module, options):
        self.module, self.options = module, options

    def __call__(self, data):
        return self.module.loads(data, **self.options)


def pack(value, pickler):
    """(bytes, the function that makes them a value again)"""
    if pickler is None:
        return dumps(value), pickle.loads
    dump, load = _with_custom(pickler)
    return dump(value), load
