"""Small data sets of every kind, the same ones whenever they are made. Each sample says its own number."""

import io
import json
import shutil
import struct
import tarfile
import wave
import zlib
from pathlib import Path

import numpy as np

from .lmdb_file import write_lmdb

_CLIP = Path(__file__).parents[1] / "data/video/vp8.webm"
# Samples that the clip, of twelve frames, is cut into.
_OF_CLIP = 4


class Sets:
    """The data sets in a folder, made when they are first wanted: `of` gives the arguments with which a reader reads
    one."""

    def __init__(self, root):
        self._root, self._made = Path(root), {}

    def of(self, kind, size):
        if (kind, size) not in self._made:
            folder = self._root / f"{kind}-{size}"
            folder.mkdir()
            self._made[kind, size] = _MAKERS[kind](folder, size)
        return self._made[kind, size]


def number_of(kind, arrays):
    """The number of a sample, from what its reader gives."""
    first = np.asarray(arrays[0])
    if kind == "video":
        return int(arrays[0].ravel()[0]) * _OF_CLIP + int(arrays[1].ravel()[0]) * _OF_CLIP // 12
    if kind == "tfrecord":
        return int(first.tobytes())
    if kind == "nemo_asr":
        return round(float(first[0]) * 32768 / 100)
    if kind in _OF_BYTES:
        return int(np.frombuffer(first.tobytes(), "<i4")[0])
    return int(first.ravel()[0])


def outputs_of(kind, outputs):
    """Those of a reader's outputs that say the number."""
    if kind == "video":
        return list(outputs[1:3])
    if kind == "labels":
        return [outputs[1]]
    if isinstance(outputs, dict):
        return list(outputs.values())
    return [outputs[0] if isinstance(outputs, (list, tuple)) else outputs]


def _file(folder, size):
    for i in range(size):
        (folder / f"{i % 3}").mkdir(exist_ok=True)
    paths = sorted((f"{i % 3}", f"{i:04}") for i in range(size))
    for i, (label, name) in enumerate(paths):
        (folder / label / f"{name}.jpg").write_bytes(struct.pack("<i", i))
    return {"file_root": str(folder)}


def _labels(folder, size):
    """One file under many labels: what is too large to lie in files."""
    (folder / "a.jpg").write_bytes(b"file")
    (folder / "all.txt").write_text("".join(f"a.jpg {i}\n" for i in range(size)))
    return {"file_root": str(folder), "file_list": str(folder / "all.txt")}


def _numpy(folder, size):
    for i in range(size):
        np.save(folder / f"{i:04}.npy", np.full((2, 3), i, np.float32))
    return {"file_root": str(folder)}


def _coco(folder, size):
    images = [{"id": 7 * i % 1009, "file_name": f"{i}.jpg", "width": 50, "height": 40} for i in range(size)]
    for i, image in enumerate(images):
        (folder / image["file_name"]).write_bytes(struct.pack("<i", i))
    boxes = [
        {"id": i, "image_id": image["id"], "category_id": 5, "bbox": [i % 20, 1, 9, 9], "iscrowd": 0}
        for i, image in enumerate(images)
        if i % 4
    ]
    (folder / "instances.json").write_text(
        json.dumps({"images": images, "annotations": boxes, "categories": [{"id": 5}]})
    )
    return {"file_root": str(folder), "annotations_file": str(folder / "instances.json")}


