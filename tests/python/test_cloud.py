"""Data sets in object stores: against a server that speaks S3, and one that speaks HTTP."""

import functools
import http.server
import io
import json
import os
import re
import struct
import sys
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest
from gesso import Pipeline, fn, tfrecord
from gesso._readers import storage


def pipeline(make, batch_size=4):
    made = Pipeline(batch_size, 1, seed=1)
    with made:
        outputs = make()
        made.set_outputs(
            *(outputs.values() if isinstance(outputs, dict) else outputs if isinstance(outputs, list) else [outputs])
        )
    return made


def texts(batch):
    return [bytes(batch.at(i)) for i in range(len(batch))]


def archive():
    data, index = io.BytesIO(), ["v1.2 6"]
    with tarfile.open(fileobj=data, mode="w") as tar:
        for i in range(6):
            info = tarfile.TarInfo(f"{i}.txt")
            info.size = 3000
            tar.addfile(info, io.BytesIO(b"%d" % i * 3000))
            index.append(f"txt {tar.offset - 3072} 3000 {i}.txt")
    return data.getvalue(), "\n".join(index).encode()


def records():
    data, index = b"", []
    for i in range(5):
        # Example { features { feature { key: "n" value { int64_list { value: i } } } } }
        value = b"\x1a\x03\x0a\x01" + bytes([i])
        entry = b"\x0a\x01n\x12" + bytes([len(value)]) + value
        features = b"\x0a" + bytes([len(entry)]) + entry
        message = b"\x0a" + bytes([len(features)]) + features
        record = struct.pack("<QI", len(message), 0) + message + bytes(4)
        index.append(f"{len(data)} {len(record)}")
        data += record
    return data, "\n".join(index).encode()


@pytest.fixture(scope="module")
def files():
    tar, tar_index = archive()
    record, record_index = records()
    array = io.BytesIO()
    np.save(array, np.arange(6, dtype=np.float32))
    images = {f"images/{kind}/{i} +.jpg": f"{kind}{i}".encode() for kind in ("cat", "dog") for i in range(20)}
    others = {
        "images/readme.txt": b"no image",
        "list.txt": b"images/dog/3 +.jpg 7\nimages/cat/1 +.jpg 8\n",
        "array.npy": array.getvalue(),
    }
    coco = {"images": [{"id": 1, "file_name": "cat/4 +.jpg", "width": 2, "height": 2}], "categories": [{"id": 1}]}
    coco["annotations"] = [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}]
    return {
        **images,
        **others,
        "coco.json": json.dumps(coco).encode(),
        **{"a.tar": tar, "a.idx": tar_index, "a.tfrecord": record, "a.tfrecord.idx": record_index},
    }


def settings(endpoint):
    return {
        "AWS_ACCESS_KEY_ID": "one",
        "AWS_SECRET_ACCESS_KEY": "two",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
    }


@pytest.fixture(scope="module")
def bucket(files):
    pytest.importorskip("obstore")
    boto3, server = pytest.importorskip("boto3"), pytest.importorskip("moto.server")
    running = server.ThreadedMotoServer(port=0, verbose=False)
    running.start()
    endpoint = "http://{}:{}".format(*running.get_host_and_port())
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings(endpoint).items():
            patch.setenv(name, value)
        client = boto3.client("s3", endpoint_url=endpoint)
        client.create_bucket(Bucket="data")
        for name, content in files.items():
            client.put_object(Bucket="data", Key=f"set/{name}", Body=content)
        yield "s3://data/set"
    running.stop()


def test_a_folder_of_images(bucket):
    made = pipeline(
        lambda: fn.readers.file(file_root=f"{bucket}/images", random_shuffle=True, pad_last_batch=True, name="r"), 16
    )
    assert made.reader_meta("r")["epoch_size"] == 40
    found = []
    for count in (16, 16, 8):
        data, labels = made.run()
        found += list(zip(texts(data), labels.as_array().ravel().tolist()))[:count]
    assert sorted(found) == sorted(
        (f"{kind}{i}".encode(), label) for label, kind in enumerate(("cat", "dog")) for i in range(20)
    )


