"""Readers of databases, sequences, speech and tables in the library give what those in the interpreter give."""

import json
import pathlib
import random
import struct
import sys
import wave

import numpy as np
import pytest
from gesso import fn, types
from native_readers import ORDERS, compared, failures, field, of, runs_on, same_from_a_file, varint

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from orders.lmdb_file import write_lmdb

# --- databases


def database(tmp_path, name, records):
    (tmp_path / name).mkdir()
    write_lmdb(tmp_path / name, records)
    return str(tmp_path / name)


def datum(i, kind=b"\x38\x01"):
    return field(4, b"x" * i) + b"\x28" + varint(i - 2 & (1 << 64) - 1) + kind


@pytest.fixture
def databases(tmp_path):
    return [
        database(tmp_path, "a", [datum(i) for i in range(9)]),
        database(tmp_path, "b", [datum(i) for i in range(9, 14)]) + "/data.mdb",
    ]


@pytest.mark.parametrize("options", ORDERS)
def test_images_of_databases(databases, monkeypatch, options):
    compared(monkeypatch, lambda: tuple(fn.readers.caffe(path=databases, **options, name="r")))


def test_pixels_of_databases(tmp_path, monkeypatch):
    size = b"\x10\x02\x18\x03\x08\x01"
    whole = database(tmp_path, "whole", [size + datum(6, b""), size + datum(6, b"\x38\0")])
    compared(monkeypatch, lambda: tuple(fn.readers.caffe(path=whole, name="r")), 5)
    for options in ({"image_available": False}, {"label_available": False}):
        compared(monkeypatch, lambda options=options: fn.readers.caffe(path=[whole], **options, name="r"), 5)
    mixed = database(tmp_path, "mixed", [size + datum(6, b""), size + datum(5, b"")])
    assert failures(monkeypatch, lambda: tuple(fn.readers.caffe(path=mixed, name="r")))


def test_databases_that_are_damaged(tmp_path, monkeypatch):
    for i, record in enumerate((b"\x22\x7fx", b"\x0b", b"\x28" + varint(1 << 40), b"\x28" + b"\xff" * 11)):
        path = database(tmp_path, f"d{i}", [datum(1), record])
        errors = failures(monkeypatch, lambda path=path: tuple(fn.readers.caffe(path=path, name="r")))
        assert errors and all("fn.readers.caffe" in text and path in text for text in errors)
    whole = (tmp_path / "d0" / "data.mdb").read_bytes()
    (tmp_path / "d0" / "data.mdb").write_bytes(whole[:9000])
    with pytest.raises(RuntimeError, match="the database `.*data.mdb`: .*it is cut off"):
        of(lambda: tuple(fn.readers.caffe(path=str(tmp_path / "d0")))).build()


def tensor_proto(dims, kind, rest):
    return field(1, (field(1, b"".join(map(varint, dims))) if dims else b"") + b"\x10" + bytes([kind]) + rest)


def floats(*values):
    return field(3, struct.pack(f"<{len(values)}f", *values))


def integers(*values):
    return field(4, b"".join(varint(value & (1 << 64) - 1) for value in values))


RECORDS2 = {
    "label": lambda i: [tensor_proto([1], 2, integers(i - 3))],
    "scalar": lambda i: [tensor_proto([], 1, floats(i / 3))],
    "bytes": lambda i: [tensor_proto([2, 1], 3, field(5, bytes([i, 0])))],
    "misfit": lambda i: [tensor_proto([9], 2, integers(*range(i)))],
    "box": lambda i: [
        tensor_proto([1], 2, integers(i)),
        tensor_proto([1, 4], 1, floats(i, 0.1, 1e9, -0.0)),
        tensor_proto([2], 1, integers(i, -i)),
    ],
    "sparse": lambda i: [tensor_proto([2], 2, integers(i % 5, 4))],
    "weighted": lambda i: [tensor_proto([2], 2, integers(i % 5, 4)), tensor_proto([2], 1, floats(0.5, i))],
}
OPTIONS2 = {
    "box": {"bbox": True, "additional_inputs": 1},
    "sparse": {"label_type": 1, "num_labels": 6},
    "weighted": {"label_type": 3, "num_labels": 5},
    "bytes": {"label_type": 2},
}


@pytest.mark.parametrize("kind", RECORDS2)
def test_tensors_of_databases(tmp_path, monkeypatch, kind):
    records = [tensor_proto([1], 4, field(6, b"file" * i)) + b"".join(RECORDS2[kind](i)) for i in range(7)]
    path, options = database(tmp_path, kind, records), OPTIONS2.get(kind, {})
    compared(monkeypatch, lambda: tuple(fn.readers.caffe2(path=path, random_shuffle=True, **options, name="r")), 8)
    compared(monkeypatch, lambda: fn.readers.caffe2(path=path, label_type=4, name="r"), 4)
    assert failures(monkeypatch, lambda: tuple(fn.readers.caffe2(path=path, additional_inputs=5, name="r")))


