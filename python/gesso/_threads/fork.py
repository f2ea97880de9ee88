"""What does not survive a fork: threads stay behind."""

import os


class Process:
    """The process in which something was made that does not survive a fork: threads stay behind."""

    def __init__(self):
        self._id = os.getpid()

    def is_here(self):
        """Whether this is still that process."""
        return os.getpid() == self._id

    def check(self, what):
        """Raises unless this is still that process."""
        if not self.is_here():
            raise RuntimeError(
                f"{what} was made in process {self._id} and this is its child {os.getpid()}: threads do not survive a fork. Make it in the "
                "child, or start the child with the method `spawn`."
            )
