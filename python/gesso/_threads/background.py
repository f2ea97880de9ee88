"""A thread that runs calls one after the other while the caller does something else. Knows no pipelines."""

import atexit
import itertools
import queue
import threading
import weakref
from concurrent.futures import Future

from .interrupts import uninterrupted

# How long the end of the program waits for a call that is under way; one that never returns must not keep it.
_PATIENCE = 10.0
# In the order in which they were made: one may need those made after it until its end.
_threads = weakref.WeakValueDictionary()
_numbers = itertools.count()


def _serve(calls, ended, end):
    while (call := calls.get()) is not None:
        future, function, arguments = call
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)
        # Nothing of a call is kept while the thread waits for the next.
        del call, future, function, arguments
    ended.set()
    _refuse(calls)
    if end is not None:
        end()


def _refuse(calls):
    """Fails the calls behind the end of a thread, so that nobody waits for them."""
    while not calls.empty():
        try:
            call = calls.get_nowait()
        except queue.Empty:  # another one was sooner
            break
        if call is not None and not call[0].done():
            call[0].set_exception(RuntimeError("the program ends: its pipelines take no calls any more"))


@uninterrupted
def _drop(calls):
    """Ends a thread whose owner is gone; calls that did not begin are cancelled."""
    # The interpreter may be going, and the names of modules with it: what is used here are methods.
    while not calls.empty():
        try:
            future, _, _ = calls.get_nowait()
        except Exception:  # the thread was sooner
            break
        future.cancel()
    calls.put(None)


class Ahead:
    """Runs calls in order in a thread of its own, which ends with it. `end`: what the thread does last, when no call is
    under way any more."""

    def __init__(self, end=None):
        self._calls, self._ended = queue.SimpleQueue(), threading.Event()
        thread = threading.Thread(target=_serve, args=(self._calls, self._ended, end), name="gesso", daemon=True)
        thread.start()
        thread.calls = self._calls  # type: ignore[attr-defined]
        _threads[next(_numbers)] = thread
        weakref.finalize(self, _drop, self._calls).atexit = False

    def submit(self, function, *arguments):
        """Queues a call; a future of what it returns."""
        return self.submit_for(Future(), function, *arguments)

    def submit_for(self, future, function, *arguments):
        """Queues a call; `future`, or an `Outcome`, is told what it returns."""
        self._calls.put((future, function, arguments))
        if self._ended.is_set():
            _refuse(self._calls)
        return future


@atexit.register
def _end():
    for thread in list(_threads.values()):
        thread.calls.put(None)
        thread.join(_PATIENCE)
