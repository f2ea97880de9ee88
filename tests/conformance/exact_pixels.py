"""Compares `arithmetic` of `fn.resize` with the libraries that it names: Pillow, torchvision and OpenCV, installed and
live.

    pip install pillow torch torchvision opencv-python-headless
    python3 tests/conformance/exact_pixels.py --cases 20000

It needs the libraries, numpy and the package `gesso` (or `PYTHONPATH=python` and `GESSO_LIBRARY`). Pillow 12 and Pillow
13 need an environment each. Draws images, sizes, filters and regions, and prints for each library how many cases differ
in any byte. Libraries that are not installed are named and left out. The status is 1 if a case differs.
"""

import argparse
import importlib
import json
import sys
import time
import zlib
from pathlib import Path

import numpy as np
from installed import installed

LARGEST = 4000
MOST_PIXELS = 500_000
RARELY_PIXELS = 16_000_000

RECORDING = Path(__file__).with_name("exact_pixels.json")
RECORDED = 80
RECORDED_SEED = 56
RECORDED_PIXELS = 4000


def drawn_size(rng, most=None):
    """Rows and columns, small ones as often as large ones, thin ones among them."""
    most = most or (MOST_PIXELS if rng.integers(200) else RARELY_PIXELS)
    while True:
        size = np.exp(rng.uniform(0, np.log(LARGEST + 1), 2)).astype(int).clip(1, LARGEST)
        if size.prod() <= most:
            return [int(extent) for extent in size]


def drawn_image(rng, height, width, channels):
    """Noise, slopes, or black and white."""
    kind = rng.integers(4)
    shape = (height, width, channels)
    if kind == 0:
        return rng.integers(0, 2, shape, dtype=np.uint8) * np.uint8(255)
    if kind == 1:
        steps = rng.integers(-16, 17, shape, dtype=np.int8)
        return np.clip(np.cumsum(steps, int(rng.integers(2)), dtype=np.int32) + 128, 0, 255).astype(np.uint8)
    return rng.integers(0, 256, shape, dtype=np.uint8)


def drawn_box(rng, height, width, whole):
    """A region (top, left, bottom, right) in float32; of whole pixels if `whole`."""
    box = []
    for extent in (height, width):
        start, end = np.sort(rng.uniform(0, extent, 2)).astype(np.float32)
        if whole or rng.integers(3) == 0:
            start, end = np.floor(start), np.ceil(end)
        if end - start < 0.05:
            start, end = 0, extent
        box.append((float(start), float(min(end, extent))))
    return [box[0][0], box[1][0], box[0][1], box[1][1]]


class Pillow:
    """Pillow before 13.0."""

    name = arithmetic = "pillow"
    dtype = np.uint8
    filters = ("nearest", "box", "linear", "hamming", "cubic", "lanczos")
    channels = (1, 2, 3, 4)
    needs_whole_boxes = False
    narrowest = 1
    reduces = False

    def __init__(self):
        self.module = importlib.import_module("PIL.Image")
        version = importlib.import_module("PIL").__version__
        self.version = "Pillow " + version
        if (int(version.split(".")[0]) >= 13) != (self.arithmetic == "pillow13"):
            raise ImportError(f"Pillow is {version}")

    def resize(self, case):
        image = self.module.fromarray(case.image[..., 0] if case.channels == 1 else case.image)
        names = {"linear": "BILINEAR", "cubic": "BICUBIC"}
        method = getattr(self.module.Resampling, names.get(case.filter, case.filter.upper()))
        box = case.box and (case.box[1], case.box[0], case.box[3], case.box[2])
        return np.asarray(image.resize((case.size[1], case.size[0]), method, box, case.reducing_gap)).reshape(
            *case.size, -1
        )


class Pillow13(Pillow):
    """Pillow 13.0 and later."""

    name = arithmetic = "pillow13"


def of_one_channel(library, dtype):
    """The same with images of one channel of another type: Pillow's modes `I;16` and `F`."""
    return type(
        library.__name__,
        (library,),
        {"name": f"{library.arithmetic}-{np.dtype(dtype)}", "dtype": dtype, "channels": (1,)},
    )


