#!/usr/bin/env python3
"""A model and its preprocessing on one GPU, in one process: images/s of both together, Gesso and DALI in turn.

    benches/peers/model.py                                        two models, batches of 128 and 32
    benches/peers/model.py --models resnet50 --batch 128 --peers synthetic gesso:2 gesso:2:1.0 gesso:2:0.5
    benches/peers/model.py --peers synthetic gesso:2 gesso:2:0 gesso:2::32 gesso:2:0:32
                                                                  what it brings that engines take images from the SMs
    benches/peers/model.py --latency --batch 1 2 4 8 --peers synthetic gesso:1 dali:1:0.65
                                                                  one batch at a time: p50 and p99 from the files to
                                                                  the model's answer

A peer is `synthetic` (tensors that are there already), `gesso:LANES[:LOAD[:MULTIPROCESSORS]]` or `dali:DEPTH:LOAD`;
LOAD is `hw_decoder_load`, absent where Gesso decides, 0 where no JPEG is for the engines; MULTIPROCESSORS are those
that Gesso's work may take, else as `--multiprocessors` says. The model is torchvision's with random weights, in half
precision, recorded as a CUDA graph. JPEGs of 500x375 are decoded, resized to 224x224 and normalized into the tensor
that the model reads: by Gesso with `gesso_instance_run_into` from LANES threads; DALI's answer is copied there.

Needs PyTorch and torchvision with CUDA, a C compiler, the package in python/ with its library (`GESSO_LIBRARY`), and
for DALI its package nvidia-dali-cuda130.
"""

import argparse
import ctypes
import json
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import make_bench_images  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402

SIDE = 224
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
SAMPLE_BYTES = 3 * SIDE * SIDE * 2
PEERS = ["synthetic", "gesso:1", "gesso:2", "gesso:4", "gesso:2:1.0", "dali:3:1.0", "dali:3:0.65"]
# What Gesso asks for each sample: in C, so that Python's lock is not what is measured.
MEMORY = """
#include <stdint.h>
#include <stddef.h>
struct target { size_t size; void *data; int32_t device; };
struct memory { char *data; size_t stride; };
int32_t place(void *user, size_t output, size_t sample, const void *tensor, struct target *target) {
    const struct memory *memory = user;
    target->data = memory->data + memory->stride * sample;
    target->device = 1;
    return 0;
}
"""


class Memory(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("stride", ctypes.c_size_t)]


def compiled(folder):
    """The address of `place`."""
    source, library = Path(folder) / "place.c", Path(folder) / "place.so"
    source.write_text(MEMORY)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return ctypes.CDLL(str(library)).place


def files_of(folder):
    return [np.fromfile(path, np.uint8) for path in sorted(Path(folder).glob("*.jpg"))]


# --- The model
# ------------------------------------------------------------------------------------------------------------------


class Model:
    """A CUDA graph for each of `count` input tensors."""

    def __init__(self, name, batch, count, priority):
        torch.manual_seed(0)
        # Kernels of a graph have the priority of the stream that they were recorded in.
        self.stream = torch.cuda.Stream(priority=priority)
        self.inputs = [torch.randn(batch, 3, SIDE, SIDE, device="cuda", dtype=torch.half) for _ in range(count)]
        self.graphs, self.outputs = [], []
        if name == "none":
            return
        network = (
            getattr(torchvision.models, name)(weights=None).cuda().half().eval().to(memory_format=torch.channels_last)
        )
        pool = None
        for tensor in self.inputs:
            run = lambda tensor=tensor: network(tensor.contiguous(memory_format=torch.channels_last))
            with torch.inference_mode(), torch.cuda.stream(self.stream):
                for _ in range(3):
                    run()
                self.stream.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, pool=pool, stream=self.stream):
                    self.outputs.append(run())
            pool = pool or graph.pool()
            self.graphs.append(graph)
        torch.cuda.synchronize()

    def run(self, i):
        """Puts the model's work on input `i` into its stream; returns the event behind it."""
        event = torch.cuda.Event(blocking=True)
        with torch.cuda.stream(self.stream):
            if self.graphs:
                self.graphs[i].replay()
            event.record(self.stream)
        return event


# --- Who fills the inputs
# -------------------------------------------------------------------------------------------------------


class Synthetic:
    buffers = 2

    def __init__(self, options):
        pass

    def start(self, model, free, filled, stop):
        def lane():
            while not stop.is_set():
                filled.put(free.get())

        return [lane]

    def fill(self, model, i, number):
        """Batch `number` to input `i` of the model."""


