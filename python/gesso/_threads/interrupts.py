"""Ctrl-C only where nothing is half done: `held` puts it off in the main thread, and `let` lets it through again,
around what may take long and what is the user's. What came in a destructor is told later. Knows no pipelines."""

import functools
import os
import sys
import threading
from signal import SIGINT
from threading import get_ident
from typing import Any

try:
    # What `signal` has around them makes enumerations of numbers and handlers, which takes longer than a small batch.
    from _signal import getsignal  # type: ignore[import-not-found]
    from _signal import signal as set_handler
except ImportError:  # an interpreter that has no such module
    from signal import getsignal
    from signal import signal as set_handler

_before: Any = None
_came = False
# The thread that Python gives Ctrl-C to.
_main = threading.main_thread().ident


def _note(*_):
    global _came
    _came = True


def _raise_noted():
    global _came
    _came = False
    _before(SIGINT, None)


def _find_main():
    global _main
    _main = threading.main_thread().ident


# In a child it is the thread that forked.
os.register_at_fork(after_in_child=_find_main)


class held:
    """Inside of it Ctrl-C waits until its end. Inside of another one it does nothing."""

    __slots__ = ("_is_outermost",)

    def __enter__(self):
        global _before
        self._is_outermost = False
        if get_ident() != _main:
            return
        handler = getsignal(SIGINT)
        # A handler of C's, or none: Python gets no Ctrl-C.
        if handler is not _note and callable(handler):
            _before = handler
            set_handler(SIGINT, _note)
            self._is_outermost = True

    def __exit__(self, *_):
        if self._is_outermost:
            set_handler(SIGINT, _before)
            if _came:
                _raise_noted()


class let:
    """Inside of it, within `held`, Ctrl-C comes through, one that was put off at once."""

    __slots__ = ("_was_held",)

    def __enter__(self):
        self._was_held = get_ident() == _main and getsignal(SIGINT) is _note
        if self._was_held:
            set_handler(SIGINT, _before)
            try:
                if _came:
                    _raise_noted()
            except BaseException:
                set_handler(SIGINT, _note)
                raise

    def __exit__(self, *_):
        global _before
        if self._was_held:
            # What is called may have set another one.
            _before = getsignal(SIGINT)
            set_handler(SIGINT, _note)


# What a Ctrl-C raised in a destructor, out of which Python lets no exception.
later: Any = None


def interrupt_later(error):
    """Keeps `error` for `check_interrupt`."""
    global later
    later = error


def check_interrupt():
    """Raises what was kept, in the main thread, which alone has interrupts."""
    global later
    if later is not None and get_ident() == _main:
        error, later = later, None
        raise error


def uninterrupted(function):
    """For a destructor, or what is called in place of one: a Ctrl-C waits until `function` has done all it does, and
    then for `check_interrupt`."""
    # Where the interpreter is going, modules have lost their names.
    hold, keep, is_finalizing = held, interrupt_later, sys.is_finalizing

    @functools.wraps(function)
    def whole(*arguments):
        if is_finalizing():
            return function(*arguments)
        has_begun = False
        while not has_begun:
            try:
                with hold():
                    has_begun = True
                    function(*arguments)
            except KeyboardInterrupt as error:
                keep(error)

    return whole
