"""A loaded file that reads its data set by itself: batches one after the other, prepared ahead in threads of the
library."""

import contextlib
import ctypes
import functools
import json
import threading

from .._threads.background import Ahead
from .._threads.fork import Process
from .._threads.interrupts import uninterrupted
from . import library as _library
from .callback_dataset import CallbackDataset
from .callbacks import Callbacks
from .declarations import StreamOptions
from .inputs import structures
from .result import Result, outcome_of


class _Opened:
    """What the library has of a stream. Apart from `StreamEngine`, as it may go later than that does."""

    def __init__(self, serialized, device, functions):
        self.pipeline, self.stream, self.process = ctypes.c_void_p(), None, Process()
        self.callbacks = Callbacks(functions, self.process)
        self.callbacks.load(serialized, device, self.pipeline)
        self.datasets = [function for function in functions.values() if isinstance(function, CallbackDataset)]
        # A stream with data sets of the interpreter is freed by another thread than the one that takes batches.
        self.lock = threading.RLock() if self.datasets else contextlib.nullcontext()

    def free(self, close=None):
        """Frees it, behind the batch that is being read; then calls `close`."""
        if not self.process.is_here():
            return
        try:
            library = _library.library()
        except Exception:  # the interpreter is going
            return
        for dataset in self.datasets:
            dataset.is_wanted = False
        with self.lock:
            library.gesso_stream_free(self.stream)
            library.gesso_pipeline_free(self.pipeline)
            self.stream = self.pipeline = None
        if close is not None:
            close()


class StreamEngine:
    """Runs a file whose inputs are all fed by sources, or that takes videos. It is opened when it is first asked for
    something. What is made on a GPU is left there, as `DeviceArray`s."""

    def __init__(
        self,
        serialized,
        device=_library.CPU,
        gpu=0,
        gpu_multiprocessors=0,
        deterministic=False,
        formats=None,
        *,
        num_threads=0,
        batch_size=0,
        prefetch=0,
        lanes=1,
        functions=None,
        close=None,
    ):
        """`functions`: by their names in the file, what its operators `Callback` call, in the thread that takes
        batches, and a `CallbackDataset` for each of its sources `CallbackSource`. `close`: called when such a data set
        is not read any more."""
        self._opened = _Opened(serialized, device, functions or {})
        # Who lets go of it does not wait for a batch that the interpreter reads.
        self._end = Ahead(functools.partial(self._opened.free, close)) if self._opened.datasets else None
        self.output_count = _library.library().gesso_pipeline_output_count(self._opened.pipeline)
        size = ctypes.sizeof(StreamOptions)
        self._options = StreamOptions(
            size,
            batch_size,
            prefetch,
            lanes,
            num_threads,
            gpu=gpu,
            gpu_multiprocessors=gpu_multiprocessors,
            deterministic=deterministic,
            formats=formats,
        )
        self._batch_size, self._readers = batch_size, None
        # What the stream reads where it is. It goes behind the stream.
        self._kept = None

    @uninterrupted
    def __del__(self):
        if hasattr(self, "_opened") and not self._opened.datasets:
            self._opened.free()

    def open(self):
        """Finds the samples, if that was not done yet."""
        with self._opened.lock:
            self._stream()

    def _stream(self):
        opened = self._opened
        opened.process.check("A pipeline")
        if opened.pipeline is None:
            raise RuntimeError("the program is at its end: no more batches are made")
        if opened.stream is None:
            stream = ctypes.c_void_p()
            _library.call("gesso_stream_create", opened.pipeline, ctypes.byref(self._options), ctypes.byref(stream))
            opened.stream = stream
        return opened.stream

    def run(self, batch_size, inputs):
        """The next batch of readers; `inputs`, pairs of a name and a `Batch`, are what nothing reads."""
        return self._next(batch_size, inputs)

    def next(self):
        """The next batch, or None at the end of what was fed."""
        return self._next(0, [])

    def _next(self, batch_size, inputs):
        handle, opened = ctypes.c_void_p(), self._opened
        given, keep = structures(inputs)
        with opened.lock, opened.callbacks.batch(inputs):
            stream = self._stream()
            if inputs:
                count = len(inputs)
                _library.call("gesso_stream_run", stream, batch_size, given, count, ctypes.byref(handle), None)
            else:
                _library.call("gesso_stream_next", stream, ctypes.byref(handle), None)
        if not handle:
            self._kept = None
            return None
        return outcome_of(
            Result(handle, opened.process), _library.library().gesso_result_batch_size(handle), self.output_count
        )

    def end(self):
        """Goes to the end of what was fed."""
        while True:
            try:
                if self.next() is None:
                    return
            except _library.GessoError:
                pass

    def feed_kept(self, name, batch):
        """Gives an input a video, which nobody changes before the stream has ended."""
        given, self._kept = structures([(name, batch)])
        _library.call("gesso_stream_feed_kept", self._stream(), given)

    def skip(self, batches, branch_samples=()):
        """Goes on behind so many batches; before the first one. `branch_samples`: as `Outcome.branch_samples` gives
        them of the last of these."""
        self._options.first = batches * self._batch_size
        # The structure refers to the numbers, and keeps them.
        self._options.branch_samples, self._options.branch_count = _library.numbers(branch_samples)

    def restart(self, begun, read, branch_samples=()):
        """Goes on behind `begun` batches, as `skip` does; readers with the epoch behind the one that `read` samples
        have got to."""
        self.skip(begun, branch_samples)
        self._options.next_epoch, self._options.read = 1, read
        with self._opened.lock:
            _library.library().gesso_stream_free(self._opened.stream)
            self._opened.stream = None
        for dataset in self._opened.datasets:
            dataset.forget()

    def reader_meta(self):
        """What `Pipeline.reader_meta` says, by the names of readers."""
        if self._readers is None:
            with self._opened.lock:
                self._readers = json.loads(_library.take_string("gesso_stream_readers", self._stream()))
        return {name: _meta(facts) for name, facts in self._readers.items()}


def _meta(facts):
    size, shards = facts["epoch_size"], facts["number_of_shards"]
    padded = -(-size // shards) * shards if facts["pad_last_batch"] else size
    others = {name: int(facts[name]) for name in ("number_of_shards", "shard_id", "pad_last_batch", "stick_to_shard")}
    return {"epoch_size": size, "epoch_size_padded": padded, **others}
