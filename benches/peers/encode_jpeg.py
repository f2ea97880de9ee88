"""Images/s of JPEG encoders: photos of 500 x 375 as uint8 to files of quality 90, Gesso beside its peers in turn.

    python benches/peers/encode_jpeg.py gpu [--batch 128 512] [--lanes 4]
                                                                   from device memory to device memory, one batch after
                                                                   the other, and so many at a time; beside nvJPEG,
                                                                   through torchvision
    python benches/peers/encode_jpeg.py cpu [--workers 2]          on so many cores; beside Pillow and torchvision
    ... [--rounds 3] [--seconds 2]

Prints a line of JSON for each encoder: the median of the rounds' rates, those of all, and bytes of a file. On a GPU
torchvision stores chroma as often as luma, so Gesso does both; there the first files are compared with the host's. On
the CPU peers have a process for each core, Gesso has threads. Needs torch and torchvision, and Pillow for `cpu`."""

import argparse
import io
import json
import multiprocessing
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from gesso import Pipeline, fn

HEIGHT, WIDTH, QUALITY, PICTURES = 375, 500, 90, 32
WARM_BATCHES = 3


def picture(i):
    """Soft colours, waves and the noise of a sensor."""
    random = np.random.default_rng(i)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.float32)
    for channel in range(3):
        for _ in range(6):
            along, down = random.normal(0, 0.06, 2)
            pixels[..., channel] += 18 * np.sin(x * along + y * down + random.uniform(0, 6))
    pixels += 128 + random.normal(0, 7, (HEIGHT, WIDTH, 1))
    return pixels.clip(0, 255).astype(np.uint8)


def pictures(batch):
    made = [picture(i) for i in range(min(batch, PICTURES))]
    return np.stack([made[i % len(made)] for i in range(batch)])


def rate(once, batch, seconds):
    """Images/s of `once`, which does a batch."""
    for _ in range(WARM_BATCHES):
        once()
    batches, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < seconds:
        once()
        batches += 1
    return batches * batch / took


def pipeline(batch, workers, device, subsampling):
    """Gesso's encoder, and what brings images to it."""
    pipe = Pipeline(batch, workers, 0 if device == "gpu" else None, prefetch_queue_depth=1)
    with pipe:
        images = fn.external_source(name="images", layout="HWC", device=device, no_copy=True)
        pipe.set_outputs(fn.gesso.encode_jpeg(images, quality=QUALITY, subsampling=subsampling))
    pipe.build()
    return pipe


def files_of(pipe, images):
    pipe.feed_input("images", images)
    (files,) = pipe.run()
    return files


def on_host(files, count):
    files = files.as_cpu() if hasattr(files, "as_cpu") else files
    return [np.asarray(files.at(i)).tobytes() for i in range(count)]


def in_turn(encoders, rounds, batch, **told):
    """Prints what each of `encoders` does: functions that return images/s and bytes of a file."""
    found = {name: [] for name in encoders}
    for _ in range(rounds):
        for name, encoder in encoders.items():
            found[name].append(encoder())
    for name, results in found.items():
        rates = [round(images) for images, _ in results]
        line = {"encoder": name, "batch": batch, **told, "images_per_second": statistics.median(rates)}
        print(json.dumps(line | {"rounds": rates, "bytes": round(results[0][1])}), flush=True)


# --- On a GPU
# ----------------------------------------------------------------------------------------------------------------


def gesso_on_gpu(batch, subsampling, seconds, lanes=1):
    """`lanes` pipelines, each with a thread."""
    import torch

    images = pictures(batch)
    pipe, given = pipeline(batch, 2, "gpu", subsampling), torch.from_numpy(images).cuda()
    torch.cuda.synchronize()
    files = on_host(files_of(pipe, given), batch)
    expected = on_host(files_of(pipeline(batch, 2, "cpu", subsampling), images), batch)
    if files != expected:
        raise SystemExit(f"error: {subsampling}: the files are not those of the host")

    pipes = [pipe, *(pipeline(batch, 2, "gpu", subsampling) for _ in range(lanes - 1))]

    def encode():
        with ThreadPoolExecutor(lanes) as threads:
            rates = threads.map(lambda own: rate(lambda: files_of(own, given), batch, seconds), pipes)
            return sum(rates), np.mean([len(file) for file in files])

    return encode


def nvjpeg(batch, seconds):
    import torch
    from torchvision.io import encode_jpeg

    images = list(torch.from_numpy(pictures(batch)).cuda().permute(0, 3, 1, 2).contiguous())

    def once():
        files = encode_jpeg(images, quality=QUALITY)
        torch.cuda.synchronize()
        return files

    bytes_of_file = np.mean([file.numel() for file in once()])
    return lambda: (rate(once, batch, seconds), bytes_of_file)


def gpu(options):
    for batch in options.batch:
        encoders = {f"gesso {kind}": gesso_on_gpu(batch, kind, options.seconds) for kind in ("4:2:0", "4:4:4")}
        encoders[f"gesso 4:2:0, {options.lanes} lanes"] = gesso_on_gpu(batch, "4:2:0", options.seconds, options.lanes)
        encoders["nvjpeg 4:4:4"] = nvjpeg(batch, options.seconds)
        in_turn(encoders, options.rounds, batch, device="gpu")


# --- On a CPU
# ----------------------------------------------------------------------------------------------------------------


def pillow_worker(seconds):
    from PIL import Image

    images = [Image.fromarray(image) for image in pictures(PICTURES)]

    def once():
        for image in images:
            file = io.BytesIO()
            image.save(file, "JPEG", quality=QUALITY, subsampling="4:2:0")
            sizes.append(len(file.getvalue()))

    sizes = []
    return rate(once, PICTURES, seconds), np.mean(sizes)


def torchvision_worker(seconds):
    import torch
    from torchvision.io import encode_jpeg

    torch.set_num_threads(1)
    images = list(torch.from_numpy(pictures(PICTURES)).permute(0, 3, 1, 2).contiguous())
    sizes = [file.numel() for file in encode_jpeg(images, quality=QUALITY)]
    return rate(lambda: encode_jpeg(images, quality=QUALITY), PICTURES, seconds), np.mean(sizes)


def by_processes(worker, workers, seconds):
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        results = pool.map(worker, [seconds] * workers, chunksize=1)
    return sum(images for images, _ in results), results[0][1]


def gesso_on_cpu(workers, seconds):
    images, pipe = pictures(PICTURES), pipeline(PICTURES, workers, "cpu", "4:2:0")
    sizes = [len(file) for file in on_host(files_of(pipe, images), PICTURES)]
    return rate(lambda: files_of(pipe, images), PICTURES, seconds), np.mean(sizes)


def cpu(options):
    encoders = {
        "gesso 4:2:0": lambda: gesso_on_cpu(options.workers, options.seconds),
        "torchvision 4:2:0": lambda: by_processes(torchvision_worker, options.workers, options.seconds),
        "pillow 4:2:0": lambda: by_processes(pillow_worker, options.workers, options.seconds),
    }
    in_turn(encoders, options.rounds, PICTURES, device="cpu", workers=options.workers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", choices=("gpu", "cpu"))
    parser.add_argument("--batch", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    chosen = parser.parse_args()
    {"gpu": gpu, "cpu": cpu}[chosen.device](chosen)
