"""Writes `1/model.dali`, a pipeline of DALI's that turns a compressed image into EfficientNet-Lite0's input. The demo's
`preprocess` is the exact one; this one shows that a file of DALI's is served as it is.

The file is committed; run this (with `nvidia-dali-cuda130` installed, no GPU needed) only to change it:

    python model_repository/preprocess_dali/make_pipeline.py

EfficientNet-Lite is evaluated on the central 224/256 of the image, resampled bicubically to 224 x 224, RGB, each
value as (v - 127) / 128. That is: shorter side to 256, then the central 224 x 224. Sizes and window are whole numbers
as torchvision's `Resize(256)` and `CenterCrop(224)` round them: the longer side down, the window's place to the
nearest, halves to the even one. Sizes and windows that are rounded otherwise change answers of the network.
"""

from pathlib import Path

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali._utils import dali_trace

MAX_BATCH = 64
SIZE = 224
SHORTER = 256
MEAN = [127.0] * 3
STD = [128.0] * 3


def resized(extents):
    """Height and width with the shorter one `SHORTER`."""
    shorter = fn.reductions.min(extents)
    return extents * SHORTER // shorter


def window(size):
    """Where the window is in such an image, as a part of the room that there is: y and x."""
    room = size - SIZE
    half = room // 2
    first = half + room % 2 * (half % 2)
    part = fn.cast(first, dtype=types.FLOAT) / room
    return part[0], part[1]


# The device is `mixed`, so the one file serves both: a GPU instance decodes there, a CPU instance runs it all on the
# host.
@pipeline_def(batch_size=MAX_BATCH, num_threads=4, device_id=None)
def preprocess():
    encoded = fn.external_source(device="cpu", name="IMAGE", dtype=types.UINT8, ndim=1)
    image = fn.decoders.image(encoded, device="mixed", output_type=types.RGB)
    size = resized(fn.peek_image_shape(encoded)[:2])
    image = fn.resize(image, size=fn.cast(size, dtype=types.FLOAT), interp_type=types.INTERP_CUBIC)
    y, x = window(size)
    return fn.crop_mirror_normalize(
        image,
        name="PIXELS",
        dtype=types.FLOAT,
        output_layout="CHW",
        crop=(SIZE, SIZE),
        crop_pos_x=x,
        crop_pos_y=y,
        mean=MEAN,
        std=STD,
    )


def main():
    # DALI otherwise stores the Python stack of every operator: paths and source lines of the machine that made it.
    dali_trace.set_tracing(enabled=False)
    pipeline = preprocess()
    target = Path(__file__).parent / "1" / "model.dali"
    pipeline.serialize(filename=str(target))


if __name__ == "__main__":
    main()
