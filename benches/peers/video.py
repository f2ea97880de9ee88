#!/usr/bin/env python3
"""Frames a second out of videos, on two cores: Gesso beside DALI (VP8, VP9 and Motion JPEG, which are all that it
decodes on a CPU) and FFmpeg (the package `av`): decoding alone, and decoding with a resize of every frame to 224 x 224.

    pip install av numpy nvidia-dali-cuda130
    taskset -c 0,1 python3 benches/peers/video.py [--frames 64] [--repeats 3] [--sizes 720 1080] [--batch 4]
                                                  [--threads 2] [--clips FOLDER]
    python3 benches/peers/video.py --gpu ...         Gesso and DALI on the video engines of GPU 0, resized to float32;
                                                     outputs stay there
    python3 benches/peers/video.py --minutes 10 [--gpu] [--server]
                                                     one long video through `inputs.video` (H.264, at the first of
                                                     `--sizes`): the time to the first batch of 16 frames at 224 x 224,
                                                     frames a second, the most memory; with `--server` through Triton,
                                                     too, where it is sent, and where the request names its file
    python3 benches/peers/video.py --seek [--sizes 1080] [--threads 1]
                                                     one frame in the middle of a video of 300 frames, a key frame each
                                                     48: milliseconds, and milliseconds of the processor; also by
                                                     torchcodec, where it is installed

A batch is `--batch` clips of `--frames` frames with sequences of 16 of them, from a place further on in each clip. What
a package does not have is left out of its column. `--clips` keeps the clips, so that a machine without `av` can do with
them. Needs Gesso's package (PYTHONPATH=python and GESSO_LIBRARY=target/release/libtriton_gesso.so, or the wheel).
Prints a table of medians."""

import argparse
import functools
import importlib
import io
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import long_video
import numpy as np

CODECS = {
    "VP8": ("libvpx", "webm", {"b": "4M", "deadline": "realtime", "cpu-used": "4"}),
    "VP9": ("libvpx-vp9", "webm", {"b": "3M", "deadline": "realtime", "cpu-used": "7"}),
    "Motion JPEG": ("mjpeg", "avi", {"qscale": "4"}),
    "H.264": ("libx264", "mp4", {"crf": "23", "preset": "medium"}),
    "H.265": ("libx265", "mp4", {"crf": "26", "preset": "fast", "x265-params": "log-level=none"}),
    "AV1": ("libsvtav1", "mp4", {"crf": "35", "preset": "10"}),
}
LENGTH, SIDE = 16, 224
SEEK_FRAMES, SEEK_GROUP, SOUGHT = 300, 48, 170


def clip(codec, height, frames, group=LENGTH, **changed):
    """A landscape of soft patches that moves, with noise; a key frame each `group` frames. `changed`: options of the
    encoder."""
    import av

    encoder, container, options = CODECS[codec]
    options = {**options, **changed}
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
        stream.gop_size = group
        for i in range(frames):
            pixels = np.ascontiguousarray(scene[i % 64 : i % 64 + height, 2 * i % 64 : 2 * i % 64 + width])
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format=stream.pix_fmt)
            frame.pts, frame.time_base = i, Fraction(1, 25)
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    return np.frombuffer(out.getvalue(), np.uint8)


@dataclass(frozen=True)
class Setting:
    """What all peers share."""

    gpu: bool
    batch: int
    threads: int
    frames: int

    @property
    def starts(self):
        return [LENGTH * i % (self.frames - LENGTH + 1) for i in range(self.batch)]


def kept_clip(folder, codec, height, frames, group=LENGTH):
    """The clip in `folder`, where it is made if it is not there."""
    if folder is None:
        return clip(codec, height, frames, group)
    path = folder / f"{codec.replace(' ', '-')}-{height}-{frames}{'' if group == LENGTH else f'-{group}'}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(clip(codec, height, frames, group).tobytes())
    return np.frombuffer(path.read_bytes(), np.uint8)


def pipeline_of(package, file, resized, setting):
    """A function that runs a batch through a pipeline of `package`, Gesso's or DALI's. On a GPU pipelines prepare
    batches ahead, and the time is that from one to the next."""
    module = importlib.import_module(package)
    fn, types = module.fn, module.types
    starts = [np.int32(start) for start in setting.starts]
    depth = 2 if setting.gpu else 1
    pipe = module.Pipeline(setting.batch, setting.threads, 0 if setting.gpu else None, prefetch_queue_depth=depth)
    with pipe:
        videos = fn.external_source(source=lambda: [file] * setting.batch, dtype=types.UINT8, ndim=1)
        start = fn.external_source(source=lambda: starts, dtype=types.INT32, ndim=0)
        out = fn.decoders.video(
            videos, start_frame=start, sequence_length=LENGTH, device="mixed" if setting.gpu else "cpu"
        )
        kind = {"dtype": types.FLOAT} if setting.gpu else {}
        pipe.set_outputs(fn.resize(out, size=[SIDE, SIDE], **kind) if resized else out)
    pipe.build()
    return pipe.run


def with_ffmpeg(file, resized, setting):
    """The same by FFmpeg on the host: a clip a thread, from the key frame on."""
    import av

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

    pool = ThreadPoolExecutor(setting.threads)
    return lambda: list(pool.map(sequence, setting.starts))


