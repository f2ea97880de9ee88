#!/usr/bin/env python3
"""What stands in front of a vision-language or a speech model, beside transformers: the same files, in turn, medians.

    python benches/peers/multimodal.py images [--preset qwen2-vl] [--cores 2] [--crate PROGRAM]
                                              images/s of JPEG files, beside the class's Fast processor
                                              by torchvision in three forms, and beside a program in Rust
    python benches/peers/multimodal.py sounds multiples of real time on one core, beside Whisper's extractor
    python benches/peers/multimodal.py gpu    batches of 2,048 x 2,048 JPEGs in Qwen's form, outputs on the GPU; beside
                                              the Fast processor there, where torch has a GPU
    python benches/peers/multimodal.py served 32 clients of mixed sizes through tritonserver, beside the same processor
                                              in Triton's Python backend

`--rounds`, `--count` and `--photos FOLDER` say how much is measured, and of which files; by default these are made.
Each needs numpy, Pillow and the package `gesso`; `images`, `sounds` and `served` transformers, torch and torchvision;
`served` also what tests/server/harness.py needs. `--crate` names what benches/peers/llm_multimodal builds. Before the
clock starts, answers are compared with transformers' own."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "lib"), str(ROOT / "tests" / "data" / "multimodal")]

SIZES = ("500x375", "1920x1080")
LARGE, GRAIN = (2048, 2048), 1.45
RATE, SECONDS = 16_000, 30
# Batches that are worked on at the same time on a GPU.
STREAMS = 2


def photos(options, folder):
    """Paths of JPEG files: the user's, or made ones of two sizes, mixed."""
    import make_bench_images

    if options.photos:
        found = sorted(path for path in Path(options.photos).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
        return (found * options.count)[: options.count]
    made = []
    for number in range(options.count):
        name = SIZES[number % len(SIZES)]
        size, grain = make_bench_images.SIZES[name]
        made.append(Path(folder) / f"{number:03}.jpg")
        make_bench_images.make_one(made[-1], size, grain, number)
    return made


def fields_of(options):
    """The fields of the processor that is measured."""
    import definitions

    return definitions.PROCESSORS[options.preset]


def measured(peers, count, rounds):
    """Prints how many a second each peer does, and how many times as many the first one."""
    rates = {name: [] for name in peers}
    for number in range(rounds + 1):
        for name, run in peers.items():
            start = time.perf_counter()
            run()
            # The first round starts threads and fills the page cache.
            if number:
                rates[name].append(count / (time.perf_counter() - start))
    first = statistics.median(next(iter(rates.values())))
    for name, found in rates.items():
        middle = statistics.median(found)
        print(f"{name:45} {middle:10.1f} ({min(found):.1f} to {max(found):.1f})  gesso: {first / middle:.2f} times")


def batches(values, size):
    return [values[start : start + size] for start in range(0, len(values), size)]


def check(ours, theirs):
    """Every output is the same to the bit."""
    for name, value in theirs.items():
        assert ours[name].shape == value.shape and bool((ours[name] == value).all()), f"`{name}` differs"


def images(options, folder):
    """Images a second of files."""
    import torch
    from gesso.convert import hf_processors
    from gesso.hf import ImageProcessor
    from transformers.image_utils import load_image

    torch.set_num_threads(options.cores)
    fields, paths = fields_of(options), [str(path) for path in photos(options, folder)]
    theirs = hf_processors.loaded(fields["image_processor_type"], fields, "torchvision")
    ours, parts = ImageProcessor(fields, num_threads=options.cores), batches(paths, options.batch)
    check(ours(paths[:2], return_tensors="pt"), theirs([load_image(path) for path in paths[:2]], return_tensors="pt"))

    def one_by_one():
        # A thread an image, each with one of torch's own.
        torch.set_num_threads(1)
        with ThreadPoolExecutor(options.cores) as threads:
            for _ in threads.map(lambda path: len(theirs(load_image(path), return_tensors="pt")), paths):
                pass
        torch.set_num_threads(options.cores)

    def of_pillow():
        for part in parts:
            theirs([load_image(path) for path in part], return_tensors="pt")

    def each(processor):
        # An answer is gone before the next: memory is used again.
        for part in parts:
            processor(part, return_tensors="pt")

    peers = {
        "gesso": lambda: each(ours),
        "transformers, files by torchvision": lambda: each(theirs),
        "transformers, files by Pillow": of_pillow,
        f"transformers, {options.cores} threads": one_by_one,
    }
    if options.crate:
        # Said, as the crate has a smallest area of its own.
        bounds = {"min_pixels": theirs.size["shortest_edge"], "max_pixels": theirs.size["longest_edge"]}
        command = [options.crate, json.dumps(fields | bounds), str(options.cores), *paths]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(said, end="")
        grids = ours(paths, return_tensors="np")["image_grid_thw"]
        tokens = int(grids.prod(axis=1).sum()) // theirs.merge_size**2
        assert said.startswith(f"{tokens} tokens"), f"the crate makes other patches: {said}expected {tokens} tokens"
        peers["llm-multimodal"] = lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(f"{options.preset}, {len(paths)} files in batches of {options.batch}, {options.cores} cores, images/s:")
    measured(peers, len(paths), options.rounds)


def sounds(options, folder):
    """Seconds of sound a second."""
    import definitions
    import numpy as np
    import torch
    import transformers
    from gesso import convert

    torch.set_num_threads(1)
    signal = definitions.sound(RATE * SECONDS)
    file, count = np.frombuffer(definitions.as_wav(signal), np.uint8), options.count
    extractor = transformers.WhisperFeatureExtractor()
    made = convert.transformers({"feature_extractor_type": "WhisperFeatureExtractor"})
    pipeline = made(batch_size=options.batch, num_threads=1)
    theirs = extractor(signal, sampling_rate=RATE, return_tensors="np")["input_features"]
    found = np.asarray(pipeline.run(SOUND=[file])[0].at(0))
    assert np.abs(found - theirs[0]).max() < 1e-4, "`input_features` differs by more than torch's transform does"

    def by_transformers(kind):
        for _ in range(count):
            extractor(signal, sampling_rate=RATE, return_tensors=kind)

    peers = {
        "gesso": lambda: [pipeline.run(SOUND=part) for part in batches([file] * count, options.batch)],
        "transformers, by torch": lambda: by_transformers("pt"),
    }
    print(f"Whisper's features of {count} sounds of {SECONDS} s, one core, seconds of sound a second:")
    measured(peers, count * SECONDS, options.rounds)


def gpu(options, folder):
    """Images a second, outputs on the device."""
    import make_bench_images
    import numpy as np
    from gesso import convert

    fields, files = fields_of(options), []
    for number in range(options.batch):
        path = Path(folder) / f"{number:03}.jpg"
        make_bench_images.make_one(path, LARGE, GRAIN, number)
        files.append(np.fromfile(path, np.uint8))
    made = convert.transformers(fields, device="mixed", batch_size=options.batch)
    pipelines = [made(device_id=0, num_threads=options.cores) for _ in range(STREAMS)]
    rounds = -(-options.count // (options.batch * STREAMS))

    def repeated(pipeline):
        for _ in range(rounds):
            outputs = pipeline.run(IMAGE=files)
        return outputs

    def ours():
        with ThreadPoolExecutor(STREAMS) as threads:
            return list(threads.map(repeated, pipelines))

    (pixels, grid), *_ = ours()
    print(f"{options.preset}: {type(pixels).__name__}, {pixels[0].shape()} of an image, grid {np.asarray(grid[0])}")
    peers = {"gesso": ours} | _fast_on_gpu(fields, files, rounds * STREAMS)
    print(f"batches of {options.batch} of {LARGE[0]} x {LARGE[1]} on a GPU, {STREAMS} at a time, images/s:")
    measured(peers, options.batch * rounds * STREAMS, options.rounds)


def _fast_on_gpu(fields, files, count):
    """The Fast processor on the GPU, of files that torchvision decodes there; nothing where torch has none."""
    try:
        import torch
        from gesso.convert import hf_processors
        from torchvision.io import decode_jpeg
    except ImportError:
        return {}
    if not torch.cuda.is_available():
        return {}
    theirs = hf_processors.loaded(fields["image_processor_type"], fields, "torchvision")
    tensors = [torch.from_numpy(file.copy()) for file in files]

    def run():
        for _ in range(count):
            theirs(decode_jpeg(tensors, device="cuda"), return_tensors="pt", device="cuda")
        torch.cuda.synchronize()

    return {"transformers, JPEGs by torchvision on the GPU": run}


def served(options, folder):
    """Requests a second and their latencies through Triton."""
    import multimodal_served

    multimodal_served.run(options, fields_of(options), photos(options, folder), Path(folder))


DEFAULTS = {
    "images": {"count": 64, "batch": 8},
    "sounds": {"count": 40, "batch": 8},
    "gpu": {"count": 512, "batch": 32},
    "served": {"count": 48, "batch": 8},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=DEFAULTS)
    parser.add_argument("--preset", default="qwen2-vl", help="of tests/data/multimodal/definitions.py")
    parser.add_argument("--cores", type=int, help="[2; 1 for sounds; all for gpu]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, help="images, or sounds")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--photos", metavar="FOLDER", help="JPEG files of yours")
    parser.add_argument("--crate", metavar="PROGRAM")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    for name, value in DEFAULTS[options.mode].items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    every = sorted(os.sched_getaffinity(0))
    options.cores = options.cores or {"sounds": 1, "gpu": len(every)}.get(options.mode, 2)
    # Before anything starts threads. What loads the server is its clients', too.
    if options.mode != "served":
        os.sched_setaffinity(0, every[: options.cores])
    with tempfile.TemporaryDirectory() as folder:
        {"images": images, "sounds": sounds, "gpu": gpu, "served": served}[options.mode](options, folder)


if __name__ == "__main__":
    main()
