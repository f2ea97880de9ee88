"""Small data sets of every kind that readers read, and damage to them. Each function makes one in a folder and gives
the files that may be damaged and a function that defines its reader."""

import io
import json
import struct
import tarfile
import wave
import zlib

import numpy as np
from gesso import fn, tfrecord, types

SAMPLES = 5
PAGE = 4096


def webdataset(folder):
    with tarfile.open(folder / "a.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        for i in range(SAMPLES):
            for name in (f"{i}.jpg", f"{i}.cls", "d" * 120 + f"/{i}.txt"):
                info = tarfile.TarInfo(name)
                info.size = 40
                archive.addfile(info, io.BytesIO(bytes(range(i, i + 40))))
    return ["a.tar"], lambda: fn.readers.webdataset(paths=[str(folder / "a.tar")], ext=["jpg", "cls"])


def webdataset_with_index(folder):
    webdataset(folder)
    (folder / "a.idx").write_text(
        "v1.2 3\njpg 512 40 0.jpg cls 1536 40 0.cls\njpg 4608 40 1.jpg cls 5632 40 1.cls\njpg 8704 40 2.jpg\n"
    )
    return ["a.tar", "a.idx"], lambda: fn.readers.webdataset(
        paths=[str(folder / "a.tar")], index_paths=[str(folder / "a.idx")], ext=["jpg", "cls"]
    )


def records(folder):
    with open(folder / "a", "wb") as file, open(folder / "a.idx", "w") as index:
        for i in range(SAMPLES):
            entries = b""
            for name, value in (
                (b"image", b"\x0a\x05\x0a\x03" + f"{i:03}".encode()),
                (b"label", b"\x1a\x03\x0a\x01\x07"),
                (b"box", b"\x12\x06\x0a\x04\0\0\0\x40"),
            ):
                entry = b"\x0a" + bytes([len(name)]) + name + b"\x12" + bytes([len(value)]) + value
                entries += b"\x0a" + bytes([len(entry)]) + entry
            record = b"\x0a" + bytes([len(entries)]) + entries
            index.write(f"{file.tell()} {len(record) + 16}\n")
            file.write(struct.pack("<QI", len(record), 0) + record + b"\0\0\0\0")
    features = {
        "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        "box": tfrecord.VarLenFeature(tfrecord.float32, 0.0),
    }
    read = lambda: list(
        fn.readers.tfrecord(path=str(folder / "a"), index_path=str(folder / "a.idx"), features=features).values()
    )
    return ["a", "a.idx"], read


def mxnet(folder):
    with open(folder / "a.rec", "wb") as file, open(folder / "a.idx", "w") as index:
        for i in range(SAMPLES):
            index.write(f"{i}\t{file.tell()}\n")
            record = struct.pack("<IfQQII", i % 2, i, i, 0, i, i)
            file.write(struct.pack("<II", 0xCED7230A, len(record)) + record)
    return ["a.rec", "a.idx"], lambda: fn.readers.mxnet(
        path=[str(folder / "a.rec")], index_path=[str(folder / "a.idx")]
    )


def _field(number, value):
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def _lmdb(folder, values):
    """A database of one branch page above two leaves."""

    def meta(transaction):
        page = bytearray(PAGE)
        struct.pack_into("<I", page, 16, 0xBEEFC0DE)
        struct.pack_into("<I", page, 40, PAGE)
        struct.pack_into("<Q", page, 128, 2)
        struct.pack_into("<Q", page, 144, transaction)
        return page

    def page(flags, nodes):
        made = bytearray(PAGE)
        struct.pack_into("<HH", made, 10, flags, 16 + 2 * len(nodes))
        at = PAGE
        for k, node in enumerate(nodes):
            at -= len(node) + len(node) % 2
            made[at : at + len(node)] = node
            struct.pack_into("<H", made, 16 + 2 * k, at)
        return made

    leaf = lambda key, value: struct.pack("<HHHH", len(value), 0, 0, len(key)) + key + value
    branch = lambda number: struct.pack("<HHHH", number, 0, 0, 1) + b"k"
    nodes = [leaf(f"{i:04}".encode(), value) for i, value in enumerate(values)]
    pages = [meta(1), meta(2), page(1, [branch(3), branch(4)]), page(2, nodes[:2]), page(2, nodes[2:])]
    (folder / "data.mdb").write_bytes(b"".join(map(bytes, pages)))


def caffe(folder):
    _lmdb(
        folder,
        [
            _field(1, 3) + _field(2, 2) + _field(3, 1) + _field(4, bytes(range(i, i + 6))) + _field(5, i)
            for i in range(SAMPLES)
        ],
    )
    return ["data.mdb"], lambda: fn.readers.caffe(path=str(folder))


def caffe2(folder):
    image = lambda i: _field(1, 2) + _field(1, 3) + _field(2, 3) + _field(5, bytes(range(i, i + 6)))
    label = lambda i: _field(1, 1) + _field(2, 2) + _field(4, i)
    _lmdb(folder, [_field(1, image(i)) + _field(1, label(i)) for i in range(SAMPLES)])
    return ["data.mdb"], lambda: fn.readers.caffe2(path=str(folder))


def coco(folder):
    _annotations(folder)
    return ["a.json"], lambda: fn.readers.coco(
        file_root=str(folder), annotations_file=str(folder / "a.json"), ratio=True, image_ids=True
    )


def coco_masks(folder):
    _annotations(folder)
    return ["a.json"], lambda: fn.readers.coco(
        file_root=str(folder), annotations_file=str(folder / "a.json"), pixelwise_masks=True
    )


def _annotations(folder):
    images, objects = [], []
    for i in range(SAMPLES):
        (folder / f"{i}.jpg").write_bytes(b"file")
        images.append({"id": i, "file_name": f"{i}.jpg", "width": 6, "height": 4})
        runs = {"size": [4, 6], "counts": [20, 4]}
        masks = [[[0, 0, 3, 0, 3, 2, 0, 2]], runs, {"size": [4, 6], "counts": "52203"}]
        objects.append(
            {
                "id": i,
                "image_id": i,
                "category_id": 7,
                "bbox": [0, 0, 3, 2],
                "iscrowd": i % 2,
                "segmentation": masks[i % 2],
            }
        )
    (folder / "a.json").write_text(
        json.dumps({"images": images, "annotations": objects, "categories": [{"id": 3}, {"id": 7}]})
    )


def speech(folder):
    lines = []
    for i in range(SAMPLES):
        with wave.open(str(folder / f"{i}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(1000)
            file.writeframes(np.arange(100, dtype="<i2").tobytes())
        lines.append(
            json.dumps({"audio_filepath": str(folder / f"{i}.wav"), "text": "a", "offset": 0.01, "duration": 0.05})
        )
    (folder / "m.json").write_text("\n".join(lines))
    read = lambda: fn.readers.nemo_asr(manifest_filepaths=[str(folder / "m.json")], dtype=types.INT16)
    return ["m.json", "0.wav"], read


def arrays(folder):
    for i in range(SAMPLES):
        np.save(folder / f"{i}.npy", np.full((4, 3), i, np.int16))
    return ["0.npy", "3.npy"], lambda: fn.readers.numpy(file_root=str(folder), file_filter="*.npy")


def astronomy(folder):
    from astropy.io import fits

    for i in range(SAMPLES):
        plain = np.full((4, 3), i, np.int16)
        parts = [
            fits.PrimaryHDU(plain),
            *(fits.CompImageHDU(plain, compression_type=kind) for kind in ("RICE_1", "GZIP_1")),
        ]
        fits.HDUList(parts).writeto(folder / f"{i}.fits")
    return ["0.fits", "3.fits"], lambda: list(
        fn.experimental.readers.fits(file_root=str(folder), hdu_indices=[1, 2, 3])
    )


def lists(folder):
    for i in range(SAMPLES):
        (folder / f"{i}.jpg").write_bytes(b"file")
    (folder / "list").write_text("".join(f"{i}.jpg {i}\n" for i in range(SAMPLES)))
    return ["list"], lambda: fn.readers.file(file_root=str(folder), file_list=str(folder / "list"))


def table(folder):
    for i in range(SAMPLES):
        (folder / f"{i}.jpg").write_bytes(b"file")
    (folder / "t.csv").write_text("path,label\n" + "".join(f'{i}.jpg,"{i}"\n' for i in range(SAMPLES)))
    return ["t.csv"], lambda: fn.readers.csv(file_list=str(folder / "t.csv"))


def _png(value):
    part = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    head, rows = struct.pack(">IIBBBBB", 4, 3, 8, 0, 0, 0, 0), b"\0" + bytes([value] * 4)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(3 * rows)) + part(b"IEND", b"")


def frames(folder):
    (folder / "0").mkdir()
    for i in range(SAMPLES + 1):
        (folder / "0" / f"{i}.png").write_bytes(_png(i))
    return ["0/1.png", "0/3.png"], lambda: fn.readers.sequence(file_root=str(folder), sequence_length=2)


# Those that the library reads by itself, and those that Python's libraries read.
NATIVE = (
    webdataset,
    webdataset_with_index,
    records,
    mxnet,
    caffe,
    caffe2,
    coco,
    coco_masks,
    speech,
    arrays,
    lists,
    table,
    frames,
)
IN_PYTHON = (astronomy,)


def damaged(data, numbers):
    """Some bytes of a file changed, taken out, put in, or the end cut off."""
    data = bytearray(data)
    for _ in range(numbers.choice([1, 1, 2, 5, 20])):
        at = numbers.randrange(len(data) + 1)
        kind = numbers.randrange(6)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            del data[at : at + numbers.randrange(1, 9)]
        elif kind == 2:
            data[at:at] = numbers.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", b"9999999999", b"-1", b"\x80" * 64])
        else:
            data[at : at + 1] = bytes(
                [numbers.choice([0, 1, 127, 128, 255, 10, 32, 45, 48, 57, numbers.randrange(256)])]
            )
    return bytes(data)
