"""The branches that a definition is in while it runs. A batch that comes from outside of a branch is split when it is
used inside."""

from .. import _context, fn
from ..data_node import DataNode


class Scope:
    """One `if`: its predicate, and what was made or split in its branches."""

    def __init__(self, predicate):
        self.predicate = predicate
        self.branch = None  # 0: where the predicate is true, 1: where it is not; None: neither
        self.made = ({}, {}, {})  # of branch 0, of branch 1, of neither
        self.splits = {}

    def made_here(self):
        """Keys of what is visible in the branch at hand."""
        if self.branch is not None:
            return self.made[self.branch]
        return {**self.made[0], **self.made[1], **self.made[2]}

    def add(self, node):
        """Notes that `node` was made in the branch at hand."""
        self.made[2 if self.branch is None else self.branch][node.key] = node

    def has(self, node):
        """Whether `node` was made or split here."""
        return node.key in self.made_here() or node.key in self.splits

    def get(self, node):
        """`node`, or the part of it that belongs to the branch at hand."""
        return node if node.key in self.made_here() else self.splits[node.key][self.branch]

    def add_split(self, source, producer, parts):
        """Notes the parts of `source`, whose nearest form outside was `producer`."""
        self.splits[source.key] = self.splits[producer.key] = parts
        for i, part in enumerate(parts):
            self.made[i][part.key] = part


class Conditions:
    """The stack of scopes of one pipeline's definition; the outermost is the definition itself."""

    def __init__(self):
        self._scopes = [Scope(None)]
        self._is_splitting = False

    @property
    def top(self):
        """The innermost scope."""
        return self._scopes[-1]

    def register(self, nodes, has_inputs=True):
        """Notes that `nodes` were made in the branch at hand; without inputs they have the whole batch, whatever the
        branch."""
        if self._is_splitting:
            return
        scope = self.top if has_inputs else self._scopes[0]
        for node in nodes:
            scope.add(node)

    def use(self, node):
        """`node` as the branch at hand sees it: split where it comes from outside."""
        for level in range(len(self._scopes) - 1, -1, -1):
            if self._scopes[level].has(node):
                break
        else:
            raise ValueError(f"{node} was not produced within this trace.")
        if level == len(self._scopes) - 1:
            return self.top.get(node)
        return self._split_down(node, level)

    def _split_down(self, node, level):
        part, inner = self._scopes[level].get(node), self._scopes[level + 1 :]
        del self._scopes[level + 1 :]
        try:
            while inner:
                scope = inner[0]
                self._is_splitting = True
                try:
                    parts = fn._conditional.split(part, predicate=scope.predicate, _if_stmt=True)
                finally:
                    self._is_splitting = False
                scope.add_split(node, part, parts)
                part = parts[scope.branch or 0]
                self._scopes.append(inner.pop(0))
        finally:
            self._scopes.extend(inner)
        return part

    def use_all(self, inputs, tensors):
        """Inputs and tensor arguments of an operator, as the branch at hand sees them."""
        inputs = [self.use(node) if isinstance(node, DataNode) else node for node in inputs]
        return inputs, {name: self.use(node) if isinstance(node, DataNode) else node for name, node in tensors.items()}

    def add_scope(self, schema, tensors):
        """Tells operators without inputs how many samples the branch has, where they want to know."""
        if "_scope" not in schema.arguments or len(self._scopes) == 1:
            return
        predicate = self.top.predicate
        tensors["_scope"] = predicate if self.top.branch is None else self.use(predicate)

    def enter(self, predicate):
        """Begins an `if`; returns the predicate as it is here."""
        predicate = self.use(predicate)
        self._scopes.append(Scope(predicate))
        return predicate

    def leave(self):
        """Ends an `if`."""
        self._scopes.pop()

    def in_branch(self, branch):
        """A context in which a branch is at hand: 0, 1, or None to merge them."""
        return _Branch(self, branch)


class _Branch:
    def __init__(self, conditions, branch):
        self._conditions = conditions
        self._branch = branch

    def __enter__(self):
        scope = self._conditions.top
        scope.branch = self._branch
        if self._branch is None:
            scope.add(scope.predicate)

    def __exit__(self, *_):
        self._conditions.top.branch = None


def enabled():
    """The conditions of the pipeline that is being defined, or None."""
    return _context.conditions()
