"""Readers of HDF5 and Parquet: rows as samples, in the order of other readers; real files, written by the packages that
others write them with."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from gesso import Pipeline, fn, types
from gesso._readers import parquet as parquet_reader

ROWS = 43


def pipeline(make, batch_size=4, **settings):
    made = Pipeline(batch_size, 1, seed=1, **settings)
    with made:
        outputs = make()
        made.set_outputs(*(outputs if isinstance(outputs, (list, tuple)) else [outputs]))
    return made


def labels(made, batches, output=-1):
    return [int(label) for _ in range(batches) for label in made.run()[output].as_array()]


def write_hdf5(path, rows):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["data/images"] = (np.arange(6).reshape(1, 2, 3) + np.array(rows).reshape(-1, 1, 1)).astype(">f4")
        file["labels"] = np.array(rows, np.int64)
        encoded = file.create_dataset("encoded", (len(rows),), h5py.vlen_dtype(np.uint8))
        for i, row in enumerate(rows):
            encoded[i] = np.full(row + 1, row, np.uint8)
        file["text"] = [f"text {row}" for row in rows]
        file["fixed"] = np.array([b"%03d" % row for row in rows])
        file["opaque"] = np.array([bytes([row, 0]) for row in rows], "V2")
        file["good"] = np.array(rows) % 2 == 0


def write_parquet(path, rows, group=5):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    tensors = pa.array([[row, 1, 2, 3] for row in rows], pa.list_(pa.int32(), 4))
    columns = {
        "image": [{"bytes": bytes([row]) * (row + 1), "path": f"{row}.jpg"} for row in rows],
        "boxes": pa.array([[[row, 1, 2, 3]] * (row % 3) for row in rows], pa.list_(pa.list_(pa.float32(), 4))),
        "matrix": [[[row, 1, 2], [3, 4, 5]] for row in rows],
        "tensor": pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int32(), [2, 2]), tensors),
        "text": pa.array([f"text {row}" for row in rows]).dictionary_encode(),
        "good": [row % 2 == 0 for row in rows],
        "maybe": [None if row == 3 else row / 2 for row in rows],
        "a.b": pa.array(rows, pa.int16()),
        "label": pa.array(rows, pa.int64()),
    }
    pq.write_table(pa.table(columns), path, row_group_size=group)


KINDS = {
    "hdf5": (
        write_hdf5,
        lambda path, **options: fn.readers.hdf5(files=path, datasets=["encoded", "labels"], name="r", **options),
    ),
    "parquet": (
        write_parquet,
        lambda path, **options: fn.readers.parquet(files=path, columns=["image.bytes", "label"], name="r", **options),
    ),
}


@pytest.fixture(params=KINDS, scope="module")
def table(request, tmp_path_factory):
    """A reader of two files with all rows, the encoded samples and their labels."""
    write, read = KINDS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    paths = [str(folder / name) for name in ("a", "b")]
    write(paths[0], list(range(20)))
    write(paths[1], list(range(20, ROWS)))
    return lambda **options: read(paths, **options)


# --- what is in a row


def test_types_of_hdf5(tmp_path):
    write_hdf5(tmp_path / "a.h5", list(range(5)))
    names = ["data/images", "labels", "encoded", "text", "fixed", "opaque", "good"]
    out = pipeline(lambda: fn.readers.hdf5(file_root=str(tmp_path), datasets=names)).run()
    images, numbers, encoded, text, fixed, opaque, good = ([np.asarray(batch.at(i)) for i in range(4)] for batch in out)
    assert images[3].dtype == np.float32 and images[3].tolist() == [[3, 4, 5], [6, 7, 8]]
    assert numbers[3].shape == () and numbers[3].dtype == np.int64 and numbers[3] == 3
    assert encoded[3].tolist() == [3] * 4 and bytes(text[3]) == b"text 3" and bytes(fixed[3]) == b"003"
    assert opaque[3].tolist() == [3, 0] and [bool(value) for value in good] == [True, False, True, False]


def test_types_of_parquet(tmp_path):
    write_parquet(tmp_path / "a.parquet", list(range(8)))
    names = ["image.bytes", "boxes", "matrix", "tensor", "text", "good", "a.b", "label", "image.path"]
    made = pipeline(lambda: fn.readers.parquet(file_root=str(tmp_path), columns=names), 8)
    encoded, boxes, matrix, tensor, text, good, dotted, numbers, path = (
        [np.asarray(batch.at(i)) for i in range(8)] for batch in made.run()
    )
    assert encoded[6].tolist() == [6] * 7 and bytes(path[6]) == b"6.jpg"
    assert (
        [box.shape for box in boxes[:3]] == [(0, 4), (1, 4), (2, 4)]
        and boxes[5].dtype == np.float32
        and boxes[5][1].tolist() == [5, 1, 2, 3]
    )
    assert (
        matrix[6].tolist() == [[6, 1, 2], [3, 4, 5]]
        and tensor[6].tolist() == [[6, 1], [2, 3]]
        and tensor[6].dtype == np.int32
    )
    assert bytes(text[7]) == b"text 7" and [bool(value) for value in good[:2]] == [True, False]
    assert dotted[4] == 4 and dotted[4].dtype == np.int16 and numbers[6].shape == () and numbers[6] == 6


def test_images_are_decoded(tmp_path):
    image, pq = pytest.importorskip("PIL.Image"), pytest.importorskip("pyarrow.parquet")
    import io

    import pyarrow as pa

    encoded = []
    for i in range(4):
        data = io.BytesIO()
        image.fromarray(np.full((6, 8, 3), 40 * i, np.uint8)).save(data, "PNG")
        encoded.append(data.getvalue())
    pq.write_table(pa.table({"image": [{"bytes": data} for data in encoded]}), tmp_path / "a.parquet")
    made = pipeline(lambda: fn.decoders.image(fn.readers.parquet(file_root=str(tmp_path), columns=["image.bytes"])))
    assert made.run()[0].as_array()[:, 0, 0, 0].tolist() == [0, 40, 80, 120]


# --- order


@pytest.mark.parametrize(
    "options",
    [{}, {"random_shuffle": True, "initial_fill": 7}, {"shuffle_after_epoch": True}, {"pad_last_batch": True}],
)
def test_every_row_comes_once_an_epoch(table, options):
    made = pipeline(lambda: table(**options), ROWS)
    epochs = [labels(made, 1) for _ in range(3)]
    assert all(sorted(epoch) == list(range(ROWS)) for epoch in epochs)
    assert (epochs[1] == list(range(ROWS))) == (
        "random_shuffle" not in options and "shuffle_after_epoch" not in options
    )
    assert made.reader_meta("r")["epoch_size"] == ROWS
    encoded, numbers = made.run()
    assert all(
        np.asarray(encoded.at(i)).tolist() == [label] * (label + 1)
        for i, label in enumerate(numbers.as_array().tolist())
    )


@pytest.mark.parametrize("options", [{}, {"random_shuffle": True, "initial_fill": 9}, {"shuffle_after_epoch": True}])
def test_rows_of_hdf5_come_in_the_order_of_files(tmp_path, options):
    write_hdf5(tmp_path / "a.h5", list(range(ROWS)))
    rows = pipeline(lambda: fn.readers.hdf5(file_root=str(tmp_path), datasets=["labels"], seed=4, **options))
    for i in range(ROWS):
        (tmp_path / f"{i:02}.jpg").write_bytes(b"x")
    paths = [str(tmp_path / f"{i:02}.jpg") for i in range(ROWS)]
    files = pipeline(lambda: fn.readers.file(files=paths, seed=4, **options)[1])
    assert labels(rows, 30) == [label for _ in range(30) for label in files.run()[0].as_array().ravel().tolist()]


def test_row_groups_are_shuffled_as_a_whole(tmp_path):
    write_parquet(tmp_path / "a.parquet", list(range(20)))
    made = pipeline(lambda: fn.readers.parquet(file_root=str(tmp_path), columns=["label"], shuffle_after_epoch=True), 5)
    found = [labels(made, 1) for _ in range(12)]
    assert all(batch == list(range(batch[0], batch[0] + 5)) and batch[0] % 5 == 0 for batch in found)
    assert len({tuple(batch[0] for batch in found[at : at + 4]) for at in (0, 4, 8)}) > 1


def test_shards_and_samplers(table):
    shards = [
        labels(pipeline(lambda: table(shards=(i, 3), stick_to_shard=True, pad_last_batch=True), 5), 3) for i in range(3)
    ]
    assert sorted(set(sum(shards, []))) == list(range(ROWS)) and not set(shards[0]) & set(shards[1])
    assert labels(pipeline(lambda: table(sampler=[40, 2, 2, 19])), 1) == [40, 2, 2, 19]
    weights = [float(row == 21) for row in range(ROWS)]
    assert labels(pipeline(lambda: table(weights=weights)), 2) == [21] * 8


def test_a_state_in_the_middle_of_an_epoch(table):
    def make(state=None):
        return pipeline(
            lambda: table(random_shuffle=True, initial_fill=11), enable_checkpointing=True, checkpoint=state
        )

    first = make()
    labels(first, 15)
    assert labels(make(first.checkpoint()), 12) == labels(first, 12)


def test_other_processes_go_on(table):
    def make(shard, shards, state=None):
        options = {"shards": (shard, shards), "pad_last_batch": True, "random_shuffle": True, "initial_fill": 7}
        return pipeline(lambda: table(**options), enable_checkpointing=True, checkpoint=state)

    before = [make(shard, 2) for shard in range(2)]
    seen = [label for made in before for label in labels(made, 3)]
    rest = [label for shard in range(3) for label in labels(make(shard, 3, before[0].checkpoint()), 2)]
    assert len(set(seen)) == 24 and set(rest) == set(range(ROWS)) - set(seen)


# --- what is wrong


def damage(path, pattern):
    """Changes the bytes of a file behind the only place where `pattern` stands."""
    data = bytearray(path.read_bytes())
    assert data.count(pattern) == 1
    at = data.index(pattern)
    data[at : at + len(pattern)] = bytes(255 - byte for byte in pattern)
    path.write_bytes(data)


def test_a_damaged_row_of_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(
            "x", data=np.repeat(np.arange(100, 108, dtype=np.uint8), 30).reshape(8, 30), chunks=(1, 30), fletcher32=True
        )
    damage(tmp_path / "a.h5", bytes([103] * 30))
    with pytest.raises(RuntimeError, match="Could not read row 3 of `x` in .*a.h5: "):
        pipeline(lambda: fn.readers.hdf5(file_root=str(tmp_path), datasets=["x"])).run()

    def found(policy):
        made = pipeline(lambda: fn.readers.hdf5(file_root=str(tmp_path), datasets=["x"], on_missing=policy))
        return made.run()[0].as_array()[:, 0].tolist()

    assert found("skip") == [100, 101, 102, 104] and found("pad") == [100, 101, 102, 102]


def test_a_damaged_row_group(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"text": [f"this is row {i:02}" for i in range(12)], "label": range(12)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=4, compression="zstd", use_dictionary=False)
    group = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(1).column(0)
    with open(tmp_path / "a.parquet", "r+b") as file:
        file.seek(group.data_page_offset)
        page = file.read(group.total_compressed_size)
        file.seek(group.data_page_offset + page.index(b"\x28\xb5\x2f\xfd"))
        file.write(b"xxxx")

    def make(policy="raise"):
        return pipeline(
            lambda: fn.readers.parquet(file_root=str(tmp_path), columns=["text", "label"], on_missing=policy, name="r")
        )

    raising = make()
    assert labels(raising, 1) == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="Could not read .*a.parquet row 0 of row group 1: .*"):
        raising.run()
    assert labels(make("skip"), 4) == [0, 1, 2, 3, 8, 9, 10, 11] * 2
    assert labels(make("pad"), 3) == [0, 1, 2, 3, 3, 3, 3, 3, 8, 9, 10, 11]


def test_values_that_are_null(tmp_path):
    write_parquet(tmp_path / "a.parquet", list(range(8)))
    made = pipeline(lambda: fn.readers.parquet(file_root=str(tmp_path), columns=["maybe"]))
    with pytest.raises(
        RuntimeError, match="Could not read `maybe` in .*a.parquet row 3 of row group 0: the value is null"
    ):
        made.run()
    made = pipeline(lambda: fn.readers.parquet(file_root=str(tmp_path), columns=["maybe"], on_missing="skip"))
    assert made.run()[0].as_array().tolist() == [0, 0.5, 1, 2]


@pytest.mark.parametrize(
    "names, words",
    [
        (["none"], r"has no such dataset: .*none.*; it has \[.*'data/images'"),
        (["data"], "`data` in .* has no rows"),
        (["one"], "`one` in .* has no rows"),
        (["labels", "short"], "differ in their number of rows: `labels` 5, `short` 2"),
        (["table"], "`table` in .* has the type .*, expected numbers"),
        (["complex"], "has the type complex128, expected numbers"),
    ],
)
def test_datasets_that_are_refused(tmp_path, names, words):
    h5py = pytest.importorskip("h5py")
    write_hdf5(tmp_path / "a.h5", list(range(5)))
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file["one"], file["short"], file["complex"] = 1, [1, 2], np.zeros(5, complex)
        file["table"] = np.zeros(5, [("a", "i4"), ("b", "f4")])
    with pytest.raises(RuntimeError, match=words):
        pipeline(lambda: fn.readers.hdf5(file_root=str(tmp_path), datasets=names)).build()


@pytest.mark.parametrize(
    "name, words",
    [
        ("none", r"a.parquet has no column `none`; it has \['image', 'boxes'"),
        ("image", "has fields: name one of them, `image.bytes`, `image.path`"),
        ("image.size", "`image` has the type .*, without a field `size`"),
        ("label.x", "`label` has the type int64, without a field `x`"),
        ("when", r"has the type timestamp\[us\], expected numbers"),
        ("words", "has the type list<.*string>, expected numbers"),
    ],
)
def test_columns_that_are_refused(tmp_path, name, words):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    write_parquet(tmp_path / "a.parquet", list(range(5)))
    more = pq.read_table(tmp_path / "a.parquet").append_column("when", pa.array([0] * 5, pa.timestamp("us")))
    pq.write_table(more.append_column("words", pa.array([["a"]] * 5)), tmp_path / "a.parquet")
    with pytest.raises(RuntimeError, match=words):
        pipeline(lambda: fn.readers.parquet(file_root=str(tmp_path), columns=[name])).build()


def test_files_that_do_not_fit_together(tmp_path):
    h5py, pa, pq = pytest.importorskip("h5py"), pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for name, dtype in (("a", np.int32), ("b", np.float32)):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["x"] = np.zeros(3, dtype)
        pq.write_table(pa.table({"x": np.zeros(3, dtype)}), tmp_path / f"{name}.parquet")
    with pytest.raises(RuntimeError, match="`x` has the type float32 in .*b.h5, but int32 in .*a.h5"):
        pipeline(lambda: fn.readers.hdf5(file_root=str(tmp_path), datasets=["x"])).build()
    with pytest.raises(RuntimeError, match="`x` has the type float in .*b.parquet, but int32 in .*a.parquet"):
        pipeline(lambda: fn.readers.parquet(file_root=str(tmp_path), columns=["x"])).build()


def test_lists_of_lists_of_different_lengths(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"x": [[[1, 2], [3, 4]], [[1, 2], [3]], [[1, None]]]}), tmp_path / "a.parquet")
    for at, words in ((1, "row 1 .* a list of lists of 1 to 2 elements"), (2, "row 2 .* the value has nulls in it")):
        with pytest.raises(RuntimeError, match=words):
            pipeline(lambda: fn.readers.parquet(file_root=str(tmp_path), columns=["x"], sampler=[at])).run()


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_something_else(tmp_path, kind):
    write, read = KINDS[kind]
    write(tmp_path / "a", list(range(5)))
    os.truncate(tmp_path / "a", 300)
    (tmp_path / "b").write_bytes(b"something else" * 100)
    for name in ("a", "b", "none"):
        with pytest.raises(RuntimeError, match=f"Could not open file .*{name}: "):
            pipeline(lambda: read([str(tmp_path / name)])).build()


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_in_no_file(tmp_path, kind):
    write, read = KINDS[kind]
    write(tmp_path / "a", list(range(5)))
    with pytest.raises(RuntimeError, match=f"The operator `.*{kind}` runs in Python only: it cannot be serialized"):
        pipeline(lambda: read([str(tmp_path / "a")])).serialize()


@pytest.mark.parametrize("kind, package", [("hdf5", "h5py"), ("parquet", "pyarrow")])
def test_without_the_package(monkeypatch, kind, package):
    for name in [name for name in sys.modules if name.partition(".")[0] == package] + [package]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(RuntimeError, match=rf"needs the package `{package}`.*pip install 'FILE.whl\[{kind}\]'"):
        pipeline(lambda: KINDS[kind][1](["a"])).build()


# --- memory and files


def test_row_groups_that_are_kept(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = np.random.default_rng(0).integers(0, 255, (40, 1 << 18), np.uint8)
    pq.write_table(
        pa.table({"x": [row.tobytes() for row in rows]}), tmp_path / "a.parquet", row_group_size=2, compression=None
    )
    groups = parquet_reader._Groups([str(tmp_path / "a.parquet")], ["x"], 2)
    for row in range(40):
        (found,), where = groups.read(row)
        assert (found == rows[row]).all() and where.endswith(f"row {row % 2} of row group {row // 2}")
        assert groups._bytes == sum(size for _, size in groups._kept.values()) <= 2 << 20
    assert [place[1] for place in groups._kept] == [17, 18, 19]
    # A group that is larger than all that may be kept is kept alone.
    small = parquet_reader._Groups([str(tmp_path / "a.parquet")], ["x"], 1)
    small._limit = 1000
    small.read(0), small.read(5)
    assert [place[1] for place in small._kept] == [2]
    with pytest.raises(RuntimeError, match="`cache_size` is 0, expected at least 1 megabyte"):
        pipeline(lambda: fn.readers.parquet(file_root=str(tmp_path), columns=["x"], cache_size=0)).build()


MANY = """
import resource, sys, numpy as np, h5py
from gesso import Pipeline, fn
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
for i in range(150):
    with h5py.File(f"{sys.argv[1]}/{i:03}.h5", "w") as file:
        file["x"] = [2 * i, 2 * i + 1]