def test_files_that_are_listed(bucket):
    made = pipeline(lambda: fn.readers.file(file_list=f"{bucket}/list.txt"), 2)
    data, labels = made.run()
    assert texts(data) == [b"dog3", b"cat1"] and labels.as_array().ravel().tolist() == [7, 8]
    made = pipeline(
        lambda: fn.readers.file(files=[f"{bucket}/images/cat/0 +.jpg", "images/dog/0 +.jpg"], file_root=bucket), 2
    )
    assert texts(made.run()[0]) == [b"cat0", b"dog0"]


@pytest.mark.parametrize("indexed", [False, True])
def test_archives(bucket, indexed):
    index = {"index_paths": [f"{bucket}/a.idx"]} if indexed else {}
    made = pipeline(lambda: fn.readers.webdataset(paths=[f"{bucket}/a.tar"], ext=["txt"], **index), 6)
    assert texts(made.run()[0]) == [b"%d" % i * 3000 for i in range(6)]


def test_records(bucket):
    features = {"n": tfrecord.FixedLenFeature([], tfrecord.int64, -1)}
    made = pipeline(
        lambda: fn.readers.tfrecord(
            path=[f"{bucket}/a.tfrecord"], index_path=[f"{bucket}/a.tfrecord.idx"], features=features
        ),
        5,
    )
    assert made.run()[0].as_array().tolist() == [0, 1, 2, 3, 4]


def test_arrays_and_annotations(bucket):
    made = pipeline(lambda: fn.readers.numpy(file_root=bucket, file_filter="*.npy"), 1)
    assert made.run()[0].at(0).tolist() == [0, 1, 2, 3, 4, 5]
    made = pipeline(lambda: fn.readers.coco(file_root=f"{bucket}/images", annotations_file=f"{bucket}/coco.json"), 1)
    data, boxes, labels = made.run()
    assert texts(data) == [b"cat4"] and boxes.at(0).tolist() == [[0, 0, 1, 1]]


def test_what_is_not_there(bucket):
    with pytest.raises(RuntimeError, match="Could not open file s3://data/set/none"):
        pipeline(lambda: fn.readers.file(files=[f"{bucket}/none"])).run()
    made = pipeline(
        lambda: fn.readers.file(files=[f"{bucket}/none", f"{bucket}/images/cat/0 +.jpg"], on_missing="skip"), 2
    )
    assert texts(made.run()[0]) == [b"cat0", b"cat0"]
    with pytest.raises(RuntimeError, match="found no samples"):
        pipeline(lambda: fn.readers.file(file_root=f"{bucket}/nothing")).run()
    with pytest.raises(RuntimeError, match="Could not open file s3://data/set/none.tar"):
        pipeline(lambda: fn.readers.webdataset(paths=[f"{bucket}/none.tar"], ext=["txt"])).run()


def test_an_epoch_goes_on_from_a_state(bucket):
    def make(state=None):
        made = Pipeline(8, 1, seed=2, enable_checkpointing=True, checkpoint=state)
        with made:
            made.set_outputs(*fn.readers.file(file_root=f"{bucket}/images", random_shuffle=True))
        return made

    first = make()
    first.run()
    assert texts(make(first.checkpoint()).run()[0]) == texts(first.run()[0])


def test_tables(bucket, tmp_path):
    h5py, pa, pq = pytest.importorskip("h5py"), pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    import boto3

    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(12).reshape(6, 2)
    pq.write_table(pa.table({"x": range(6)}), tmp_path / "a.parquet", row_group_size=2)
    client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    for name in ("a.h5", "a.parquet"):
        client.put_object(Bucket="data", Key=f"tables/{name}", Body=(tmp_path / name).read_bytes())
    made = pipeline(lambda: fn.readers.hdf5(file_root="s3://data/tables", datasets=["x"]))
    assert made.run()[0].as_array().tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    made = pipeline(lambda: fn.readers.parquet(file_root="s3://data/tables", columns=["x"]))
    assert made.run()[0].as_array().tolist() == [0, 1, 2, 3] and made.run()[0].as_array().tolist() == [4, 5, 0, 1]
    with pytest.raises(RuntimeError, match="Could not open file s3://data/tables/b.h5"):
        pipeline(lambda: fn.readers.hdf5(files=["s3://data/tables/b.h5"], datasets=["x"])).build()


