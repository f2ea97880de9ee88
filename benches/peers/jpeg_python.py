#!/usr/bin/env python3
"""JPEG decoding on one CPU thread as Python sees it: Gesso, DALI and Pillow on the same files, in turn.

    jpeg_python.py [--rounds 9] FOLDER...

Runs in a Python that has pillow, nvidia-dali (where it lacks that, the others are compared) and gesso, or Gesso's by
PYTHONPATH=python and GESSO_LIBRARY. Each round decodes all files of a folder to RGB by every peer; times are the
process's CPU time, the best of the rounds, in microseconds an image. `jpeg.rs` compares the decoders themselves.
"""

import argparse
import io
import pathlib
import time

import numpy as np
from PIL import Image


def pipeline(package, files):
    @package.pipeline_def(batch_size=len(files), num_threads=1, device_id=None, prefetch_queue_depth=1)
    def define():
        return package.fn.decoders.image(package.fn.external_source(name="files"), device="cpu")

    pipe = define()
    pipe.build()

    def decode():
        pipe.feed_input("files", files)
        return pipe.run()

    return decode


def peers(files):
    """What decodes all files, by name."""
    import gesso

    arrays = [np.frombuffer(file, np.uint8) for file in files]
    found = {"gesso": pipeline(gesso, arrays)}
    try:
        import nvidia.dali as dali

        # Its package has the functions only when they were imported.
        import nvidia.dali.fn  # noqa: F401

        found["dali"] = pipeline(dali, arrays)
    except ImportError:
        pass
    found["pillow"] = lambda: [np.asarray(Image.open(io.BytesIO(file)).convert("RGB")) for file in files]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print(f"{'folder':24} {'files':>5} {'peer':8} {'us/image':>9}  Gesso is faster by")
    for folder in options.folders:
        files = [path.read_bytes() for path in sorted(folder.glob("*.jp*g"))]
        decoders = peers(files)
        times = {name: [] for name in decoders}
        for _ in range(options.rounds):
            for name, decode in decoders.items():
                began = time.process_time()
                decode()
                times[name].append((time.process_time() - began) / len(files) * 1e6)
        for name, rounds in times.items():
            print(
                f"{folder.name:24} {len(files):5} {name:8} {min(rounds):9.0f}  {min(rounds) / min(times['gesso']):.2f}"
            )


if __name__ == "__main__":
    main()
