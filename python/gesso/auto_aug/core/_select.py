"""One of several augmentations for each sample."""


def _among(first, last, ops, chosen, args, kwargs):
    if first == last:
        return ops[first](*args, **kwargs)
    middle = (first + last) // 2
    if chosen <= middle:
        return _among(first, middle, ops, chosen, args, kwargs)
    else:
        return _among(middle + 1, last, ops, chosen, args, kwargs)


def select(ops, selected_op_idx, *op_args, **op_kwargs):
    """What `ops[selected_op_idx]` makes of the arguments, where the index is one for each sample: halves are split
    again and again."""
    return _among(0, len(ops) - 1, ops, selected_op_idx, op_args, op_kwargs)
