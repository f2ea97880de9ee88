"""What does not survive a fork: threads stay behind."""

import os


class _Here:
    """The process that this is. To ask the system takes a call of its own, and each batch asks several times."""

    def __init__(self):
        self.id = os.getpid()


_here = _Here()
os.register_at_fork(after_in_child=lambda: _here.__init__())  # type: ignore[misc]


def process_id():
    """The number of this process."""
    return _here.id


class Process:
    """The process in which something was made that does not survive a fork: threads stay behind."""

    __slots__ = ("_id",)

    def __init__(self):
        self._id = _here.id

    def is_here(self):
        """Whether this is still that process."""
        return self._id == _here.id

    def check(self, what):
        """Raises unless this is still that process."""
        if self._id != _here.id:
            raise RuntimeError(
                f"{what} was made in process {self._id} and this is its child {_here.id}: threads do not survive a fork. Make it in the "
                "child, or start the child with the method `spawn`."
            )
