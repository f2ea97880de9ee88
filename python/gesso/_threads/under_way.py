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


class _Calls:
    """Those of this process."""

    def __init__(self):
        self._changed, self._count = threading.Condition(), 0
        self._was_called = self._has_ended = False

    def begin(self):
        """Counts a call; whether the program goes on."""
        with self._changed:
            self._count += 1
            self._was_called = True
            return not self._has_ended

    def end(self):
        """The end of a call."""
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def refuse(self):
        """The end of the program: refuses what begins now, and waits for what is under way."""
        with self._changed:
            self._has_ended = True
            self._changed.wait_for(lambda: not self._count, _PATIENCE)
        if self._was_called:
            time.sleep(_BEHIND)


_calls = _Calls()
atexit.register(lambda: _calls.refuse())
# The calls' threads stay behind a fork.
os.register_at_fork(after_in_child=lambda: _calls.__init__())  # type: ignore[misc]


@contextlib.contextmanager
def call():
    """For the time of a call. Gives whether the program goes on; if it does not, the call should return at once."""
    calls = _calls
    goes_on = calls.begin()
    try:
        yield goes_on
    finally:
        calls.end()
