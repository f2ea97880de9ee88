"""Readers of videos beside what DALI answered."""

import json
import subprocess
import sys

import numpy as np
import pytest
from gesso import Pipeline, fn, types
from gesso._authoring import serialization
from video_streams import ANSWERS, BATCH, CLIPS, define


def resolved(value, folder):
    if isinstance(value, list):
        return [resolved(one, folder) for one in value]
    if isinstance(value, str) and value.startswith("LIST:"):
        path = folder / "list.txt"
        path.write_text(value[5:].replace("CLIP:", f"{CLIPS}/"))
        return str(path)
    return value.replace("CLIP:", f"{CLIPS}/") if isinstance(value, str) else value


def reader(arguments, folder, **settings):
    given = {name: resolved(value, folder) for name, value in arguments.items()}
    return define(lambda: fn.experimental.readers.video(name="READER", **given), **{"batch_size": 2, **settings})


def rows(pipe, count):
    found = []
    while len(found) < count:
        outs = pipe.run()
        for i in range(len(outs[0])):
            frames = np.array(outs[0][i])
            rest = [np.round(np.array(out[i]), 6).tolist() for out in outs[1:]]
            found.append([[list(frames.shape), int(frames.astype(np.int64).sum())], *rest])
    return found


def name_of(case):
    return "-".join(
        f"{name}={value}" for name, value in case["arguments"].items() if not str(value).startswith(("LIST", "['CLIP"))
    )


@pytest.mark.parametrize("case", ANSWERS["readers"], ids=name_of)
def test_readers_are_dalis(case, tmp_path):
    pipe = reader(case["arguments"], tmp_path)
    assert pipe.epoch_size("READER") == case["size"]
    assert rows(pipe, len(case["samples"])) == case["samples"]


@pytest.mark.parametrize(
    "case", [case for case in ANSWERS["readers"] if "file_list" not in case["arguments"]], ids=name_of
)
def test_readers_of_a_file_are_dalis(case, tmp_path):
    """The library's own order."""
    written = reader(case["arguments"], tmp_path).serialize()
    pipe = Pipeline.deserialize(written, prefetch_queue_depth=1)
    assert rows(pipe, len(case["samples"])) == case["samples"]


RATES = json.loads((CLIPS / "rates/answers.json").read_text())


@pytest.mark.parametrize("rounding", RATES["25.mp4"])
@pytest.mark.parametrize("clip", RATES)
def test_parts_in_seconds_are_dalis(clip, rounding, tmp_path):
    """`tests/data/video/rates/record.py` wrote down which frames DALI reads."""
    answers = RATES[clip][rounding]
    lines = "".join(f"CLIP:rates/{clip} {label} {part}\n" for label, part in enumerate(answers))
    arguments = {"file_list": f"LIST:{lines}", "file_list_rounding": rounding, "enable_frame_num": "scalar"}
    pipe = reader({"sequence_length": 1, **arguments}, tmp_path, batch_size=1)
    found = {part: [] for part in answers}
    for _ in range(pipe.epoch_size("READER")):
        _, label, number = (np.array(out[0]).tolist() for out in pipe.run())
        found[list(answers)[label[0]]].append(number[0])
    assert found == {part: list(range(*frames)) for part, frames in answers.items()}


def test_a_reader_goes_on_from_a_checkpoint(tmp_path):
    arguments = {
        "filenames": [str(CLIPS / "vp9.webm")],
        "sequence_length": 2,
        "random_shuffle": True,
        "seed": 3,
        "enable_frame_num": "sequence",
    }
    whole = rows(reader(arguments, tmp_path), 12)
    first = reader(arguments, tmp_path, enable_checkpointing=True)
    assert rows(first, 4) == whole[:4]
    rest = reader(arguments, tmp_path, enable_checkpointing=True, checkpoint=first.checkpoint())
    assert rows(rest, 8) == whole[4:]


def test_a_folder_for_each_label(tmp_path):
    for label, name in (("a", "vp9.webm"), ("b", "h264.mp4")):
        (tmp_path / label).mkdir()
        (tmp_path / label / name).write_bytes((CLIPS / name).read_bytes())
    pipe = define(lambda: fn.experimental.readers.video(file_root=str(tmp_path), sequence_length=6), batch_size=4)
    video, labels = pipe.run()
    assert [np.array(label).tolist() for label in labels] == [[0], [0], [1], [1]]
    assert {np.array(frames).shape for frames in video} == {(6, 32, 48, 3)}


def in_folders(folder):
    for label, name in (("a", "vp9.webm"), ("b", "vp9.mp4")):
        (folder / label).mkdir()
        (folder / label / name).write_bytes((CLIPS / name).read_bytes())
    return str(folder)


