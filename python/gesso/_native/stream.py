"""A loaded file that reads its data set by itself: batches one after the other, prepared ahead in threads of the
library."""

import ctypes
import json

from .._threads.fork import Process
from . import library as _library
from .callbacks import Callbacks
from .inputs import structures
from .result import Result, outcome_of


class StreamEngine:
    """Runs a file whose inputs are all fed by readers, or that takes videos. It is opened when it is first asked for
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
    ):
        """`functions`: what the file's operators `Callback` call, by their names: in the thread that takes batches."""
        self._pipeline, self._stream = ctypes.c_void_p(), None
        self._process = Process()
        self._callbacks = Callbacks(functions or {}, self._process)
        self._callbacks.load(serialized, device, self._pipeline)
        self.output_count = _library.library().gesso_pipeline_output_count(self._pipeline)
        size = ctypes.sizeof(_library.StreamOptions)
        self._options = _library.StreamOptions(
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
        self._batch_size = batch_size
        # What the stream reads where it is. It goes behind the stream.
        self._kept = None

    def __del__(self):
        if not self._process.is_here():
            return
        try:
            library = _library.library()
        except Exception:  # the interpreter is going
            return
        library.gesso_stream_free(self._stream)
        library.gesso_pipeline_free(self._pipeline)

    def open(self):
        """Finds the samples, if that was not done yet."""
        self._opened()

    def _opened(self):
        self._process.check("A pipeline")
        if self._stream is None:
            stream = ctypes.c_void_p()
            _library.call("gesso_stream_create", self._pipeline, ctypes.byref(self._options), ctypes.byref(stream))
            self._stream = stream
        return self._stream

    def run(self, batch_size, inputs):
        """The next batch of readers; `inputs`, pairs of a name and a `Batch`, are what nothing reads."""
        return self._next(batch_size, inputs)

    def next(self):
        """The next batch, or None at the end of what was fed."""
        return self._next(0, [])

    def _next(self, batch_size, inputs):
        handle, stream = ctypes.c_void_p(), self._opened()
        given, keep = structures(inputs)
        with self._callbacks.batch(keep):
            if inputs:
                count = len(inputs)
                _library.call("gesso_stream_run", stream, batch_size, given, count, ctypes.byref(handle), None)
            else:
                _library.call("gesso_stream_next", stream, ctypes.byref(handle), None)
        if not handle:
            self._kept = None
            return None
        return outcome_of(
            Result(handle, self._process), _library.library().gesso_result_batch_size(handle), self.output_count
        )

    def end(self):
        """Goes to the end of what was fed."""
        while True:
            try:
                if self.next() is None:
                    return
            except _library.GessoError:
                pass

    def feed(self, name, batch):
        """Gives an input a batch: of a video, or of what stands beside it."""
        given, keep = structures([(name, batch)])
        _library.call("gesso_stream_feed", self._opened(), len(batch.arrays), given)
        del keep

    def feed_kept(self, name, batch):
        """Gives an input a video, which nobody changes before the stream has ended."""
        given, self._kept = structures([(name, batch)])
        _library.call("gesso_stream_feed_kept", self._opened(), given)

    def skip(self, batches):
        """Goes on behind so many batches; before the first one."""
        self._options.first = batches * self._batch_size

    def restart(self, begun, read):
        """Goes on behind `begun` batches; readers with the epoch behind the one that `read` batches have got to."""
        self._options.first, self._options.next_epoch, self._options.read = (
            begun * self._batch_size,
            1,
            read * self._batch_size,
        )
        _library.library().gesso_stream_free(self._stream)
        self._stream = None

    def reader_meta(self):
        """What `Pipeline.reader_meta` says, by the names of readers."""
        readers = json.loads(_library.take_string("gesso_stream_readers", self._opened()))
        return {name: _meta(facts) for name, facts in readers.items()}


def _meta(facts):
    size, shards = facts["epoch_size"], facts["number_of_shards"]
    padded = -(-size // shards) * shards if facts["pad_last_batch"] else size
    others = {name: int(facts[name]) for name in ("number_of_shards", "shard_id", "pad_last_batch", "stick_to_shard")}
    return {"epoch_size": size, "epoch_size_padded": padded, **others}