@pytest.mark.parametrize("options", ORDERS)
def test_orders_of_tensors(tmp_path, monkeypatch, options):
    path = database(
        tmp_path, "all", [tensor_proto([1], 4, field(6, b"%d" % i)) + RECORDS2["label"](i)[0] for i in range(11)]
    )
    compared(monkeypatch, lambda: tuple(fn.readers.caffe2(path=path, **options, name="r")))


def test_tensors_that_are_wrong(tmp_path, monkeypatch):
    wrong = [
        tensor_proto([1], 4, b"\x30\x01"),
        tensor_proto([3], 3, field(5, b"12")),
        tensor_proto([1], 2, integers(1 << 40)),
        tensor_proto([1], 2, field(3, b"12")),
        b"\x08\x01",
    ]
    for i, record in enumerate(wrong):
        path = database(tmp_path, f"{i}", [record + RECORDS2["label"](1)[0], RECORDS2["label"](2)[0] * 2])
        assert failures(monkeypatch, lambda path=path: tuple(fn.readers.caffe2(path=path, name="r")))
    path = database(
        tmp_path, "far", [tensor_proto([1], 4, b"") + tensor_proto([1], 2, integers(i - 1)) for i in range(4)]
    )
    assert failures(monkeypatch, lambda: tuple(fn.readers.caffe2(path=path, label_type=1, num_labels=2, name="r")))


# --- sequences


def write_frame(path, value, width=4):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"P6 %d 3 255\n" % width + bytes((value + i) % 256 for i in range(9 * width)))


@pytest.fixture
def frames(tmp_path):
    for folder, count, width in (("b", 5, 4), ("a", 3, 6), ("c", 1, 4), ("d", 6, 4)):
        for i in range(count):
            write_frame(tmp_path / "frames" / folder / f"{i:02}.ppm", 40 * i + ord(folder), width)
    (tmp_path / "frames" / "none").mkdir()
    (tmp_path / "frames" / "file.txt").write_text("no folder")
    return str(tmp_path / "frames")


@pytest.mark.parametrize("options", ORDERS)
def test_sequences_of_frames(frames, monkeypatch, options):
    compared(monkeypatch, lambda: fn.readers.sequence(file_root=frames, sequence_length=2, **options, name="r"))


def test_steps_of_sequences(frames, monkeypatch):
    for options in (
        {"sequence_length": 3, "stride": 2, "image_type": types.BGR},
        {"sequence_length": 2, "step": 3, "image_type": types.GRAY},
        {"sequence_length": 1, "step": 2, "stride": 9, "image_type": types.YCbCr},
        {"sequence_length": 4, "image_type": types.ANY_DATA},
    ):
        compared(
            monkeypatch, lambda options=options: fn.readers.sequence(file_root=frames + "/", **options, name="r"), 8
        )


def test_frames_that_are_wrong(frames, tmp_path):
    write_frame(tmp_path / "frames/b/02.ppm", 1, 5)
    for text, part in (("expected", "b/02.ppm"), ("b/02.ppm", "PNM"), ("b/02.ppm", "image")):
        pipeline = of(lambda: fn.readers.sequence(file_root=frames, sequence_length=5, name="r"))
        assert runs_on(pipeline) == "library"
        with pytest.raises(RuntimeError) as caught:
            pipeline.run()
        assert text in str(caught.value) and part in str(caught.value) and "fn.readers.sequence" in str(caught.value)
        (tmp_path / "frames/b/02.ppm").write_bytes(b"P6 4 3 255\n" if part == "b/02.ppm" else b"text")
    (tmp_path / "frames/b/02.ppm").unlink()
    with pytest.raises(RuntimeError, match="02.ppm"):
        pipeline.run()


# --- speech


@pytest.fixture
def speech(tmp_path):
    drawn = random.Random(7)
    manifests = []
    for part in range(2):
        lines = []
        for i in range(6):
            path, channels, rate = tmp_path / f"{part}{i}.wav", 1 + i % 2, (8000, 16000, 22050)[i % 3]
            with wave.open(str(path), "wb") as file:
                file.setnchannels(channels)
                file.setsampwidth(2)
                file.setframerate(rate)
                count = 300 + 100 * i
                file.writeframes(
                    b"".join(struct.pack("<h", drawn.randrange(-30000, 30000)) for _ in range(count * channels))
                )
            line = {
                "audio_filepath": str(path),
                "text": f"n\u00e4mber {i}" * (i % 4 > 0),
                "duration": [count / rate, 0.01, 0, 9][i % 4],
                "more": [1],
            }
            if i % 2:
                line["offset"] = 0.0071
            lines.append(json.dumps(line))
        manifests.append(str(tmp_path / f"{part}.json"))
        (tmp_path / f"{part}.json").write_text("\n \n".join(lines) + "\n")
    return manifests


@pytest.mark.parametrize("options", ORDERS)
def test_speech(speech, monkeypatch, options):
    compared(monkeypatch, lambda: tuple(fn.readers.nemo_asr(manifest_filepaths=speech, **options, name="r")))


