#!/usr/bin/env python3
"""The proof of the encoders: random images with random settings through `fn.gesso.encode_jpeg`, `encode_png` and
`encode_webp`, and read again. Ends with 1 if a file is not what it has to be.

    prove_encoders.py [--count 10000] [--seed 1] [--largest 96]

A JPEG has the bytes that Pillow writes by libjpeg-turbo with the same settings. A PNG, and a lossless WebP, is read
to the same pixels: by Pillow, and PNGs of 16 bits, which Pillow does not read, by the reader below. A lossy WebP is as
Pillow's with the same settings, where both have the same libwebp, and else is read. It needs Pillow and the package
`gesso`."""

import argparse
import io
import struct
import sys
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
# Behind a package that is installed.
sys.path.append(str(ROOT / "python"))

from gesso import Pipeline, fn  # noqa: E402
from PIL import Image  # noqa: E402

# Images that a pipeline takes at a time, all with the same settings but for their quality.
AT_A_TIME = 10
SAMPLES = {0: 1, 2: 3, 4: 2, 6: 4}


def pictures(random, channels, dtype, largest):
    """Noise, ramps, one colour, few colours; sides from 1 on."""
    top = int(np.iinfo(dtype).max)
    for _ in range(AT_A_TIME):
        height, width = (int(side) for side in random.integers(1, largest + 1, 2))
        shape = (height, width, channels)
        kind = random.integers(5)
        if kind == 0:
            pixels = random.integers(0, top + 1, shape)
        elif kind == 1:
            pixels = np.broadcast_to(random.integers(0, top + 1, channels), shape)
        elif kind == 2:
            pixels = random.integers(0, top + 1, (random.integers(2, 20), channels))
            pixels = pixels[random.integers(0, len(pixels), (height, width))]
        else:
            slopes = random.integers(0, top // 16 + 2, (2, channels))
            y, x = np.mgrid[:height, :width]
            pixels = y[..., None] * slopes[0] + x[..., None] * slopes[1]
            if kind == 4:
                pixels = pixels + random.integers(0, top // 16 + 2, shape)
        yield (pixels % (top + 1)).astype(dtype)


def encoded(encoder, images, settings, qualities):
    """The files of a pipeline with that encoder alone."""
    pipe = Pipeline(len(images), 2, None)
    with pipe:
        given = settings if qualities is None else {**settings, "quality": fn.external_source(name="quality")}
        pipe.set_outputs(encoder(fn.external_source(name="images", layout="HWC"), **given))
    pipe.build()
    pipe.feed_input("images", images)
    if qualities is not None:
        pipe.feed_input("quality", qualities)
    (files,) = pipe.run()
    return [np.asarray(files[i]).tobytes() for i in range(len(images))]


def by_pillow(image, kind, **settings):
    """The file that Pillow writes."""
    file = io.BytesIO()
    Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(file, kind, **settings)
    return file.getvalue()


def pixels_of(file, channels):
    """What Pillow reads."""
    image = Image.open(io.BytesIO(file))
    # libwebp writes no alpha where all of it is 255.
    image = image.convert("RGBA") if channels == 4 else image
    return np.asarray(image).reshape(image.height, image.width, channels)


def samples_of(png):
    """The samples of a PNG that is not interlaced, of 8 or 16 bits, as its specification says."""
    at, data, header = 8, b"", b""
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        if zlib.crc32(name + body) != int.from_bytes(png[at + 8 + length : at + 12 + length], "big"):
            raise ValueError(f"a wrong sum of chunk {name}")
        data, header = data + body * (name == b"IDAT"), body if name == b"IHDR" else header
        at += 12 + length
    width, height, bits, kind = struct.unpack(">IIBB", header[:10])
    step = SAMPLES[kind] * bits // 8
    stride = width * step
    raw, before, rows = zlib.decompress(data), [0] * (stride + step), []
    for y in range(height):
        how, *coded = raw[y * (stride + 1) : (y + 1) * (stride + 1)]
        # As many zeros in front as a pixel has bytes: what stands left of the first one.
        row = [0] * step
        for i, byte in enumerate(coded):
            left, above, corner = row[i], before[i + step], before[i]
            row.append((byte + guess(how, left, above, corner)) % 256)
        rows.append(row[step:])
        before = row
    return np.array(rows, np.uint8).view(">u2" if bits == 16 else np.uint8).reshape(height, width, SAMPLES[kind])


def guess(how, left, above, corner):
    """What a filter of PNG expects a byte to be."""
    if how < 3:
        return (0, left, above)[how]
    if how == 3:
        return (left + above) // 2
    nearest = left + above - corner
    return min((left, above, corner), key=lambda byte: abs(nearest - byte))


def jpegs(random, largest):
    """(what, whether the file is right) of some JPEGs."""
    channels = int(random.choice([1, 3, 3]))
    settings = {
        "subsampling": str(random.choice(["4:4:4", "4:2:2", "4:2:0"])),
        "optimize": bool(random.integers(2)),
        "progressive": bool(random.integers(2)),
    }
    images = list(pictures(random, channels, np.uint8, largest))
    qualities = random.integers(1, 101, len(images)).astype(np.int32)
    for image, quality, file in zip(
        images, qualities, encoded(fn.gesso.encode_jpeg, images, settings, qualities), strict=True
    ):
        # Of gray Pillow writes that its only component is subsampled, which means nothing; turbojpeg does not.
        beside = settings if channels > 1 else {**settings, "subsampling": "4:4:4"}
        yield "JPEG", file == by_pillow(image, "JPEG", quality=int(quality), **beside), settings


def pngs(random, largest):
    """The same of PNGs."""
    channels, dtype = int(random.integers(1, 5)), [np.uint8, np.uint16][random.integers(2)]
    settings = {"compression_level": int(random.integers(10))}
    images = list(pictures(random, channels, dtype, largest if dtype == np.uint8 else min(largest, 48)))
    what = f"PNG of {8 * np.dtype(dtype).itemsize} bits"
    for image, file in zip(images, encoded(fn.gesso.encode_png, images, settings, None), strict=True):
        found = pixels_of(file, channels) if dtype == np.uint8 else samples_of(file)
        yield what, np.array_equal(found, image), settings


def webps(random, largest):
    """The same of WebPs."""
    channels, lossless = int(random.integers(3, 5)), bool(random.integers(2))
    settings = {"lossless": lossless, "method": int(random.integers(7))}
    images = list(pictures(random, channels, np.uint8, largest))
    qualities = random.integers(0, 101, len(images)).astype(np.float32)
    files = encoded(fn.gesso.encode_webp, images, settings, qualities)
    for image, quality, file in zip(images, qualities, files, strict=True):
        found = pixels_of(file, channels)
        if lossless:
            yield "WebP, lossless", np.array_equal(found, image), settings
            continue
        same = file == by_pillow(image, "WEBP", quality=int(quality), method=settings["method"], exact=False)
        yield "WebP, lossy, with Pillow's bytes" if same else "WebP, lossy", found.shape == image.shape, settings


def prove(count, seed, largest):
    """How many files of each kind there were, and what is wrong with the others."""
    counts, wrong = Counter(), []
    for batch in range(-(-count // AT_A_TIME)):
        random = np.random.default_rng([seed, batch])
        for what, is_right, settings in (jpegs, pngs, webps)[batch % 3](random, largest):
            counts[what] += 1
            if not is_right:
                wrong.append(f"{what}, batch {batch}: {settings}")
    return counts, wrong


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--largest", type=int, default=96, help="longest side")
    options = parser.parse_args()
    counts, wrong = prove(options.count, options.seed, options.largest)
    for what, number in sorted(counts.items()):
        print(f"{what:34} {number:7,} files")
    print(f"{sum(counts.values()):,} files, {len(wrong)} wrong")
    print("\n".join(wrong[:20]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
