"""Ctrl-C only where nothing is half done: `held` puts it off in the main thread, and `let` lets it through again,
around what may take long and what is the user's. Knows no pipelines."""

import signal
import threading
from typing import Any

_before: Any = None
_came = False


def _note(*_):
    global _came
    _came = True


def _raise_noted():
    global _came
    if _came:
        _came = False
        _before(signal.SIGINT, None)


def _is_held():
    return threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is _note


class held:
    """Inside of it Ctrl-C waits until its end. Inside of another one it does nothing."""

    __slots__ = ("_is_outermost",)

    def __enter__(self):
        global _before
        self._is_outermost = False
        if threading.current_thread() is not threading.main_thread():
            return
        handler = signal.getsignal(signal.SIGINT)
        # A handler of C's, or none: Python gets no Ctrl-C.
        if callable(handler) and handler is not _note:
            _before = handler
            signal.signal(signal.SIGINT, _note)
            self._is_outermost = True

    def __exit__(self, *_):
        if self._is_outermost:
            signal.signal(signal.SIGINT, _before)
            _raise_noted()


class let:
    """Inside of it, within `held`, Ctrl-C comes through, one that was put off at once."""

    __slots__ = ("_was_held",)

    def __enter__(self):
        self._was_held = _is_held()
        if self._was_held:
            signal.signal(signal.SIGINT, _before)
            try:
                _raise_noted()
            except BaseException:
                signal.signal(signal.SIGINT, _note)
                raise

    def __exit__(self, *_):
        global _before
        if self._was_held:
            # What is called may have set another one.
            _before = signal.getsignal(signal.SIGINT)
            signal.signal(signal.SIGINT, _note)
