"""Readers of each kind of data set: what they find, and what users may ask of all of them."""

import io
import json
import struct
import tarfile
import wave

import numpy as np
import pytest
from gesso import Pipeline, fn, types


def pipeline(make, batch_size=2, **settings):
    made = Pipeline(batch_size, 1, seed=1, **settings)
    with made:
        outputs = make()
        made.set_outputs(*(outputs if isinstance(outputs, (list, tuple)) else [outputs]))
    return made


def numbers(made, batches, output=0):
    return [made.run()[output].as_array().ravel().tolist() for _ in range(batches)]


# --- webdataset


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "a.tar"
    files = {
        "d/0.jpg": b"zero",
        "d/0.cls": b"0000",
        "d/1.cls": b"1111",
        "d/2.jpg": b"two!",
        "d/2.seg.png": b"seg!",
        "x" * 120 + "/3.jpg": b"long",
    }
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        folder = tarfile.TarInfo("d")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return str(path)


def test_components_of_a_sample(archive):
    made = pipeline(lambda: fn.readers.webdataset(paths=[archive], ext=["jpg;png", "cls"]), 4)
    images, classes = made.run()
    assert [bytes(images.at(i)) for i in range(4)] == [b"zero", b"", b"two!", b"long"]
    assert [bytes(classes.at(i)) for i in range(4)] == [b"0000", b"1111", b"", b""]


def test_samples_without_a_component(archive):
    made = pipeline(
        lambda: fn.readers.webdataset(paths=[archive], ext=["jpg", "cls"], missing_component_behavior="skip", name="r")
    )
    assert made.reader_meta("r")["epoch_size"] == 1
    with pytest.raises(RuntimeError, match="Underful sample"):
        pipeline(
            lambda: fn.readers.webdataset(paths=[archive], ext=["jpg", "cls"], missing_component_behavior="error")
        ).build()


def test_components_as_numbers(archive):
    made = pipeline(lambda: fn.readers.webdataset(paths=[archive], ext=["jpg"], dtypes=[types.INT32]), 1)
    assert made.run()[0].at(0).tolist() == [struct.unpack("<i", b"zero")[0]]


# --- COCO


def test_masks_of_pixels_hold_classes(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"file")
    square = [0, 0, 3, 0, 3, 2, 0, 2]
    runs = {"size": [4, 6], "counts": [20, 4]}
    objects = [
        {"id": 1, "image_id": 5, "category_id": 7, "bbox": [0, 0, 3, 2], "iscrowd": 0, "segmentation": [square]},
        {"id": 2, "image_id": 5, "category_id": 3, "bbox": [5, 0, 1, 4], "iscrowd": 1, "segmentation": runs},
    ]
    images = [{"id": 5, "file_name": "a.jpg", "width": 6, "height": 4}]
    path = tmp_path / "instances.json"
    path.write_text(json.dumps({"images": images, "annotations": objects, "categories": [{"id": 3}, {"id": 7}]}))
    made = pipeline(
        lambda: fn.readers.coco(
            file_root=str(tmp_path), annotations_file=str(path), pixelwise_masks=True, image_ids=True
        ),
        1,
    )
    data, boxes, labels, pixels, ids = (output.at(0) for output in made.run())
    assert (
        bytes(data) == b"file"
        and boxes.tolist() == [[0, 0, 3, 2], [5, 0, 1, 4]]
        and labels.tolist() == [2, 1]
        and ids.tolist() == [5]
    )
    wanted = np.zeros((4, 6), np.int32)
    wanted[:2, :3], wanted[:, 5] = 2, 1
    assert (pixels[..., 0] == wanted).all()


# --- arrays

REGIONS = [
    (dict(roi_start=2), (2, 6), (2, 7)),
    (dict(roi_start=[2]), (2, 6), (2, 7)),
    (dict(roi_shape=[3, 2]), (0, 3), (0, 2)),
    (dict(roi_end=np.array(4)), (0, 4), (0, 4)),
    (dict(roi_start=1, rel_roi_end=0.9), (1, 5), (1, 6)),
    (dict(roi_axes=[1, 0], roi_start=2, roi_shape=[3, 2]), (2, 4), (2, 5)),
    (dict(roi_axes=[-1], roi_start=2), (0, 6), (2, 7)),
    # Both ends are rounded: 1.5 to 3, and 1.75 to 5.25.
    (dict(rel_roi_start=0.25, rel_roi_shape=[0.25, 0.5]), (2, 3), (2, 5)),
]


@pytest.fixture
def array(tmp_path):
    made = np.arange(42).reshape(6, 7)
    np.save(tmp_path / "a.npy", made)
    return made


@pytest.mark.parametrize("given, rows, columns", REGIONS)
def test_regions_of_arrays(array, tmp_path, given, rows, columns):
    found = pipeline(lambda: fn.readers.numpy(file_root=tmp_path, **given)).run()[0].at(0)
    np.testing.assert_array_equal(found, array[slice(*rows), slice(*columns)])


def test_regions_from_tensors(array, tmp_path):
    starts = [np.array(1, np.int32), np.array(3, np.int32)]
    made = pipeline(
        lambda: fn.readers.numpy(file_root=tmp_path, roi_start=fn.external_source(lambda: starts), roi_shape=2)
    )
    found = made.run()[0]
    np.testing.assert_array_equal(found.at(0), array[1:3, 1:3])
    np.testing.assert_array_equal(found.at(1), array[3:5, 3:5])


WRONG_REGIONS = [
    (dict(roi_start=[1, 2, 3]), "has 3 values"),
    (dict(roi_start=4, roi_end=2), "before start"),
    (dict(roi_end=[-1, 3]), "before start"),
    (dict(roi_shape=[-1, 3]), "before start"),
    (dict(roi_axes=[1, 1], roi_start=2), "`roi_axes`"),
    (dict(roi_axes=[3], roi_start=2), "`roi_axes`"),
]


