"""Data sets of which a part is damaged: the error says which file, and where the reader can go on, `on_missing` lets
it."""

import json
import struct
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
from gesso import Pipeline, fn, tfrecord


def pipeline(make, batch_size=2):
    made = Pipeline(batch_size, 1, seed=1)
    with made:
        outputs = make()
        made.set_outputs(
            *(outputs.values() if isinstance(outputs, dict) else outputs if isinstance(outputs, list) else [outputs])
        )
    return made


@pytest.mark.parametrize(
    "header", [b"", b"\x93NUMPY\x01\x00\x08\x00{'descr'", b"\x93NUMPY\x01\x00\x04\x00{([\n", b"\x93NUMPY\x09\x09"]
)
def test_arrays(tmp_path, header):
    for i in range(3):
        np.save(tmp_path / f"{i}.npy", np.full(2, i, np.float32))
    (tmp_path / "1.npy").write_bytes(header)
    with pytest.raises(RuntimeError, match="Could not read the file .*1.npy`: "):
        pipeline(lambda: fn.readers.numpy(file_root=str(tmp_path))).run()
    made = pipeline(lambda: fn.readers.numpy(file_root=str(tmp_path), on_missing="skip"))
    assert made.run()[0].as_array()[:, 0].tolist() == [0, 2]


# --- LMDB: two pages that say where the newest root is, then pages of records or of numbers of pages

PAGE, BRANCH, LEAF = 4096, 1, 2


def page(number, kind, nodes):
    """A page; `nodes` lie at its end, their places at its beginning."""
    places, at = [], PAGE
    content = bytearray(PAGE)
    for node in nodes:
        at -= len(node)
        content[at : at + len(node)] = node
        places.append(at)
    content[:16] = struct.pack("<QHHHH", number, 0, kind, 16 + 2 * len(nodes), at)
    content[16 : 16 + 2 * len(nodes)] = struct.pack(f"<{len(nodes)}H", *places)
    return bytes(content)


def meta(transaction, root):
    free = struct.pack("<IHHQQQQQ", PAGE, 0, 0, 0, 0, 0, 0, 0)
    main = struct.pack("<IHHQQQQQ", 0, 0, 1, 0, 1, 0, 1, root)
    about = struct.pack("<IIQQ", 0xBEEFC0DE, 1, 0, 1 << 20) + free + main + struct.pack("<QQ", 3, transaction)
    return (bytes(16) + about).ljust(PAGE, b"\0")


def leaf(key, value):
    return struct.pack("<HHHH", len(value), 0, 0, len(key)) + key + value


def branch(number):
    return struct.pack("<HHHH", number & 0xFFFF, number >> 16, 0, 0)


def datum(label):
    # Datum { data: "ab", label, encoded: true }
    return b"\x22\x02ab\x28" + bytes([label]) + b"\x38\x01"


def database(records, tree=(2,)):
    pages = [meta(0, 2), meta(1, 2), page(2, BRANCH, [branch(number) for number in tree])]
    return b"".join([*pages, page(3, LEAF, [leaf(b"%d" % i, record) for i, record in enumerate(records)])])


def read_database(path, content, **options):
    path.write_bytes(content)
    return pipeline(lambda: fn.readers.caffe(path=[str(path)], **options)).run()[1].as_array().ravel().tolist()


def test_databases(tmp_path):
    path = tmp_path / "data.mdb"
    whole = database([datum(5), datum(6)], tree=[3])
    assert read_database(path, whole) == [5, 6]
    for content, words in (
        (b"", "data.mdb`: .*it is cut off or damaged"),
        (whole[:3000], "data.mdb`: .*it is cut off or damaged"),
        (whole[: 3 * PAGE + 10], "data.mdb`: .*it is cut off or damaged"),
        (bytes(2 * PAGE), "data.mdb`: it begins with 0x0, expected LMDB"),
        (database([datum(5)], tree=[2]), "data.mdb`: page 2 is in two places"),
        (database([datum(5)], tree=[3] * 300), "data.mdb`: page 3 is in two places"),
        (database([datum(5)], tree=[1 << 31]), "data.mdb`: .*it is cut off or damaged"),
    ):
        with pytest.raises(RuntimeError, match=words):
            read_database(path, content)


SHRINKS = """
import os, sys
sys.path.insert(0, sys.argv[2])
from test_damaged import database, datum, fn, np, pipeline
path = sys.argv[1]
with open(path + ".mdb", "wb") as file:
    file.write(database([datum(5), b"\\x22" + bytes([1]) * 10] * 20, tree=[3]))
np.save(path + ".npy", np.zeros((1000, 1000), np.float32))
readers = [lambda: fn.readers.caffe(path=[path + ".mdb"])[1], lambda: fn.readers.numpy(files=[path + ".npy"]) + 1]
for read, name in zip(readers, ("mdb", "npy")):
    made = pipeline(read)
    made.build()
    os.truncate(f"{path}.{name}", 3 * 4096 + 100)
    try:
        made.run()
    except RuntimeError as error:
        print(("Could not read" in str(error) or "is cut off" in str(error)) and f"a.{name}" in str(error))
"""


