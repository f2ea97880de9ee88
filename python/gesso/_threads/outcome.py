"""What a call in a thread comes to. Knows no threads and no pipelines."""

from concurrent.futures import CancelledError
from threading import Lock


class Outcome:
    """What a call returns or raises, for who waits for it. It has the names of a future of the standard library, which
    takes longer to make and to wait for than a small batch."""

    __slots__ = ("_pending", "_is_done", "_result", "_error")

    def __init__(self):
        self._is_done, self._result, self._error = False, None, None
        # Held until it is done.
        self._pending = Lock()
        self._pending.acquire()

    def set_result(self, result):
        """The call has returned. Once, as each of these."""
        self._result, self._is_done = result, True
        self._pending.release()

    def set_exception(self, error):
        """The call has raised."""
        self._error, self._is_done = error, True
        self._pending.release()

    def cancel(self):
        """The call will not be made."""
        self.set_exception(CancelledError())

    def done(self):
        """Whether there is nothing to wait for."""
        return self._is_done

    def exception(self):
        """Waits; what the call has raised, or None."""
        if not self._is_done:
            with self._pending:
                pass
        return self._error

    def result(self):
        """Waits; what the call has returned. Raises what it has raised."""
        if not self._is_done:
            self.exception()
        if self._error is None:
            return self._result
        try:
            raise self._error
        finally:
            # The error knows this frame: no circle.
            self = None