pipeline = Pipeline(300, 1, seed=1)
with pipeline:
    pipeline.set_outputs(fn.readers.hdf5(file_root=sys.argv[1], datasets=["x"], random_shuffle=True))
for _ in range(3):
    assert sorted(pipeline.run()[0].as_array().tolist()) == list(range(300))
print("good")
"""


def test_more_files_than_may_be_open(tmp_path):
    pytest.importorskip("h5py")
    done = subprocess.run([sys.executable, "-c", MANY, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.stdout == "good\n", done.stderr


ENDS = """
import sys, threading, time
from gesso import Pipeline, fn
threads, begun = [], threading.Event()
def sampler(epoch):
    threads.append(threading.get_ident())
    if epoch == 3:
        begun.set()
        time.sleep(0.5)
    return [0] * 4
pipeline = Pipeline(4, 1, seed=1)
with pipeline:
    pipeline.set_outputs(fn.readers.file(files=[sys.argv[1]], sampler=sampler)[0])
assert bytes(pipeline.run()[0].at(3)) == b"data" and bytes(pipeline.run()[0].at(0)) == b"data"
assert threading.get_ident() not in threads and len(set(threads)) == 1
begun.wait()
print("good")
"""


def test_a_program_ends_while_a_batch_is_read_ahead(tmp_path):
    (tmp_path / "a").write_bytes(b"data")
    done = subprocess.run(
        [sys.executable, "-c", ENDS, str(tmp_path / "a")], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.returncode) == ("good\n", 0), done.stderr


def test_rows_are_read_by_a_stream(table):
    made = pipeline(lambda: [fn.cast(output, dtype=types.FLOAT) for output in table()], 4)
    made.build()
    assert type(made.runner.execution.run).__name__ == "StreamRun"
    assert [made.run()[1].as_array().tolist() for _ in range(3)] == [
        [4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3] for i in range(3)
    ]


@pytest.mark.filterwarnings(
    "error::pytest.PytestUnraisableExceptionWarning", "error::pytest.PytestUnhandledThreadExceptionWarning"
)
def test_files_are_not_closed_while_they_are_read(tmp_path):
    pytest.importorskip("h5py")
    write_hdf5(tmp_path / "a.h5", list(range(ROWS)))
    write_hdf5(tmp_path / "b.h5", list(range(ROWS)))
    before = set(threading.enumerate())
    for _ in range(20):
        # The next batch is being read when nobody has the pipeline any more.
        made = pipeline(
            lambda: fn.readers.hdf5(file_root=str(tmp_path), datasets=["encoded", "labels"], random_shuffle=True), 150
        )
        made.run()
        del made
    for thread in set(threading.enumerate()) - before:
        thread.join()
