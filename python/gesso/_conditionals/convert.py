"""Finds the source of a function, rewrites it, and makes the new function with the old one's variables."""

import ast
import copy
import functools
import linecache
import os
import sys
import sysconfig
import traceback
import types

from . import runtime
from .rewrite import RUNTIME, Rewriter

_CONVERTED = "__gesso_converted__"
_LEFT_ALONE = "__gesso_left_alone__"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_REWRITE_IN_PACKAGE = os.path.join(_PACKAGE, "auto_aug") + os.sep
# Never part of a definition.
_FOREIGN = {
    "numpy",
    "torch",
    "jax",
    "jaxlib",
    "tensorflow",
    "cupy",
    "numba",
    "scipy",
    "cv2",
    "PIL",
    "nose2",
    "pytest",
    "optree",
}
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep


def leave_alone(function):
    """Marks a function that is not to be rewritten."""
    if isinstance(function, types.FunctionType):

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)

        setattr(wrapper, _LEFT_ALONE, True)
        return wrapper
    setattr(function, _LEFT_ALONE, True)
    return function


def is_left_alone(function):
    """Whether `leave_alone` marked a function."""
    return getattr(function, _LEFT_ALONE, False) is True


def is_converted(function):
    """Whether a function is a rewritten one."""
    return getattr(function, _CONVERTED, False) is True


def mark(function):
    """Notes that a function is a rewritten one."""
    if isinstance(function, types.FunctionType):
        setattr(function, _CONVERTED, True)
    return function


def _is_rewritable(function):
    if is_converted(function) or is_left_alone(function) or getattr(function, "_is_pipeline_def", False):
        return False
    module = (function.__module__ or "").split(".")[0]
    if module in _FOREIGN or module in sys.stdlib_module_names and module != "__main__":
        return False
    file = os.path.abspath(function.__code__.co_filename)
    if file.startswith(_PACKAGE) and not file.startswith(_REWRITE_IN_PACKAGE):
        return False
    return not (file.startswith(_STDLIB) and "site-packages" not in file)


def convert_callee(function):
    """What a rewritten function calls for `function`."""
    if isinstance(function, types.MethodType):
        if isinstance(function.__func__, types.FunctionType) and _is_rewritable(function.__func__):
            return types.MethodType(_converted(function.__func__), function.__self__)
        return function
    if isinstance(function, types.FunctionType):
        return _converted(function) if _is_rewritable(function) else function
    if isinstance(function, functools.partial):
        return functools.partial(convert_callee(function.func), *function.args, **function.keywords)
    if isinstance(function, (type, types.BuiltinFunctionType)) or is_left_alone(function) or not callable(function):
        return function
    method = type(function).__call__
    if isinstance(method, types.FunctionType) and _is_rewritable(method):
        return types.MethodType(_converted(method), function)
    return function


def _converted(function):
    try:
        return rewritten(function)
    except (OSError, SyntaxError, _NoSource):
        return function


class _NoSource(Exception):
    """The source of a function cannot be found."""


def convert(function):
    """The definition `function`, rewritten; errors that it raises say where in the user's code."""
    try:
        new = rewritten(function) if isinstance(function, types.FunctionType) else convert_callee(function)
    except _NoSource as error:
        raise ValueError(
            f"The source of `{getattr(function, '__name__', function)}` is not available, but `enable_conditionals` needs it: {error}. "
            "Put the definition into a file or a notebook's cell."
        ) from None

    @functools.wraps(function)
    def run(*args, **kwargs):
        try:
            return new(*args, **kwargs)
        except Exception as error:
            _explain(error)
            raise

    return run


def _explain(error):
    """Adds the user's lines to the text of an error."""
    if len(error.args) != 1 or not isinstance(error.args[0], str) or isinstance(error, KeyError):
        return
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_PACKAGE) and not frame.name.startswith("__gesso")
    ]
    if not frames or error.args[0].startswith("in user code:"):
        return
    lines = "".join(f'    File "{f.filename}", line {f.lineno}, in {f.name}\n        {f.line}\n' for f in frames)
    error.args = (f"in user code:\n\n{lines}\n    {type(error).__name__}: {error.args[0]}",)


