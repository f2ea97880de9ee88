"""`RNG`: the generator that random operators draw from."""

import operator
import random as _random
import threading

from .philox import Philox

# Words of 32 bits that an operator draws.
_WORDS_OF_OPERATOR = 7
_MASK = (1 << 64) - 1


class State:
    """The state of a generator; as a text it can be saved."""

    __slots__ = ("_text",)

    def __init__(self, text):
        self._text = text

    def __str__(self):
        return self._text

    __repr__ = __str__

    def __eq__(self, other):
        return str(self) == str(other)

    def __hash__(self):
        return hash(self._text)


class RNG:
    """Random numbers of 32 bits, `rng()`, that follow from a `seed`, or from the `state` of another generator."""

    def __init__(self, seed=None, state=None):
        # Words drawn so far.
        self.drawn = 0
        if state is not None:
            if seed is not None:
                raise ValueError("Cannot specify both `seed` and `state`")
            self.set_state(state)
        else:
            self.seed = _random.getrandbits(64) if seed is None else seed

    def __call__(self):
        self.drawn += 1
        return self._generator.next()

    @property
    def seed(self):
        """Can be set, and begins the numbers anew; cannot be read."""
        raise AttributeError("a generator does not know its seed; `state` is what it is")

    @seed.setter
    def seed(self, value):
        self._generator = Philox(operator.index(value) & _MASK)

    def advance(self, count):
        """Leaves `count` numbers out."""
        count = operator.index(count)
        if count < 0:
            raise ValueError(f"a generator cannot go back: expected a number of at least 0, found {count}")
        self.drawn += count
        self._generator.skip(count)

    def clone(self):
        """Another generator with the same numbers to come."""
        return RNG(state=self.state)

    def position_behind(self, count):
        """The position that an operator draws after `count` words more; nothing is drawn here."""
        ahead = self.clone()
        ahead.advance(count)
        return _drawn(ahead)

    @property
    def state(self):
        """Where it is; `str(state)` can be saved."""
        return self.get_state()

    @state.setter
    def state(self, value):
        self.set_state(value)

    def get_state(self, *, cuda_stream=None):
        """As `state`."""
        return State(str(self._generator))

    def set_state(self, value):
        """Goes to a state, or to its text."""
        self._generator = Philox.parsed(str(value))

    def __repr__(self):
        return f"RNG(state='{self.state}')"


class _Thread(threading.local):
    def __init__(self):
        self.rng = RNG()


_thread = _Thread()


def get_default_rng():
    """The generator of this thread, for operators that are given none."""
    return _thread.rng


def set_seed(seed):
    """Begins the numbers of this thread's generator anew."""
    _thread.rng.seed = seed


class Position(int):
    """Where in its random numbers an operator begins: how many samples there were before. Holds the generator that it
    was drawn from, and how many words had been drawn before."""

    rng = drawn = None


def position_of(rng):
    """A position drawn from a generator, or from this thread's."""
    rng = get_default_rng() if rng is None else rng
    if not isinstance(rng, RNG):
        raise ValueError(f"rng must be an instance of RNG, but got {type(rng).__module__}.{type(rng).__qualname__}")
    drawn = rng.drawn
    position = Position(_drawn(rng))
    position.rng, position.drawn = rng, drawn
    return position


def _drawn(rng):
    words = [rng() for _ in range(_WORDS_OF_OPERATOR)]
    return (words[0] | words[1] << 32) >> 1