@pytest.mark.parametrize("times", [False, True])
@pytest.mark.parametrize("asked", ["none", "scalar", "sequence"])
def test_folders_and_all_that_may_be_asked_for(asked, times, tmp_path):
    """DALI's outputs: frames, labels, numbers of frames, times."""
    arguments = {"sequence_length": 6, "enable_frame_num": asked, "enable_timestamps": times}
    pipe = reader({"file_root": in_folders(tmp_path), **arguments}, tmp_path, batch_size=4)
    video, *others = pipe.run()
    numbers = {"none": [], "scalar": [[[0], [6]]], "sequence": [[list(range(6)), list(range(6, 12))]]}[asked]
    expected = [[[0], [0], [1], [1]], *[one + one for one in numbers]]
    assert [np.array(frames).shape for frames in video] == [(6, 32, 48, 3)] * 4
    assert [[np.array(one).tolist() for one in out] for out in others[: len(expected)]] == expected
    assert len(others) == len(expected) + times
    of_file = Pipeline.deserialize(pipe.serialize(), prefetch_queue_depth=1).run()
    assert [np.array(out[0]).shape for out in of_file] == [np.array(out[0]).shape for out in (video, *others)]
    if times:
        for found, first in zip(others[-1], (0, 6, 0, 6)):
            np.testing.assert_allclose(np.array(found), 0.04 * np.arange(first, first + 6))


@pytest.mark.parametrize("reader", [fn.readers.video, fn.readers.video_resize])
def test_the_older_reader_of_folders_gives_frames_and_labels(reader, tmp_path):
    """DALI: "can be enabled only when `file_list`, or `filenames` with `labels` argument are passed"."""
    size = {"size": [32, 48]} if reader is fn.readers.video_resize else {}
    arguments = {"file_root": in_folders(tmp_path), "sequence_length": 6, **size}
    assert len(define(lambda: reader(**arguments)).run()) == 2
    for asked in ({"enable_frame_num": True}, {"enable_frame_num": "sequence"}, {"enable_timestamps": True}):
        with pytest.raises(RuntimeError, match="given with `file_root`, which is .*, expected `filenames` or"):
            define(lambda: reader(**arguments, **asked)).run()
    listed = tmp_path / "list.txt"
    listed.write_text(f"{tmp_path}/a/vp9.webm 3\n")
    arguments = {"file_list": str(listed), "enable_frame_num": True, "enable_timestamps": True, **size}
    assert len(define(lambda: reader(sequence_length=6, **arguments)).run()) == 4


def test_the_older_reader_gives_floats_and_fills_up():
    names = [str(CLIPS / "vp9.webm")]
    whole = np.array(define(lambda: fn.readers.video(filenames=names, sequence_length=12)).run()[0][0])
    pipe = define(
        lambda: fn.readers.video(
            filenames=names,
            sequence_length=5,
            stride=2,
            step=4,
            pad_sequences=True,
            dtype=types.FLOAT,
            normalized=True,
            labels=[6],
            enable_frame_num=True,
            enable_timestamps=True,
        ),
        batch_size=2,
    )
    frames, labels, first, times = pipe.run()
    assert np.array(frames[0]).dtype == np.float32
    np.testing.assert_allclose(np.array(frames[0]), whole[0:9:2] / np.float32(255), atol=1e-6)
    assert (np.array(frames[1])[4] == 0).all() and np.array(times[1]).tolist()[-1] == -1
    assert [np.array(label).tolist() for label in labels] == [[6], [6]] and [
        np.array(one).tolist() for one in first
    ] == [[0], [4]]


@pytest.mark.parametrize("reader", [fn.readers.video, fn.experimental.readers.video])
@pytest.mark.parametrize("asked, outputs", [(False, 1), ("none", 1), (True, 2), ("scalar", 2), ("sequence", 2)])
def test_numbers_of_frames_are_an_output_only_if_they_are_asked_for(reader, asked, outputs):
    pipe = define(lambda: reader(filenames=[str(CLIPS / "vp9.webm")], sequence_length=2, enable_frame_num=asked))
    assert len(pipe.run()) == outputs


RESIZES = [
    {"size": [20, 30]},
    {"resize_shorter": 24, "interp_type": types.INTERP_CUBIC, "antialias": False},
    {"resize_x": 25, "mode": "not_larger", "dtype": types.FLOAT, "normalized": True},
    {
        "resize_longer": 40,
        "max_size": [30, 30],
        "roi_start": [0.25, 0],
        "roi_end": [1, 0.5],
        "roi_relative": True,
        "stride": 2,
    },
]
OF_READER = ("dtype", "normalized", "stride")


