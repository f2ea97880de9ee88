"""Seeds of random operators, as DALI gives them: one of the pipeline's 1,024 for each, in the order of the file."""

import random

from .arguments import TypedValue

_COUNT = 1024
_MASK = 0xFFFFFFFF


def _mix(value):
    return value ^ (value >> 27)


def seed_sequence(seed, count=_COUNT):
    """The numbers that C++'s `std::seed_seq{seed}` generates."""
    words = [seed & _MASK]
    table = [0x8B8B8B8B] * count
    t = 11 if count >= 623 else 7 if count >= 68 else 5 if count >= 39 else 3 if count >= 7 else (count - 1) // 2
    p = (count - t) // 2
    q = p + t
    m = max(len(words) + 1, count)
    for k in range(m):
        r1 = 1664525 * _mix(table[k % count] ^ table[(k + p) % count] ^ table[(k - 1) % count]) & _MASK
        extra = len(words) if k == 0 else k % count + words[k - 1] if k <= len(words) else k % count
        r2 = (r1 + extra) & _MASK
        table[(k + p) % count] = (table[(k + p) % count] + r1) & _MASK
        table[(k + q) % count] = (table[(k + q) % count] + r2) & _MASK
        table[k % count] = r2
    for k in range(m, m + count):
        r3 = 1566083941 * _mix(table[k % count] + table[(k + p) % count] + table[(k - 1) % count] & _MASK) & _MASK
        r4 = (r3 - k % count) & _MASK
        table[(k + p) % count] ^= r3
        table[(k + q) % count] ^= r4
        table[k % count] = r4
    return table


def assign(operators, seed):
    """The operators with the seeds that a file of all of them would give; for files that hold only some."""
    seeds = seed_sequence(random.getrandbits(32) if seed is None or seed < 0 else seed)
    used, groups = 0, {}
    for node in operators:
        if not node.schema.random or "seed" in node.values:
            continue
        node.values["seed"] = TypedValue("int64", False, [groups.setdefault(node.group, seeds[used % _COUNT])])
        used += 1
    return operators
