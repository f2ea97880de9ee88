"""Engines and distributions of the C++ library, as GNU's libstdc++ has them: what DALI shuffles with."""

from .._authoring.seeds import seed_sequence

_M32, _M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


class Minimal:
    """`std::minstd_rand0`, seeded by a `seed_seq` of one number."""

    lowest, highest = 1, 2147483646

    def __init__(self, seed):
        self.state = seed_sequence(seed, 4)[3] % 2147483647 or 1

    def __call__(self):
        self.state = self.state * 16807 % 2147483647
        return self.state


class _Mersenne:
    """A Mersenne twister; subclasses have the numbers of one width."""

    lowest = 0
    bits: int
    size: int
    middle: int
    highest: int
    multiplier: int
    matrix: int
    low_mask: int
    tempering: tuple

    def __init__(self, seed):
        words = [seed & self.highest]
        for i in range(1, self.size):
            words.append(self.multiplier * (words[-1] ^ (words[-1] >> (self.bits - 2))) + i & self.highest)
        self.words, self.next = words, self.size

    def __call__(self):
        if self.next == self.size:
            self._twist()
        word = self.words[self.next]
        self.next += 1
        for shift, mask in self.tempering:
            word ^= (word >> shift if shift > 0 else word << -shift) & mask
        return word & self.highest

    def _twist(self):
        words, low = self.words, self.low_mask
        for k in range(self.size):
            mixed = (words[k] & ~low & self.highest) | (words[(k + 1) % self.size] & low)
            words[k] = words[(k + self.middle) % self.size] ^ (mixed >> 1) ^ (self.matrix if mixed & 1 else 0)
        self.next = 0


class Mersenne32(_Mersenne):
    """`std::mt19937`"""

    bits, size, middle, highest = 32, 624, 397, _M32
    multiplier, matrix, low_mask = 1812433253, 0x9908B0DF, 0x7FFFFFFF
    tempering = ((11, _M32), (-7, 0x9D2C5680), (-15, 0xEFC60000), (18, _M32))


class Mersenne64(_Mersenne):
    """`std::mt19937_64`"""

    bits, size, middle, highest = 64, 312, 156, _M64
    multiplier, matrix, low_mask = 6364136223846793005, 0xB5026F5AA96619E9, 0x7FFFFFFF
    tempering = ((29, 0x5555555555555555), (-17, 0x71D67FFFEDA60000), (-37, 0xFFF7EEE000000000), (43, _M64))


def uniform(engine, last):
    """A number from 0 to `last`, as `std::uniform_int_distribution` draws it."""
    span, count = engine.highest - engine.lowest, last + 1
    if span in (_M32, _M64):
        bits = 32 if span == _M32 else 64
        product = engine() * count
        if product & span < count:
            threshold = (-count & span) % count
            while product & span < threshold:
                product = engine() * count
        return product >> bits
    scale = span // count
    while True:
        drawn = engine() - engine.lowest
        if drawn < count * scale:
            return drawn // scale


def shuffle(values, engine):
    """Shuffles a list in place, as `std::shuffle` does: two positions of one draw where the range allows."""
    count = len(values)
    if count == 0:
        return

    def swap(i, j):
        values[i], values[j] = values[j], values[i]

    if (engine.highest - engine.lowest) // count < count:
        for i in range(1, count):
            swap(i, uniform(engine, i))
        return
    i = 1
    if count % 2 == 0:
        swap(1, uniform(engine, 1))
        i = 2
    while i < count:
        first, second = divmod(uniform(engine, (i + 1) * (i + 2) - 1), i + 2)
        swap(i, first)
        swap(i + 1, second)
        i += 2
