"""Which variables are read behind each `if` of a function, and which a branch writes. On syntax trees, backwards."""

import ast


def key_of(node):
    """`x`, `x.y`, `x["k"]`, `x[i]` as a text, or None for targets that are no such thing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = key_of(node.value)
        return None if base is None else f"{base}.{node.attr}"
    if isinstance(node, ast.Subscript):
        base = key_of(node.value)
        if base is not None and isinstance(node.slice, (ast.Constant, ast.Name)):
            return f"{base}[{ast.unparse(node.slice)}]"
    return None


class _Reads(ast.NodeVisitor):
    """Variables that an expression or a nested function reads."""

    def __init__(self):
        self.found = set()

    def visit_Name(self, node):
        if isinstance(node.ctx, (ast.Load, ast.Del)):
            self.found.add(node.id)

    def visit_AugAssign(self, node):
        key = key_of(node.target)
        if key is not None:
            self.found.add(key)
        self.generic_visit(node)

    def visit_Attribute(self, node):
        key = key_of(node)
        if key is not None and isinstance(node.ctx, ast.Load):
            self.found.add(key)
        self.generic_visit(node)

    visit_Subscript = visit_Attribute


def reads(*nodes):
    """What the nodes read."""
    visitor = _Reads()
    for node in nodes:
        if node is not None:
            visitor.visit(node)
    return visitor.found


class _Writes(ast.NodeVisitor):
    """Targets that statements write, by key; not those of nested functions."""

    def __init__(self):
        self.found = {}

    def _add(self, node):
        if isinstance(node, (ast.Tuple, ast.List)):
            for element in node.elts:
                self._add(element)
        elif isinstance(node, ast.Starred):
            self._add(node.value)
        else:
            key = key_of(node)
            if key is not None:
                self.found.setdefault(key, node)

    def visit_Assign(self, node):
        for target in node.targets:
            self._add(target)
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        self._add(node.target)
        self.generic_visit(node)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self._add(node.target)
        self.generic_visit(node)

    def visit_NamedExpr(self, node):
        self._add(node.target)
        self.generic_visit(node)

    def visit_For(self, node):
        self._add(node.target)
        self.generic_visit(node)

    def visit_withitem(self, node):
        if node.optional_vars is not None:
            self._add(node.optional_vars)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node):
        self.generic_visit(node)

    def _import(self, node):
        for alias in node.names:
            name = (alias.asname or alias.name).split(".")[0]
            self.found.setdefault(name, ast.Name(name, ast.Store()))

    visit_Import = visit_ImportFrom = _import

    def visit_FunctionDef(self, node):
        self.found.setdefault(node.name, ast.Name(node.name, ast.Store()))

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node):
        pass

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Lambda


def writes(statements):
    """What the statements write: key > target."""
    visitor = _Writes()
    for statement in statements:
        visitor.visit(statement)
    return visitor.found


class Flow:
    """Notes on each `if` what is read behind it, as `live_out`."""

    def block(self, statements, live, loop=frozenset()):
        """What is read from the beginning of `statements` on, when `live` is read behind them."""
        for statement in reversed(statements):
            live = self._statement(statement, set(live), loop)
        return live

    def _statement(self, node, live, loop):
        if isinstance(node, ast.If):
            node.live_out = set(live) | set(getattr(node, "live_out", ()))
            both = self.block(node.body, live, loop) | self.block(node.orelse, live, loop)
            return both | reads(node.test)
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
            return self._loop(node, live)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return self.block(node.body, live, loop) | reads(*node.items)
        if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            return self._try(node, live, loop)
        if isinstance(node, (ast.Return, ast.Raise)):
            return reads(node)
        if isinstance(node, (ast.Break, ast.Continue)):
            return live | set(loop)
        written = {key for key in writes([node]) if key.isidentifier()}
        return (live - written) | reads(node)

    def _loop(self, node, live):
        head = reads(node.test) if isinstance(node, ast.While) else reads(node.iter)
        around = live | head
        for _ in range(2):
            around |= self.block(node.body, around, around)
        return around | self.block(node.orelse, live)

    def _try(self, node, live, loop):
        live = self.block(node.finalbody, live, loop)
        handled = set(live)
        for handler in node.handlers:
            handled |= self.block(handler.body, live, loop) | reads(handler.type)
        return self.block(node.body, self.block(node.orelse, live, loop) | handled, loop) | handled
