#!/usr/bin/env python3
"""Operators one by one: Gesso and DALI on the same serialized pipelines and inputs, in turn.

    benches/peers/operators.py [NAME ...] [--gpu] [--threads 1 2] [--batch 16] [--rounds 3] [--seconds 0.4] [--below
    1.3]

NAMEs are parts of the rows' names; none means every row. Needs the packages nvidia-dali-cuda130 and pillow, and cargo
or `--program`; a GPU only for `--gpu`. On the CPU both sides read the inputs where they are, without a copy, and leave
the output in their own memory; with `--gpu` inputs come from the host, outputs stay on the device, and a batch is done
when the device is. Prints milliseconds for a batch of images of 500x375: of each side the best of the rounds' medians,
which other work on the machine disturbs least. With --below only rows with a smaller ratio are printed.
"""

import argparse
import io
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali import math as dali_math
from nvidia.dali._utils import dali_trace
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
from cuda_driver import Driver  # noqa: E402

WIDTH, HEIGHT = 500, 375
WARM_UP = 3
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
TYPES = {"uint8": types.UINT8, "float32": types.FLOAT, "int64": types.INT64}


def photo(i):
    """Coarse colours, fine waves and grain, as in `compare.py`."""
    rng = np.random.default_rng(i)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    coarse = rng.normal(128, 40, (HEIGHT // 12 + 1, WIDTH // 12 + 1, 3)).clip(0, 255).astype(np.uint8)
    coarse = np.asarray(Image.fromarray(coarse).resize((WIDTH, HEIGHT), Image.BICUBIC), np.float32)
    return (
        (coarse + 30 * np.sin(x * 0.1 + y * 0.07)[..., None] + rng.normal(0, 7, (HEIGHT, WIDTH, 1)))
        .clip(0, 255)
        .astype(np.uint8)
    )


def encoded(kind, **options):
    def encode(i):
        file = io.BytesIO()
        Image.fromarray(photo(i)).save(file, kind, **options)
        return np.frombuffer(file.getvalue(), np.uint8)

    return encode


def sound(i):
    return np.random.default_rng(i).normal(0, 0.2, 10 * 16_000).astype(np.float32)


# What a row reads: a function from a number to a sample, its layout.
IMAGE = photo, "HWC"
GRAY = (lambda i: photo(i)[..., :1].copy()), "HWC"
FLOAT = (lambda i: photo(i).astype(np.float32)), "HWC"
PLANE = (lambda i: photo(i)[:374, :, 0].copy()), "HW"
SOUND = sound, "t"
SPECTRUM = (lambda i: np.abs(np.random.default_rng(i).normal(0, 1, (257, 1000))).astype(np.float32)), "ft"
MEL = (lambda i: np.abs(np.random.default_rng(i).normal(0, 1, (80, 1000))).astype(np.float32)), "ft"
CLASSES = (lambda i: np.random.default_rng(i).integers(0, 64, 20_000)), "t"
JPEG, PROGRESSIVE = (encoded("JPEG", quality=90), None), (encoded("JPEG", quality=90, progressive=True), None)
PNG, BMP, TIFF = (encoded("PNG"), None), (encoded("BMP"), None), (encoded("TIFF"), None)
WEBP, WEBP_LOSSLESS = (encoded("WEBP", quality=90), None), (encoded("WEBP", lossless=True), None)


def resize(interpolation, width, height, **options):
    return lambda x: fn.resize(
        x, resize_x=width, resize_y=height, interp_type=getattr(types, "INTERP_" + interpolation), **options
    )


def reduction(name, **options):
    return lambda x: getattr(fn.reductions, name)(x, **options)


SLANTED = [1.1, 0.2, -30.0, -0.1, 0.9, 20.0]
PERSPECTIVE = [1.1, 0.2, -30.0, -0.1, 0.9, 20.0, 1e-4, 2e-4, 1.0]

ROWS = {
    "resize linear 224x224": (IMAGE, resize("LINEAR", 224, 224)),
    "resize linear 224x224, no antialias": (IMAGE, resize("LINEAR", 224, 224, antialias=False)),
    "resize linear 224x224 to float": (IMAGE, resize("LINEAR", 224, 224, dtype=types.FLOAT)),
    "resize linear 224x224 gray": (GRAY, resize("LINEAR", 224, 224)),
    "resize linear 224x224 of float": (FLOAT, resize("LINEAR", 224, 224)),
    "resize linear 900x700": (IMAGE, resize("LINEAR", 900, 700)),
    "resize cubic 224x224": (IMAGE, resize("CUBIC", 224, 224)),
    "resize cubic 900x700": (IMAGE, resize("CUBIC", 900, 700)),
    "resize lanczos 224x224": (IMAGE, resize("LANCZOS3", 224, 224)),
    "resize lanczos 900x700": (IMAGE, resize("LANCZOS3", 900, 700)),
    "resize nearest 224x224": (IMAGE, resize("NN", 224, 224)),
    "resize nearest 900x700": (IMAGE, resize("NN", 900, 700)),
    "resize_crop_mirror 224x224": (
        IMAGE,
        lambda x: fn.resize_crop_mirror(x, resize_shorter=256, crop=(224, 224), mirror=1),
    ),
    "rotate linear": (IMAGE, lambda x: fn.rotate(x, angle=20.0, fill_value=0)),
    "rotate nearest": (IMAGE, lambda x: fn.rotate(x, angle=20.0, fill_value=0, interp_type=types.INTERP_NN)),
    "warp_affine linear": (IMAGE, lambda x: fn.warp_affine(x, matrix=SLANTED, fill_value=0)),
    "warp_affine linear, edge": (IMAGE, lambda x: fn.warp_affine(x, matrix=SLANTED)),
    "warp_affine nearest": (
        IMAGE,
        lambda x: fn.warp_affine(x, matrix=SLANTED, fill_value=0, interp_type=types.INTERP_NN),
    ),
    "warp_affine linear gray": (GRAY, lambda x: fn.warp_affine(x, matrix=SLANTED, fill_value=0)),
    "warp_affine linear of float": (FLOAT, lambda x: fn.warp_affine(x, matrix=SLANTED, fill_value=0)),
    "warp_perspective": (IMAGE, lambda x: fn.experimental.warp_perspective(x, matrix=PERSPECTIVE, fill_value=0)),
    "sphere": (IMAGE, lambda x: fn.sphere(x)),
    "water": (IMAGE, lambda x: fn.water(x)),
    "flip horizontal": (IMAGE, lambda x: fn.flip(x, horizontal=1)),
    "flip vertical": (IMAGE, lambda x: fn.flip(x, horizontal=0, vertical=1)),
    "transpose HWC to CHW": (IMAGE, lambda x: fn.transpose(x, perm=[2, 0, 1])),
    "transpose HWC to CHW of float": (FLOAT, lambda x: fn.transpose(x, perm=[2, 0, 1])),
    "transpose HWC to WHC": (IMAGE, lambda x: fn.transpose(x, perm=[1, 0, 2])),
    "crop 224x224": (IMAGE, lambda x: fn.crop(x, crop=(224, 224))),
    "crop 224x224 to float": (IMAGE, lambda x: fn.crop(x, crop=(224, 224), dtype=types.FLOAT)),
    "slice half": (IMAGE, lambda x: fn.slice(x, rel_start=[0.2, 0.2], rel_shape=[0.5, 0.5])),
    "slice beyond": (IMAGE, lambda x: fn.slice(x, start=[-20, -20], shape=[400, 520], out_of_bounds_policy="pad")),
    "pad": (IMAGE, lambda x: fn.pad(x, axes=[0, 1], shape=[400, 520])),
    "paste": (IMAGE, lambda x: fn.paste(x, ratio=1.5, fill_value=(1, 2, 3))),
    "erase": (IMAGE, lambda x: fn.erase(x, anchor=[50, 60], shape=[100, 200], fill_value=7)),
    "grid_mask": (IMAGE, lambda x: fn.grid_mask(x, tile=50, ratio=0.5, angle=0.3)),
    "multi_paste": (
        IMAGE,
        lambda x: fn.multi_paste(
            x,
            in_ids=np.int32([0, 1]),
            in_anchors=np.int32([[0, 0], [10, 20]]),
            shapes=np.int32([[200, 200]] * 2),
            output_size=(375, 500),
        ),
    ),
    "brightness_contrast": (IMAGE, lambda x: fn.brightness_contrast(x, brightness=1.1, contrast=1.2)),
    "brightness to float": (IMAGE, lambda x: fn.brightness(x, brightness=1.1, dtype=types.FLOAT)),
    "color_twist": (IMAGE, lambda x: fn.color_twist(x, hue=20.0, saturation=1.2, brightness=1.1, contrast=1.2)),
    "hsv": (IMAGE, lambda x: fn.hsv(x, hue=20.0, saturation=1.2, value=1.1)),
    "color_space RGB to gray": (
        IMAGE,
        lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.GRAY),
    ),
    "color_space RGB to YCbCr": (
        IMAGE,
        lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.YCbCr),
    ),
    "color_space YCbCr to RGB": (
        IMAGE,
        lambda x: fn.color_space_conversion(x, image_type=types.YCbCr, output_type=types.RGB),
    ),
    "color_space RGB to BGR": (
        IMAGE,
        lambda x: fn.color_space_conversion(x, image_type=types.RGB, output_type=types.BGR),
    ),
    "equalize": (IMAGE, lambda x: fn.experimental.equalize(x)),
    "gaussian_blur 5": (IMAGE, lambda x: fn.gaussian_blur(x, window_size=5)),
    "gaussian_blur 11": (IMAGE, lambda x: fn.gaussian_blur(x, window_size=11)),
    "gaussian_blur 5 of float": (FLOAT, lambda x: fn.gaussian_blur(x, window_size=5)),
    "laplacian": (IMAGE, lambda x: fn.laplacian(x, window_size=3)),
    "filter 5x5": (IMAGE, lambda x: fn.experimental.filter(x, np.full((5, 5), 0.04, np.float32))),
    "normalize": (IMAGE, lambda x: fn.normalize(x)),
    "normalize axes HW": (IMAGE, lambda x: fn.normalize(x, axes=[0, 1])),
    "normalize of float": (FLOAT, lambda x: fn.normalize(x, axes=[0, 1])),
    "normalize given": (
        IMAGE,
        lambda x: fn.normalize(x, mean=np.float32(MEAN).reshape(1, 1, 3), stddev=np.float32(STD).reshape(1, 1, 3)),
    ),
    "crop_mirror_normalize CHW": (
        IMAGE,
        lambda x: fn.crop_mirror_normalize(x, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD),
    ),
    "crop_mirror_normalize HWC": (
        IMAGE,
        lambda x: fn.crop_mirror_normalize(x, dtype=types.FLOAT, output_layout="HWC", mean=MEAN, std=STD),
    ),
    "crop_mirror_normalize CHW half": (
        IMAGE,
        lambda x: fn.crop_mirror_normalize(x, dtype=types.FLOAT16, output_layout="CHW", mean=MEAN, std=STD),
    ),
    "crop_mirror_normalize mirror": (
        IMAGE,
        lambda x: fn.crop_mirror_normalize(x, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD, mirror=1),
    ),
    "x * 1.5 + 3": (IMAGE, lambda x: x * 1.5 + 3.0),
    "x + x": (IMAGE, lambda x: x + x),
    "float x * 1.5": (FLOAT, lambda x: x * 1.5),
    "x > 100": (IMAGE, lambda x: x > 100),
    "x / 255": (IMAGE, lambda x: x / 255.0),
    "(x - mean) / std": (IMAGE, lambda x: (x - types.Constant(np.float32(MEAN))) / types.Constant(np.float32(STD))),
    "math.sqrt(x)": (IMAGE, lambda x: dali_math.sqrt(x)),
    "math.exp(x)": (FLOAT, lambda x: dali_math.exp(x * 0.01)),
    "math.sin(x)": (FLOAT, lambda x: dali_math.sin(x)),
    "math.clamp(x)": (IMAGE, lambda x: dali_math.clamp(x, 10, 200)),
    "cast to float": (IMAGE, lambda x: fn.cast(x, dtype=types.FLOAT)),
    "cast to half": (IMAGE, lambda x: fn.cast(x, dtype=types.FLOAT16)),
    "cast of float": (FLOAT, lambda x: fn.cast(x, dtype=types.UINT8)),
    "cast of float to half": (FLOAT, lambda x: fn.cast(x, dtype=types.FLOAT16)),
    "reductions.mean": (IMAGE, reduction("mean")),
    "reductions.mean axes HW": (IMAGE, reduction("mean", axes=[0, 1])),
    "reductions.mean axis C": (IMAGE, reduction("mean", axes=[2])),
    "reductions.sum of float": (FLOAT, reduction("sum")),
    "reductions.max": (IMAGE, reduction("max")),
    "reductions.max axis H": (IMAGE, reduction("max", axes=[0])),
    "reductions.std_dev axes HW": (
        IMAGE,
        lambda x: fn.reductions.std_dev(x, fn.reductions.mean(x, axes=[0, 1], keep_dims=True), axes=[0, 1]),
    ),
    "lookup_table": (
        PLANE,
        lambda x: fn.lookup_table(
            x, keys=list(range(256)), values=[float(255 - i) for i in range(256)], dtype=types.UINT8
        ),
    ),
    "lookup_table to float": (
        PLANE,
        lambda x: fn.lookup_table(x, keys=list(range(256)), values=[i / 255 for i in range(256)]),
    ),
    "one_hot": (CLASSES, lambda x: fn.one_hot(x, num_classes=64)),
    "stack": (IMAGE, lambda x: fn.stack(x, x)),
    "cat axis 2": (IMAGE, lambda x: fn.cat(x, x, axis=2)),
    "x[10:300, 20:400]": (IMAGE, lambda x: x[10:300, 20:400]),
    "noise.gaussian": (IMAGE, lambda x: fn.noise.gaussian(x, stddev=10.0)),
    "noise.salt_and_pepper": (IMAGE, lambda x: fn.noise.salt_and_pepper(x)),
    "noise.shot": (IMAGE, lambda x: fn.noise.shot(x, factor=10.0)),
    "random.normal": (IMAGE, lambda x: fn.random.normal(x)),
    "random.uniform": (IMAGE, lambda x: fn.random.uniform(x)),
    "random.coin_flip": (IMAGE, lambda x: fn.random.coin_flip(x)),
    "jpeg_compression_distortion": (IMAGE, lambda x: fn.jpeg_compression_distortion(x, quality=50)),
    "debayer": (PLANE, lambda x: fn.debayer(x, blue_position=[0, 0])),
    "clahe": (IMAGE, lambda x: fn.clahe(x, tiles_x=8, tiles_y=8, clip_limit=2.0)),
    "audio_resample": (SOUND, lambda x: fn.audio_resample(x, in_rate=16_000, out_rate=22_050)),
    "spectrogram": (SOUND, lambda x: fn.spectrogram(x, nfft=512, window_length=400, window_step=160)),
    "power spectrum": (SOUND, lambda x: fn.power_spectrum(x)),
    "mel_filter_bank": (SPECTRUM, lambda x: fn.mel_filter_bank(x, nfilter=80, sample_rate=16_000)),
    "to_decibels": (MEL, lambda x: fn.to_decibels(x)),
    "mfcc": (MEL, lambda x: fn.mfcc(x, n_mfcc=40)),
    "preemphasis_filter": (SOUND, lambda x: fn.preemphasis_filter(x)),
    "nonsilent_region": (SOUND, lambda x: fn.nonsilent_region(x)[0]),
    "decode JPEG": (JPEG, lambda x: fn.decoders.image(x)),
    "decode JPEG gray": (JPEG, lambda x: fn.decoders.image(x, output_type=types.GRAY)),
    "decode JPEG progressive": (PROGRESSIVE, lambda x: fn.decoders.image(x)),
    "decode JPEG slice": (
        JPEG,
        lambda x: fn.decoders.image_slice(x, rel_start=[0.2, 0.2], rel_shape=[0.5, 0.5], axes=[0, 1]),
    ),
    "decode PNG": (PNG, lambda x: fn.decoders.image(x)),
    "decode BMP": (BMP, lambda x: fn.decoders.image(x)),
    "decode TIFF": (TIFF, lambda x: fn.decoders.image(x)),
    "decode WebP": (WEBP, lambda x: fn.decoders.image(x)),
    "decode WebP lossless": (WEBP_LOSSLESS, lambda x: fn.decoders.image(x)),
}