def resized_sequences(arguments, device=None, name=None):
    """Two pipelines: `video_resize`, and the reader with a resize behind it."""
    given = {
        "filenames": [str(CLIPS / "vp9.webm"), str(CLIPS / "h264.mp4")],
        "labels": [3, 4],
        "sequence_length": 3,
        "enable_frame_num": "sequence",
        "enable_timestamps": True,
        "random_shuffle": True,
        "seed": 5,
        "device": device or "cpu",
        "name": name,
    }
    reading = {key: value for key, value in arguments.items() if key in OF_READER}
    resizing = {key: value for key, value in arguments.items() if key not in OF_READER}

    def apart():
        frames, *others = fn.readers.video(**given, **reading)
        return [fn.resize(frames, **resizing), *others]

    return (lambda: fn.readers.video_resize(**given, **arguments)), apart


def outputs_of(pipe, runs=4):
    return [[np.array(sample) for out in pipe.run() for sample in out] for _ in range(runs)]


@pytest.mark.parametrize("arguments", RESIZES, ids=lambda arguments: next(iter(arguments)))
def test_a_resizing_reader_is_a_reader_and_a_resize(arguments):
    together, apart = (outputs_of(define(made)) for made in resized_sequences(arguments))
    for found, expected in zip(together, apart):
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
    assert together[0][0].dtype == (np.float32 if "dtype" in arguments else np.uint8) and together[0][0].ndim == 4


def test_a_resizing_reader_has_a_name_and_takes_sizes_from_operators():
    made, _ = resized_sequences({"size": [20, 30]}, name="READER")
    assert define(made).epoch_size("READER") == 8

    def of_size():
        size = fn.constant(fdata=[10.0, 12.0])
        return fn.readers.video_resize(filenames=[str(CLIPS / "vp9.webm")], sequence_length=2, size=size)

    assert {np.array(sample).shape for sample in define(of_size).run()[0]} == {(2, 10, 12, 3)}
    with pytest.raises(KeyError, match="sizes"):
        define(lambda: fn.readers.video_resize(filenames=["a.mp4"], sequence_length=2, sizes=[1, 2]))


@pytest.mark.parametrize("name", ["readers__VideoResize", "VideoReaderResize"])
@pytest.mark.parametrize("arguments", RESIZES, ids=lambda arguments: next(iter(arguments)))
def test_a_file_with_a_resizing_reader(arguments, name):
    """As DALI writes one: an operator that takes the arguments of both."""
    made, apart = resized_sequences(arguments)
    pipe = define(apart)
    description = pipe.description()
    reader, resize = (
        next(op for op in description["operators"] if op["name"] == kind) for kind in ("readers__Video", "Resize")
    )
    description["operators"].remove(resize)
    added = {key: value for key, value in resize["arguments"].items() if key not in reader["arguments"]}
    reader["arguments"].update(added)
    reader["stored"] += [entry for entry in resize["stored"] if entry["name"] in added]
    reader.update(name=name, outputs=[resize["outputs"][0], *reader["outputs"][1:]])
    one, two = (
        Pipeline.deserialize(written, prefetch_queue_depth=1)
        for written in (serialization.write(description), pipe.serialize())
    )
    for found, expected in zip(outputs_of(one), outputs_of(two)):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    reader["arguments"]["save_attrs"] = [True]
    with pytest.raises(RuntimeError, match="`save_attrs` is not supported"):
        Pipeline.deserialize(serialization.write(description)).run()


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({}, "expected one of `filenames`, `file_root` and `file_list`"),
        ({"filenames": ["a.mp4"], "file_root": "."}, "expected one of"),
        ({"filenames": ["no such.mp4"]}, "no such.mp4"),
        ({"filenames": ["CLIP:vp9.webm"], "labels": [1, 2]}, "2 `labels` for 1 `filenames`"),
        ({"filenames": ["CLIP:vp9.webm"], "sequence_length": 0}, "`sequence_length` is 0"),
        ({"filenames": ["CLIP:vp9.webm"], "sequence_length": 1 << 30}, "expected 1 to 1048576"),
        ({"filenames": ["CLIP:vp9.webm"], "stride": 0}, "`stride` is 0"),
        ({"filenames": ["CLIP:vp9.webm"], "pad_mode": "other"}, "`pad_mode` is `other`"),
        ({"filenames": ["CLIP:vp9.webm"], "sequence_length": 13}, "no samples"),
        ({"file_list": "LIST:CLIP:vp9.webm\n"}, "line 1 of"),
        ({"file_list": "LIST:CLIP:vp9.webm 1 -99 3\n", "file_list_format": "frames"}, "before the first"),
        ({"file_list": "LIST:CLIP:vp9.webm 1\n", "file_list_rounding": "other"}, "`file_list_rounding` is `other`"),
        ({"filenames": ["CLIP:make.py"]}, "not a video of a known kind"),
        ({"file_root": "CLIP:", "labels": [1]}, "1 `labels` beside `file_root`"),
        ({"file_list": "LIST:CLIP:vp9.webm 1\n", "labels": [1, 2]}, "2 `labels` beside `file_list`"),
        ({"filenames": ["CLIP:vp9.webm"], "labels": [1 << 31]}, "`labels` is 2147483648, expected -2147483648 to"),
        ({"filenames": ["CLIP:vp9.webm"], "labels": [-1 << 31, -1]}, "2 `labels` for 1 `filenames`"),
        ({"filenames": ["CLIP:vp9.webm"], "pad_mode": "constant", "fill_value": [1, 2]}, "is [1, 2], expected 1 or 3"),
        ({"filenames": ["CLIP:vp9.webm"], "pad_mode": "edge", "fill_value": [256]}, "is 256, expected 1 or 3 values"),
    ],
)
def test_what_a_reader_cannot_read_is_said(arguments, said, tmp_path):
    with pytest.raises(RuntimeError) as error:
        reader({"sequence_length": 2, **arguments}, tmp_path).run()
    assert said in str(error.value)