@pytest.mark.parametrize("given, words", WRONG_REGIONS)
def test_regions_that_are_none(array, tmp_path, given, words):
    made = pipeline(lambda: fn.readers.numpy(file_root=tmp_path, **given))
    with pytest.raises(RuntimeError, match=words):
        made.run()


# --- sound


def test_speech_is_cut_and_comes_with_its_text(tmp_path):
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(1000)
        file.writeframes(np.arange(500, dtype="<i2").tobytes())
    lines = [
        {"audio_filepath": str(tmp_path / "a.wav"), "text": "ó", "offset": 0.1, "duration": 0.05},
        {"audio_filepath": str(tmp_path / "a.wav")},
    ]
    (tmp_path / "m.json").write_text("\n".join(map(json.dumps, lines)))
    made = pipeline(lambda: fn.readers.nemo_asr(manifest_filepaths=[str(tmp_path / "m.json")], dtype=types.INT16))
    audio, rates, texts = made.run()
    assert audio.at(0).tolist() == list(range(100, 150)) and audio.at(1).tolist() == list(range(500))
    assert rates.at(0) == 1000 and bytes(texts.at(0)).decode() == "ó"


# --- what every reader takes


@pytest.fixture
def files(tmp_path):
    for i in range(8):
        (tmp_path / str(i)).write_bytes(bytes([i]))
    return [str(tmp_path / str(i)) for i in range(8)]


def test_a_sampler_decides(files):
    assert numbers(pipeline(lambda: fn.readers.file(files=files, sampler=[5, 1, 3])[1]), 3) == [[5, 1], [3, 5], [1, 3]]
    assert numbers(pipeline(lambda: fn.readers.file(files=files, sampler=lambda epoch: [epoch, 7])[1]), 2) == [
        [0, 7],
        [1, 7],
    ]
    with pytest.raises(IndexError, match="from 0 to 7"):
        pipeline(lambda: fn.readers.file(files=files, sampler=[8])[1]).run()


def test_weights_say_how_often(files):
    weights = [0, 0, 1, 0, 0, 3, 0, 0]
    drawn = sum(numbers(pipeline(lambda: fn.readers.file(files=files, weights=weights)[1], 8), 50), [])
    assert set(drawn) == {2, 5} and 0.65 < drawn.count(5) / len(drawn) < 0.85


def test_shards_come_from_the_environment(files, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    made = pipeline(lambda: fn.readers.file(files=files, shards="env", name="r")[1])
    assert made.reader_meta("r")["number_of_shards"] == 2 and numbers(made, 1) == [[4, 5]]
    monkeypatch.delenv("RANK")
    with pytest.raises(RuntimeError, match="rank"):
        fn.readers.file(files=files, shards="env")


def test_files_that_cannot_be_read(files, tmp_path):
    (tmp_path / "1").unlink()
    with pytest.raises(RuntimeError, match="Could not open file"):
        pipeline(lambda: fn.readers.file(files=files)[1]).run()
    assert numbers(pipeline(lambda: fn.readers.file(files=files, on_missing="skip")[1], 4), 1) == [[0, 4, 2, 3]]
    assert numbers(pipeline(lambda: fn.readers.file(files=files, on_missing="pad")[1], 4), 1) == [[0, 0, 2, 3]]


def test_an_epoch_may_be_left_in_the_middle(files):
    def make():
        return pipeline(lambda: fn.readers.file(files=files, random_shuffle=True)[1])

    whole, left = make(), make()
    expected = numbers(whole, 8)
    assert numbers(left, 1) == expected[:1]
    left.restart()
    assert numbers(left, 4) == expected[4:]


def test_paths_in_a_pipeline(files):
    made = pipeline(lambda: fn.io.file.read(fn.external_source(name="paths")), prefetch_queue_depth=1)
    made.feed_input("paths", [np.frombuffer(path.encode(), np.uint8) for path in files[:2]])
    assert [bytes(made.run()[0].at(i)) for i in range(1)] == [b"\0"]


# --- files with readers in them


def test_a_file_with_a_reader_reads_as_its_definition(files):
    def make():
        data, labels = fn.readers.file(
            files=files, random_shuffle=True, initial_fill=3, num_shards=2, shard_id=1, name="r"
        )
        return data, labels, fn.random.uniform(range=[0, 1])

    defined = pipeline(make, 3)
    loaded = Pipeline.deserialize(defined.serialize())
    assert loaded.reader_meta("r") == defined.reader_meta("r") and loaded.reader_meta("r")["epoch_size"] == 8
    for _ in range(9):
        for one, other in zip(loaded.run(), defined.run()):
            assert [array.tolist() for array in one.arrays] == [array.tolist() for array in other.arrays]


@pytest.mark.parametrize("given", [{"sampler": [1, 0]}, {"weights": [1, 2]}, {"on_missing": "skip"}])
def test_what_no_file_can_hold_is_an_error(files, given):
    made = pipeline(lambda: fn.readers.file(files=files[:2], **given))
    with pytest.raises(RuntimeError, match=f"`{next(iter(given))}`, which no file can hold"):
        made.serialize()
    made.run()


def test_a_file_with_a_reader_says_what_fails(files, tmp_path):
    made = pipeline(lambda: fn.readers.file(files=files)[1])
    serialized = made.serialize()
    (tmp_path / "1").unlink()
    loaded = Pipeline.deserialize(serialized)
    with pytest.raises(RuntimeError, match="Could not open file .*: No such file"):
        loaded.run()
    assert loaded.run()[0].as_array().ravel().tolist() == [2, 3]
