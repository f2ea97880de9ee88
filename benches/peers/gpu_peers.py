"""What `gpu.py` measures beside Gesso, each peer in a process of its own: DALI, torchvision, nvImageCodec and CV-CUDA.

All decode JPEGs, resize them to 224x224 with a triangle filter as wide as the scale asks for, and normalize them into
one float batch (NCHW) on the device, from the same bytes on the host, with a wait for the device after every batch. The
first batch of each is compared with Pillow's.

A process gets jobs as lines of JSON and answers each with one; its first line says that the package imports. Nothing
here knows of Gesso."""

import argparse
import functools
import importlib
import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
from cuda_driver import Driver  # noqa: E402

SIDE = 224
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
WARM_BATCHES = 5
# Of normalized values, in the mean: decoders differ in how they fill in colours; another order of channels is 0.4 off
# and more.
MOST_DIFFERENCE = 0.15
# Images of a batch that are compared: those at its start, and its last.
CHECKED = 8
# A process that is silent for so long is ended.
LIMIT_SECONDS = 240


def read(folder):
    return [np.fromfile(path, np.uint8) for path in sorted(Path(folder).iterdir())]


# --- What the output must be like
# ----------------------------------------------------------------------------------------------


def reference(file):
    """The same by Pillow: its filter for smaller images is the antialiased one, too."""
    image = Image.open(io.BytesIO(file.tobytes())).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return ((np.asarray(image, np.float32) - np.float32(MEAN)) / np.float32(STD)).transpose(2, 0, 1)


def check(values, files):
    """The largest difference of an image, in the mean; raises ValueError when this is not the batch of these files."""
    expected = (len(files), 3, SIDE, SIDE)
    if values.shape != expected or values.dtype != np.float32:
        raise ValueError(f"expected float32 of shape {expected}, found {values.dtype} of {values.shape}")
    largest = 0.0
    for i in {*range(min(len(files), CHECKED - 1)), len(files) - 1}:
        difference = float(np.abs(values[i] - reference(files[i])).mean())
        # Not a number is no good, either.
        if not difference <= MOST_DIFFERENCE:
            raise ValueError(
                f"image {i} differs from Pillow's by {difference:.3f} in the mean, more than {MOST_DIFFERENCE}"
            )
        largest = max(largest, difference)
    return largest


# --- The peers
# -----------------------------------------------------------------------------------------------------------------


class Run:
    """A peer ready for batches of one size, and the files that it gets in turn. Peers say how `once` does a batch."""

    # What must import.
    modules = ()

    def __init__(self, driver, files, batch):
        self.driver, self.files, self.batch, self.next = driver, files, batch, 0
        self.inputs = [self.input_of(file) for file in files]

    def input_of(self, file):
        """What a peer wants bytes to be."""
        return file

    def take_inputs(self):
        taken = [self.inputs[(self.next + i) % len(self.inputs)] for i in range(self.batch)]
        self.next += self.batch
        return taken

    def first(self):
        """The first batch of all, on the host."""
        raise NotImplementedError

    def once(self):
        """One batch in and one out, complete on the device."""
        raise NotImplementedError

    def warm(self):
        self.difference = check(self.first(), [self.files[i % len(self.files)] for i in range(self.batch)])
        for _ in range(WARM_BATCHES):
            self.once()

    def measure(self, seconds):
        times = []
        self.driver.synchronize()
        began = time.perf_counter()
        while True:
            start = time.perf_counter()
            self.once()
            now = time.perf_counter()
            times.append(now - start)
            if now - began > seconds:
                break
        self.driver.synchronize()
        rate = len(times) * self.batch / (time.perf_counter() - began)
        p50, p99 = np.percentile(times, [50, 99])
        return {"images_per_second": rate, "p50_us": 1e6 * p50, "p99_us": 1e6 * p99, "difference": self.difference}


