#!/usr/bin/env python3
"""Frames a second out of videos, on two cores: Gesso beside DALI (VP8, VP9 and Motion JPEG, which are all that it decodes on a CPU) and FFmpeg (the
package `av`): decoding alone, and decoding with a resize of every frame to 224 x 224.

    pip install av numpy nvidia-dali-cuda130
    taskset -c 0,1 python3 benches/peers/video.py [--frames 64] [--repeats 3] [--sizes 720 1080]

A batch is four clips of `--frames` frames with sequences of 16 of them, from a place further on in each clip. What a package does not have is left out of its
column. Needs Gesso's package (PYTHONPATH=python and GESSO_LIBRARY=target/release/libtriton_gesso.so, or the wheel). Prints a table of medians.
"""
import argparse
import importlib
import io
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import av
import numpy as np

CODECS = {
    "VP8": ("libvpx", "webm", {"b": "4M", "deadline": "realtime", "cpu-used": "4"}),
    "VP9": ("libvpx-vp9", "webm", {"b": "3M", "deadline": "realtime", "cpu-used": "7"}),
    "Motion JPEG": ("mjpeg", "avi", {"qscale": "4"}),
    "H.264": ("libx264", "mp4", {"crf": "23", "preset": "medium"}),
    "H.265": ("libx265", "mp4", {"crf": "26", "preset": "fast", "x265-params": "log-level=none"}),
    "AV1": ("libsvtav1", "mp4", {"crf": "35", "preset": "10"}),
}
BATCH, LENGTH, SIDE, THREADS = 4, 16, 224, 2


def clip(codec, height, frames):
    """A landscape of soft patches that moves, with noise."""
    encoder, container, options = CODECS[codec]
    width = height * 16 // 9
    rng = np.random.RandomState(0)
    scene = rng.randint(0, 256, (height // 16 + 8, width // 16 + 8, 3)).repeat(16, 0).repeat(16, 1).astype(np.float32)
    for step in (8, 4):
        scene = (scene + np.roll(scene, step, 0) + np.roll(scene, step, 1) + np.roll(scene, (step, step), (0, 1))) / 4
    scene = (scene + rng.normal(0, 3, scene.shape)).clip(0, 255).astype(np.uint8)
    out = io.BytesIO()
    with av.open(out, "w", format=container) as file:
        stream = file.add_stream(encoder, rate=25, options=dict(options))
        stream.width, stream.height = width, height
        stream.pix_fmt = "yuvj420p" if codec == "Motion JPEG" else "yuv420p"
        stream.gop_size = LENGTH
        for i in range(frames):
            pixels = np.ascontiguousarray(scene[i % 64:i % 64 + height, 2 * i % 64:2 * i % 64 + width])
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format=stream.pix_fmt)
            frame.pts, frame.time_base = i, Fraction(1, 25)
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    return np.frombuffer(out.getvalue(), np.uint8)


def pipeline_of(package, file, resized, frames):
    """A function that runs a batch through a pipeline of `package`, Gesso's or DALI's."""
    module = importlib.import_module(package)
    fn, types = module.fn, module.types
    starts = [np.int32(LENGTH * i % (frames - LENGTH + 1)) for i in range(BATCH)]
    pipe = module.Pipeline(batch_size=BATCH, num_threads=THREADS, device_id=None, prefetch_queue_depth=1)
    with pipe:
        videos = fn.external_source(source=lambda: [file] * BATCH, dtype=types.UINT8, ndim=1)
        start = fn.external_source(source=lambda: starts, dtype=types.INT32, ndim=0)
        out = fn.decoders.video(videos, start_frame=start, sequence_length=LENGTH)
        pipe.set_outputs(fn.resize(out, size=[SIDE, SIDE]) if resized else out)
    pipe.build()
    return pipe.run


def with_ffmpeg(file, resized, frames):
    """The same by FFmpeg: a clip a thread, from the key frame on."""
    data = bytes(file)

    def sequence(start):
        with av.open(io.BytesIO(data)) as opened:
            stream = opened.streams.video[0]
            stream.codec_context.thread_count = 1
            opened.seek(int(start / 25 / stream.time_base), stream=stream)
            made = []
            for frame in opened.decode(stream):
                if frame.time * 25 + 0.5 >= start:
                    sides = {"width": SIDE, "height": SIDE} if resized else {}
                    made.append(frame.to_ndarray(format="rgb24", **sides))
                if len(made) == LENGTH:
                    return made
        raise RuntimeError("a clip that is too short")

    pool = ThreadPoolExecutor(THREADS)
    starts = [LENGTH * i % (frames - LENGTH + 1) for i in range(BATCH)]
    return lambda: list(pool.map(sequence, starts))


def rate(run, repeats):
    run()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return BATCH * LENGTH / statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[720, 1080])
    parser.add_argument("--codecs", nargs="+", default=list(CODECS), choices=list(CODECS))
    arguments = parser.parse_args()
    makers = {"Gesso": lambda *what: pipeline_of("gesso", *what), "DALI": lambda *what: pipeline_of("nvidia.dali", *what), "FFmpeg": with_ffmpeg}
    print(f"{'frames/s':<24}" + "".join(f"{name:>10}" for name in makers))
    for height in arguments.sizes:
        for codec in arguments.codecs:
            file = clip(codec, height, arguments.frames)
            for resized in (False, True):
                rates = []
                for make in makers.values():
                    try:
                        rates.append(f"{rate(make(file, resized, arguments.frames), arguments.repeats):.0f}")
                    except (ImportError, RuntimeError):
                        rates.append("-")
                print(f"{height}p {codec + (', 224 x 224' if resized else ''):<18}" + "".join(f"{found:>10}" for found in rates), flush=True)


if __name__ == "__main__":
    main()
