"""`nvidia.dali.experimental.dynamic`: Gesso's dynamic mode under DALI's names, its private ones where programs use
them."""

import sys as _sys

from ...._dynamic import api as _api
from ...._dynamic import invocation as _invocation  # noqa: F401
from ...._dynamic import readers as _readers
from ...._dynamic import threads as _threads
from . import _ops  # noqa: F401

_api.fill(_sys.modules[__name__])


class _thread_pool:
    _get_default_thread_pool = staticmethod(_threads.default_pool)


class _Backend:
    def __init__(self, pipeline):
        self._pipeline = pipeline

    def GetReaderMeta(self):
        """What the reader says of its data."""
        return self._pipeline.reader_meta(_readers._NAME)


_readers.Reader._op_backend = property(
    lambda self: None if self._pipeline is None else _Backend(self._pipeline), doc="DALI's name of what runs."
)