class Row:
    """A pipeline of one operator, and its inputs as arrays and as files."""

    def __init__(self, folder, reads, operator, batch, driver):
        make, layout = reads
        self.driver = driver
        self.samples = [make(i) for i in range(batch)]
        first = self.samples[0]
        self.files = [folder / f"{i}.npy" for i in range(batch)]
        for path, sample in zip(self.files, self.samples):
            np.save(path, sample)

        @pipeline_def(batch_size=batch, num_threads=1, device_id=0 if driver else None, prefetch_queue_depth=1, seed=42)
        def alone():
            x = fn.external_source(
                name="X", dtype=TYPES[first.dtype.name], ndim=first.ndim, layout=layout, no_copy=not driver
            )
            return operator(x.gpu() if driver else x)

        self.make = alone
        self.file = folder / "row.dali"
        self.file.write_bytes(alone().serialize())

    def gesso(self, program, threads, seconds):
        """Median milliseconds of a batch."""
        inputs = "X=" + ",".join(map(str, self.files))
        options = {"--batch": len(self.files), "--threads": threads, "--seconds": seconds}
        if self.driver:
            options["--device"] = "gpu"
        command = [
            program,
            "bench",
            "--json",
            self.file,
            "--input",
            inputs,
            *(str(part) for pair in options.items() for part in pair),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        (told,) = json.loads(done.stdout)
        return told["p50_ms"]

    def dali(self, threads, seconds):
        """The same in DALI."""
        pipeline = self.make(num_threads=threads)
        pipeline.build()
        times, end = [], math.inf
        while time.perf_counter() < end:
            began = time.perf_counter()
            pipeline.feed_input("X", self.samples)
            pipeline.run()
            if self.driver:
                self.driver.synchronize()
            times.append(time.perf_counter() - began)
            if len(times) == WARM_UP:
                end = time.perf_counter() + seconds
        return statistics.median(times[WARM_UP:] or times) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--below", type=float, default=math.inf)
    parser.add_argument("--program", type=pathlib.Path, help="a `gesso` to measure instead of the one built here")
    options = parser.parse_args()
    dali_trace.set_tracing(enabled=False)
    driver = Driver() if options.gpu else None
    program = options.program or ROOT / "target" / "release" / "gesso"
    if options.program is None:
        subprocess.run(["cargo", "build", "--quiet", "--release", "--bin", "gesso"], cwd=ROOT, check=True)
    print(
        f"{'operator':36}"
        + "".join(f"{f'{n} threads: Gesso ms':>22}{'DALI ms':>9}{'ratio':>7}" for n in options.threads)
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, (reads, operator) in ROWS.items():
            if options.names and not any(part in name for part in options.names):
                continue
            if driver and name.startswith("decode "):
                continue  # gpu.py measures it: a decoder of encoded files is no operator on a device
            line, ratios = "", []
            try:
                row = Row(pathlib.Path(folder), reads, operator, options.batch, driver)
                for threads in options.threads:
                    rounds = [
                        (row.gesso(program, threads, options.seconds), row.dali(threads, options.seconds))
                        for _ in range(options.rounds)
                    ]
                    ours, theirs = map(min, zip(*rounds))
                    ratios.append(theirs / ours)
                    line += f"{ours:22.2f}{theirs:9.2f}{ratios[-1]:7.2f}"
            except RuntimeError as error:
                line = f"  {str(error).strip().splitlines()[0]}"
            if not ratios or min(ratios) < options.below:
                print(f"{name:36}{line}", flush=True)


if __name__ == "__main__":
    main()
