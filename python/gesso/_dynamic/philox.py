"""Philox4x32-10, the random generator of Salmon and others (2011): four words of 32 bits for each counter."""

import re

_ROUNDS, _WORDS = 10, 4
_MULTIPLY, _KEY_STEP = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85)
_MASK, _MASK64 = 0xFFFFFFFF, (1 << 64) - 1
_STATE = re.compile(r"Philox_([0-9A-F]{16})_([0-9A-F]{16}):([0-9A-F]{16})_([0-3])")


def block(key, sequence, offset):
    """The four words of the counter (`sequence`, `offset`), two numbers of 64 bits."""
    a, b, c, d = offset & _MASK, offset >> 32, sequence & _MASK, sequence >> 32
    k, m = key & _MASK, key >> 32
    for _ in range(_ROUNDS):
        first, second = _MULTIPLY[0] * a, _MULTIPLY[1] * c
        a, b, c, d = second >> 32 ^ b ^ k, second & _MASK, first >> 32 ^ d ^ m, first & _MASK
        k, m = (k + _KEY_STEP[0]) & _MASK, (m + _KEY_STEP[1]) & _MASK
    return a, b, c, d


class Philox:
    """The words of one key, one after the other."""

    def __init__(self, key, sequence=0, offset=0, phase=0):
        self._key, self._sequence, self._offset, self._phase = key & _MASK64, sequence, offset, phase
        self._block = None

    @staticmethod
    def parsed(text):
        """The generator in the state that a text names."""
        found = _STATE.fullmatch(text)
        if not found:
            raise ValueError(f"no state of a random generator: expected a text as `RNG.state` has it, found {text!r}")
        *numbers, phase = found.groups()
        return Philox(*(int(number, 16) for number in numbers), int(phase))

    def __str__(self):
        return f"Philox_{self._key:016X}_{self._sequence:016X}:{self._offset:016X}_{self._phase}"

    def next(self):
        """The next word."""
        if self._block is None:
            self._block = block(self._key, self._sequence, self._offset)
        word = self._block[self._phase]
        self.skip(1)
        return word

    def skip(self, count):
        """Goes `count` words on."""
        steps, self._phase = divmod(self._phase + count, _WORDS)
        if steps:
            counter = (self._sequence << 64 | self._offset) + steps
            self._sequence, self._offset = counter >> 64 & _MASK64, counter & _MASK64
            self._block = None
