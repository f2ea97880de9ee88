"""Readers: what they find, and the order in which they give it."""

import os
import threading
import time

import numpy as np
import pytest
from gesso import Pipeline, fn, pipeline_def
from gesso._readers import random
from gesso._readers.order import Order
from gesso._readers.source import Reader


def order(size, count, seed=0, **options):
    made = Order(size, seed, options)
    return made.batch(count)


def test_without_shuffling_samples_follow_each_other_and_wrap():
    assert order(5, 7) == [0, 1, 2, 3, 4, 0, 1]


def test_shards_take_turns():
    assert order(6, 6, shard_id=1, num_shards=2) == [3, 4, 5, 0, 1, 2]
    assert order(6, 6, shard_id=1, num_shards=2, stick_to_shard=True) == [3, 4, 5, 3, 4, 5]


def test_a_padded_epoch_repeats_its_last_sample():
    made = Order(3, 0, {"pad_last_batch": True})
    assert [made.batch(2) for _ in range(4)] == [[0, 1], [2, 2], [0, 1], [2, 2]]


def test_shuffling_is_that_of_libstdcpp():
    def shuffled(count, engine):
        values = list(range(count))
        random.shuffle(values, engine)
        return values

    assert shuffled(10, random.Mersenne32(1)) == [9, 0, 2, 5, 7, 4, 6, 3, 1, 8]
    assert shuffled(11, random.Mersenne32(7)) == [3, 0, 7, 2, 10, 4, 5, 1, 6, 8, 9]
    assert shuffled(10, random.Mersenne64(1)) == [6, 9, 4, 8, 1, 3, 2, 5, 0, 7]
    many = shuffled(70_001, random.Mersenne32(1))
    assert many[:3] == [7_199, 23_693, 65_840] and many[70_000] == 55_777


def test_every_epoch_of_a_shuffled_reader_has_every_sample():
    made = Order(50, 42, {"random_shuffle": True, "initial_fill": 10})
    for _ in range(3):
        assert sorted(made.batch(50)) == list(range(50))
    first = [12, 11, 37, 23, 46, 20, 17, 19, 41, 44, 1, 7]
    assert order(50, 12, seed=42, random_shuffle=True, initial_fill=10) == first
    assert order(50, 50, seed=42, random_shuffle=True) == order(50, 50, seed=42, random_shuffle=True)


@pytest.fixture
def folder(tmp_path):
    for label, name in enumerate(("a", "b")):
        (tmp_path / name).mkdir()
        for i in range(2):
            np.save(tmp_path / name / f"{i}.npy", np.full((2, label + 1), i, np.float32))
    return tmp_path


def test_folders_are_labels(folder):
    @pipeline_def(batch_size=4, num_threads=1)
    def define():
        data, labels = fn.readers.file(file_root=str(folder), file_filters=["*.npy"], name="reader")
        return data, labels

    pipeline = define()
    _, labels = pipeline.run()
    assert labels.as_array().ravel().tolist() == [0, 0, 1, 1]
    assert pipeline.reader_meta("reader")["epoch_size"] == 4
    assert pipeline.epoch_size("reader") == 4


def test_paths_are_texts(folder):
    @pipeline_def(batch_size=4, num_threads=1)
    def define():
        return fn.readers.file(file_root=folder, file_filters=["*.npy"])[1]

    assert define().run()[0].as_array().ravel().tolist() == [0, 0, 1, 1]


def matching(folder, patterns, **options):
    """The names of files below a folder of a folder, as the reader finds them."""
    made = Pipeline(1, 1)
    with made:
        made.set_outputs(fn.readers.file(file_root=str(folder), file_filters=patterns, name="r", **options)[0])
    made.build()
    infos = [made.run()[0][0].source_info() for _ in range(made.reader_meta("r")["epoch_size"])]
    return [os.path.basename(info) for info in infos]


def test_patterns_take_what_dali_takes(tmp_path):
    """What DALI 2.4 answers: the C library's `fnmatch`."""
    (tmp_path / "class").mkdir()
    for name in ("a", "b", "*", "[a", "]", "5", "a\u00e9c", "abc", "{a,b}", "-", "X.JPG"):
        (tmp_path / "class" / name).write_bytes(b"1")
    for pattern, expected in [
        ("[a", ["[a"]),
        ("[^a]", ["*", "-", "5", "]", "b"]),
        ("[!a]", ["*", "-", "5", "]", "b"]),
        (r"\*", ["*"]),
        ("[[:digit:]]", ["5"]),
        ("[]a]", ["]", "a"]),
        ("{a,b}", ["{a,b}"]),
        ("[a-]", ["-", "a"]),
        ("**bc", ["abc"]),
        ("x.jpg", ["X.JPG"]),
    ]:
        assert matching(tmp_path, [pattern]) == expected, pattern
    with pytest.raises(RuntimeError, match="found no samples"):
        matching(tmp_path, ["x.jpg"], case_sensitive_filter=True)