class Dali(Run):
    """A pipeline of DALI's: at depth 1 every batch is waited for, at depth 2 the next is in flight."""

    modules = ("nvidia.dali",)

    def __init__(self, driver, files, batch, threads, load, depth):
        super().__init__(driver, files, batch)
        self.depth, self.pipe = depth, self.pipeline(batch, load, depth, threads)

    @staticmethod
    def pipeline(batch, load, depth, threads):
        from nvidia.dali import fn, pipeline_def, types

        @pipeline_def(batch_size=batch, num_threads=threads, device_id=0, prefetch_queue_depth=depth)
        def chain():
            encoded = fn.external_source(name="IMAGE", dtype=types.UINT8, ndim=1)
            image = fn.decoders.image(encoded, device="mixed", hw_decoder_load=load)
            image = fn.resize(image, resize_x=SIDE, resize_y=SIDE)
            return fn.crop_mirror_normalize(image, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD)

        pipe = chain()
        pipe.build()
        return pipe

    def feed(self):
        self.pipe.feed_input("IMAGE", self.take_inputs())

    def first(self):
        # The first call schedules as many batches as may be in flight.
        for _ in range(self.depth):
            self.feed()
        self.pipe.schedule_run()
        (batch,) = self.pipe.share_outputs()
        values = np.stack([np.asarray(batch.as_cpu().at(i)) for i in range(self.batch)])
        del batch
        self.pipe.release_outputs()
        if self.depth > 1:
            self.feed()
            self.pipe.schedule_run()
        return values

    def once(self):
        """At depth 1 the batch that went in comes out; at greater depths the oldest comes out first."""
        if self.depth > 1:
            self.take()
        self.feed()
        self.pipe.schedule_run()
        if self.depth == 1:
            self.take()
            self.driver.synchronize()

    def take(self):
        outputs = self.pipe.share_outputs()
        del outputs
        self.pipe.release_outputs()


class Stepwise(Run):
    """A peer whose `batch_of` makes a batch that torch can read, without a wait for the device."""

    def first(self):
        import torch

        return torch.as_tensor(self.batch_of(self.take_inputs()), device="cuda").cpu().numpy()

    def once(self):
        values = self.batch_of(self.take_inputs())
        self.driver.synchronize()
        del values

    def batch_of(self, inputs):
        raise NotImplementedError


def resized(images):
    """A batch of images (CHW) as torchvision resizes and normalizes them; the arithmetic of `normalize` is done once
    for all."""
    import torch
    from torchvision.transforms.v2 import InterpolationMode
    from torchvision.transforms.v2 import functional as transforms

    small = [
        transforms.resize(image, [SIDE, SIDE], interpolation=InterpolationMode.BILINEAR, antialias=True)
        for image in images
    ]
    return transforms.normalize(torch.stack(small).float(), MEAN, STD)


class Torchvision(Stepwise):
    """`decode_jpeg` of a list is nvJPEG's batch, in its hardware where there is some."""

    modules = ("torch", "torchvision")

    def __init__(self, driver, files, batch, threads):
        super().__init__(driver, files, batch)

    def input_of(self, file):
        import torch

        return torch.from_numpy(file)

    def batch_of(self, inputs):
        from torchvision.io import ImageReadMode, decode_jpeg

        return resized(decode_jpeg(inputs, mode=ImageReadMode.RGB, device="cuda"))


class NvImageCodec(Stepwise):
    """nvImageCodec decodes, torchvision does the rest."""

    modules = ("nvidia.nvimgcodec", "torch", "torchvision")

    def __init__(self, driver, files, batch, threads):
        from nvidia import nvimgcodec

        super().__init__(driver, files, batch)
        self.decoder = nvimgcodec.Decoder(device_id=0, max_num_cpu_threads=threads)

    def decoded(self, inputs):
        images = self.decoder.decode(inputs)
        if None in images:
            raise ValueError(f"image {images.index(None)} of a batch was not decoded")
        return images

    def batch_of(self, inputs):
        import torch

        return resized([torch.from_dlpack(image).permute(2, 0, 1) for image in self.decoded(inputs)])


