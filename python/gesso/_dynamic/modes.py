"""`EvalMode`: when an operator that is called does its work."""

import threading
from enum import Enum


class EvalMode(Enum):
    """A context: `with EvalMode.deferred:`.

    `deferred`: when somebody asks for a result. `eager`, which is the default, and `sync_cpu`: at once; what fails
    raises there. `sync_full`: at once, and what runs on a GPU is waited for."""

    deferred = 1
    eager = 2
    sync_cpu = 3
    sync_full = 4
    default = eager

    @staticmethod
    def current():
        """The mode of the innermost context."""
        return _stack.modes[-1]

    def __enter__(self):
        _stack.modes.append(self)
        return self

    def __exit__(self, *_):
        _stack.modes.pop()


class _Stack(threading.local):
    def __init__(self):
        self.modes, self.loop = [EvalMode.default], None


_stack = _Stack()


def current_loop():
    """The turn of a loop with `capture=True` that this thread is in, or None."""
    return _stack.loop


def set_loop(turn):
    """This thread is in a turn of such a loop, or (None) in none."""
    _stack.loop = turn
