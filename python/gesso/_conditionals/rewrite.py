"""The new syntax tree of a definition: conditions and calls go through `runtime`, branches become functions."""

import ast

from . import returns
from .liveness import Flow, writes

RUNTIME = "__gesso"
_KEEP_CALLS = {"super", "locals", "globals", "vars", "eval", "exec", "dir", "isinstance", "type", "len", "range"}


def _call(name, *arguments):
    function = ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())
    return ast.Call(function, list(arguments), [])


def _lambda(expression):
    node = ast.parse("lambda: None", mode="eval").body
    node.body = expression
    return node


def _is_generator(function):
    return returns._within(function, (ast.Yield, ast.YieldFrom, ast.Await))


def _arguments(function):
    a = function.args
    found = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return set(found + [x.arg for x in (a.vararg, a.kwarg) if x is not None])


def _declared(function):
    """Names that a function says are not its own: name > `global` or `nonlocal`."""
    found = {}
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            kind = "global" if isinstance(node, ast.Global) else "nonlocal"
            found.update({name: kind for name in node.names})
    return found


class _State:
    """The variables that an `if` writes: names first those that are read behind it, then the others."""

    def __init__(self, node):
        written = writes(node.body + node.orelse)
        names = [key for key in written if key.isidentifier()]
        parts = [key for key in written if not key.isidentifier() and _root(written[key]) not in names]
        live = [name for name in names if name in node.live_out]
        self.names = live + [name for name in names if name not in node.live_out]
        self.parts = {key: written[key] for key in parts}
        # Parts of objects may be read through any other variable: they are merged, and so stand before what is not.
        self.order = [*live, *self.parts, *self.names[len(live) :]]
        self.count = len(live) + len(self.parts)


def _root(node):
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id


