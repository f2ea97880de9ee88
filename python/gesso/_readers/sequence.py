"""`fn.readers.sequence`: sequences of images; each folder has the frames of one video."""

import os

import numpy as np

from .. import fn
from .._tensors.enums import DALIDataType
from .._tensors.feeding import Batch
from . import storage
from .source import Reader, schema

_OWN = {
    "file_root": ("STRING", None),
    "sequence_length": ("INT32", None),
    "step": ("INT32", 1),
    "stride": ("INT32", 1),
    "image_type": ("IMAGE_TYPE", 0),
}


class _Sequences:
    def __init__(self, root, length, step, stride):
        if min(length, step, stride) < 1:
            raise RuntimeError(
                f"`sequence_length`, `step` and `stride` must be at least 1, got {length}, {step} and {stride}."
            )
        self.found = []
        try:
            folders = sorted(entry.path for entry in os.scandir(root) if entry.is_dir())
        except OSError as error:
            raise RuntimeError(f"Could not open the folder {root}: {error.strerror or error}") from None
        for folder in folders:
            frames = sorted(entry.path for entry in os.scandir(folder) if entry.is_file())
            for first in range(0, len(frames) - (length - 1) * stride, step):
                self.found.append(frames[first : first + length * stride : stride])
        self.size = len(self.found)

    def read(self, index):
        paths = self.found[index]
        return [storage.read(path) for path in paths], paths[0]


class Sequence(Reader):
    """Reads sequences of images, decoded: `[frames, height, width, channels]`."""

    schema_name = "readers__Sequence"
    schema = named_schema = schema(
        "readers__Sequence", "Reads sequences of images.", _OWN, required=("file_root", "sequence_length"), outputs=1
    )

    def begin(self, node):
        """Finds the frames."""
        get = node.values_of
        node.decoder = None
        return _Sequences(get("file_root"), get("sequence_length"), get("step", 1), get("stride", 1))

    def run_python(self, node, inputs, batch_size):
        """The next batch: all frames decoded at once, then put together."""
        length = node.values_of("sequence_length")
        frames = self.read_batch(node, batch_size, length)
        if node.decoder is None:
            node.decoder = _decoder(node, length)
        node.decoder.feed_input("encoded", [array for batch in frames for array in batch.arrays])
        (images,) = node.decoder.run()
        for at, text in sorted(node.decoder.errors.items()):
            raise RuntimeError(
                f"Could not read frame {at // batch_size} of the sequence that begins with {frames[0].infos[at % batch_size]}: {text}"
            )
        decoded = [images.arrays[k * batch_size : (k + 1) * batch_size] for k in range(length)]
        infos = frames[0].infos
        for i, info in enumerate(infos):
            shapes = {column[i].shape for column in decoded}
            if len(shapes) > 1:
                raise RuntimeError(
                    f"The frames of the sequence that begins with {info} have different shapes: {sorted(shapes)}."
                )
        return [
            Batch([np.stack([column[i] for column in decoded]) for i in range(batch_size)], images.dtype, "FHWC", infos)
        ]


def _decoder(node, length):
    """A pipeline that decodes the frames of a batch."""
    pipeline = node.pipeline.for_operator(node.pipeline.max_batch_size * length)
    with pipeline:
        encoded = fn.external_source(name="encoded", dtype=DALIDataType.UINT8, ndim=1)
        pipeline.set_outputs(fn.decoders.image(encoded, output_type=node.values_of("image_type", 0)))
    return pipeline