class Torchvision:
    """torchvision with tensors of bytes."""

    name = arithmetic = "torchvision"
    dtype = np.uint8
    filters = ("nearest", "nearest-exact", "linear", "cubic", "lanczos")
    channels = (1, 2, 3, 3, 3, 4)
    needs_whole_boxes = True
    narrowest = 1

    def __init__(self):
        self.torch = importlib.import_module("torch")
        self.functional = importlib.import_module("torchvision.transforms.v2.functional")
        self.modes = importlib.import_module("torchvision.transforms").InterpolationMode
        self.version = (
            f"torchvision {importlib.import_module('torchvision').__version__}, torch {self.torch.__version__}"
        )

    def tensor(self, case):
        image = case.image
        if case.box:
            top, left, bottom, right = (int(place) for place in case.box)
            image = image[top:bottom, left:right]
        tensor = self.torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)
        # For four channels and more, where a tensor's elements lie decides how torch finds nearest pixels.
        return tensor if case.variant and case.channels < 4 else tensor.contiguous()

    def resize(self, case):
        names = {"linear": "BILINEAR", "cubic": "BICUBIC"}
        mode = getattr(self.modes, names.get(case.filter, case.filter.upper().replace("-", "_")))
        made = self.functional.resize(self.tensor(case), case.size, mode, antialias=True)
        return made.permute(1, 2, 0).numpy()


class TorchvisionFloat(Torchvision):
    """torchvision with tensors of float32, rounded."""

    name = arithmetic = "torchvision-float"
    filters = ("linear", "cubic")
    channels = (1, 2, 3, 3, 3, 4, 5)
    # torch 2.15 makes all rows of an output that is one pixel wide like the first one.
    narrowest = 2

    def tensor(self, case):
        return super().tensor(case).to(self.torch.float32)

    def resize(self, case):
        return np.rint(np.clip(super().resize(case), 0, 255)).astype(np.uint8)


class TorchvisionOfFloats(TorchvisionFloat):
    """torchvision with images of float32, which stay what they are."""

    name = "torchvision-float-float32"
    dtype = np.float32

    def resize(self, case):
        return Torchvision.resize(self, case)


class OpenCv:
    """OpenCV, without Intel's closed library, whose cubic is another one."""

    name = arithmetic = "opencv"
    dtype = np.uint8
    filters = ("nearest", "linear", "cubic", "area")
    channels = (1, 2, 3, 3, 3, 4)
    needs_whole_boxes = True
    narrowest = 1

    def __init__(self):
        self.cv2 = importlib.import_module("cv2")
        self.version = "OpenCV " + self.cv2.__version__
        self.cv2.ipp.setUseIPP(False)

    def resize(self, case):
        image = case.image
        if case.box:
            top, left, bottom, right = (int(place) for place in case.box)
            image = image[top:bottom, left:right]
        method = getattr(self.cv2, "INTER_" + case.filter.upper())
        made = self.cv2.resize(image, (case.size[1], case.size[0]), interpolation=method)
        return made.reshape(*case.size, -1)


def with_reducing_gap(library):
    """The same, reduced before."""
    return type(library.__name__, (library,), {"name": f"{library.arithmetic}-reducing-gap", "reduces": True})


REDUCING = [with_reducing_gap(library) for library in (Pillow, Pillow13)]
OF_ONE_CHANNEL = [of_one_channel(library, dtype) for library in (Pillow, Pillow13) for dtype in (np.uint16, np.float32)]
OF_BYTES = (Pillow, Pillow13, Torchvision, TorchvisionFloat, OpenCv)
LIBRARIES = {library.name: library for library in (*OF_BYTES, *OF_ONE_CHANNEL, TorchvisionOfFloats, *REDUCING)}