class Rewriter(ast.NodeTransformer):
    """Rewrites one function and those inside of it."""

    def __init__(self, outer_names):
        self._scopes = [set(outer_names)]
        self._declared = [{}]

    # --- functions

    def visit_FunctionDef(self, node):
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        if _is_generator(node):
            return node
        self.function(node)
        mark = ast.Attribute(ast.Name(RUNTIME, ast.Load()), "mark", ast.Load())
        node.decorator_list.append(ast.copy_location(mark, node))
        return node

    def function(self, node):
        """Rewrites the body of a function."""
        returns.lower(node)
        Flow().block(node.body, set())
        declared = _declared(node)
        local = _arguments(node) | (writes(node.body).keys() - declared.keys())
        local = {name for name in local if name.isidentifier()}
        self._scopes.append(local)
        self._declared.append(declared)
        self._undefined = getattr(self, "_undefined", None)
        outer, self._undefined = self._undefined, set()
        body = [statement for old in node.body for statement in self._as_list(self.visit(old))]
        unbound = sorted(self._undefined - _arguments(node) - declared.keys() - {returns.RESULT})
        begin = [ast.parse(f"{name} = {RUNTIME}.Undefined({name!r})").body[0] for name in unbound]
        docstring = body[:1] if ast.get_docstring(node, clean=False) is not None else []
        node.body = docstring + [ast.copy_location(line, node.body[0]) for line in begin] + body[len(docstring) :]
        self._undefined = outer
        self._scopes.pop()
        self._declared.pop()

    @staticmethod
    def _as_list(node):
        return node if isinstance(node, list) else [] if node is None else [node]

    def visit_AsyncFunctionDef(self, node):
        return node

    visit_ClassDef = visit_AsyncFunctionDef

    def visit_Lambda(self, node):
        if _is_generator(node):
            return node
        self._scopes.append(_arguments(node))
        node.args = self.visit(node.args)
        node.body = self.visit(node.body)
        self._scopes.pop()
        return ast.copy_location(_call("mark", node), node)

    # --- statements

    def visit_If(self, node):
        native = returns.why_native(node)
        if native is not None:
            self.generic_visit(node)
            node.test = ast.copy_location(_call("plain", node.test, ast.Constant(native)), node.test)
            return node
        state = _State(node)
        self._undefined.update(state.names)
        test = self.visit(node.test)
        body = [s for old in node.body for s in self._as_list(self.visit(old))]
        orelse = [s for old in node.orelse for s in self._as_list(self.visit(old))]
        statements = [
            self._branch("__gesso_body", state, body),
            self._branch("__gesso_else", state, orelse),
            self._reader(state),
            self._writer(state),
        ]
        names = [ast.Name(name, ast.Load()) for name in ("__gesso_body", "__gesso_else", "__gesso_get", "__gesso_set")]
        texts = ast.Tuple([ast.Constant(key) for key in state.order], ast.Load())
        run = ast.Expr(_call("if_", test, *names, texts, ast.Constant(state.count)))
        for statement in statements:
            ast.copy_location(statement, node)
        # Where it runs is the line of the `if`, not that of its end.
        ast.copy_location(run.value, ast.copy_location(run, node.test))
        return [*statements, run]

    def visit_AnnAssign(self, node):
        """Without its annotation: a branch that writes the variable declares it `nonlocal`, where Python takes none."""
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return self.visit(ast.copy_location(ast.Assign([node.target], node.value), node))

    def _declaration(self, names):
        """`nonlocal` and `global` lines for what a branch writes."""
        lines = []
        for kind in ("nonlocal", "global"):
            own = [name for name in names if self._declared[-1].get(name, "nonlocal") == kind]
            if own:
                lines.append(f"{kind} {', '.join(own)}")
        return [ast.parse(line).body[0] for line in lines]

    def _branch(self, name, state, body):
        function = ast.parse(f"def {name}(): pass").body[0]
        function.body = self._declaration(state.names) + (body or [ast.Pass()])
        return function

    def _reader(self, state):
        function = ast.parse("def __gesso_get(): return ()").body[0]
        values = []
        for key in state.order:
            if key in state.parts:
                part = ast.parse(ast.unparse(state.parts[key]), mode="eval").body
                values.append(_call("read", _lambda(part), ast.Constant(key)))
            else:
                values.append(ast.Name(key, ast.Load()))
        function.body[0].value = ast.Tuple(values, ast.Load())
        return function

    def _writer(self, state):
        function = ast.parse("def __gesso_set(__gesso_values): pass").body[0]
        lines = self._declaration(state.names)
        for i, key in enumerate(state.order):
            value = f"__gesso_values[{i}]"
            if key in state.parts:
                text = f"if {RUNTIME}.is_defined({value}): {ast.unparse(state.parts[key])} = {value}"
            else:
                text = f"{key} = {value}"
            lines.append(ast.parse(text).body[0])
        function.body = lines or [ast.Pass()]
        return function

    # --- expressions

    def visit_Name(self, node):
        known = any(node.id in scope for scope in self._scopes)
        if isinstance(node.ctx, ast.Load) and known and not node.id.startswith("__gesso"):
            return ast.copy_location(_call("load", node), node)
        return node

    def visit_Call(self, node):
        keeps = isinstance(node.func, ast.Name) and node.func.id in _KEEP_CALLS
        function = node.func
        if not isinstance(function, ast.Name):
            function = self.visit(function)
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        node.func = function if keeps else ast.copy_location(_call("call", function), node)
        return node

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        if returns._within(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)):
            return node
        right = node.values[-1]
        for left in reversed(node.values[:-1]):
            right = ast.copy_location(_call(name, _lambda(left), _lambda(right)), node)
        return right

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return ast.copy_location(_call("not_", node.operand), node)
        return node

    def visit_IfExp(self, node):
        self.generic_visit(node)
        if returns._within(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)):
            return node
        return ast.copy_location(_call("if_expression", node.test, _lambda(node.body), _lambda(node.orelse)), node)

    def visit_Compare(self, node):
        self.generic_visit(node)
        if len(node.ops) == 1 or returns._within(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)):
            return node
        operands = [node.left, *node.comparators]
        pairs = [ast.Compare(a, [op], [b]) for a, op, b in zip(operands, node.ops, operands[1:])]
        chain = ast.copy_location(pairs[-1], node)
        for pair in reversed(pairs[:-1]):
            chain = ast.copy_location(_call("and_", _lambda(pair), _lambda(chain)), node)
        return chain