def _webdataset(folder, size):
    paths, parts = [], min(size, 4)
    for part in range(parts):
        path = folder / f"{part}.tar"
        with tarfile.open(path, "w") as archive:
            for i in range(size * part // parts, size * (part + 1) // parts):
                for extension in ("jpg", "cls"):
                    info = tarfile.TarInfo(f"{i:04}.{extension}")
                    info.size = 4
                    archive.addfile(info, io.BytesIO(struct.pack("<i", i)))
        paths.append(str(path))
    return {"paths": paths, "ext": ["jpg", "cls"]}


def _tfrecord(folder, size):
    paths, indices, parts = [], [], min(size, 5)
    for part in range(parts):
        with open(folder / f"{part}", "wb") as file, open(folder / f"{part}.idx", "w") as index:
            for i in range(size * part // parts, size * (part + 1) // parts):
                value = b"\x0a\x05\x0a\x03" + f"{i:03}".encode()  # a BytesList
                entry = b"\x0a\x01a\x12" + bytes([len(value)]) + value
                features = b"\x0a" + bytes([len(entry)]) + entry
                record = b"\x0a" + bytes([len(features)]) + features
                index.write(f"{file.tell()} {len(record) + 16}\n")
                file.write(struct.pack("<QI", len(record), 0) + record + b"\0\0\0\0")
        paths.append(str(folder / f"{part}"))
        indices.append(str(folder / f"{part}.idx"))
    return {"path": paths, "index_path": indices}


def _mxnet(folder, size):
    with open(folder / "a.rec", "wb") as file, open(folder / "a.idx", "w") as index:
        for i in range(size):
            index.write(f"{i}\t{file.tell()}\n")
            record = struct.pack("<IfQQi", 0, i % 5, i, 0, i)
            file.write(struct.pack("<II", 0xCED7230A, len(record)) + record)
    return {"path": [str(folder / "a.rec")], "index_path": [str(folder / "a.idx")]}


def _caffe(folder, size):
    # Datum { data: 4 bytes, label, encoded: true }
    write_lmdb(folder, [b"\x22\x04" + struct.pack("<i", i) + b"\x28" + bytes([i]) + b"\x38\x01" for i in range(size)])
    return {"path": str(folder)}


def _caffe2(folder, size):
    messages = []
    for i in range(size):
        # TensorProtos { an encoded image: type STRING, string_data; a label: type INT32, int32_data }
        parts = (b"\x10\x04\x32\x04" + struct.pack("<i", i), b"\x10\x02\x22\x01" + bytes([i]))
        messages.append(b"".join(b"\x0a" + bytes([len(part)]) + part for part in parts))
    write_lmdb(folder, messages)
    return {"path": str(folder)}


def _nemo_asr(folder, size):
    lines = []
    for i in range(size):
        with wave.open(str(folder / f"{i}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16000)
            file.writeframes(struct.pack("<20h", *[100 * i] * 20))
        lines.append(
            json.dumps({"audio_filepath": str(folder / f"{i}.wav"), "duration": 20 / 16000, "text": f"number {i}"})
        )
    (folder / "all.json").write_text("\n".join(lines) + "\n")
    return {"manifest_filepaths": [str(folder / "all.json")]}


def _gray(value):
    """A PNG of one colour."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (b"\0" + bytes([value]) * 18) * 4
    head = struct.pack(">IIBBBBB", 6, 4, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _sequence(folder, size):
    parts = min(size, 3)
    for part in range(parts):
        (folder / f"{part}").mkdir()
        first, end = size * part // parts, size * (part + 1) // parts
        # The last sequence has two frames that begin none.
        for i in range(first, end + 2):
            (folder / f"{part}" / f"{i:04}.png").write_bytes(_gray(i if i < end else 255))
    return {"file_root": str(folder), "sequence_length": 3}


def _video(folder, size):
    files = [folder / f"{i:04}.webm" for i in range(size // _OF_CLIP)]
    for file in files:
        shutil.copyfile(_CLIP, file)
    clips = {"filenames": [str(file) for file in files], "labels": list(range(len(files)))}
    return {**clips, "sequence_length": 1, "step": 12 // _OF_CLIP, "enable_frame_num": "scalar"}


_OF_BYTES = ("file", "coco", "webdataset", "mxnet", "caffe", "caffe2")
_MAKERS = {
    "file": _file,
    "labels": _labels,
    "numpy": _numpy,
    "coco": _coco,
    "webdataset": _webdataset,
    "tfrecord": _tfrecord,
    "mxnet": _mxnet,
    "caffe": _caffe,
    "caffe2": _caffe2,
    "nemo_asr": _nemo_asr,
    "sequence": _sequence,
    "video": _video,
}
