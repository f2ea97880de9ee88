"""Nested tuples, lists and dictionaries as trees, whose leaves are all other values. None is a tree without leaves."""


def _children(tree):
    """(keys, children) of an inner node; None of a leaf."""
    if tree is None:
        return (), ()
    if isinstance(tree, dict):
        keys = sorted(tree, key=repr)
        return tuple(keys), [tree[key] for key in keys]
    if isinstance(tree, (tuple, list)):
        return (type(tree), len(tree)), list(tree)
    return None


def _rebuilt(tree, children):
    if tree is None:
        return None
    if isinstance(tree, dict):
        found = dict(zip(sorted(tree, key=repr), children))
        return (
            type(tree)((key, found[key]) for key in tree)
            if type(tree) is not dict
            else {key: found[key] for key in tree}
        )
    if isinstance(tree, tuple):
        return type(tree)(*children) if hasattr(tree, "_fields") else type(tree)(children)
    return type(tree)(children)


def leaves_like(function, tree, *others):
    """The tree with `function` of the leaves that stand at the same place in all trees."""
    found = _children(tree)
    if found is None:
        return function(tree, *others)
    columns = zip(found[1], *(_children(other)[1] for other in others))
    return _rebuilt(tree, [leaves_like(function, *column) for column in columns])


def map_tree(function, tree):
    """The tree with `function` of each leaf."""
    return leaves_like(function, tree)


def same_structure(first, second):
    """Whether two trees differ in nothing but leaves."""
    a, b = _children(first), _children(second)
    if a is None or b is None:
        return a is b
    return type(first) is type(second) and a[0] == b[0] and all(map(same_structure, a[1], b[1]))


def shown(tree):
    """A tree with stars for leaves."""
    return map_tree(lambda _: "*", tree)
