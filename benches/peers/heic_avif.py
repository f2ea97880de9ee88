"""Milliseconds a picture of 12 megapixels takes to decode on one thread: HEIC beside pillow-heif, AVIF beside Pillow.

    python benches/peers/heic_avif.py [--rounds 3] [--pictures 3] [--json] [--keep FOLDER]

The picture is made here: 4,032 x 3,024, soft colours, edges and a sensor's noise; as HEIC in one piece, as HEIC in a
grid of tiles of 512 as phones write it, and as AVIF, by the peers' own encoders in their fastest way. `--keep FOLDER`
keeps these files for the next time. Each round decodes `--pictures` of a kind by each in turn; the table has the median
of the rounds. Wall time says what a user waits for; time of the processor says the same on a machine that others keep
busy. All run on one core, and the load of the machine is told. Needs Pillow 11.3 or newer and a pillow-heif whose
encoder writes grids (1.8 does); an older one leaves that row out."""

import argparse
import io
import json
import os
import statistics
import time
from pathlib import Path

# Before any library starts threads.
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import numpy as np  # noqa: E402
import pillow_heif  # noqa: E402
from gesso import Pipeline, fn, types  # noqa: E402
from PIL import AvifImagePlugin, Image  # noqa: E402

WIDTH, HEIGHT, TILE = 4_032, 3_024, 512
QUALITY = 80
# What smooth parts are apart by after two decoders: they interpolate chroma in different ways.
MOST_APART = 3

AvifImagePlugin.DEFAULT_MAX_THREADS = 1
pillow_heif.options.DECODE_THREADS = 1
pillow_heif.register_heif_opener()


def picture():
    """Soft colours, round edges and the noise of a sensor."""
    random = np.random.default_rng(1)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    pixels = np.empty((HEIGHT, WIDTH, 3), np.float32)
    for channel in range(3):
        along, down, at = random.uniform(0.002, 0.01), random.uniform(0.002, 0.01), random.uniform(0, 6)
        pixels[..., channel] = 128 + 60 * np.sin(x * along + y * down + at)
    for _ in range(200):
        left, top, radius = random.uniform(0, WIDTH), random.uniform(0, HEIGHT), random.uniform(20, 300)
        inside = (
            slice(max(int(top - radius), 0), int(top + radius)),
            slice(max(int(left - radius), 0), int(left + radius)),
        )
        circle = (x[inside] - left) ** 2 + (y[inside] - top) ** 2 < radius**2
        pixels[inside][circle] += random.normal(0, 40, 3)
    pixels += random.normal(0, 3, (HEIGHT, WIDTH, 1))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def files(folder):
    """The picture's files by their kinds."""
    fast, found, image = {"enc_params": {"preset": "ultrafast"}}, {}, None
    settings = {
        "HEIC, one piece": ("HEIF", fast | {"tile_size": 0}),
        f"HEIC, tiles of {TILE}": ("HEIF", fast | {"tile_size": TILE}),
        "AVIF": ("AVIF", {"speed": 10}),
    }
    for kind, (format, more) in settings.items():
        kept = folder and folder / f"{kind.replace(', ', '-').replace(' ', '-')}.{format.lower()}"
        if kept and kept.exists():
            found[kind] = kept.read_bytes()
            continue
        image, file = image or picture(), io.BytesIO()
        image.save(file, format, quality=QUALITY, **more)
        if more.get("tile_size") and b"grid" not in file.getvalue()[:65_536]:
            continue
        found[kind] = file.getvalue()
        if kept:
            kept.write_bytes(found[kind])
    return found


def pillow(file):
    with Image.open(io.BytesIO(file)) as image:
        return np.asarray(image.convert("RGB"))


class Gesso:
    """A pipeline that decodes a file at a time, on one thread."""

    def __init__(self):
        self.pipe = Pipeline(1, 1, None, prefetch_queue_depth=1)
        with self.pipe:
            encoded = fn.external_source(name="file", dtype=types.UINT8, ndim=1, no_copy=True)
            self.pipe.set_outputs(fn.decoders.image(encoded, output_type=types.RGB))
        self.pipe.build()

    def __call__(self, file):
        self.pipe.feed_input("file", [np.frombuffer(file, np.uint8)])
        (batch,) = self.pipe.run()
        return np.asarray(batch.at(0))


def measured(decode, file, pictures):
    """Wall time and time of the processor of a picture, in milliseconds."""
    wall, busy = time.perf_counter(), time.process_time()
    for _ in range(pictures):
        decode(file)
    return (1e3 * (time.perf_counter() - wall) / pictures, 1e3 * (time.process_time() - busy) / pictures)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pictures", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="lines of JSON alone, without the table")
    parser.add_argument("--keep", type=Path, help="a folder for the files")
    options = parser.parse_args()
    found, rows = files(options.keep), []
    for kind, file in found.items():
        decoders = {"Gesso": Gesso(), "Pillow" if kind == "AVIF" else "pillow-heif": pillow}
        first, second = (decode(file) for decode in decoders.values())
        if first.shape != second.shape or np.abs(first.astype(int) - second).mean() > MOST_APART:
            raise SystemExit(f"error: {kind}: the decoders do not agree")
        times = {name: [] for name in decoders}
        for _ in range(options.rounds):
            for name, decode in decoders.items():
                times[name].append(measured(decode, file, options.pictures))
        for name, taken in times.items():
            wall, busy = (statistics.median(each) for each in zip(*taken))
            row = {"kind": kind, "decoder": name, "bytes": len(file), "wall_ms": round(wall), "busy_ms": round(busy)}
            rows.append(row)
            rounds = [[round(each) for each in pair] for pair in taken]
            print(json.dumps(row | {"rounds": rounds, "load": round(os.getloadavg()[0], 1)}), flush=True)
    if not options.json:
        print(
            "\n| file | decoder | wall, ms | processor, ms | megapixels/s of the processor |\n| --- | --- | --- | --- | --- |"
        )
        for row in rows:
            rate = WIDTH * HEIGHT / 1e3 / max(row["busy_ms"], 1)
            cells = (row["kind"], row["decoder"], row["wall_ms"], row["busy_ms"], f"{rate:.0f}")
            print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
