"""What goes wrong on real machines: files that are cut off, disks that are full, Ctrl-C, and programs that run for
days."""

import gc
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time

import numpy as np
import pytest
from gesso import Pipeline, fn, tfrecord, types
from gesso._native import library as _library


def pipeline(make, batch_size=4, **settings):
    made = Pipeline(batch_size, 1, seed=1, **settings)
    with made:
        outputs = make()
        made.set_outputs(
            *(outputs.values() if isinstance(outputs, dict) else outputs if isinstance(outputs, list) else [outputs])
        )
    return made


def write_archive(path, count=4, size=2000):
    with tarfile.open(path, "w") as tar:
        for i in range(count):
            info = tarfile.TarInfo(f"folder/{i:06}{'x' * 40}.jpg")
            info.size = size
            tar.addfile(info, io.BytesIO(bytes([i % 256]) * size))


def index(path, folder):
    command = [sys.executable, "-m", "gesso", "index", "webdataset", str(path), "--out", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def reader(path, **options):
    return pipeline(lambda: fn.readers.webdataset(paths=[str(path)], ext=["jpg"], **options))


# --- files


@pytest.mark.parametrize(
    "left, words",
    [(2560 + 512 + 100, "ends within `folder/000001"), (2560 + 100, "ends within a header, at byte 2660")],
)
def test_an_archive_that_is_cut_off(tmp_path, left, words):
    path = tmp_path / "a.tar"
    write_archive(path)
    assert index(path, tmp_path).returncode == 0
    os.truncate(path, left)
    with pytest.raises(RuntimeError, match=words):
        reader(path).build()
    indexed = reader(path, index_paths=[str(tmp_path / "a.idx")])
    with pytest.raises(RuntimeError, match="a.tar` has .* bytes, expected 2512 from byte 2560 on"):
        indexed.run()
    skipping = reader(path, index_paths=[str(tmp_path / "a.idx")], on_missing="skip")
    assert [array[0] for array in skipping.run()[0].arrays] == [0] * 4


def test_an_index_of_another_archive(tmp_path):
    write_archive(tmp_path / "a.tar")
    write_archive(tmp_path / "b.tar", size=700)
    assert index(tmp_path / "b.tar", tmp_path).returncode == 0
    with pytest.raises(RuntimeError, match="no file of 700 bytes begins at byte 512 .*: does the index belong to it"):
        reader(tmp_path / "a.tar", index_paths=[str(tmp_path / "b.idx")]).run()
    for wrong, words in (("jpg 0 700", "a file at byte 0"), ("jpg 512 -700", "`-700`, expected a number")):
        (tmp_path / "c.idx").write_text(f"v1.1 1\n{wrong}\n")
        with pytest.raises(RuntimeError, match=f"c.idx`: line 2: {words}"):
            reader(tmp_path / "b.tar", index_paths=[str(tmp_path / "c.idx")]).build()
    (tmp_path / "c.idx").write_bytes((tmp_path / "b.idx").read_bytes()[:-80])
    with pytest.raises(RuntimeError, match="c.idx`: "):
        reader(tmp_path / "b.tar", index_paths=[str(tmp_path / "c.idx")]).build()


def test_an_index_of_other_records(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(bytes(range(200)))

    def run(text):
        (tmp_path / "a.idx").write_text(text)
        features = {"n": tfrecord.FixedLenFeature([], tfrecord.int64, 0)}
        paths = {"path": [str(tmp_path / "a.tfrecord")], "index_path": [str(tmp_path / "a.idx")]}
        pipeline(lambda: fn.readers.tfrecord(**paths, features=features), 1).run()

    for text, words in (
        ("0 50\n", "does the index belong to this file"),
        ("150 100\n", "a.tfrecord` has 200 bytes, expected 100 from byte 150 on"),
        ("nothing here\n", "line 1 of the index .*a.idx` is `nothing here`, expected two whole numbers"),
    ):
        with pytest.raises(RuntimeError, match=words):
            run(text)
    (tmp_path / "b.idx").write_text("0\t0\n1\t5000\n")
    paths = {"path": [str(tmp_path / "a.tfrecord")], "index_path": [str(tmp_path / "b.idx")]}
    with pytest.raises(RuntimeError, match="names byte 5000, but its files have 200"):
        pipeline(lambda: fn.readers.mxnet(**paths)).build()


@pytest.fixture
def full_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True).returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_an_index_on_a_full_disk(tmp_path, full_disk):
    write_archive(tmp_path / "a.tar", 15000, 1)
    done = index(tmp_path / "a.tar", full_disk)
    assert done.returncode == 1 and "a.idx`: No space left on device" in done.stderr
    if (full_disk / "a.idx").exists():
        with pytest.raises(RuntimeError, match="Malformed index file"):
            reader(tmp_path / "a.tar", index_paths=[str(full_disk / "a.idx")]).build()


def test_annotations_on_a_full_disk(tmp_path, full_disk):
    images = [{"id": i, "file_name": f"{i}{'x' * 80}.jpg", "width": 9, "height": 9} for i in range(4000)]
    boxes = [
        {"id": i, "image_id": i // 10, "category_id": 1, "bbox": [1, 1, 5, 5], "area": 25, "iscrowd": 0}
        for i in range(40000)
    ]
    (tmp_path / "a.json").write_text(json.dumps({"images": images, "annotations": boxes, "categories": [{"id": 1}]}))
    options = {"file_root": str(tmp_path), "annotations_file": str(tmp_path / "a.json")}
    saved = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": str(full_disk)}
    with pytest.raises(
        RuntimeError, match="Could not write the preprocessed annotations .*small: No space left on device"
    ):
        pipeline(lambda: fn.readers.coco(**options, **saved)).build()
    # What is there of the tables is not taken for all.
    with pytest.raises(RuntimeError, match="Could not (read|open) .*small"):
        pipeline(lambda: fn.readers.coco(file_root=str(tmp_path), preprocessed_annotations=str(full_disk))).build()


# --- Ctrl-C

TRAINING = """
import signal, time
import numpy as np
from gesso import fn, pipeline_def

def source(info):
    time.sleep(0.01)
    return np.zeros(10)

@pipeline_def(batch_size=4, num_threads=1, py_num_workers=2, py_start_method="METHOD")
def define():
    data, labels = fn.readers.file(files=[__file__] * 8)
    return data, fn.external_source(source, batch=False, parallel=True)

if __name__ == "__main__":
    # Who starts the tests in the background of a script has Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pipeline = define()
    pipeline.run()
    print(*pipeline.runner.sources.workers.pids(), flush=True)
    while True:
        pipeline.run()
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_ctrl_c_in_the_middle(tmp_path, method):
    script = tmp_path / "training.py"
    script.write_text(TRAINING.replace("METHOD", method))
    running = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    pids = [int(word) for word in running.stdout.readline().split()]
    assert len(pids) == 2
    time.sleep(0.3)
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=120)
    assert running.returncode != 0 and errors.count("Traceback") == 1 and errors.strip().endswith("KeyboardInterrupt")
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_ctrl_c_while_a_result_goes_is_not_lost(monkeypatch):
    running = pipeline(lambda: fn.constant(idata=1))
    library = _library.library()
    free, before = library.gesso_result_free, signal.signal(signal.SIGINT, signal.default_int_handler)

    def freed(handle):
        free(handle)
        monkeypatch.undo()
        signal.raise_signal(signal.SIGINT)

    try:
        monkeypatch.setattr(library, "gesso_result_free", freed)
        # A batch goes when those after it are there.
        with pytest.raises(KeyboardInterrupt):
            for _ in range(9):
                running.run()
        assert len(running.run()) == 1
    finally:
        signal.signal(signal.SIGINT, before)


# --- days


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def state():
    """(open files, threads of Python, all threads, resident megabytes), when what was let go has ended"""
    gc.collect()
    time.sleep(0.5)
    return (
        len(os.listdir("/proc/self/fd")),
        threading.active_count(),
        len(os.listdir("/proc/self/task")),
        resident() / 1e6,
    )


def settled(*most):
    """The state when none of its first numbers is above `most`; the last one after a minute: threads may end late."""
    deadline = time.monotonic() + 60
    while True:
        now = state()
        if all(count <= limit for count, limit in zip(now, most)) or time.monotonic() > deadline:
            return now


@pytest.mark.parametrize("kind", ["file", "webdataset"])
def test_memory_files_and_threads_stay(tmp_path, kind):
    image = pytest.importorskip("PIL.Image")
    numbers, encoded = np.random.default_rng(0), []
    for _ in range(500):
        data = io.BytesIO()
        image.fromarray(numbers.integers(0, 255, (8, 8, 3), np.uint8)).save(data, "JPEG")
        encoded.append(data.getvalue())
    (tmp_path / "a").mkdir()
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for i, data in enumerate(encoded):
            (tmp_path / "a" / f"{i}.jpg").write_bytes(data)
            info = tarfile.TarInfo(f"{i}.jpg")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

    def make():
        if kind == "file":
            data, labels = fn.readers.file(file_root=str(tmp_path), random_shuffle=True, pad_last_batch=True)
        else:
            data = fn.readers.webdataset(
                paths=[str(tmp_path / "a.tar")], ext=["jpg"], random_shuffle=True, pad_last_batch=True
            )
        return fn.cast(fn.decoders.image(data), dtype=types.FLOAT)

    made = pipeline(make, 100)

    def epochs(count):
        for _ in range(5 * count):
            made.run()

    epochs(40)
    files, threads, tasks, memory = state()
    epochs(160)
    now = settled(files, threads, tasks)
    # Threads of earlier tests may have ended meanwhile.
    assert now[0] <= files and now[1] <= threads and now[2] <= tasks and now[3] < memory + 4, (now, memory)
    # Pipelines that come and go leave nothing, either.
    for _ in range(5):
        made = pipeline(make, 100)
        epochs(1)
    files, threads, tasks, memory = state()
    for _ in range(30):
        made = pipeline(make, 100)
        epochs(1)
    now = settled(files + 1, threads, tasks)
    # One pipeline more or less may be on its way out.
    assert now[0] <= files + 1 and now[1] <= threads and now[2] <= tasks and now[3] < memory + 8, (now, memory)
