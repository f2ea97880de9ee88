"""`ThreadPool`: how many threads operators may use. The library has the threads; a pool is their number."""

import os
import threading

from .device import Device, gpu_count

_CURRENT = object()
# Threads for each CPU that may be asked for.
_MOST_PER_CPU = 100
_ENVIRONMENT = "DALI_NUM_THREADS"


class ThreadPool:
    """`num_threads` worker threads beside a GPU (`device_id`), or beside none."""

    def __init__(self, num_threads=None, *, device_id=_CURRENT):
        self._device_id = Device.current().device_id if device_id is _CURRENT else device_id
        self._num_threads = _checked(get_num_threads() if num_threads is None else num_threads)

    num_threads = property(lambda self: self._num_threads, doc="How many threads.")
    device_id = property(lambda self: self._device_id, doc="The number of the GPU, or None.")


class _Default:
    """The pools that contexts without one of their own share."""

    def __init__(self):
        self.lock, self.count, self.pools = threading.Lock(), None, {}

    def pool(self, device_id):
        """The pool beside a GPU with as many threads as are asked for now."""
        with self.lock:
            count, pool = get_num_threads(), self.pools.get(device_id)
            if pool is None or pool.num_threads != count:
                pool = self.pools[device_id] = ThreadPool(count, device_id=device_id)
            return pool


_default = _Default()


def _cpus():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _checked(count):
    most = _MOST_PER_CPU * (os.cpu_count() or 1)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
        raise ValueError(f"the number of threads: expected a whole number from 1 to {most}, found {count!r}")
    return count


def get_num_threads():
    """Threads of the default pool: what `set_num_threads` was told, else the variable DALI_NUM_THREADS, else one for
    each CPU that the process may use."""
    if _default.count is not None:
        return _default.count
    text = os.environ.get(_ENVIRONMENT)
    return _checked(int(text)) if text else _cpus()


def set_num_threads(count):
    """Sets the threads of the default pool; None: as at first."""
    _default.count = None if count is None else _checked(count)


def default_pool(device_id):
    """The default pool beside a GPU, or beside none."""
    if device_id is not None and gpu_count() and not 0 <= device_id < gpu_count():
        raise ValueError(f"Invalid device id: {device_id}. This host has {gpu_count()} GPUs.")
    return _default.pool(device_id)
