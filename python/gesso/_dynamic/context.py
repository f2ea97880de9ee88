"""`EvalContext`: threads, device and stream that operators run with."""

import copy
import threading
import weakref

from . import streams
from .checkpoint import Checkpoint
from .device import Device
from .threads import ThreadPool, default_pool


class _Thread(threading.local):
    def __init__(self):
        self.stack, self.defaults = [], {}


_thread = _Thread()


class EvalContext:
    """`with EvalContext(num_threads=4):` A context is one thread's at a time.

    `thread_pool` or `num_threads`: the threads of its operators, else those of the default pool. `device_id`: its GPU.
    `cuda_stream`: the stream of its work."""

    def __init__(self, *, num_threads=None, device_id=None, cuda_stream=None, thread_pool=None):
        self._device = Device.current() if device_id is None else Device("gpu", device_id)
        if thread_pool is not None and num_threads is not None:
            raise ValueError("`thread_pool` and `num_threads` exclude each other")
        if thread_pool is not None and thread_pool.device_id != self._device.device_id:
            raise ValueError(
                f"the thread pool is beside the device {thread_pool.device_id}, the context beside {self._device.device_id}"
            )
        if num_threads is not None:
            thread_pool = ThreadPool(num_threads, device_id=self._device.device_id)
        self._thread_pool = thread_pool
        self._cuda_stream = streams.get_current_stream() if cuda_stream is None else streams.stream(stream=cuda_stream)
        self._own_stream = None
        self._invocations, self._active = [], 0
        self._lock = threading.RLock()
        self._checkpoint = Checkpoint()
        # What `_snapshot` gave last.
        self._as_it_was = None

    @staticmethod
    def current():
        """The innermost context of this thread, else its default one."""
        return _thread.stack[-1] if _thread.stack else EvalContext.default()

    @staticmethod
    def default():
        """The context of this thread outside of any other."""
        device = Device.current()
        found = _thread.defaults.get(device.device_id)
        if found is None:
            found = _thread.defaults[device.device_id] = EvalContext()
            found._cuda_stream = None
        return found

    @property
    def thread_pool(self):
        """Its own threads, else the default ones."""
        return self._thread_pool or default_pool(self.device_id)

    device_id = property(lambda self: self._device.device_id, doc="The number of its GPU, or None.")
    num_threads = property(lambda self: self.thread_pool.num_threads, doc="How many threads operators may use.")
    checkpoint = property(lambda self: self._checkpoint, doc="The checkpoint of what runs in this context.")

    @property
    def cuda_stream(self):
        """The stream of its work; None on the CPU."""
        if self._cuda_stream is not None or self._device.device_type == "cpu":
            return self._cuda_stream
        shared = streams.get_current_stream()
        if shared is not None:
            self._own_stream = None
            return shared
        if self._own_stream is None:
            self._own_stream = streams.stream(device_id=self.device_id)
        return self._own_stream

    def __enter__(self):
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("An `EvalContext` is one thread's at a time: another thread is in it.")
        self._active += 1
        _thread.stack.append(self)
        self._device.__enter__()
        return self

    def __exit__(self, *error):
        try:
            self._active -= 1
            if self._active == 0 and error[0] is None:
                self.evaluate_all()
        finally:
            _thread.stack.pop()
            self._device.__exit__(*error)
            self._lock.release()

    def evaluate_all(self):
        """Runs what was added and did not run yet."""
        pending, self._invocations = self._invocations, []
        for entry in pending:
            invocation = entry() if isinstance(entry, weakref.ReferenceType) else entry
            if invocation is not None:
                invocation.run(self)

    def cache_results(self, invocation, results):
        """DALI's name; results are kept by what asked for them."""

    def _add_invocation(self, invocation, weak=True):
        self._invocations.append(weakref.ref(invocation) if weak else invocation)

    def _snapshot(self):
        """The context as it is now, for work that is deferred."""
        pool, stream, kept = self.thread_pool, self.cuda_stream, self._as_it_was
        if kept is None or kept._thread_pool is not pool or kept._cuda_stream is not stream:
            kept = self._as_it_was = copy.copy(self)
            kept._thread_pool, kept._cuda_stream = pool, stream
        return kept


def current_checkpoint():
    """The checkpoint of the current `EvalContext`."""
    return EvalContext.current().checkpoint
