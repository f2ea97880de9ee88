"""A file of LMDB, without its library: a branch page above leaves, so that a reader goes from page to page."""

import struct

_PAGE = 4096
_BRANCH, _LEAF, _META = 1, 2, 8
_NONE = 2**64 - 1


def _page(number, flags, nodes):
    made, at = bytearray(_PAGE), _PAGE
    for i, node in enumerate(nodes):
        at -= len(node) + len(node) % 2
        made[at : at + len(node)] = node
        struct.pack_into("<H", made, 16 + 2 * i, at)
    struct.pack_into("<QHHHH", made, 0, number, 0, flags, 16 + 2 * len(nodes), at)
    return bytes(made)


def _meta(number, leaves, count):
    made = bytearray(_PAGE)
    struct.pack_into("<QHH", made, 0, number, 0, _META)
    last = 2 + leaves
    struct.pack_into("<IIQQ", made, 16, 0xBEEFC0DE, 1, 0, (last + 1) * _PAGE)
    # The tree of free pages, which is empty, and that of records: depth, pages, records, root.
    struct.pack_into("<IHHQQQQQ", made, 40, _PAGE, 0, 0, 0, 0, 0, 0, _NONE)
    struct.pack_into("<IHHQQQQQ", made, 88, 0, 0, 2, 1, leaves, 0, count, 2)
    struct.pack_into("<QQ", made, 136, last, number)
    return bytes(made)


def write_lmdb(folder, messages):
    """Records as Caffe numbers them, in `folder`."""
    keys = [f"{i:08}".encode() for i in range(len(messages))]
    nodes = [struct.pack("<HHHH", len(message), 0, 0, len(key)) + key + message for key, message in zip(keys, messages)]
    # A branch has two leaves or more.
    of_leaf = min(-(-len(nodes) // 2), 6)
    starts = range(0, len(nodes), of_leaf)
    # The first key of a branch is left out.
    branch = [
        struct.pack("<HHHH", 3 + i, 0, 0, 8 if i else 0) + (keys[start] if i else b"") for i, start in enumerate(starts)
    ]
    leaves = [_page(3 + i, _LEAF, nodes[start : start + of_leaf]) for i, start in enumerate(starts)]
    metas = [_meta(number, len(leaves), len(messages)) for number in (0, 1)]
    (folder / "data.mdb").write_bytes(b"".join([*metas, _page(2, _BRANCH, branch), *leaves]))
