"""Serializes the pipelines in this directory with DALI: decoders of images and videos, device "mixed",
videos that are fed, optical flow, and large spectra.

    python make.py            (needs nvidia-dali, no GPU)

The committed files were made by nvidia-dali-cuda130 2.4.0.
"""

import os

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali._utils import dali_trace

# DALI otherwise stores the Python stack of every operator, with file names of the machine that serializes.
dali_trace.set_tracing(enabled=False)

OPERATORS = {
    "rgb": lambda x: fn.decoders.image(x, device="mixed"),
    "rgb_smooth": lambda x: fn.decoders.image(x, device="mixed", jpeg_fancy_upsampling=True),
    "rgb_as_stored": lambda x: fn.decoders.image(x, device="mixed", adjust_orientation=False),
    "bgr_load": lambda x: fn.decoders.image(x, device="mixed", output_type=types.BGR, hw_decoder_load=0.5),
    "gray": lambda x: fn.decoders.image(x, device="mixed", output_type=types.GRAY),
    "ycbcr": lambda x: fn.decoders.image(x, device="mixed", output_type=types.YCbCr),
    "any": lambda x: fn.decoders.image(x, device="mixed", output_type=types.ANY_DATA),
    "rgb_float": lambda x: fn.decoders.image(x, device="mixed", dtype=types.FLOAT),
    "gray_int16": lambda x: fn.decoders.image(x, device="mixed", output_type=types.GRAY, dtype=types.INT16),
    "crop": lambda x: fn.decoders.image_crop(x, device="mixed", crop=[50, 61], crop_pos_x=0.3, crop_pos_y=0.9),
    "slice_bgr": lambda x: fn.decoders.image_slice(
        x, device="mixed", output_type=types.BGR, rel_start=[0.25, 0.1], rel_end=[0.8, 0.95], axes=[0, 1]
    ),
    "resized_smooth": lambda x: fn.resize(
        fn.decoders.image(x, device="mixed", jpeg_fancy_upsampling=True), size=[40, 50]
    ),
    "resized_crop": lambda x: fn.resize(
        fn.decoders.image_crop(x, device="mixed", output_type=types.BGR, crop=[20, 25]),
        size=[31, 43],
        dtype=types.FLOAT,
    ),
    "resized_random": lambda x: fn.crop_mirror_normalize(
        fn.resize(fn.decoders.image_random_crop(x, device="mixed", seed=7), size=[48, 64]),
        crop=[40, 50],
        std=[60.0, 70.0, 80.0],
    ),
    "video": lambda x: fn.decoders.video(x, device="mixed"),
    "video_strided": lambda x: fn.decoders.video(
        x, device="mixed", start_frame=1, stride=3, sequence_length=6, fill_value=[10, 20, 30]
    ),
    "video_edge": lambda x: fn.decoders.video(x, device="mixed", start_frame=4, sequence_length=12, pad_mode="edge"),
    "video_end": lambda x: fn.decoders.video(x, device="mixed", start_frame=2, end_frame=7, stride=2),
    "video_frames": lambda x: fn.decoders.video(x, device="mixed", frames=[5, 0, 5, 3]),
}

FLOWS = {
    "flow_1": dict(output_grid=1),
    "flow_2": dict(output_grid=2, preset=0.5),
    "flow_4": dict(),
    "flow_fast": dict(preset=1.0, hint_grid=8),
    "flow_bgr": dict(image_type=types.BGR),
    "flow_gray": dict(image_type=types.GRAY, output_grid=2),
    "flow_temporal": dict(enable_temporal_hints=True),
    "flow_hints": dict(enable_external_hints=True, output_grid=2, hint_grid=4),
}

SEQUENCES = {
    "sequences": dict(sequence_length=5),
    "sequences_pad": dict(sequence_length=7, last_sequence_policy="pad"),
    "sequences_one": dict(sequence_length=1),
}


def sequences(arguments):
    return fn.experimental.inputs.video(name="VIDEO", device="mixed", **arguments)


def decoded(operator):
    return operator(fn.external_source(name="IMAGES", dtype=types.UINT8, ndim=1))


def flow(arguments):
    inputs = [fn.external_source(name="FRAMES", dtype=types.UINT8, layout="FHWC").gpu()]
    if "enable_external_hints" in arguments:
        inputs.append(fn.external_source(name="HINTS", dtype=types.FLOAT, layout="FHWC").gpu())
    return fn.optical_flow(*inputs, device="gpu", **arguments)


GRAPHS = {name: lambda operator=operator: decoded(operator) for name, operator in OPERATORS.items()}
GRAPHS |= {name: lambda arguments=arguments: flow(arguments) for name, arguments in FLOWS.items()}
GRAPHS |= {name: lambda arguments=arguments: sequences(arguments) for name, arguments in SEQUENCES.items()}


def spectra():
    """By transforms of a power of two, of a product of small numbers, and of a prime number of samples."""
    x = fn.external_source(name="SIGNALS", dtype=types.FLOAT, ndim=1).gpu()
    return (
        fn.spectrogram(x, window_length=16_384, window_step=3_000),
        fn.spectrogram(x, window_length=131_072, window_step=50_000, power=1, layout="tf"),
        fn.spectrogram(x, window_length=9_000, window_step=3_000),
        fn.spectrogram(x, window_length=50_000, window_step=20_000, nfft=65_537, reflect_padding=False),
        fn.spectrogram(x, window_length=100_000, window_step=40_000, center_windows=False, power=1),
    )


GRAPHS["spectra"] = spectra

for name, graph in GRAPHS.items():

    @pipeline_def(batch_size=3 if name in SEQUENCES else 128, num_threads=4, device_id=None, prefetch_queue_depth=1)
    def pipeline():
        return graph()

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".dali")
    with open(path, "wb") as file:
        file.write(pipeline().serialize())
