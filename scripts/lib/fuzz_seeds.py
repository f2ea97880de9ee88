#!/usr/bin/env python3
"""Writes what fuzzing starts from: files of the tests' data, one folder for each target.

    fuzz_seeds.py FOLDER

Images come behind ten bytes that say what is asked for, as the targets `image` and `jpeg` read them. Needs numpy.
"""

import io
import json
import pathlib
import struct
import sys
import tarfile
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "conformance" / "data"
# A larger seed makes every try slow.
MAX_BYTES = 200_000
# What stands beside pictures in an archive.
ANSWERS = ("_pixels", "_samples", "_luma")
# RGB, uint8, everything as usual, no window.
AS_USUAL = bytes(10)
WINDOW = bytes([0, 0, 0, 0, 0, 3, 5, 7, 40, 50])


def pictures():
    files = []
    for archive in ("pictures.npz", "avif.npz", "jxl.npz", "heif.npz", "deep.npz"):
        with np.load(ROOT / "tests" / "data" / "decode" / archive) as stored:
            files += [stored[name].tobytes() for name in stored.files if not name.endswith(ANSWERS)]
    return files


def sounds():
    for archive in ("coded.npz", "matroska.npz"):
        with np.load(ROOT / "tests" / "data" / "sound" / archive) as stored:
            names = [name for name in stored.files if not name.endswith(("_samples", "_rate"))]
            yield from (stored[name].tobytes() for name in names)


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


def recorded():
    """A record with an answer, one with an error."""
    line = '{"gesso_request":1,"model":"m","version":"1","id":"","time_ms":1,"inputs":[%s],%s}\n'
    tensor = '{"name":"%s","datatype":"%s","shape":%s,"bytes":%s}'
    x = tensor % ("X", "FP32", "[1,2]", 8)
    outputs = ",".join((tensor % ("O", "UINT8", "[1,3]", 3), tensor % ("P", "INT64", "[1]", "null")))
    yield (line % (x, f'"outputs":[{outputs}]')).encode() + bytes(11)
    yield (line % (tensor % ("F", "BYTES", "[1,1]", 5), '"error":"no"')).encode() + b"\1\0\0\0a"


def indexed():
    """Files of many samples, behind a byte that says of which kind: TFRecord, RecordIO, tar."""
    records = [bytes(range(n)) for n in (5, 0, 40)]
    yield b"\0" + b"".join(struct.pack("<QI", len(record), 0) + record + bytes(4) for record in records)
    parts = (0, 1, 2, 3)
    yield b"\1" + b"".join(struct.pack("<II", 0xCED7230A, part << 29 | 8) + bytes(8) for part in parts)
    for kind in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=kind) as archive:
            for name in ("a.jpg", "a.cls", "d" * 90 + "/" + "b" * 40 + ".jpg", "\u00e9.txt", "no-dot"):
                entry = tarfile.TarInfo(name)
                entry.size = 5
                archive.addfile(entry, io.BytesIO(b"bytes"))
        yield b"\2" + file.getvalue()


def read():
    """Data sets behind a byte that says of which kind; those with an index also behind its length and it."""
    found = list(indexed())
    for archive in (file[1:] for file in found if file[:1] == b"\2"):
        index = b"v1.2 2\njpg 512 5 a.jpg cls 1536 5 a.cls\njpg 3584 5 b\n"
        yield b"\0" + archive
        yield b"\1" + bytes([len(index)]) + index + archive
    # Features a: a text, b: two whole numbers, c: a float.
    values = b"\x0a\x03\x0a\x01x", b"\x1a\x04\x0a\x02\1\2", b"\x12\x06\x0a\x04\0\0\x80?"
    entries = [
        b"\x0a\1" + name + b"\x12" + bytes([len(value)]) + value for name, value in zip((b"a", b"b", b"c"), values)
    ]
    features = b"".join(b"\x0a" + bytes([len(entry)]) + entry for entry in entries)
    example = b"\x0a" + bytes([len(features)]) + features
    record = struct.pack("<QI", len(example), 0) + example + bytes(4)
    index = b"0 %d\n%d %d\n" % (len(record), len(record), len(record))
    yield b"\2" + bytes([len(index)]) + index + record + record
    record = struct.pack("<IfQQff", 2, 0, 1, 0, 3, 4) + b"image"
    record = struct.pack("<II", 0xCED7230A, len(record)) + record + bytes(-len(record) % 4)
    index = b"0\t0\n1\t%d\n" % len(record)
    yield b"\3" + bytes([len(index)]) + index + record + record
    for file in arrays():
        yield b"\4" + file
    yield (
        b'\5{"images": [{"id": 3, "file_name": "file", "width": 2, "height": 2}], "categories": [{"id": 5}], '
        b'"annotations": [{"image_id": 3, "category_id": 5, "bbox": [0, 0, 1, 2], "iscrowd": 0}]}'
    )


def lists():
    """Lists of videos, of files, patterns, behind bytes that say which, and how they are read."""
    for how in (b"\0\0\0", b"\0\1\1", b"\0\0\2", b"\0\1\3", b"\0\0\4"):
        yield how + b"@ 3\n\n@ 0 0.1\n@ 1 -4 9\n@ 2 0.04 0.2\n"
    yield b"\1\0\0a b.jpg 3\n\nc.jpg -1\n"
    yield b"\1\1\0list.jpg 0\n"
    for pattern in (b"*.jpg", b"[k-m]ist.?p*", b"*[!a]*.jpg LIST* i*"):
        yield b"\2\0\0" + pattern
        yield b"\2\1\0" + pattern


def seeds():
    """(target, bytes)"""
    for picture in pictures():
        yield "image", AS_USUAL + picture
        yield "image", WINDOW + picture
        if picture.startswith(b"\xff\xd8"):
            yield "jpeg", AS_USUAL + picture
            yield "jpeg", WINDOW + picture
            yield "device_jpeg", picture
    for sound in sounds():
        yield "sound", sound
    for pipeline, inputs in recordings():
        yield "pipeline", pipeline
        for data in inputs:
            if data[:4] in (b"RIFF", b"fLaC", b"OggS") and data[8:12] != b"WEBP":
                yield "sound", data
    for path in sorted((ROOT / "tests" / "data" / "video").rglob("*")):
        if path.is_file() and path.suffix not in (".py", ".json"):
            yield "video", path.read_bytes()
            yield "packets", path.read_bytes()
    for path in sorted((ROOT / "tests" / "data" / "versions").rglob("*.dali")):
        yield "pipeline", path.read_bytes()
    for file in arrays():
        yield "npy", file
    for text in configurations():
        yield "config", text
    for file in indexed():
        yield "index", file
    for record in recorded():
        yield "recorded", record
    for data in read():
        yield "records", data
    for text in lists():
        yield "list", text
    random = np.random.default_rng(1)
    for _ in range(500):
        for target in ("arithmetic", "calls", "operator", "requests"):
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
