"""Functions that return inside of `if` become functions that return once, at the end. On syntax trees."""

import ast
import copy

RESULT = "__gesso_result"
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def _within(node, kinds, stop=_SCOPES):
    """Whether one of `kinds` is below `node`, not looking into `stop`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, kinds):
            return True
        if not isinstance(child, stop) and _within(child, kinds, stop):
            return True
    return False


def _jumps_out(node):
    """Whether an `if` has a `break` or `continue` of a loop around it."""
    return _within(node, (ast.Break, ast.Continue), stop=(*_SCOPES, *_LOOPS))


def _returns_from_loop(node):
    for child in ast.walk(node):
        if isinstance(child, (*_LOOPS, ast.Try)) and _within(child, (ast.Return,)):
            return True
    return False


def _partial_with(node):
    return any(
        isinstance(child, ast.With) and _within(child, (ast.Return,)) and not always_returns(child.body)
        for child in ast.walk(node)
    )


def why_native(node):
    """What in an `if` keeps it Python's own, or None."""
    if _jumps_out(node):
        return "`break` or `continue`"
    if _returns_from_loop(node) or _partial_with(node):
        return "`return` in a loop, `try` or `with`"
    if _within(node, (ast.Yield, ast.YieldFrom, ast.Await)):
        return "`yield` or `await`"
    if _within(node, (ast.Global, ast.Nonlocal, ast.Delete)):
        return "`global`, `nonlocal` or `del`"
    return None


def always_returns(statements):
    """Whether no path reaches the end."""
    for node in statements:
        if isinstance(node, (ast.Return, ast.Raise)):
            return True
        if isinstance(node, ast.If) and always_returns(node.body) and always_returns(node.orelse):
            return True
        if isinstance(node, ast.With) and always_returns(node.body):
            return True
    return False


def _has_return(node):
    return _within(node, (ast.Return,))


def _needs_lowering(statements):
    return any(
        isinstance(node, ast.If)
        and _has_return(node)
        and why_native(node) is None
        or isinstance(node, (ast.If, ast.With))
        and _needs_lowering(getattr(node, "body", []) + getattr(node, "orelse", []))
        for node in statements
    )


def _assign(value, where):
    node = ast.parse(f"{RESULT} = None").body[0]
    if value is not None:
        node.value = value
    return ast.copy_location(node, where)


def _lower(statements):
    lowered = []
    for i, node in enumerate(statements):
        if isinstance(node, ast.Return):
            return [*lowered, _assign(node.value, node)]
        if isinstance(node, ast.If) and _has_return(node) and why_native(node) is None:
            rest = statements[i + 1 :]
            body, orelse = node.body, node.orelse
            ends = always_returns(body), always_returns(orelse)
            if not ends[0]:
                body = body + (rest if ends[1] else copy.deepcopy(rest))
            if not ends[1]:
                orelse = orelse + rest
            node.body, node.orelse = _lower(body) or [ast.copy_location(ast.Pass(), node)], _lower(orelse)
            return [*lowered, node]
        if isinstance(node, ast.With) and always_returns(node.body):
            node.body = _lower(node.body)
            return [*lowered, node]
        lowered.append(node)
    return lowered


def lower(function):
    """Changes a function's tree, if it needs to be."""
    if not _needs_lowering(function.body):
        return
    begin = ast.parse(f"{RESULT} = __gesso.NoReturn('the result')").body[0]
    end = ast.parse(f"return __gesso.returned({RESULT})").body[0]
    body = _lower(function.body)
    first, last = function.body[0], function.body[-1]
    function.body = [ast.copy_location(begin, first), *body, ast.copy_location(end, last)]