def test_files_that_become_shorter_are_errors(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SHRINKS, str(tmp_path / "a"), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["True", "True"]), done.stderr


@pytest.mark.parametrize("record", [b"\x22\xff", b"\x2f", b"\x2a\x01a", b"\x28"])
def test_records_of_a_database(tmp_path, record):
    content = database([datum(5), record, datum(7)], tree=[3])
    with pytest.raises(RuntimeError, match="Could not read .*data.mdb at key .*: "):
        read_database(tmp_path / "data.mdb", content)
    assert read_database(tmp_path / "data.mdb", content, on_missing="skip") == [5, 7]


# --- records with an index


def test_examples(tmp_path):
    good = b"\x0a\x0c\x0a\x0a\x0a\x01n\x12\x05\x1a\x03\x0a\x01"
    data, index = b"", ""
    for message in (good + b"\x01", b"\x0a\x0c\x0a\x0a\x0a\x01n\x12\x05\x1a\x03\x0a\xff\xff", good + b"\x03"):
        record = struct.pack("<QI", len(message), 0) + message + bytes(4)
        index += f"{len(data)} {len(record)}\n"
        data += record
    (tmp_path / "a").write_bytes(data)
    (tmp_path / "a.idx").write_text(index)

    def run(policy):
        features = {"n": tfrecord.FixedLenFeature([], tfrecord.int64, -1)}
        paths = {"path": [str(tmp_path / "a")], "index_path": [str(tmp_path / "a.idx")]}
        return (
            pipeline(lambda: fn.readers.tfrecord(**paths, features=features, on_missing=policy))
            .run()[0]
            .as_array()
            .tolist()
        )

    with pytest.raises(RuntimeError, match="Could not read .*a at index 30: "):
        run("raise")
    assert run("skip") == [1, 3]


def test_record_io(tmp_path):
    content, index = b"", ""
    for i, length in enumerate((24, 3, 24)):
        index += f"{i}\t{len(content)}\n"
        content += struct.pack("<II", 0xCED7230A, length) + struct.pack("<IfQQ", 0, i, i, 0)[:length].ljust(
            -(-length // 4) * 4, b"\0"
        )
    (tmp_path / "a.rec").write_bytes(content)
    (tmp_path / "a.idx").write_text(index)

    def run(policy):
        paths = {"path": [str(tmp_path / "a.rec")], "index_path": [str(tmp_path / "a.idx")]}
        return pipeline(lambda: fn.readers.mxnet(**paths, on_missing=policy)).run()[1].as_array().ravel().tolist()

    with pytest.raises(RuntimeError, match="Could not read .*a.rec at index 32: "):
        run("raise")
    assert run("skip") == [0, 2]


# --- annotations, speech, frames


@pytest.mark.parametrize(
    "wrong",
    ["{", "[]", '{"images": [{}]}', '{"images": [{"id": 0}], "annotations": [{"image_id": 0, "bbox": [1, 2]}]}'],
)
def test_annotations(tmp_path, wrong):
    (tmp_path / "a.json").write_text(wrong)
    with pytest.raises(RuntimeError, match="Could not read the file .*a.json`: "):
        pipeline(lambda: fn.readers.coco(file_root=str(tmp_path), annotations_file=str(tmp_path / "a.json"))).build()


def test_speech(tmp_path):
    lines = []
    for i in range(2):
        with wave.open(str(tmp_path / f"{i}.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(bytes(400))
        lines.append(json.dumps({"audio_filepath": str(tmp_path / f"{i}.wav"), "text": ""}))
    (tmp_path / "a.json").write_text("\n".join(lines))
    (tmp_path / "1.wav").write_bytes((tmp_path / "1.wav").read_bytes()[:60])
    for options in ({}, {"sample_rate": 16000.0}):
        with pytest.raises(RuntimeError, match="Could not read .*1.wav`?: .*audio"):
            pipeline(lambda: fn.readers.nemo_asr(manifest_filepaths=[str(tmp_path / "a.json")], **options)).run()


def test_frames(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for i in range(4):
        (tmp_path / "a").mkdir(exist_ok=True)
        image.fromarray(np.zeros((4, 6, 3), np.uint8)).save(tmp_path / "a" / f"{i}.png")
    (tmp_path / "a" / "2.png").write_bytes(b"no image")
    with pytest.raises(RuntimeError, match="Could not read .*2.png`?: "):
        pipeline(lambda: fn.readers.sequence(file_root=str(tmp_path), sequence_length=2, step=2)).run()