@pytest.mark.parametrize("labels", [[2**31 - 1], [-(2**31)]])
def test_labels_are_all_of_32_bits(labels, tmp_path):
    found = reader({"filenames": ["CLIP:vp9.webm"], "sequence_length": 2, "labels": labels}, tmp_path).run()[1]
    assert np.array(found[0]).tolist() == labels


def test_an_empty_list_of_labels_counts_in_the_older_reader(tmp_path):
    """DALI: "sequential 0-based indices are used as labels"; the newer one refuses it."""
    arguments = {"filenames": [str(CLIPS / "vp9.webm"), str(CLIPS / "vp9.mp4")], "labels": [], "sequence_length": 12}
    _, labels = define(lambda: fn.readers.video(**arguments), batch_size=2).run()
    assert [np.array(label).tolist() for label in labels] == [[0], [1]]
    with pytest.raises(RuntimeError, match="0 `labels` for 2 `filenames`"):
        reader(arguments, tmp_path).run()


@pytest.mark.parametrize("levels", [[1, 2], [1, 2, 3, 4]])
@pytest.mark.parametrize("mode", ["none", "edge", "reflect_101"])
def test_a_fill_value_that_is_not_used_is_of_no_account(mode, levels, tmp_path):
    """In DALI, too, both here and where a video is decoded."""
    arguments = {"filenames": ["CLIP:vp9.webm"], "sequence_length": 5, "pad_mode": mode, "fill_value": levels}
    frames, plain = (
        np.array(reader(given, tmp_path).run()[0][0])
        for given in (arguments, {key: value for key, value in arguments.items() if key != "fill_value"})
    )
    np.testing.assert_array_equal(frames, plain)
    file = np.fromfile(CLIPS / "vp9.webm", np.uint8)
    options = {"sequence_length": 5, "pad_mode": mode, "fill_value": levels}
    decoded = define(lambda: fn.decoders.video(fn.external_source(lambda: [file] * BATCH), **options)).run()[0]
    np.testing.assert_array_equal(np.array(decoded[0]), frames)


def test_damaged_files_are_errors_and_not_crashes(tmp_path):
    """Files with bytes changed, through both, in a process of its own."""
    script = """
import pathlib, random, sys
import numpy as np
from gesso import Pipeline, fn
random.seed(11)
folder = pathlib.Path(sys.argv[2])
for clip in sorted(pathlib.Path(sys.argv[1]).glob("*.*")):
    if clip.suffix in (".py", ".json"):
        continue
    for case in range(6):
        data = bytearray(clip.read_bytes())
        for _ in range(random.randrange(1, 5)):
            at = random.randrange(len(data))
            data[at:at + random.randrange(1, 9)] = random.randbytes(random.randrange(0, 9))
        path = folder / clip.name
        path.write_bytes(bytes(data))
        for video in (True, False):
            pipe = Pipeline(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
            with pipe:
                name = "VIDEO" if video else "READER"
                made = fn.experimental.inputs.video(name=name, sequence_length=3) if video else fn.experimental.readers.video(
                    name=name, filenames=[str(path)], sequence_length=3, pad_mode="edge")
                pipe.set_outputs(made)
            try:
                pipe.build()
                if video:
                    pipe.feed_input("VIDEO", np.frombuffer(bytes(data), np.uint8)[None])
                for _ in range(3):
                    pipe.run()
            except RuntimeError:
                pass
print("all ended")
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(CLIPS), str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert "all ended" in done.stdout, done.stderr[-2000:]
