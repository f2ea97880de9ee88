"""What rewritten definitions call, beside `call` and `mark`, which `convert` adds. With plain values each function does
what Python does."""

from .. import _context, fn
from .._authoring.constants import Constant
from ..data_node import DataNode
from .scopes import enabled
from .trees import leaves_like, map_tree, same_structure, shown

_INCONSISTENT = "after an `if` a variable has a value from one branch alone: give it one in both."
_DIVERGENT = """Divergent data found in different branches of `if/else` control flow statement. Variables in all code paths are merged into common \
output batches. The values assigned to a given variable need to have the same nesting structure in every code path (both `if` branches). A \
node, or tuples of one length, or dictionaries with the same keys; what is inside may differ.
"""


class Undefined:
    """A variable that has no value."""

    def __init__(self, name):
        self.name = name

    def __bool__(self):
        raise UnboundLocalError(f"local variable '{self.name}' referenced before assignment")


class NoReturn(Undefined):
    """What a function returns that has not returned."""


def load(value):
    """The value of a variable."""
    if isinstance(value, DataNode):
        conditions = enabled()
        return value if conditions is None else conditions.use(value)
    if isinstance(value, Undefined):
        bool(value)
    return value


def read(get, name):
    """The value of a variable, which may have none."""
    try:
        return get()
    except (NameError, AttributeError, KeyError, IndexError):
        return Undefined(name)


def returned(value):
    """What a function returns."""
    return None if isinstance(value, NoReturn) else value


def plain(value, what):
    """A condition that must be Python's own."""
    if isinstance(value, DataNode):
        raise TypeError(
            f"The condition of an `if` with {what} inside cannot depend on data: both branches of such an `if` run for parts of the "
            "batch. Move the loop's condition into Python values."
        )
    return value


def if_(condition, body, orelse, get, set_, names, count):
    """An `if` statement. `get` and `set_` read and write the variables `names`; the first `count` are used behind
    it."""
    conditions = enabled()
    if not isinstance(condition, DataNode) or conditions is None:
        if condition:
            body()
        else:
            orelse()
        return
    before = get()
    predicate = conditions.enter(condition)
    try:
        with conditions.in_branch(0):
            body()
            first = _branch_values(conditions, get()[:count])
        set_(before)
        with conditions.in_branch(1):
            orelse()
            second = _branch_values(conditions, get()[:count])
        _check_defined(first, second, names)
        with conditions.in_branch(None):
            merged = _merge(first, second, predicate)
    finally:
        conditions.leave()
    map_tree(lambda node: conditions.register([node]) if is_defined(node) else None, merged)
    set_(tuple(merged) + tuple(before[count:]))


def _check_defined(first, second, names):
    """Raises if a variable has a value in one branch only."""
    for one, other, name in zip(first, second, names):
        if is_defined(one) == is_defined(other):
            continue
        branch, missing = ("else", other) if is_defined(one) else ("if", one)
        if isinstance(missing, NoReturn):
            raise RuntimeError(_context.add_words(f"{_INCONSISTENT} There is no `return` in the branch `{branch}`."))
        raise RuntimeError(_context.add_words(f"{_INCONSISTENT} `{name}` has none in the branch `{branch}`."))


def _branch_values(conditions, values):
    return map_tree(lambda value: _as_node(conditions, value), tuple(values))


def _as_node(conditions, value):
    if isinstance(value, Undefined):
        return value
    if not isinstance(value, DataNode):
        value = Constant(value, device="cpu")
    return conditions.use(value)


def _merge(first, second, predicate):
    if not same_structure(first, second):
        raise ValueError(
            f"{_DIVERGENT}\n'If' output structure: {shown(first)}\n'Else' output structure: {shown(second)}"
        )

    def merge(a, b):
        return fn._conditional.merge(a, b, predicate=predicate) if is_defined(a) else a

    return leaves_like(merge, first, second)


def if_expression(condition, body, orelse):
    """`body if condition else orelse`"""
    if not isinstance(condition, DataNode) or enabled() is None:
        return body() if condition else orelse()
    result = [Undefined("the expression")]

    def run(branch):
        result[0] = branch()

    def set_(values):
        result[0] = values[0]

    if_(condition, lambda: run(body), lambda: run(orelse), lambda: (result[0],), set_, ("the expression",), 1)
    return result[0]


def not_(value):
    """`not value`"""
    if isinstance(value, DataNode) and enabled() is not None:
        return fn._conditional.not_(value)
    return not value


def _validated(value, name, side):
    node = fn._conditional.validate_logical(value, expression_name=name, expression_side=side)
    if node.device != "cpu":
        raise RuntimeError(
            f"Logical expression `{name.rstrip('_')}` is restricted to scalar (0-d tensors) inputs of `bool` type, that are placed on CPU. "
            f"Got a GPU input `{value}` as its {side} operand in logical expression."
        )
    return node


def _logical(name, left, right):
    """The right side is looked at where the left one does not decide; that is the branch 0 of `and`, 1 of `or`."""
    conditions = enabled()
    open_branch = 0 if name == "and" else 1
    predicate = conditions.enter(_validated(left, name, "left"))
    parts = [None, None]
    try:
        for branch in (0, 1):
            with conditions.in_branch(branch):
                node = _validated(right(), name, "right") if branch == open_branch else predicate
                parts[branch] = conditions.use(node)
        with conditions.in_branch(None):
            merged = fn._conditional.merge(*parts, predicate=predicate)
    finally:
        conditions.leave()
    conditions.register([merged])
    return merged


def and_(left, right):
    """`left() and right()`"""
    value = left()
    if isinstance(value, DataNode) and enabled() is not None:
        return _logical("and", value, right)
    return value and right()


def or_(left, right):
    """`left() or right()`"""
    value = left()
    if isinstance(value, DataNode) and enabled() is not None:
        return _logical("or", value, right)
    return value or right()


def is_defined(value):
    """Whether a variable has a value."""
    return not isinstance(value, Undefined)
