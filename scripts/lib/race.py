"""The test of scripts/race: attackers rewrite requests in shared memory, neighbours on the same models must not notice.

Each attacker is a process: one thread sends requests that lie in its region, another rewrites the region all the while,
in turns to whole other files, to their first bytes, to single random bytes. Every request may fail; the server may not,
and it may not touch memory that is not its own (the sanitizer's word). Neighbours send good requests over the socket,
which the server merges with the others."""

import argparse
import io
import mmap
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
import wave
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tritonclient.grpc as triton
from PIL import Image
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "server"))
from harness import Server  # noqa: E402
from recorded import cases, write_model  # noqa: E402
from sending import tensor  # noqa: E402

CONFIG = 'backend: "gesso"\nmax_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 500 }\n'
# Model: the recording that has its pipeline, and the case there. Those of one input take the files below, the others
# tensors.
MODELS = {
    "images": ("decoders_image", "under_its_old_name"),
    "peeks": ("peek_image_shape", "shapes"),
    "sounds": ("decoders_audio", "floats"),
    "arrays": ("decoders_numpy", "mixed_types"),
    "slices": ("slice", "integer_inputs_are_absolute"),
    "sizes": ("resize", "per_sample"),
    "shapes": ("reshape", "shape_per_sample"),
}
# The plugin is built with it.
SANITIZED = "GESSO_SANITIZER" in os.environ
# A case is attacked for so long before the next has its turn.
TURN_SECONDS = 3
OUTPUT_BYTES = 1 << 20
# What lies here in a file says sizes and types.
HEADER = 700
# How many turns are those of a JPEG's header: the only format that is decoded by C.
WORST_SHARE = 0.4
NEIGHBOUR_SECONDS = 0.005
TABLES = 4_000
# An answer that takes longer is none: a server whose heap is broken often hangs in place of ending.
PATIENCE = 60
# Within this time an answered request must be released.
RELEASE_SECONDS = 20
IN_USE = "currently in use"
# What the plugin says last, when all models are gone.
UNLOADED = "Gesso is unloaded"
GONE = ("UNAVAILABLE", "DEADLINE_EXCEEDED")


def configuration(outputs):
    """The configuration of a model with the types and ranks of recorded `outputs`."""
    text = CONFIG
    for i, samples in enumerate(outputs):
        name = np_to_triton_dtype(samples[0].dtype)
        dims = ", ".join(["-1"] * samples[0].ndim)
        text += f'output {{ name: "OUT{i}" data_type: TYPE_{name} dims: [{dims}] }}\n'
    return text


class Case(NamedTuple):
    """Requests to one model that differ in their bytes alone: for each input its shape and type, and alternatives for
    its bytes."""

    model: str
    inputs: dict
    variants: list


def encoded(picture, **options):
    """An image file."""
    file = io.BytesIO()
    picture.save(file, **options)
    return file.getvalue()


def pictures():
    """Files by format, each with alternatives: other sizes, other colours."""
    random_pixels = np.random.default_rng(1)
    shapes = [(16, 16, 3), (16, 16), (200, 310, 3), (216, 16, 3), (24, 500), (40, 40, 4)]
    made = [Image.fromarray(random_pixels.integers(0, 256, shape, np.uint8)) for shape in shapes]
    opaque = [picture for picture in made if picture.mode != "RGBA"]
    inks = [picture.convert("CMYK") for picture in opaque]
    yield [encoded(p, format="JPEG", quality=30, **o) for p in opaque + inks for o in ({}, {"progressive": True})]
    yield [encoded(p, format="PNG") for p in made]
    yield [
        encoded(p, format="TIFF", **o)
        for p in opaque
        for o in ({}, {"compression": "tiff_lzw"}, {"compression": "jpeg"})
    ]
    yield [encoded(p, format="WEBP", lossless=o) for p in made for o in (True, False)]
    yield [encoded(p, format="AVIF", speed=8) for p in made]
    with np.load(ROOT / "tests" / "data" / "decode" / "jxl.npz") as stored:
        yield [stored[name].tobytes() for name in stored.files if not name.endswith("_pixels")]
    yield [encoded(p, format="BMP") for p in made]
    yield [encoded(p, format="PPM") for p in opaque]


