"""The kernel that inflates blocks of LZ4, on the host (emulator.h), against the format's rules in Python."""

import numpy as np
import pytest
from emulator import needs_compiler, place, table_kernel
from layouts import layout

pytestmark = needs_compiler
INFLATED, ENDS_EARLY, TOO_LONG, ZERO_OFFSET, OFFSET_OUTSIDE = (
    getattr(layout("inflate"), name) for name in ("INFLATED", "ENDS_EARLY", "TOO_LONG", "ZERO_OFFSET", "OFFSET_OUTSIDE")
)


@pytest.fixture(scope="module")
def inflate(tmp_path_factory):
    run = table_kernel(tmp_path_factory.mktemp("inflate"), "inflate", "to from to_bytes from_bytes outcome")

    def call(blocks, sizes):
        """What becomes of blocks in room of so many bytes, and what the kernel says of them."""
        memory, rows = [np.full(len(blocks), 99, np.uint32)], []
        for i, (block, size) in enumerate(zip(blocks, sizes)):
            rows.append((place(len(memory)), place(len(memory) + 1), size, len(block), place(0, 4 * i)))
            memory += [np.full(size, 0xEE, np.uint8), np.frombuffer(block, np.uint8)]
        made = run(rows, memory, blocks=1, threads=layout("inflate").WARP)
        return made[1::2], made[0]

    return call


def length(number):
    """A length as its four bits and the bytes that follow them."""
    if number < 15:
        return number, b""
    rest, last = divmod(number - 15, 255)
    return 15, b"\xff" * rest + bytes([last])


def compressed(rng, matches):
    """A random block, and what it stands for."""
    block, plain = b"", b""
    for i in range(matches + 1):
        literals = rng.bytes(int(rng.choice([1, 2, 14, 15, 16, 40, 270, 300])) if i == 0 or rng.random() < 0.7 else 0)
        plain += literals
        high, more = length(len(literals))
        if i == matches:
            return block + bytes([high << 4]) + more + literals, plain
        offset, count = (
            int(rng.integers(1, min(len(plain), 65_535) + 1)),
            int(rng.choice([4, 5, 18, 19, 20, 64, 273, 274, 600])),
        )
        if rng.random() < 0.4:
            offset = min(offset, int(rng.choice([1, 2, 3, 7, 31, 32, 33])))
        low, rest = length(count - 4)
        block += bytes([high << 4 | low]) + more + literals + offset.to_bytes(2, "little") + rest
        for _ in range(count):
            plain += plain[-offset:][:1]


def by_the_rules(block, size):
    """What a block becomes in room of `size` bytes, and what is said of it."""
    plain, at = bytearray(), 0

    def byte():
        nonlocal at
        if at == len(block):
            raise EOFError
        at += 1
        return block[at - 1]

    def read(nibble):
        total = more = nibble
        if nibble == 15:
            more = 255
            while more == 255:
                more = byte()
                total += more
        return total

    try:
        while True:
            token = byte()
            literals = read(token >> 4)
            if literals > len(block) - at:
                raise EOFError
            if literals > size - len(plain):
                return plain, TOO_LONG
            plain += block[at : at + literals]
            at += literals
            if at == len(block):
                return plain, INFLATED
            offset = byte() | byte() << 8
            if not offset:
                return plain, ZERO_OFFSET
            count = read(token & 15) + 4
            if count > size - len(plain):
                return plain, TOO_LONG
            if offset > len(plain):
                return plain, OFFSET_OUTSIDE
            for _ in range(count):
                plain.append(plain[-offset])
    except EOFError:
        return plain, ENDS_EARLY


def test_blocks(inflate):
    rng = np.random.default_rng(3)
    made = [compressed(rng, matches) for matches in (0, 1, 2, 5, 20, 60) for _ in range(4)]
    more = rng.integers(0, 2, len(made)) * 37
    found, outcomes = inflate([block for block, _ in made], [len(plain) + rest for (_, plain), rest in zip(made, more)])
    assert not outcomes.any()
    for (_, plain), rest, bytes_found in zip(made, more, found):
        assert bytes_found.tobytes() == plain + bytes(rest)


def test_a_match_may_reach_back_as_far_as_an_offset_can(inflate):
    rng = np.random.default_rng(4)
    literals = rng.bytes(65_535)
    high, more = length(len(literals))
    block = bytes([high << 4 | 15]) + more + literals + b"\xff\xff" + b"\x05" + b"\x00"
    (found,), outcomes = inflate([block], [len(literals) + 24])
    assert outcomes[0] == INFLATED and found.tobytes() == literals + literals[:24]


def test_damaged_blocks_are_told_and_harm_nothing(inflate):
    rng = np.random.default_rng(5)
    blocks, sizes = [b"", b"\x00", b"\x0f", b"\xf0\xff\xff"], [9, 0, 9, 9]
    for _ in range(400):
        block, plain = compressed(rng, int(rng.integers(1, 12)))
        damaged = bytearray(block)
        for _ in range(int(rng.integers(1, 4))):
            damaged[int(rng.integers(0, len(damaged)))] = int(rng.choice([0, 1, 255, rng.integers(0, 256)]))
        blocks.append(bytes(damaged[: int(rng.integers(1, len(damaged) + 1))] if rng.random() < 0.3 else damaged))
        sizes.append(int(rng.integers(0, len(plain) + 100)) if rng.random() < 0.5 else len(plain))
    found, outcomes = inflate(blocks, sizes)
    expected = [by_the_rules(block, size) for block, size in zip(blocks, sizes)]
    assert outcomes.tolist() == [outcome for _, outcome in expected]
    assert len(set(outcomes.tolist())) == 5
    for (plain, _), bytes_found in zip(expected, found):
        assert bytes_found.tobytes() == bytes(plain) + bytes(len(bytes_found) - len(plain))