@pytest.mark.parametrize(
    "options",
    [
        {"sample_rate": 16000.0, "read_idxs": True},
        {"sample_rate": 11025.5, "quality": 10.0, "dtype": types.INT16, "read_sample_rate": False},
        {"downmix": False, "read_text": False, "dtype": types.INT32},
        {"downmix": False, "sample_rate": 44100.0, "min_duration": 0.011},
        {"dtype": types.INT16, "max_duration": 0.02, "read_idxs": True, "normalize_text": True},
    ],
)
def test_sound_of_speech(speech, monkeypatch, options):
    compared(monkeypatch, lambda: tuple(fn.readers.nemo_asr(manifest_filepaths=speech, **options, name="r")), 8)
    alone = {"read_sample_rate": False, "read_text": False, "read_idxs": False}
    compared(
        monkeypatch, lambda: fn.readers.nemo_asr(manifest_filepaths=speech[:1], **{**options, **alone}, name="r"), 4
    )


def test_speech_that_is_wrong(speech, tmp_path):
    (tmp_path / "03.wav").write_bytes(b"text")
    (tmp_path / "04.wav").unlink()
    for number in (3, 4):
        path = tmp_path / f"one{number}.json"
        path.write_text(json.dumps({"audio_filepath": str(tmp_path / f"0{number}.wav")}))
        pipeline = of(lambda path=path: tuple(fn.readers.nemo_asr(manifest_filepaths=[str(path)], name="r")), 1)
        assert runs_on(pipeline) == "library"
        with pytest.raises(RuntimeError, match=f"0{number}.wav"):
            pipeline.run()
    (tmp_path / "0.json").write_text('{"audio_filepath": 1}')
    with pytest.raises(RuntimeError):
        of(lambda: tuple(fn.readers.nemo_asr(manifest_filepaths=speech, name="r"))).run()


# --- tables


@pytest.fixture
def table(tmp_path):
    (tmp_path / "set").mkdir()
    lines = ["id,file,x,y"]
    for i in range(11):
        (tmp_path / "set" / f"{i}, a.bin").write_bytes(b"x" * i)
        lines.append(f'{i},"{i}, a.bin",{i * i},{i / 4}')
    (tmp_path / "set/labels.csv").write_text("\r\n".join(lines))
    return str(tmp_path / "set/labels.csv")


@pytest.mark.parametrize("options", ORDERS)
def test_files_of_tables(table, monkeypatch, options):
    compared(monkeypatch, lambda: tuple(fn.readers.csv(file_list=table, path_column="file", **options, name="r")))


def test_labels_of_tables(table, tmp_path, monkeypatch):
    for options, dtype in (
        ({"label_columns": ["x"]}, np.int32),
        ({"label_columns": ["y", "id"]}, np.float32),
        ({"label_columns": ["id", "x"], "dtype": types.FLOAT}, np.float32),
        ({"label_columns": ["id"], "file_root": str(tmp_path / "set")}, np.int32),
    ):
        define = lambda options=options: tuple(fn.readers.csv(file_list=table, path_column="file", **options, name="r"))
        compared(monkeypatch, define, 8)
        files, labels = of(define).run()
        assert labels.at(1).dtype == dtype and labels.at(1).shape == (len(options["label_columns"]),)
        assert bytes(files.at(2)) == b"xx" and files[2].source_info() == "2, a.bin"
    # What is made in the interpreter comes from the library, too.
    for options in ({"sampler": [3, 1]}, {"weights": [0] * 10 + [1]}, {"on_missing": "skip"}):
        pipeline = of(lambda options=options: tuple(fn.readers.csv(file_list=table, path_column="file", **options)))
        assert runs_on(pipeline) == "interpreter"
        first = 10 if "weights" in options else 3 if "sampler" in options else 0
        assert pipeline.run()[1].at(0).tolist() == [first, first * first, first / 4]


def test_tables_that_are_wrong(table, tmp_path, monkeypatch):
    for options, text in (
        ({"path_column": "path"}, "there is no column `path`, expected one of"),
        ({"label_columns": ["file"], "path_column": "file"}, "expected a number: classes that have names need numbers"),
        ({"dtype": types.INT32, "path_column": "file"}, "whole number of 32 bits"),
    ):
        with pytest.raises(RuntimeError, match=text):
            of(lambda options=options: tuple(fn.readers.csv(**{"file_list": table, **options}))).build()
    (tmp_path / "set/4, a.bin").unlink()
    errors = failures(monkeypatch, lambda: tuple(fn.readers.csv(file_list=table, path_column="file", name="r")), 5)
    assert errors and all("4, a.bin" in text and "fn.readers.csv" in text for text in errors)


def test_loaded_files_give_the_same(databases, frames, speech, table):
    for define in (
        lambda: tuple(fn.readers.caffe(path=databases, random_shuffle=True, name="r")),
        lambda: fn.readers.sequence(file_root=frames, sequence_length=2, random_shuffle=True, name="r"),
        lambda: tuple(fn.readers.nemo_asr(manifest_filepaths=speech, random_shuffle=True, name="r")),
        lambda: tuple(fn.readers.csv(file_list=table, path_column="file", random_shuffle=True, name="r")),
    ):
        same_from_a_file(define)