def rate(run, repeats, setting):
    """Frames a second: of the median of batches on a host, of all together on a GPU, where batches overlap."""
    for _ in range(4 if setting.gpu else 1):
        run()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    middle = statistics.mean(times) if setting.gpu else statistics.median(times)
    return setting.batch * LENGTH / middle


def seek_gesso(file, threads):
    """A function that gives one frame of a file, which is opened each time."""
    from gesso import Pipeline, fn, types

    pipe = Pipeline(1, threads, None, prefetch_queue_depth=1)
    with pipe:
        videos = fn.external_source(source=lambda: [file], dtype=types.UINT8, ndim=1)
        pipe.set_outputs(fn.decoders.video(videos, start_frame=SOUGHT, sequence_length=1))
    pipe.build()
    return lambda: np.asarray(pipe.run()[0].at(0))[0]


def seek_ffmpeg(file, threads):
    """The same by FFmpeg: from the key frame on, and only the frame that is wanted becomes RGB."""
    import av

    data = bytes(file)

    def run():
        with av.open(io.BytesIO(data)) as opened:
            stream = opened.streams.video[0]
            stream.codec_context.thread_count = threads
            stream.codec_context.thread_type = "AUTO"
            opened.seek(int(SOUGHT / 25 / stream.time_base), stream=stream)
            for frame in opened.decode(stream):
                if frame.time * 25 + 0.5 >= SOUGHT:
                    return frame.to_ndarray(format="rgb24")
        raise RuntimeError("a clip that is too short")

    return run


def seek_torchcodec(file, threads):
    """The same by torchcodec."""
    from torchcodec.decoders import VideoDecoder

    data = bytes(file)

    def run():
        decoder = VideoDecoder(data, num_ffmpeg_threads=threads, seek_mode="approximate", dimension_order="NHWC")
        return decoder.get_frame_played_at(SOUGHT / 25 + 0.01).data.numpy()

    return run


def seek(arguments):
    """Prints how long one frame in the middle takes."""
    makers = {"Gesso": seek_gesso, "FFmpeg": seek_ffmpeg, "torchcodec": seek_torchcodec}
    print(f"{'ms (of the processor)':<24}" + "".join(f"{name:>18}" for name in makers))
    for height in arguments.sizes:
        for codec in arguments.codecs:
            file = kept_clip(arguments.clips, codec, height, SEEK_FRAMES, SEEK_GROUP)
            cells = []
            for name, make in makers.items():
                try:
                    run = make(file, arguments.threads)
                    run()
                    taken = []
                    for _ in range(arguments.repeats):
                        began, of_processor = time.perf_counter(), time.process_time()
                        run()
                        taken.append((time.perf_counter() - began, time.process_time() - of_processor))
                    wall, processor = (statistics.median(times) * 1e3 for times in zip(*taken, strict=True))
                    cells.append(f"{wall:.1f} ({processor:.1f})")
                except (ImportError, RuntimeError) as error:
                    print(f"{name}, {height}p {codec}: {str(error).splitlines()[0]}", file=sys.stderr)
                    cells.append("-")
            print(f"{height}p {codec:<18}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


def long_clips(folder, height, minutes):
    """A video of ten seconds in little data, and one of so many minutes."""
    found = []
    for name, make in (
        ("short", lambda: clip("H.264", height, 250, crf="36")),
        ("long", lambda: long_video.repeated(found[0], minutes)[0]),
    ):
        path = folder / f"{name}-{height}-{minutes}.mp4" if folder else None
        if path and path.exists():
            found.append(np.frombuffer(path.read_bytes(), np.uint8))
            continue
        found.append(make())
        if path:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(found[-1].tobytes())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[720, 1080])
    parser.add_argument("--codecs", nargs="+", default=list(CODECS), choices=list(CODECS))
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clips", type=Path, metavar="FOLDER")
    parser.add_argument("--minutes", type=int)
    parser.add_argument("--server", action="store_true")
    parser.add_argument("--seek", action="store_true")
    arguments = parser.parse_args()
    if arguments.seek:
        return seek(arguments)
    if arguments.minutes:
        short, long = long_clips(arguments.clips, arguments.sizes[0], arguments.minutes)
        return long_video.measure(short, long, arguments.gpu, arguments.server)
    setting = Setting(arguments.gpu, arguments.batch, arguments.threads, arguments.frames)
    makers = {
        name: functools.partial(pipeline_of, package) for name, package in [("Gesso", "gesso"), ("DALI", "nvidia.dali")]
    }
    if not setting.gpu:
        makers["FFmpeg"] = with_ffmpeg
    print(f"{'frames/s':<24}" + "".join(f"{name:>10}" for name in makers))
    for height in arguments.sizes:
        for codec in arguments.codecs:
            file = kept_clip(arguments.clips, codec, height, arguments.frames)
            for resized in (False, True):
                rates = []
                for name, make in makers.items():
                    try:
                        rates.append(f"{rate(make(file, resized, setting), arguments.repeats, setting):.0f}")
                    except (ImportError, RuntimeError) as error:
                        print(f"{name}, {height}p {codec}: {str(error).splitlines()[0]}", file=sys.stderr)
                        rates.append("-")
                print(
                    f"{height}p {codec + (', 224 x 224' if resized else ''):<18}"
                    + "".join(f"{found:>10}" for found in rates),
                    flush=True,
                )


if __name__ == "__main__":
    main()
