"""Images for the benchmarks, made from noise: JPEG 4:2:0 of qualities 85, 90 and 95, as heavy as photographs.

    python scripts/lib/make_bench_images.py FOLDER              writes FOLDER/500x375 and FOLDER/1920x1080
    python scripts/lib/make_bench_images.py FOLDER 4000x3000    other sizes: 64x64, 224x224, 1280x720, 4000x3000
    python scripts/lib/make_bench_images.py FOLDER 500x375-progressive    the same pictures in progressive files; also
                                                                -png, -webp, and -mixed: one in ten a PNG

On average 69 kB and 494 kB a file: a decoder's speed goes by its input's bytes as much as by its pixels. The others
have 2, 19, 259 and 2,875 kB.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

COUNT = 24
QUALITIES = (85, 90, 95)
# Name to (width, height) and the deviation of the grain, which sets the weight of the files.
SIZES = {"500x375": ((500, 375), 4.9), "1920x1080": ((1920, 1080), 1.45)}
# Likewise; these are made only when they are named.
MORE_SIZES = {
    "64x64": ((64, 64), 4.9),
    "224x224": ((224, 224), 4.9),
    "1280x720": ((1280, 720), 2.5),
    "4000x3000": ((4000, 3000), 1.45),
}
KINDS = ("progressive", "png", "webp", "mixed")
ALL_SIZES = SIZES | MORE_SIZES
ALL_SIZES |= {f"{name}-{kind}": size for name, size in SIZES.items() for kind in KINDS}
# Of mixed files, each of so many is a PNG.
PNG_EACH = 10
BLOB_PIXELS = 12


def make(folder, names=tuple(SIZES)):
    """Writes what is not there yet of these sizes."""
    with ThreadPoolExecutor() as pool:
        for name in names:
            target = Path(folder) / name
            target.mkdir(parents=True, exist_ok=True)
            size, grain = ALL_SIZES[name]
            kind = name.partition("-")[2]
            # So that one in ten are exactly so many.
            count = COUNT // PNG_EACH * PNG_EACH if kind == "mixed" else COUNT
            for one in [pool.submit(make_one, target, size, grain, i, kind) for i in range(count)]:
                one.result()


def make_one(folder, size, grain, seed, kind):
    quality = QUALITIES[seed % len(QUALITIES)]
    if kind == "png" or kind == "mixed" and seed % PNG_EACH == PNG_EACH - 1:
        name, options = "PNG", {}
    elif kind == "webp":
        name, options = "WebP", {"quality": quality}
    else:
        name, options = "JPEG", {"quality": quality, "subsampling": "4:2:0", "progressive": kind == "progressive"}
    path = folder / f"{seed:02}.{'jpg' if name == 'JPEG' else name.lower()}"
    if not path.exists():
        partial = path.with_suffix(".part")
        image(size, grain, seed).save(partial, name, **options)
        partial.rename(path)


def image(size, grain, seed):
    """Coloured blobs, a wave with edges, and grain."""
    width, height = size
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    blobs = rng.normal(128, 40, (height // BLOB_PIXELS + 1, width // BLOB_PIXELS + 1, 3)).clip(8, 248).astype(np.uint8)
    pixels = np.asarray(Image.fromarray(blobs).resize(size, Image.Resampling.BICUBIC), np.float32)
    wave = 30 * np.sin(x * rng.uniform(0.02, 0.2) + y * rng.uniform(0.02, 0.2))
    pixels = pixels + wave[..., None] + rng.normal(0, grain, (height, width, 1))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-") or not ALL_SIZES.keys() >= set(sys.argv[2:]):
        raise SystemExit(__doc__)
    make(sys.argv[1], sys.argv[2:] or SIZES)