def test_the_page(bucket):
    import boto3

    image = pytest.importorskip("PIL.Image")
    data = io.BytesIO()
    image.fromarray(np.zeros((20, 30, 3), np.uint8)).save(data, "JPEG")
    client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    client.create_bucket(Bucket="bucket")
    for name in ("cat/1.jpg", "dog/1.jpg"):
        client.put_object(Bucket="bucket", Key=f"train/{name}", Body=data.getvalue())
    page = Path(__file__).resolve().parents[2] / "docs" / "guides" / "training" / "cloud.md"
    names = {}
    exec(
        "".join(re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)), names
    )
    assert set(names["labels"].as_array().ravel().tolist()) == {0, 1} and names["images"].as_array().shape == (
        64,
        224,
        224,
        3,
    )


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    storage._store.cache_clear()
    with pytest.raises(RuntimeError, match=r"needs the package `obstore`.*pip install 'FILE.whl\[cloud\]'"):
        pipeline(lambda: fn.readers.file(files=["gs://bucket/a.jpg"])).run()


class _Sometimes(http.server.SimpleHTTPRequestHandler):
    """Fails every first time."""

    failed = set()

    def do_GET(self):
        if self.path not in self.failed:
            self.failed.add(self.path)
            self.send_error(503)
        else:
            super().do_GET()

    def log_message(self, *_):
        pass


def test_a_server_that_fails_now_and_then(tmp_path):
    pytest.importorskip("obstore")
    for i in range(3):
        (tmp_path / f"{i}.jpg").write_bytes(b"%d" % i)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Sometimes, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        root = f"http://127.0.0.1:{server.server_port}"
        made = pipeline(lambda: fn.readers.file(files=[f"{root}/{i}.jpg" for i in range(3)]), 3)
        assert texts(made.run()[0]) == [b"0", b"1", b"2"] and len(_Sometimes.failed) == 3
    finally:
        server.shutdown()


class _Slow(http.server.BaseHTTPRequestHandler):
    """Sends a file byte by byte, and stops within it where its name says so."""

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", "12")
        self.send_header("Last-Modified", "Mon, 02 Jan 2023 00:00:00 GMT")
        self.end_headers()

    def do_GET(self):
        self.do_HEAD()
        for byte in b"byte by byte":
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            self.server.pause.wait(0.2)
            if "stops" in self.path:
                self.server.pause.wait()

    def log_message(self, *_):
        pass


def test_a_transfer_may_take_long_while_bytes_come(monkeypatch):
    """With limits that are as many times shorter as the file is."""
    pytest.importorskip("obstore")
    import datetime

    monkeypatch.setattr(storage, "_STALLED", datetime.timedelta(seconds=2))
    monkeypatch.setattr(storage, "_RETRIES", 0)
    storage._store.cache_clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Slow)
    server.pause, server.daemon_threads = threading.Event(), True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        root = f"http://127.0.0.1:{server.server_port}"
        assert storage.read(f"{root}/all").tobytes() == b"byte by byte"
        with pytest.raises(RuntimeError, match="Could not open file .*stops"):
            storage.read(f"{root}/stops")
    finally:
        server.pause.set()
        server.shutdown()
        storage._store.cache_clear()


def test_the_whole_of_a_transfer_has_no_short_limit(monkeypatch):
    given = {}
    store = pytest.importorskip("obstore.store")
    monkeypatch.setattr(store, "from_url", lambda root, **settings: given.update(settings) or root)
    storage._store.cache_clear()
    storage._store("s3://bucket", 0)
    storage._store.cache_clear()
    assert (
        given["client_options"]["timeout"].total_seconds()
        >= 3600
        > given["client_options"]["read_timeout"].total_seconds()
    )


def test_paths_of_this_machine_with_colons(tmp_path):
    path = tmp_path / "a:b"
    path.write_bytes(b"here")
    assert not storage.is_remote(str(path)) and not storage.is_remote("C://a") and storage.is_remote("s3://a/b")
    assert texts(pipeline(lambda: fn.readers.file(files=[str(path)]), 1).run()[0]) == [b"here"]
