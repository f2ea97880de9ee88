"""Calls that threads of others make, and that the program's end waits for: while Python ends, a thread that comes back
from the library gets no interpreter any more, and whoever joins it would wait for ever. Knows no pipelines."""

import atexit
import contextlib
import os
import threading
import time

# Seconds that the end of the program waits for calls, which may never return; and then for what is behind them in the
# code of others, which is known to be short.
_PATIENCE = 10.0
_BEHIND = 0.1

_was_called = _has_ended = False


def _begin():
    """Also in a child by a fork: the calls' threads stay behind."""
    global _changed, _count
    _changed, _count = threading.Condition(), 0


_begin()
os.register_at_fork(after_in_child=_begin)


@contextlib.contextmanager
def call():
    """For the time of a call. Gives whether the program goes on; if it does not, the call should return at once."""
    global _count, _was_called
    with _changed:
        goes_on = not _has_ended
        _count += 1
        _was_called = True
    try:
        yield goes_on
    finally:
        with _changed:
            _count -= 1
            _changed.notify_all()


@atexit.register
def _end():
    global _has_ended
    with _changed:
        _has_ended = True
        _changed.wait_for(lambda: not _count, _PATIENCE)
    if _was_called:
        time.sleep(_BEHIND)
