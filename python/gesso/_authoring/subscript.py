"""`node[...]`: indices, slices and new axes become operators."""

from .. import fn
from ..data_node import DataNode, _NewAxis


def subscript(node, index):
    """What `node[index]` is."""
    parts = index if isinstance(index, tuple) else (index,)
    arguments, axes, names = {}, [], []
    subscripts = dimension = 0
    for part in parts:
        if part is Ellipsis:
            raise NotImplementedError("Ellipsis in indexing is not implemented")
        if isinstance(part, _NewAxis):
            axes.append(dimension)
            if part.name is not None:
                names.append(part.name)
            dimension += 1
            continue
        if isinstance(part, (float, str)):
            raise TypeError(f"Invalid type for an index: {type(part)}")
        if part is None or isinstance(part, slice):
            _add_range(arguments, subscripts, part)
            dimension += 1
        else:
            arguments[f"at_{subscripts}"] = part
        subscripts += 1
    if names and len(names) != len(axes):
        raise ValueError("names for new axes: expected one for each of them, or none at all")
    if arguments:
        node = fn._tensor_subscript(node, **arguments, num_subscripts=subscripts)
    elif not (axes and isinstance(parts[-1], _NewAxis)):
        node = fn._subscript_dim_check(node, num_subscripts=subscripts)
    if not axes:
        return node
    return fn.expand_dims(node, axes=axes, new_axis_names="".join(names) or None)


def _add_range(arguments, position, part):
    if part is None:
        return
    for name, bound in (("lo", part.start), ("hi", part.stop), ("step", part.step)):
        if bound is not None:
            arguments[f"{name}_{position}"] = bound


DataNode.__getitem__ = subscript
