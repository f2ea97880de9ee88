"""Files that somebody made or edited so that they never end: headers of archives, pipes in place of files, states of
pipelines."""

import json
import os

import numpy as np
import pytest
from gesso import Pipeline, fn


def found(tmp_path, content):
    """Where each file of an archive begins and what it has, as the reader says."""
    (tmp_path / "a.tar").write_bytes(content)
    made = Pipeline(1, 1)
    with made:
        made.set_outputs(fn.readers.webdataset(paths=[str(tmp_path / "a.tar")], ext=["jpg"], name="r"))
    made.build()
    found = [made.run()[0][0] for _ in range(made.reader_meta("r")["epoch_size"])]
    return [(*sample.source_info().rsplit(":", 2)[1:], bytes(np.asarray(sample))) for sample in found]


def _pax(content, size=None):
    header = bytearray(512)
    header[:3], header[156:157], header[257:265] = b"pax", b"x", b"ustar\x0000"
    header[124:136] = b"%011o\0" % (len(content) if size is None else size)
    return bytes(header) + content.ljust(-(-len(content) // 512) * 512, b"\0")


@pytest.mark.parametrize(
    "record",
    [
        b"0 x=y\n",
        b"1 x=y\n",
        b"2 x=y\n",
        b"00 x=y\n",
        b"99999999999 x=y\n",
        b" x",
        b"-5 x=y\n",
        b"x",
        b"5 a=\n" * 200_000,
    ],
    ids=lambda record: repr(record[:16]),
)
def test_a_record_of_a_tar_header_that_is_no_record_ends(tmp_path, record):
    file = bytearray(512)
    file[:5], file[124:136], file[156:157] = b"a.jpg", b"%011o\0" % 3, b"0"
    content = _pax(record) + bytes(file) + b"abc" + bytes(509)
    assert found(tmp_path, content) == [(str(len(_pax(record)) + 512), "a.jpg", b"abc")]


@pytest.mark.parametrize("size", [b"\xff" * 12, b"\xc0" + bytes(11), b"-0000000001\0"])
def test_a_negative_size_in_a_tar_header_is_no_header(tmp_path, size):
    file = bytearray(512)
    file[:5], file[124:136], file[156:157] = b"a.jpg", size, b"0"
    with pytest.raises(RuntimeError, match="no header of a tar archive"):
        found(tmp_path, bytes(file) + bytes(1024))


def test_a_size_of_base_256_in_a_tar_header(tmp_path):
    file = bytearray(512)
    file[:5], file[124:136], file[156:157] = b"a.jpg", b"\x80" + (700).to_bytes(11, "big"), b"0"
    assert found(tmp_path, bytes(file) + b"x" * 700 + bytes(324)) == [("512", "a.jpg", b"x" * 700)]


@pytest.mark.parametrize("reader", ["file", "numpy", "fits", "webdataset", "caffe"])
def test_a_pipe_among_the_files_is_an_error(tmp_path, reader):
    (tmp_path / "a").mkdir()
    path = str(tmp_path / "a" / "x.jpg")
    os.mkfifo(path)
    made = {
        "file": lambda: fn.readers.file(file_root=str(tmp_path))[0],
        "numpy": lambda: fn.readers.numpy(files=[path]),
        "fits": lambda: fn.experimental.readers.fits(files=[path]),
        "webdataset": lambda: fn.readers.webdataset(paths=[path], ext=["jpg"])[0],
        "caffe": lambda: fn.readers.caffe(path=path)[0],
    }[reader]
    pipeline = Pipeline(1, 1)
    with pipeline:
        pipeline.set_outputs(made())
    with pytest.raises(RuntimeError, match="not a regular file"):
        pipeline.run()


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"gesso_checkpoint": 99}, "version 99, expected 2"),
        ({"gesso_checkpoint": 1}, "version 1, expected 2"),
        ({"batches": -1}, "`batches` is -1"),
        ({"samples": 1 << 63}, "`samples` is 9223372036854775808"),
        ({"batches": 1 << 62}, "`batches` is 4611686018427387904"),
        ({"batches": 1.5}, "`batches` is 1.5"),
        ({"batches": True}, "`batches` is True"),
        ({"iter": -1}, "`iter` is -1"),
        ({"epoch_idx": "1"}, "`epoch_idx` is '1'"),
        ({"seed": "x"}, "`seed` is 'x'"),
        ({"seed": 1 << 63}, "`seed` is 9223372036854775808, expected a whole number from -9223372036854775808"),
        ({"seed": 1.5}, "`seed` is 1.5"),
        ({"seed": None}, "`seed` is None"),
        ({"iterator_data": None}, "`iterator_data` is None, expected a text"),
        ({"readers": 1}, "`readers` is 1, expected an object"),
        ({"readers": {}}, "might be of another pipeline: it has the readers [], the pipeline has ['r']"),
        ({"readers": {"s": [[1, 4, 4]]}}, "it has the readers ['s'], the pipeline has ['r']"),
        *(
            ({"readers": {"r": parts}}, words)
            for parts, words in (
                (5, "`readers`, `r`, is 5, expected a list of parts"),
                ([], "is [], expected a list of parts"),
                ([5], "part 0, is 5, expected a list of shards"),
                ([[1, 4]], "part 0, is [1, 4]"),
                ([[1, 4, 4, 1, 1]], "part 0, is [1, 4, 4, 1, 1]"),
                ([[1.5, 4, 4]], "the number of shards, is 1.5, expected a whole number from 1 to 65536"),
                ([["1", 4, 4]], "the number of shards, is '1'"),
                ([[True, 4, 4]], "the number of shards, is True"),
                ([[0, 4, 4]], "the number of shards, is 0"),
                ([[1 << 40, 4, 4]], "the number of shards, is 1099511627776"),
                ([[13, 4, 4]], "`r` was read by 13 shards, expected at most 12"),
                ([[1, 0, 4]], "the batch size, is 0"),
                ([[1, -4, 4]], "the batch size, is -4"),
                ([[3, 1 << 40, 4]], "the batch size, is 1099511627776, expected a whole number from 1 to 65536"),
                ([[1, 4, None]], "the number of batches, is None, expected a whole number from 0 to 4"),
                ([[1, 4, -1], [1, 4, 5]], "the number of batches, is -1"),
                ([[3, 2, 1 << 31]], "the number of batches, is 2147483648"),
                ([[1, 8, 1 << 40]], "the number of batches, is 1099511627776"),
                ([[1, 4, 3]], "the sum of batches, is 3, expected that of `batches`, 4"),
                ([[3, 2, 4], [1, 4, 1]], "the sum of batches, is 5"),
                ([[1, 4, 4, 2], [1, 4, 0]], "its end by `restart`, is 2"),
                ([[1, 4, 4, 1]], "the last part, is [1, 4, 4, 1]"),
            )
        ),
        (
            {"batches": (1 << 31) - 1, "readers": {"r": [[1 << 16, 1 << 16, (1 << 31) - 1]]}},
            "the number of samples, is 9223372032559808512",
        ),
    ],
)
@pytest.mark.parametrize("depth", [1, 2])
def test_a_checkpoint_that_was_edited_is_an_error(tmp_path, changed, words, depth):
    files = [str(tmp_path / f"{i}") for i in range(12)]
    for file in files:
        open(file, "wb").close()

    def make(state=None):
        made = Pipeline(4, 1, prefetch_queue_depth=depth, enable_checkpointing=True, checkpoint=state)
        with made:
            made.set_outputs(fn.readers.file(files=files, name="r")[1], fn.random.uniform(range=[0.0, 1.0]))
        return made

    first = make()
    for _ in range(4):
        first.run()
    state = json.loads(first.checkpoint())
    assert state["readers"] == {"r": [[1, 4, 4]]}
    with pytest.raises(ValueError, match="checkpoint") as error:
        make(json.dumps({**state, **changed}).encode()).build()
    assert words in str(error.value)


@pytest.mark.parametrize("name", ["batches", "samples", "seed", "iter", "epoch_idx", "iterator_data", "readers"])
def test_a_checkpoint_without_one_of_its_parts_is_an_error(name):
    made = Pipeline(4, 1, enable_checkpointing=True)
    with made:
        made.set_outputs(fn.random.uniform(range=[0.0, 1.0]))
    state = json.loads(made.checkpoint())
    del state[name]
    with pytest.raises(ValueError, match="the checkpoint is not one of this package"):
        Pipeline.deserialize(made.serialize(), checkpoint=json.dumps(state).encode()).build()