class CvCuda(NvImageCodec):
    """nvImageCodec decodes; the images, of whatever sizes, are one batch from there on."""

    modules = ("cvcuda", "nvidia.nvimgcodec", "torch")

    def batch_of(self, inputs):
        import cvcuda

        images = cvcuda.as_images(self.decoded(inputs), cvcuda.Format.RGB8)
        small = cvcuda.hq_resize(
            images, [(SIDE, SIDE)] * len(inputs), antialias=True, interpolation=cvcuda.Interp.LINEAR
        )
        values = cvcuda.convertto(cvcuda.stack(small), cvcuda.Type.F32)
        values = cvcuda.normalize(values, MEAN, [1 / deviation for deviation in STD])
        return cvcuda.reformat(values, cvcuda.TensorLayout.NCHW).cuda()


PEERS = {"dali": Dali, "torchvision": Torchvision, "nvimagecodec": NvImageCodec, "cvcuda": CvCuda}
LABELS = {"dali": "DALI", "torchvision": "torchvision", "nvimagecodec": "nvImageCodec", "cvcuda": "CV-CUDA"}


# --- Their processes
# -----------------------------------------------------------------------------------------------------------


class PeerError(RuntimeError):
    """A peer does not import, fails, or makes something else of the images."""


def one_line(error):
    """What was thrown; of many lines their beginning and end."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 500 else f"{text[:200]} ... {text[-300:]}"


def version(module):
    return f"{module.__name__.removeprefix('nvidia.')} {getattr(module, '__version__', '?')}"


def worker(name):
    # What a library prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(value):
        print(json.dumps(value), file=answers, flush=True)

    peer = PEERS[name]
    try:
        answer({"versions": [version(importlib.import_module(module)) for module in peer.modules]})
    except Exception as error:  # a library that is not there or does not load here, whatever it throws
        return answer({"error": one_line(error)})
    files, runs, kind = functools.cache(read), {}, None
    # The process's first use of the device, so that all count the same.
    driver = functools.cache(Driver)
    for line in sys.stdin:
        job = json.loads(line)
        seconds = job.pop("seconds")
        key = json.dumps(job)
        # Pipelines for other batches would only take memory and threads.
        if kind != (kind := (job["images"], job["batch"])):
            runs.clear()
        try:
            if key not in runs:
                run = peer(driver(), files(job.pop("images")), **job)
                run.warm()
                runs[key] = run
            answer(runs[key].measure(seconds))
        except Exception as error:  # whatever the peer throws is the parent's to print
            answer({"error": one_line(error)})


class Worker:
    """A peer's process, from the first job to `close`; after one that it did not survive there is a new one."""

    def __init__(self, name, limit=LIMIT_SECONDS):
        self.name, self.limit, self.process = name, limit, None

    def launch(self):
        command = [sys.executable, __file__, self.name]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def versions(self):
        """The first answer: of its packages; raises PeerError where they do not import."""
        return self.answer()["versions"]

    def __call__(self, **job):
        if not self.process:
            self.launch()
            self.versions()
        try:
            print(
                json.dumps({name: str(v) if isinstance(v, Path) else v for name, v in job.items()}),
                file=self.process.stdin,
                flush=True,
            )
        except BrokenPipeError:
            pass  # the answer is missing, then
        return self.answer()

    def answer(self):
        timer = threading.Timer(self.limit, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if not line:
            status, self.process = self.process.wait(), None
            raise PeerError(f"its process ended with status {status}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer

    def close(self):
        if self.process:
            self.process.communicate()


def importable(names):
    """Workers of those that import, by name, and a line about each."""
    workers, lines = {name: Worker(name) for name in names}, []
    # All import at once: that takes a new machine long.
    for one in workers.values():
        one.launch()
    for name, one in list(workers.items()):
        try:
            lines.append(f"{LABELS[name]}: {', '.join(one.versions())}")
        except PeerError as error:
            lines.append(f"without {LABELS[name]}: {error}")
            workers.pop(name).close()
    return workers, lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=PEERS)
    worker(parser.parse_args().peer)