@pytest.mark.parametrize("given", [{"labels": [1, 2, 3, 4]}, {"file_filters": []}, {"dir_filters": []}])
def test_what_would_have_no_effect_is_refused(folder, given):
    @pipeline_def(batch_size=4, num_threads=1)
    def define():
        return fn.readers.file(file_root=str(folder), **given)[1]

    with pytest.raises(RuntimeError, match=f"`{next(iter(given))}`"):
        define().run()


def test_samples_are_named_as_they_were_given(folder):
    whole, listed = str(folder / "a" / "0.npy"), folder / "list.txt"
    listed.write_text(whole + "\n")
    for given, name in (
        ({"files": [whole]}, whole),
        ({"files": ["a/0.npy"]}, "a/0.npy"),
        ({"file_list": str(listed)}, whole),
    ):

        @pipeline_def(batch_size=1, num_threads=1)
        def define():
            return fn.readers.numpy(file_root=str(folder), **given)

        assert define().run()[0][0].source_info() == name


def test_arrays_whole_and_in_part(folder):
    @pipeline_def(batch_size=2, num_threads=1)
    def define():
        whole = fn.readers.numpy(file_root=str(folder), file_filter="*.npy")
        part = fn.readers.numpy(file_root=str(folder), file_filter="*.npy", roi_start=[1, 0], roi_end=[2, 1])
        return whole, part + 1

    whole, part = define().run()
    assert whole.shape() == [(2, 1), (2, 1)]
    assert part.as_array().tolist() == [[[1.0]], [[2.0]]]


def batch_in_files(folder, function, depth):
    """A pipeline of labels that wait for `function`."""
    pipeline = Pipeline(3, 1, prefetch_queue_depth=depth)
    with pipeline:
        # What only the interpreter does: it reads.
        _, labels = fn.readers.file(files=[str(folder / "a" / "0.npy")] * 30, name="r", on_missing="skip")
        pipeline.set_outputs(fn.python_function(labels, function=function))
    return pipeline


@pytest.fixture
def read(monkeypatch, folder):
    """The threads that made batches of this test, one for each sample. Pipelines of tests before may still be reading
    theirs."""
    plain, threads = Reader.read_batch, []

    def counted(reader, node, batch_size, columns):
        if str(folder) in str(node.values_of("files")):
            threads.extend([threading.get_ident()] * batch_size)
        return plain(reader, node, batch_size, columns)

    monkeypatch.setattr(Reader, "read_batch", counted)
    return threads


def test_a_batch_is_read_while_the_one_before_is_worked_on(folder, read):
    def wait(label):
        until = time.monotonic() + 20
        while len(read) < 6:
            assert time.monotonic() < until
            time.sleep(0.01)
        return label

    assert batch_in_files(folder, wait, 2).run()[0].as_array().ravel().tolist() == [0, 1, 2]


def test_who_wants_nothing_ahead_of_time_gets_nothing(folder, read):
    assert batch_in_files(folder, lambda label: label, 1).run()[0].as_array().ravel().tolist() == [0, 1, 2]
    assert read == [threading.get_ident()] * 3


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_errors_of_readers_come_in_order(folder, depth):
    files = [str(folder / "a" / name) for name in ["0.npy"] * 4 + ["none.npy"] + ["0.npy"] * 3]
    pipeline = Pipeline(2, 1, prefetch_queue_depth=depth)
    with pipeline:
        pipeline.set_outputs(fn.readers.file(files=files)[1])
    for _ in range(3):
        assert [pipeline.run()[0].as_array().ravel().tolist() for _ in range(2)] == [[0, 1], [2, 3]]
        with pytest.raises(RuntimeError, match="Could not open file .*none.npy"):
            pipeline.run()
        assert pipeline.run()[0].as_array().ravel().tolist() == [6, 7]


def test_a_restart_forgets_what_was_read_ahead(folder):
    pipeline = Pipeline(2, 1)
    with pipeline:
        pipeline.set_outputs(fn.readers.file(files=[str(folder / "a" / "0.npy")] * 7, name="r")[1])
    for _ in range(3):
        assert [pipeline.run()[0].as_array().ravel().tolist() for _ in range(2)] == [[0, 1], [2, 3]]
        pipeline.restart()


@pytest.mark.parametrize("inside", [False, True], ids=["library", "interpreter"])
def test_a_flat_folder_is_told_from_one_with_classes(tmp_path, inside):
    (tmp_path / "a.jpg").write_bytes(b"data")
    extra = {"on_missing": "skip"} if inside else {}
    with pytest.raises(RuntimeError, match=f"found no samples: expected in `{tmp_path}` a folder for each label"):
        pipeline_def(lambda: fn.readers.file(file_root=str(tmp_path), **extra)[1], batch_size=1, num_threads=1)().run()
