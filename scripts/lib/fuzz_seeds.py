#!/usr/bin/env python3
"""Writes what fuzzing starts from: files of the tests' data, one folder for each target.

    fuzz_seeds.py FOLDER

Images come behind ten bytes that say what is asked for, as the targets `image` and `jpeg` read them. Needs numpy.
"""
import io
import json
import pathlib
import sys
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "conformance" / "data"
# A larger seed makes every try slow.
MAX_BYTES = 200_000
# RGB, uint8, everything as usual, no window.
AS_USUAL = bytes(10)
WINDOW = bytes([0, 0, 0, 0, 0, 3, 5, 7, 40, 50])


def pictures():
    with np.load(ROOT / "tests" / "data" / "decode" / "pictures.npz") as stored:
        return [stored[name].tobytes() for name in stored.files]


def recordings():
    """(pipeline, inputs) of every recorded case."""
    for path in sorted(DATA.glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            for case in json.loads(archive.read("index.json")).get("cases", []):
                inputs = [archive.read(sample["key"]) for samples in case["inputs"].values() for sample in samples]
                yield archive.read(case["pipeline"]["key"]), inputs


def arrays():
    for dtype in ("u1", "<f4", "<i8", "?", "<c8", "|S3"):
        for order in "CF":
            file = io.BytesIO()
            np.save(file, np.zeros((3, 4), dtype, order))
            yield file.getvalue()


def configurations():
    yield b'name: "m"\nbackend: "dali"\nmax_batch_size: 8\ninput [ { name: "IN" data_type: TYPE_UINT8 dims: [ -1 ] } ]\n'
    yield b'parameters { key: "num_threads" value { string_value: "8" } }\ninstance_group [ { kind: KIND_CPU count: 2 } ]\n'
    yield b'{"name": "m", "backend": "dali", "max_batch_size": 8, "input": [{"name": "IN", "data_type": "TYPE_UINT8", "dims": ["-1"]}]}'
    for path in sorted(ROOT.glob("model_repository/*/config.pbtxt")):
        yield path.read_bytes()


def seeds():
    """(target, bytes)"""
    for picture in pictures():
        yield "image", AS_USUAL + picture
        yield "image", WINDOW + picture
        if picture.startswith(b"\xff\xd8"):
            yield "jpeg", AS_USUAL + picture
            yield "jpeg", WINDOW + picture
            yield "device_jpeg", picture
    for pipeline, inputs in recordings():
        yield "pipeline", pipeline
        for data in inputs:
            if data[:4] in (b"RIFF", b"fLaC", b"OggS") and data[8:12] != b"WEBP":
                yield "sound", data
    for path in sorted((ROOT / "tests" / "data" / "video").rglob("*")):
        if path.is_file() and path.suffix not in (".py", ".json"):
            yield "video", path.read_bytes()
    for path in sorted((ROOT / "tests" / "data" / "versions").rglob("*.dali")):
        yield "pipeline", path.read_bytes()
    for file in arrays():
        yield "npy", file
    for text in configurations():
        yield "config", text
    random = np.random.default_rng(1)
    for _ in range(500):
        for target in ("arithmetic", "operator"):
            yield target, random.integers(0, 256, 128, np.uint8).tobytes()


def main():
    folder = pathlib.Path(sys.argv[1])
    counts = {}
    for target, data in seeds():
        if len(data) <= MAX_BYTES:
            number = counts[target] = counts.get(target, 0) + 1
            (folder / target).mkdir(parents=True, exist_ok=True)
            (folder / target / f"seed-{number:04}").write_bytes(data)
    print(", ".join(f"{count} for {target}" for target, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