class Case:
    """One resize, drawn from numbers that depend on the seed and its number only."""

    def __init__(self, library, seed, number, most=None):
        rng = np.random.default_rng([seed, number])
        self.arithmetic = library.arithmetic
        self.filter = str(rng.choice(library.filters))
        self.channels = int(rng.choice(library.channels))
        height, width = drawn_size(rng, most)
        self.image = drawn_image(rng, height, width, self.channels)
        self.size = drawn_size(rng, most)
        if rng.integers(8) == 0:
            self.size = [max(height // 2, 1), max(width // 2, 1)]
        if rng.integers(8) == 0:
            axis = rng.integers(2)
            self.size[axis] = (height, width)[axis]
        self.size[1] = max(self.size[1], library.narrowest)
        self.box = drawn_box(rng, height, width, library.needs_whole_boxes) if rng.integers(3) == 0 else None
        self.variant = bool(rng.integers(2))
        if library.dtype == np.uint16:
            self.image = self.image * np.uint16(257) ^ rng.integers(0, 256, self.image.shape, dtype=np.uint16)
        if library.dtype == np.float32:
            self.image = (self.image - np.float32(100)) * rng.uniform(0.001, 3, self.image.shape).astype(np.float32)
        self.reducing_gap = None
        if getattr(library, "reduces", False):
            self.reducing_gap = float(np.float32(rng.choice([1, 1.5, 2, 3, rng.uniform(1, 6)])))
            self.size = [max(extent // int(rng.integers(1, 20)), 1) for extent in (height, width)]

    def __str__(self):
        height, width = self.image.shape[:2]
        box = f" of {self.box}" if self.box else ""
        return f"{self.filter}, {height} x {width} x {self.channels}{box} to {self.size[0]} x {self.size[1]}"


def ours(case, device="cpu"):
    """What Gesso makes of a case on a device."""
    from gesso import fn, pipeline_def, types

    dtype = {np.uint8: types.UINT8, np.uint16: types.UINT16, np.float32: types.FLOAT}[case.image.dtype.type]
    region = {}
    if case.box:
        region = {"roi_start": case.box[:2], "roi_end": case.box[2:]}
    if case.reducing_gap:
        region["reducing_gap"] = case.reducing_gap

    @pipeline_def(batch_size=1, num_threads=1, device_id=0 if device == "gpu" else None)
    def pipeline():
        image = fn.external_source(name="image", layout="HWC", dtype=dtype, ndim=3)
        image = image.gpu() if device == "gpu" else image
        return fn.resize(image, size=case.size, arithmetic=case.arithmetic, filter=case.filter, **region)

    made = pipeline()
    made.build()
    made.feed_input("image", [case.image])
    (answer,) = made.run()
    return np.asarray((answer.as_cpu() if device == "gpu" else answer).at(0))


def compare(library, cases, seed, resize, told=5):
    """Compares some cases and prints what differs. Returns whether nothing did."""
    differ, failed, off, start = 0, 0, {}, time.time()
    for number in range(cases):
        case = Case(library, seed, number)
        try:
            expected = library.resize(case)
        except RuntimeError:
            # torch 2.15 fails by an assertion of its own for some tensors that are one pixel wide or high.
            failed += 1
            continue
        found = resize(case)
        if expected.shape == found.shape and np.array_equal(expected, found):
            continue
        differ += 1
        largest = np.abs(expected.astype(float) - found).max() if expected.shape == found.shape else np.inf
        off[case.filter] = max(off.get(case.filter, 0), float(largest))
        if differ <= told:
            count = int((expected != found).sum()) if expected.shape == found.shape else -1
            print(f"  case {number}: {case}: {count} elements differ, by {largest:g} at most", flush=True)
    most = "".join(f", {name} by up to {largest:g}" for name, largest in sorted(off.items()))
    if failed:
        most += f"; the library fails in {failed}"
    print(
        f"{library.version} ({library.name}): {differ} of {cases} cases differ{most} ({time.time() - start:.0f} s)",
        flush=True,
    )
    return differ == 0


def fingerprints(library, resize=None):
    """For each case of the recording the sums of its image and of what is made of it."""
    made = []
    for number in range(RECORDED):
        case = Case(library, RECORDED_SEED, number, RECORDED_PIXELS)
        answer = (resize or library.resize)(case)
        made.append([zlib.crc32(case.image.tobytes()), zlib.crc32(np.ascontiguousarray(answer).tobytes())])
    return made


def record(library):
    """Writes what the library makes of the recorded cases, for tests on machines without it."""
    recorded = json.loads(RECORDING.read_text()) if RECORDING.exists() else {}
    recorded["about"] = (
        "CRC-32 of images and of what the libraries make of them: tests/conformance/exact_pixels.py --record"
    )
    recorded[library.name] = {"library": library.version, "fingerprints": fingerprints(library)}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(recorded.items())]
    RECORDING.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    """Compares with all libraries that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000, help="for each library")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=LIBRARIES, nargs="+", default=list(LIBRARIES), metavar="ARITHMETIC")
    parser.add_argument(
        "--record",
        action="store_true",
        help=f"write {RECORDING.name} instead: what the libraries make of a few small cases",
    )
    options = parser.parse_args()
    equal = True
    for library in installed(LIBRARIES, options.only):
        if options.record:
            record(library)
        else:
            equal &= compare(library, options.cases, options.seed, ours)
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()
