"""Writes `1/model.dali`, the pipeline that turns every eighth frame of a video into EfficientNet-Lite0's input.

The file is committed; run this (with Gesso's own package) only to change it:

    python model_repository/video_frames/make_pipeline.py

Frames are prepared as `../preprocess_dali` prepares images.
"""

from pathlib import Path

from gesso import fn, pipeline_def, types

MAX_BATCH = 4
# At most as many as the classifier takes at once.
FRAMES, STRIDE = 64, 8
SIZE = 224
SHORTER = 256
MEAN = [127.0] * 3
STD = [128.0] * 3


# The device is `mixed`, so the one file serves both: a GPU instance decodes on the video engines, a CPU instance runs
# it all on the host.
@pipeline_def(batch_size=MAX_BATCH, num_threads=4, device_id=None)
def video_frames():
    encoded = fn.external_source(device="cpu", name="VIDEO", dtype=types.UINT8, ndim=1)
    frames = fn.decoders.video(encoded, device="mixed", sequence_length=FRAMES, stride=STRIDE, pad_mode="none")
    frames = fn.resize(frames, resize_shorter=SHORTER, interp_type=types.INTERP_CUBIC)
    return fn.crop_mirror_normalize(
        frames, name="PIXELS", dtype=types.FLOAT, output_layout="FCHW", crop=(SIZE, SIZE), mean=MEAN, std=STD
    )


if __name__ == "__main__":
    video_frames().serialize(filename=str(Path(__file__).parent / "1" / "model.dali"))
