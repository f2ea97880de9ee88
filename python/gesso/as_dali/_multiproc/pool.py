"""`nvidia.dali._multiproc.pool`: names by which programs for DALI look at the worker processes."""

import threading
import types

from ..._workers.pool import Pool

# DALI has a thread that notices dead workers; here whoever waits for an answer does.
_OBSERVER = types.SimpleNamespace(thread=threading.Thread())

Pool.pool = property(lambda self: self, doc="The processes.")
Pool._processes = property(lambda self: [worker.process for worker in self.workers])
Pool._observer = _OBSERVER
