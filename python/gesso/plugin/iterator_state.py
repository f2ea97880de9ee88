"""What an iterator keeps in a checkpoint, read and checked: anybody may have edited it."""

import json

from .._run.checkpoint import check_number, damaged

# Samples, and epochs.
_MOST, _MOST_EPOCHS = 1 << 53, (1 << 31) - 1


def read(text):
    """What `BaseIterator` saved: `counter`, `size`, and `shards`, or no `shards`."""
    try:
        state = json.loads(text)
    except (ValueError, RecursionError):
        raise damaged("`iterator_data`", text, "JSON") from None
    _check_fields("`iterator_data`", state, "counter", "size")
    check_number("`counter`", state["counter"], 0, _MOST)
    check_number("`size`", state["size"], -1, _MOST)
    if "shards" not in state and state["size"] == 0:
        raise damaged("`size`", 0, "another number")
    if "shards" in state:
        _check_fields("`shards`", state["shards"], "sizes", "batch_size")
        _check_list("`sizes`", state["shards"]["sizes"], 0, _MOST)
        check_number("`batch_size`", state["shards"]["batch_size"], 1, _MOST)
    return state


def check_shards(state, shards, batch_size, may_be_empty):
    """Checks what `Shards.state` gave, of as many `shards`. `may_be_empty`: whether an epoch may have no samples."""
    # Twice what a shard reads at most, where batches are filled.
    saved, most = state["shards"], 2 * (shards.total + batch_size)
    _check_fields("`shards`", saved, "turns", "read", "left", "epoch")
    check_number("`turns`", saved["turns"], 0, shards.count - 1)
    check_number("`epoch`", saved["epoch"], 0, _MOST_EPOCHS)
    _check_list("`read`", saved["read"], -most, most, shards.count)
    if not isinstance(saved["left"], list):
        raise damaged("`left`", saved["left"], "a list of lists")
    for sizes in (saved["sizes"], saved.get("first_sizes", saved["sizes"]), *saved["left"]):
        _check_list("the sizes of shards", sizes, 0, shards.total, shards.count)
    check_number("`size`", state["size"], 0 if may_be_empty else 1, most)
    check_number("`counter`", state["counter"], 0, most)


def _check_fields(what, found, *names):
    if not isinstance(found, dict):
        raise damaged(what, found, "an object")
    missing = [name for name in names if name not in found]
    if missing:
        raise damaged(what, found, f"an object with {', '.join(f'`{name}`' for name in missing)}")


def _check_list(what, found, least, most, length=None):
    if not isinstance(found, list) or length not in (None, len(found)):
        raise damaged(what, found, "a list" if length is None else f"a list of {length}")
    for value in found:
        check_number(f"a number of {what}", value, least, most)
