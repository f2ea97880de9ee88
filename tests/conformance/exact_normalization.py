"""Compares `arithmetic` of `fn.crop_mirror_normalize` with the libraries that it names: all 256 bytes, many means and
deviations.

    pip install torch torchvision transformers
    python3 tests/conformance/exact_normalization.py

It needs the libraries, numpy and the package `gesso` (or `PYTHONPATH=python` and `GESSO_LIBRARY`). Libraries that are
not installed are named and left out. The status is 1 if a value differs.
"""

import argparse
import importlib
import json
import sys
import zlib
from pathlib import Path

import numpy as np
from installed import installed

RECORDING = Path(__file__).with_name("exact_normalization.json")
RECORDED = 24

# Of ImageNet, Inception, CLIP, SigLIP, CIFAR-10 and of nothing.
COMMON = [
    ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
    ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]),
    ([0.4914, 0.4822, 0.4465], [0.247, 0.2435, 0.2616]),
    ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
]
BYTES = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, 2)


class Torchvision:
    """`ToTensor` and `Normalize`."""

    name = arithmetic = "torchvision"

    def __init__(self):
        self.torch = importlib.import_module("torch")
        self.functional = importlib.import_module("torchvision.transforms.functional")
        self.version = (
            f"torchvision {importlib.import_module('torchvision').__version__}, torch {self.torch.__version__}"
        )

    def scaled(self, image):
        return self.functional.to_tensor(image)

    def normalize(self, mean, std, half):
        made = self.functional.normalize(self.scaled(BYTES), mean, std)
        return (made.half() if half else made).numpy()


class TorchvisionV2(Torchvision):
    """`ToDtype(scale=True)` and `Normalize` of version 2."""

    name = arithmetic = "torchvision-v2"

    def scaled(self, image):
        functional = importlib.import_module("torchvision.transforms.v2.functional")
        return functional.to_dtype(functional.to_image(image), self.torch.float32, scale=True)


class Transformers:
    """`rescale` and `normalize` of numpy."""

    name, arithmetic = "transformers-numpy", "torchvision"

    def __init__(self):
        self.transforms = importlib.import_module("transformers.image_transforms")
        self.version = f"transformers {importlib.import_module('transformers').__version__}"

    def normalize(self, mean, std, half):
        scaled = self.transforms.rescale(BYTES.transpose(2, 0, 1), 1 / 255, input_data_format="channels_first")
        made = self.transforms.normalize(scaled, mean, std, input_data_format="channels_first")
        return made.astype(np.float16) if half else made


class TransformersFast:
    """`rescale_and_normalize` of torch."""

    name = arithmetic = "transformers-fast"

    def __init__(self):
        self.torch = importlib.import_module("torch")
        self.backend = importlib.import_module("transformers.image_processing_backends").TorchvisionBackend
        self.version = (
            f"transformers {importlib.import_module('transformers').__version__}, torch {self.torch.__version__}"
        )

    def normalize(self, mean, std, half):
        image = self.torch.from_numpy(BYTES).permute(2, 0, 1)[None]
        made = self.backend().rescale_and_normalize(image, True, 1 / 255, True, tuple(mean), tuple(std))[0]
        return (made.half() if half else made).numpy()


LIBRARIES = {library.name: library for library in (Torchvision, TorchvisionV2, Transformers, TransformersFast)}


def case(number):
    """Means, deviations, and whether the output is float16."""
    if number < 2 * len(COMMON):
        return (*COMMON[number // 2], bool(number % 2))
    rng = np.random.default_rng([56, number])
    mean, std = rng.uniform(0, 1, 3), np.exp(rng.uniform(-4, 1, 3))
    return [float(value) for value in mean], [float(value) for value in std], bool(number % 2)


def ours(arithmetic, device="cpu"):
    """What Gesso makes of a case on a device."""

    def normalize(mean, std, half):
        from gesso import fn, pipeline_def, types

        @pipeline_def(batch_size=1, num_threads=1, device_id=0 if device == "gpu" else None)
        def pipeline():
            image = fn.external_source(name="image", layout="HWC", dtype=types.UINT8, ndim=3)
            image = image.gpu() if device == "gpu" else image
            dtype = types.FLOAT16 if half else types.FLOAT
            return fn.crop_mirror_normalize(image, mean=mean, std=std, dtype=dtype, arithmetic=arithmetic)

        made = pipeline()
        made.build()
        made.feed_input("image", [BYTES])
        (answer,) = made.run()
        return np.asarray((answer.as_cpu() if device == "gpu" else answer).at(0))

    return normalize


def compare(library, cases):
    """Compares some cases and prints what differs. Returns whether nothing did."""
    normalize, differ = ours(library.arithmetic), 0
    for number in range(cases):
        mean, std, half = case(number)
        expected, found = library.normalize(mean, std, half), normalize(mean, std, half)
        if expected.dtype == found.dtype and expected.tobytes() == found.tobytes():
            continue
        differ += 1
        print(f"  mean {mean}, std {std}, {found.dtype}: {(expected != found).sum()} values differ", flush=True)
    print(f"{library.version} ({library.name}): {differ} of {cases} cases differ", flush=True)
    return differ == 0


def fingerprints(normalize):
    """For each recorded case the sum of what is made of it."""
    return [zlib.crc32(np.ascontiguousarray(normalize(*case(number))).tobytes()) for number in range(RECORDED)]


def main():
    """Compares with all libraries that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000, help="for each library")
    parser.add_argument("--only", choices=LIBRARIES, nargs="+", default=list(LIBRARIES), metavar="LIBRARY")
    parser.add_argument("--record", action="store_true", help=f"write {RECORDING.name} instead")
    options = parser.parse_args()
    equal, recorded = (
        True,
        {"about": "CRC-32 of what the libraries make: tests/conformance/exact_normalization.py --record"},
    )
    for library in installed(LIBRARIES, options.only):
        if options.record:
            recorded[library.name] = {"library": library.version, "fingerprints": fingerprints(library.normalize)}
        else:
            equal &= compare(library, options.cases)
    if options.record:
        RECORDING.write_text(
            "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in recorded.items()) + "\n}\n"
        )
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()