def headers():
    """One JPEG whose frame header says other sizes and another sampling of chroma. Behind that header are so many
    tables that it takes about a millisecond to read: it changes between two looks at it."""
    file = encoded(
        Image.fromarray(np.random.default_rng(3).integers(0, 256, (40, 24, 3), np.uint8)), format="JPEG", quality=30
    )
    frame, table = file.index(b"\xff\xc0"), file.index(b"\xff\xc4")
    length = 2 + int.from_bytes(file[table + 2 : table + 4], "big")
    file = file[:table] + file[table : table + length] * TABLES + file[table:]
    size, sampling = slice(frame + 5, frame + 9), frame + 11
    files = []
    for rows, columns, factors in [
        (40, 24, 0x22),
        (16, 16, 0x22),
        (1_000, 800, 0x22),
        (56, 24, 0x22),
        (40, 24, 0x11),
        (40, 300, 0x21),
    ]:
        changed = bytearray(file)
        changed[size] = rows.to_bytes(2, "big") + columns.to_bytes(2, "big")
        changed[sampling] = factors
        files.append(bytes(changed))
    return files


def sounds():
    """WAV files with other channels, widths, rates and lengths."""
    files = []
    for channels, width, rate, frames in [
        (1, 2, 16_000, 400),
        (2, 2, 44_100, 900),
        (2, 1, 8_000, 100),
        (1, 4, 1, 2_000),
    ]:
        file = io.BytesIO()
        with wave.open(file, "wb") as sound:
            sound.setnchannels(channels)
            sound.setsampwidth(width)
            sound.setframerate(rate)
            sound.writeframes(bytes(range(256)) * (channels * width * frames // 256))
        files.append(file.getvalue())
    return files


def arrays():
    """Files of numpy, all of the same number of bytes: other types and extents."""
    files = []
    for dtype, shape in [("f4", (6, 8)), ("i2", (6, 16)), ("u1", (192, 1)), ("f8", (2, 12)), ("f4", (8, 6))]:
        file = io.BytesIO()
        np.save(file, np.zeros(shape, dtype))
        files.append(file.getvalue())
    return files


def of_files(model, name, files):
    """The files as alternatives for one input, filled up to the longest."""
    longest = max(len(file) for file in files)
    return Case(
        model, {name: ((1, longest), np.dtype(np.uint8))}, [{name: file.ljust(longest, b"\0")} for file in files]
    )


def attacks():
    """Every case, the worst first."""
    yield of_files("images", "IMAGE", headers())
    for files in pictures():
        yield of_files("images", "IMAGE", files)
        yield of_files("peeks", "IMAGE", files)
    yield of_files("sounds", "X", sounds())
    yield of_files("arrays", "X", arrays())
    extremes = [0, 1, 2, 3, 5, 7, 24, 72, -1, -9, 1 << 20, (1 << 31) - 1, -(1 << 31)]
    for model in ("slices", "sizes", "shapes"):
        recording, case = MODELS[model]
        first = {name: samples[0] for name, samples in cases(recording)[case].inputs.items()}
        pick = random.Random(2)
        variants = [{name: array.tobytes() for name, array in first.items()}]
        for _ in range(20):
            steering = {
                n: np.array([pick.choice(extremes) for _ in range(a.size)]).astype(a.dtype)
                for n, a in first.items()
                if n != "X"
            }
            variants.append(variants[0] | {name: array.tobytes() for name, array in steering.items()})
        yield Case(model, {name: ((1, *array.shape), array.dtype) for name, array in first.items()}, variants)


class Region:
    """System shared memory of a client, known to the server."""

    def __init__(self, client, bytes_):
        self.client, self.name = client, f"gesso_race_{os.getpid()}_{random.getrandbits(40):x}"
        self.path = Path("/dev/shm") / self.name
        with open(self.path, "wb+") as file:
            file.truncate(bytes_)
            self.memory = mmap.mmap(file.fileno(), bytes_)
        client.register_system_shared_memory(self.name, f"/{self.name}", bytes_)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.path.unlink()
        if kind is None:
            self._unregister()

    def _unregister(self):
        """The server lets go of the region when the last request is released, shortly after its answer has arrived."""
        ends = time.monotonic() + RELEASE_SECONDS
        while True:
            try:
                return self.client.unregister_system_shared_memory(self.name)
            except InferenceServerException as error:
                if IN_USE not in str(error) or time.monotonic() > ends:
                    raise
                time.sleep(0.01)


def rewrite(memory, variants, outputs, over):
    """Rewrites the region until it is over: `outputs` is where the server's answers go."""
    dice = random.Random()
    size = len(variants[0])
    header = min(size, HEADER)
    while not over.is_set():
        first, second = dice.choice(variants), dice.choice(variants)
        memory[:size] = first
        # A few bytes that differ between two good files, the start of them, or all; now and then any byte becomes
        # anything.
        differ = [i for i in range(header) if first[i] != second[i]] or [0]
        at = dice.choice(differ)
        start, end = dice.choice(
            [(at, at + 1), (at, at + 4), (at, at + 4), (0, dice.randrange(1, header + 1)), (0, size)]
        )
        ours, theirs = first[start:end], second[start:end]
        end = start + len(ours)
        any_at, any_byte = dice.randrange(header), bytes([dice.choice([0, 1, 2, 3, 4, 8, 16, 127, 128, 255])])
        wild = dice.random() < 0.2
        for _ in range(2_000):
            memory[start:end] = theirs
            memory[outputs + any_at] = any_byte[0]
            memory[start:end] = ours
            if wild:
                memory[any_at] = any_byte[0]


def attack(url, seconds, number, results):
    """One attacker."""
    # The writer shall not keep the sender waiting for Python's lock.
    sys.setswitchinterval(1e-4)
    answered, refused = 0, 0
    ends = time.monotonic() + seconds
    dice = random.Random(number)
    everything = list(attacks())
    doing = "asking for metadata"
    try:
        with triton.InferenceServerClient(url) as client:
            names = {model: [o.name for o in client.get_model_metadata(model).outputs] for model in MODELS}
            while time.monotonic() < ends:
                case = everything[0] if dice.random() < WORST_SHARE else dice.choice(everything)
                variants = [b"".join(variant.values()) for variant in case.variants]
                size = len(variants[0])
                doing = f"attacking {case.model} with {case.variants[0].keys()} of {size} bytes"
                with Region(client, size + OUTPUT_BYTES * len(names[case.model])) as region:
                    inputs, at = [], 0
                    for name, (shape, dtype) in case.inputs.items():
                        made = triton.InferInput(name, list(shape), np_to_triton_dtype(dtype))
                        length = int(np.prod(shape)) * dtype.itemsize
                        made.set_shared_memory(region.name, length, offset=at)
                        inputs.append(made)
                        at += length
                    outputs = [triton.InferRequestedOutput(name) for name in names[case.model]]
                    # Sizes that the attacker makes up may be answered with hundreds of megabytes, which no shared
                    # memory here takes.
                    if case.model == "sizes" or dice.random() < 0.5:
                        for i, output in enumerate(outputs):
                            output.set_shared_memory(region.name, OUTPUT_BYTES, offset=size + i * OUTPUT_BYTES)
                    over = threading.Event()
                    writer = threading.Thread(target=rewrite, args=[region.memory, variants, size, over])
                    writer.start()
                    turn = min(ends, time.monotonic() + TURN_SECONDS)
                    try:
                        while time.monotonic() < turn:
                            try:
                                client.infer(case.model, inputs, outputs=outputs, client_timeout=PATIENCE)
                                answered += 1
                            except InferenceServerException as error:
                                refused += 1
                                if any(gone in str(error.status()) for gone in GONE):
                                    raise
                    finally:
                        over.set()
                        writer.join()
        results.put((answered, refused, None))
    except Exception as error:
        results.put((answered, refused, f"attacker {number}, {doing}: {type(error).__name__}: {error}"))


class Neighbours:
    """A client for each model, whose every answer must be the one it got before the attack."""

    def __init__(self, url):
        self.url, self.over = url, threading.Event()
        self.right, self.wrong, self.waits = 0, [], []
        self.threads = [threading.Thread(target=self._survive, args=[model]) for model in MODELS]

    def __enter__(self):
        self.ready = threading.Barrier(len(self.threads) + 1)
        for thread in self.threads:
            thread.start()
        self.ready.wait()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def _survive(self, model):
        try:
            with triton.InferenceServerClient(self.url) as client:
                self._send(client, model)
        except Exception as error:
            self.wrong.append(f"{model}: {error!r}")
            self.ready.abort()

    def _send(self, client, model):
        recording, case = MODELS[model]
        names = [output.name for output in client.get_model_metadata(model).outputs]
        inputs = [tensor(name, samples[0][None]) for name, samples in cases(recording)[case].inputs.items()]

        def answer():
            answer = client.infer(model, inputs, client_timeout=PATIENCE)
            return [answer.as_numpy(name) for name in names]

        expected = answer()
        self.ready.wait()
        while not self.over.wait(NEIGHBOUR_SECONDS):
            began = time.monotonic()
            try:
                found = answer()
            except InferenceServerException as error:
                self.wrong.append(f"{model}: {error}")
                if any(gone in str(error.status()) for gone in GONE):
                    return
                continue
            self.waits.append(time.monotonic() - began)
            if all(f.shape == e.shape and f.tobytes() == e.tobytes() for f, e in zip(found, expected)):
                self.right += 1
            else:
                self.wrong.append(f"{model}: another answer")


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/race")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=8)
    return parser.parse_args()


def run(options, repository):
    for model, (recording, case) in MODELS.items():
        recorded = cases(recording)[case]
        write_model(repository, model, recorded.pipeline, configuration(recorded.outputs))
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    faults, answered, refused = [], 0, 0
    with Server(repository) as server:
        with Neighbours(server.grpc_url) as neighbours:
            work = [server.grpc_url, options.minutes * 60]
            attackers = [context.Process(target=attack, args=[*work, n, results]) for n in range(options.clients)]
            for attacker in attackers:
                attacker.start()
            for _ in attackers:
                more, less, fault = results.get()
                answered, refused = answered + more, refused + less
                faults += [fault] if fault else []
            for attacker in attackers:
                attacker.join()
        if not server.alive:
            faults.append("the server died")
        status = server.stop()
        log, report = server.log, server.report
    # Under the sanitizer a library of the server's own (p11-kit) never comes back from its destructor, after the end of
    # `main`.
    if status != 0 and not (SANITIZED and UNLOADED in log):
        faults.append(f"the server left with status {status}")
    if report:
        faults.append(report)
    faults += [f"neighbour: {fault}" for fault in neighbours.wrong[:5]]
    waits = sorted(neighbours.waits) or [0]
    print(
        f"{answered + refused} attacks by {options.clients} clients in {options.minutes:g} minutes: {answered} answered, {refused} refused; "
        f"neighbours: {neighbours.right} right, {len(neighbours.wrong)} wrong, median {waits[len(waits) // 2] * 1e3:.1f} ms, "
        f"longest {waits[-1] * 1e3:.0f} ms{'; with AddressSanitizer' if SANITIZED else ''}"
    )
    return faults


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="gesso-race-") as repository:
        faults = run(options, repository)
    if faults:
        raise SystemExit("error: " + "\nerror: ".join(faults))


if __name__ == "__main__":
    main()