class Gesso:
    def __init__(self, options, files, batch, lanes, load, multiprocessors, place):
        from gesso import fn, pipeline_def, types
        from gesso._native import declarations, library

        @pipeline_def(batch_size=batch, num_threads=max(1, options.threads // lanes), device_id=0)
        def chain():
            encoded = fn.external_source(name="IMAGE", dtype=types.UINT8, ndim=1)
            image = fn.decoders.image(encoded, device="mixed", **({} if load is None else {"hw_decoder_load": load}))
            image = fn.resize(image, resize_x=SIDE, resize_y=SIDE)
            return fn.crop_mirror_normalize(image, dtype=types.FLOAT16, output_layout="CHW", mean=MEAN, std=STD)

        self.declarations = declarations
        self.library, self.batch, self.files, self.place, self.buffers = library, batch, files, place, lanes + 2
        data, pipeline = chain().serialize(), ctypes.c_void_p()
        self.library.call("gesso_pipeline_load", data, len(data), 1, ctypes.byref(pipeline))
        self.lib = self.library.library()
        self.lib.gesso_instance_run_into.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_void_p,
            ctypes.c_size_t,
        ] + [ctypes.c_void_p] * 3
        self.instances = []
        for _ in range(lanes):
            made = declarations.InstanceOptions(
                ctypes.sizeof(declarations.InstanceOptions), gpu_multiprocessors=multiprocessors
            )
            instance = ctypes.c_void_p()
            self.library.call("gesso_instance_create", pipeline, ctypes.byref(made), ctypes.byref(instance))
            self.instances.append(instance)
        self.batches = [self.prepared(i) for i in range(max(1, len(files) // batch))]

    def prepared(self, number):
        """The arguments of one batch, and what they point to."""
        declarations = self.declarations
        samples, kept = (declarations.Sample * self.batch)(), []
        for i in range(self.batch):
            data = self.files[(number * self.batch + i) % len(self.files)]
            shape = (ctypes.c_int64 * 1)(data.size)
            samples[i] = declarations.Sample(ctypes.sizeof(declarations.Sample), data.ctypes.data, shape, 1)
            kept.append(shape)
        given = declarations.Input(struct_size=ctypes.sizeof(declarations.Input), name=b"IMAGE", samples=samples)
        return given, samples, kept

    def start(self, model, free, filled, stop):
        def lane(instance, first):
            batch = first
            while not stop.is_set():
                i = free.get()
                began = time.perf_counter()
                self.run(instance, batch, model.inputs[i])
                self.took.append(time.perf_counter() - began)
                batch += 1
                filled.put(i)

        return [lambda i=i, instance=instance: lane(instance, i) for i, instance in enumerate(self.instances)]

    def run(self, instance, number, target):
        given, memory = self.batches[number % len(self.batches)][0], Memory(target.data_ptr(), SAMPLE_BYTES)
        result = ctypes.c_void_p()
        status = self.lib.gesso_instance_run_into(
            instance, self.batch, ctypes.byref(given), 1, self.place, ctypes.byref(memory), ctypes.byref(result)
        )
        if status:
            raise RuntimeError(self.library.last_error())
        self.lib.gesso_result_free(result)

    def fill(self, model, i, number):
        self.run(self.instances[0], number, model.inputs[i])

    def close(self):
        for instance in self.instances:
            self.lib.gesso_instance_free(instance)


class Dali:
    buffers = 3

    def __init__(self, options, files, batch, depth, load):
        from nvidia.dali import fn, pipeline_def, types

        self.next, self.files, self.batch = 0, files, batch

        def fed():
            self.next += batch
            return [files[(self.next + i) % len(files)] for i in range(batch)]

        @pipeline_def(batch_size=batch, num_threads=options.threads, device_id=0, prefetch_queue_depth=depth)
        def chain():
            encoded = fn.external_source(source=fed, dtype=types.UINT8, ndim=1)
            image = fn.decoders.image(encoded, device="mixed", hw_decoder_load=load)
            image = fn.resize(image, resize_x=SIDE, resize_y=SIDE)
            return fn.crop_mirror_normalize(image, dtype=types.FLOAT16, output_layout="CHW", mean=MEAN, std=STD)

        self.pipe, self.stream = chain(), torch.cuda.Stream()
        self.pipe.build()

    def start(self, model, free, filled, stop):
        def lane():
            while not stop.is_set():
                i = free.get()
                self.fill(model, i, 0)
                filled.put(i)

        return [lane]

    def fill(self, model, i, number):
        from nvidia.dali.plugin.pytorch import feed_ndarray

        (output,) = self.pipe.run()
        feed_ndarray(output.as_tensor(), model.inputs[i], cuda_stream=self.stream)
        self.stream.synchronize()


# --- Both
# ---------------------------------------------------------------------------------------------------------------------


def made(peer, options, files, batch, place):
    kind, *words = peer.split(":")
    if kind == "synthetic":
        return Synthetic(options)
    if kind == "dali":
        return Dali(options, files, batch, int(words[0]), float(words[1]))
    lanes, load, part = [*words, "", ""][:3]
    part = int(part) if part else options.multiprocessors
    return Gesso(options, files, batch, int(lanes), float(load) if load else None, part, place)


def measure(model, source, batch, seconds):
    """Images/s of `source` and `model` together, after a third of the time to warm up."""
    free, filled, stop = queue.Queue(), queue.Queue(), threading.Event()
    for i in range(source.buffers):
        free.put(i)
    failures = []

    def guarded(lane):
        try:
            lane()
        except Exception as error:  # whatever it is, the loop below must not wait for this lane
            failures.append(error)
            filled.put(None)

    lanes = [threading.Thread(target=guarded, args=(lane,)) for lane in source.start(model, free, filled, stop)]
    for lane in lanes:
        lane.start()
    under_way, done, began = [], 0, None
    start = time.perf_counter()
    while time.perf_counter() - start < seconds * 4 / 3:
        i = filled.get()
        if i is None:
            break
        under_way.append((i, model.run(i)))
        # One is in the stream while the next is put there.
        if len(under_way) > 1:
            i, event = under_way.pop(0)
            event.synchronize()
            free.put(i)
            done += 1
        if began is None and time.perf_counter() - start > seconds / 3:
            began, done = time.perf_counter(), 0
    rate = done * batch / (time.perf_counter() - (began or start))
    stop.set()
    for _ in lanes:
        free.put(0)
    for lane in lanes:
        lane.join()
    torch.cuda.synchronize()
    if failures:
        raise failures[0]
    return rate


def compare(name, batch, sources, options):
    """Measures all `sources` in turn and prints a line for each; returns them as rows."""
    model, rows = Model(name, batch, max(source.buffers for source in sources.values()), options.priority), []
    rates, took = {peer: [] for peer in sources}, {}
    for _ in range(options.rounds):
        for peer, source in sources.items():
            if name == "none" and peer == "synthetic":
                continue
            source.took = []
            rates[peer].append(measure(model, source, batch, options.seconds))
            took[peer] = statistics.median(source.took) if source.took else None
    best = statistics.median(rates["synthetic"]) if rates.get("synthetic") else None
    for peer, found in rates.items():
        if not found:
            continue
        rate = statistics.median(found)
        share = f"{100 * rate / best:5.1f} %" if best else ""
        each = f"  a batch {1e3 * took[peer]:.2f} ms" if took[peer] else ""
        print(f"{name:20} {batch:4}  {peer:14} {rate:9.0f}  ({min(found):.0f} to {max(found):.0f})  {share:7}{each}")
        rows.append(dict(model=name, batch=batch, peer=peer, images_per_second=found, batch_seconds=took[peer]))
    return rows


def latencies(model, source, seconds):
    """Seconds of each batch, from its files to the end of the model's work, one after the other."""
    took, number, began = [], 0, time.perf_counter()
    while (now := time.perf_counter()) - began < seconds * 4 / 3:
        source.fill(model, 0, number)
        model.run(0)
        model.stream.synchronize()
        if now - began > seconds / 3:
            took.append(time.perf_counter() - now)
        number += 1
    return took


def compare_latencies(name, batch, sources, options):
    """Prints p50 and p99 of each source in front of the model, and of what is in front of it alone; returns rows."""
    model, alone = (Model(which, batch, 1, options.priority) for which in (name, "none"))
    rows = []
    for peer, source in sources.items():
        both, own = [], []
        for _ in range(options.rounds):
            both += latencies(model, source, options.seconds)
            own += latencies(alone, source, options.seconds)
        figures = [1e6 * float(np.percentile(took, share)) for took in (both, own) for share in (50, 99)]
        words = "with the model p50 {:.0f} us, p99 {:.0f} us; in front of it p50 {:.0f} us, p99 {:.0f} us"
        print(f"{name:20} {batch:4}  {peer:14} {words.format(*figures)}")
        rows.append(dict(model=name, batch=batch, peer=peer, microseconds=figures))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--models", nargs="+", default=["resnet50", "mobilenet_v3_small"], help="names of torchvision's, or `none`"
    )
    parser.add_argument("--batch", type=int, nargs="+", default=[128, 32])
    parser.add_argument("--peers", nargs="+", default=PEERS)
    parser.add_argument("--images", type=Path, default=ROOT / ".cache" / "bench-images")
    parser.add_argument("--threads", type=int, default=16, help="of the host, for all lanes together")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--priority",
        type=int,
        default=0,
        help="of the model's stream: 0, as any stream has, to -5, before all others (default: %(default)s)",
    )
    parser.add_argument(
        "--multiprocessors",
        type=int,
        default=0,
        help="of the device that Gesso's work may take; 0: all (default: %(default)s)",
    )
    parser.add_argument("--latency", action="store_true", help="of one batch at a time, in place of images/s")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    make_bench_images.make(options.images)
    files, rows = files_of(options.images / "500x375"), []
    print(
        f"{torch.cuda.get_device_name()}, {options.threads} threads, {options.rounds} rounds of {options.seconds:g} s in turn, images/s"
    )
    with tempfile.TemporaryDirectory() as folder:
        place = compiled(folder)
        for batch in options.batch:
            sources = {}
            for peer in options.peers:
                try:
                    sources[peer] = made(peer, options, files, batch, place)
                except ImportError as error:
                    print(f"skipped: {peer}: {error}")
            for name in options.models:
                rows += (compare_latencies if options.latency else compare)(name, batch, sources, options)
            for source in sources.values():
                if hasattr(source, "close"):
                    source.close()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