@functools.lru_cache(maxsize=64)
def _tree_of_file(filename, text):
    return ast.parse(text, filename)


def _first_line(node):
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _node_of(code):
    """The syntax tree of a function."""
    text = "".join(linecache.getlines(code.co_filename))
    if not text:
        raise _NoSource(f"{code.co_filename} has no text")
    kinds = (ast.Lambda,) if code.co_name == "<lambda>" else (ast.FunctionDef,)
    found = [
        node
        for node in ast.walk(_tree_of_file(code.co_filename, text))
        if isinstance(node, kinds)
        and _first_line(node) == code.co_firstlineno
        and (code.co_name == "<lambda>" or node.name == code.co_name)
    ]
    if len(found) > 1:
        found = [node for node in found if _same_code(node, code)] or found
    if not found:
        raise _NoSource(f"no function `{code.co_name}` at line {code.co_firstlineno} of {code.co_filename}")
    return copy.deepcopy(found[0])


def _same_code(node, code):
    """Whether a lambda's tree compiles to `code`; for several lambdas in one line."""
    inner = _find_code(compile(ast.Expression(node), code.co_filename, "eval"), "<lambda>")
    names = (inner.co_varnames, inner.co_names, inner.co_freevars) == (
        code.co_varnames,
        code.co_names,
        code.co_freevars,
    )
    plain = [c for c in inner.co_consts if not isinstance(c, types.CodeType)]
    columns = getattr(code, "co_positions", None)
    if columns is not None:
        own = [p[2] for p in code.co_positions() if p[2] is not None]
        return bool(own) and min(own) >= node.col_offset and max(own) <= node.end_col_offset or names and not own
    return plain == [c for c in code.co_consts if not isinstance(c, types.CodeType)]


def _find_code(code, name):
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_name == name:
                return constant
            inner = _find_code(constant, name)
            if inner is not None:
                return inner
    return None


_codes = {}
_MADE = "__gesso_function"


def _new_code(code):
    """The code of the rewritten function; its free variables are the old one's and the runtime."""
    if code in _codes:
        return _codes[code]
    node = _node_of(code)
    rewriter = Rewriter(code.co_freevars)
    if isinstance(node, ast.Lambda):
        node = rewriter.visit(node).args[0]
        statement = ast.Return(node)
    else:
        node.decorator_list = []
        rewriter.function(node)
        # Under its own name it would hide the variable of that name, which it may call.
        node.name = _MADE
        statement = node
    factory = ast.parse(f"def __gesso_factory({', '.join((*code.co_freevars, RUNTIME))}): pass")
    factory.body[0].body = [ast.copy_location(statement, node)]
    ast.fix_missing_locations(factory)
    module = compile(factory, code.co_filename, "exec", flags=code.co_flags & _future_mask(), dont_inherit=True)
    made = "<lambda>" if code.co_name == "<lambda>" else _MADE
    new = _find_code(_find_code(module, "__gesso_factory"), made).replace(co_name=code.co_name)
    _codes[code] = new
    return new


def _future_mask():
    import __future__

    return __future__.annotations.compiler_flag


# Rewritten code calls `runtime`, which has no way back to what rewrites.
runtime.call, runtime.mark = convert_callee, mark


def rewritten(function):
    """The rewritten function, with the old one's variables, defaults and attributes."""
    code = _new_code(function.__code__)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells[RUNTIME] = types.CellType(runtime)
    closure = tuple(cells[name] for name in code.co_freevars)
    new = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    new.__kwdefaults__ = function.__kwdefaults__
    new.__dict__.update(function.__dict__)
    new.__module__, new.__qualname__, new.__doc__ = function.__module__, function.__qualname__, function.__doc__
    return mark(new)
