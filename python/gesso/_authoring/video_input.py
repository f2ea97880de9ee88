"""`fn.experimental.inputs.video`: an input that takes a video and gives its sequences, batch after batch."""

from collections import deque

from .._native import device_choice, library
from .._native.stream import StreamEngine
from .._tensors.enums import DALIDataType
from .._tensors.feeding import Batch
from . import serialization
from .operator import Operator

TARGET = "experimental__inputs__Video"
NO_DATA = (
    "No data was provided to the input `{}`. Make sure to feed it properly: `feed_input` gives it a video, and each run takes a batch of "
    "its sequences."
)
# What is declared of such an input, as for an external source. A video may have any shape: it is all of its bytes.
DECLARED = {"dtype": DALIDataType.UINT8, "ndim": None, "layout": "", "repeat_last": False, "no_copy": False}


def of_size(batch, count):
    """What stands beside a video, for a batch of so many sequences: one sample for all of them, or the first ones."""
    found = len(batch.arrays)
    if found == count:
        return batch
    if found != 1 and found < count:
        raise RuntimeError(
            f"{found} samples were fed beside a batch of {count} sequences, expected one for all, or as many."
        )
    arrays = batch.arrays * count if found == 1 else batch.arrays[:count]
    return Batch(arrays, batch.dtype, batch.layout)


class Videos:
    """Videos that wait, and the stream that makes batches of them."""

    def __init__(self, name, stream):
        self._name, self._stream = name, stream
        self._waiting, self._is_running = deque(), False

    def feed(self, batch):
        """Adds a video: a batch of one, its bytes, which stay as they are. Returns the queue that it is in."""
        if len(batch.arrays) != 1:
            raise RuntimeError(f"The input `{self._name}` takes one video at a time, got {len(batch.arrays)}.")
        self._waiting.append(batch)
        return self._waiting

    def has_more(self):
        """Whether there may be a batch without another video."""
        return bool(self._waiting) or self._is_running

    def next(self):
        """The next batch, as `StreamEngine.run` gives it."""
        while True:
            if not self._is_running:
                if not self._waiting:
                    raise RuntimeError(NO_DATA.format(self._name))
                self._stream.feed_kept(self._name, self._waiting.popleft())
                self._is_running = True
            try:
                outcome = self._stream.next()
            except library.GessoError as error:
                self._is_running = False
                self._stream.end()
                raise RuntimeError(str(error)) from error
            if outcome is not None:
                return outcome
            self._is_running = False


class VideoInput(Operator):
    """Base of the classes in `ops`: takes videos, gives sequences. Outputs: frames as `[frames, height, width, 3]`, on
    the GPU where `device` is "mixed" or "gpu" and the pipeline has one."""

    is_source = True

    def start(self, node, restarts=False):
        """Begins without a video."""
        settings = node.pipeline.runner.settings
        parameters = {**settings.fields(), "seed": None}
        description = serialization.describe(
            [node], [(node.outputs[0].name, node.outputs[0].device, None, None)], parameters
        )
        place = device_choice.of(settings) if node.stays_on_gpu else device_choice.on_host(settings)
        stream = StreamEngine(serialization.write(description), *place, batch_size=settings.batch_size, prefetch=1)
        node.videos = Videos(node.name, stream)

    def stop(self, node):
        """Forgets the videos."""
        node.videos = None

    def run_python(self, node, inputs, batch_size):
        """The next batch."""
        outcome = node.videos.next()
        arrays, layout, _ = outcome.outputs[0]
        return [Batch(arrays, DALIDataType.UINT8, layout)]

    def skip(self, node, batches, batch_size, history=None):
        """What was fed is fed again by who goes on."""

    restart = skip

    def meta(self, node):
        """It has no data of its own."""
        return {}

    left = meta
