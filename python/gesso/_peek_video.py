"""How many frames a video has and how large they are, without decoding it."""

import os

from . import fn
from .pipeline import Pipeline


def peek_video_shape(video):
    """The shape that `decoders.video` would give: `(frames, height, width, 3)`. One frame is decoded.

    `video` is a path, or the bytes of a file: `bytes` or an array of `uint8`.
    """
    if isinstance(video, (str, os.PathLike)):
        return _shape(os.fspath(video))
    data = memoryview(video).cast("B")
    handle = os.memfd_create("video")
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(data)
        return _shape(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


def _shape(path):
    pipeline = Pipeline(batch_size=1, num_threads=1, prefetch_queue_depth=1)
    with pipeline:
        pipeline.set_outputs(fn.experimental.readers.video(filenames=[path], sequence_length=1, name="video"))
    (frame,) = pipeline.run()
    return (pipeline.reader_meta("video")["epoch_size"], *frame.at(0).shape[1:])
