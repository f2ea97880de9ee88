"""Images/s of a classifier's training input by each reader: decode, random resized crop to 224, flip, normalize. The
same JPEGs as files, in tar archives, TFRecord, COCO, LMDB (Caffe), RecordIO (MXNet) and NumPy's arrays of bytes; Gesso
beside DALI, PyTorch's `DataLoader` and webdataset, in one run.

    python benches/peers/readers.py make FOLDER [--images 5000]      the data sets, of 70 kB an image each
    python benches/peers/readers.py gesso:tfrecord FOLDER            one reader of one peer, with the interpreter that
                                                                     has it
    python benches/peers/readers.py table FOLDER --peer gesso=PYTHON --peer dali=PYTHON --peer torch=PYTHON ...
                                                                     all in turn; medians as a table
    ... [--readers file tfrecord] [--device cpu|gpu] [--workers 2] [--batch 64] [--rounds 3] [--keep FILE] [--record]

Peers and how they are measured are those of `training.py`. `make` needs pillow and lmdb."""

import argparse
import json
import statistics
import struct
import sys
from functools import partial
from pathlib import Path

import numpy as np
import training

LABELS = training.CLASSES
OTHERS = ("torch", "torch-jpeg", "webdataset")


# --- data sets


def field(number, data):
    """A field of a protobuf message: bytes, or an integer."""

    def varint(value):
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes([*out, value])

    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def make(folder):
    """The files and archives of `training.py`, and the same images in the other formats."""
    import lmdb

    training.make(folder)
    paths = sorted((folder / "images").rglob("*.jpg"), key=lambda path: path.name)
    for name in ("tfrecord", "recordio", "numpy", "lmdb"):
        (folder / name).mkdir(exist_ok=True)
    size = sum(path.stat().st_size for path in paths)
    database = lmdb.open(str(folder / "lmdb"), map_size=2 * size + (64 << 20))
    images, annotations = [], []
    with (
        open(folder / "tfrecord" / "a", "wb") as records,
        open(folder / "tfrecord" / "a.idx", "w") as records_index,
        open(folder / "recordio" / "a.rec", "wb") as packed,
        open(folder / "recordio" / "a.idx", "w") as packed_index,
        database.begin(write=True) as transaction,
    ):
        for i, path in enumerate(paths):
            data, label = path.read_bytes(), i % LABELS
            bytes_list, int_list = field(1, field(1, data)), field(3, field(1, bytes([label])))
            entries = [field(1, name) + field(2, value) for name, value in ((b"x", bytes_list), (b"y", int_list))]
            example = field(1, b"".join(field(1, entry) for entry in entries))
            records_index.write(f"{records.tell()} {len(example) + 16}\n")
            records.write(struct.pack("<QI", len(example), 0) + example + bytes(4))
            packed_index.write(f"{i}\t{packed.tell()}\n")
            content = struct.pack("<IfQQ", 0, label, i, 0) + data
            packed.write(struct.pack("<II", 0xCED7230A, len(content)) + content + bytes(-len(content) % 4))
            # Datum: width and height are unused where it is encoded.
            transaction.put(f"{i:08}".encode(), field(4, data) + field(5, label) + field(7, 1))
            np.save(folder / "numpy" / f"{i:05}.npy", np.frombuffer(data, np.uint8))
            images.append({"id": i, "file_name": str(path.relative_to(folder / "images")), "width": 500, "height": 375})
            annotations.append({"id": i, "image_id": i, "category_id": label + 1, "bbox": [0, 0, 9, 9], "iscrowd": 0})
    database.close()
    categories = [{"id": label + 1} for label in range(LABELS)]
    (folder / "coco.json").write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories})
    )


# --- readers: each gives files and labels


def of_file(package, folder, **options):
    return package.fn.readers.file(file_root=str(folder / "images"), **options)


def of_webdataset(package, folder, **options):
    return package.fn.readers.webdataset(paths=training.archives_of(folder), ext=["jpg", "cls"], **options)


def of_tfrecord(package, folder, **options):
    kinds = package.tfrecord
    features = {"x": kinds.FixedLenFeature((), kinds.string, ""), "y": kinds.FixedLenFeature([1], kinds.int64, -1)}
    path, index = str(folder / "tfrecord" / "a"), str(folder / "tfrecord" / "a.idx")
    read = package.fn.readers.tfrecord(path=path, index_path=index, features=features, **options)
    return read["x"], read["y"]


def of_coco(package, folder, **options):
    files, _, labels = package.fn.readers.coco(
        file_root=str(folder / "images"), annotations_file=str(folder / "coco.json"), **options
    )
    return files, labels


def of_lmdb(package, folder, **options):
    return package.fn.readers.caffe(path=str(folder / "lmdb"), **options)


def of_recordio(package, folder, **options):
    path, index = str(folder / "recordio" / "a.rec"), str(folder / "recordio" / "a.idx")
    return package.fn.readers.mxnet(path=[path], index_path=[index], **options)


def of_numpy(package, folder, **options):
    """Without labels: the images twice."""
    files = package.fn.readers.numpy(file_root=str(folder / "numpy"), file_filter="*.npy", **options)
    return files, files


READERS = {
    "file": of_file,
    "webdataset": of_webdataset,
    "tfrecord": of_tfrecord,
    "coco": of_coco,
    "lmdb": of_lmdb,
    "recordio": of_recordio,
    "numpy": of_numpy,
}


def package_of(peer):
    """The package of a peer, with its functions."""
    if peer == "gesso":
        import gesso
        import gesso.tfrecord

        return gesso
    import nvidia.dali
    import nvidia.dali.fn
    import nvidia.dali.tfrecord

    return nvidia.dali


def batches(peer, reader, setting):
    """What `training.py` measures."""
    package = package_of(peer)
    read = partial(READERS[reader], package, setting.folder, random_shuffle=True, name="reader")
    return training.pipeline(package, setting, lambda fn: read())


# --- the table


def table(found, readers):
    """Rows of the medians: a reader each, then the other loaders."""
    medians = {peer: statistics.median(speed for speed, _ in each) for peer, each in found.items()}
    rows = []
    for reader in readers:
        own, theirs = medians.get(f"gesso:{reader}"), medians.get(f"dali:{reader}")
        files = medians.get("gesso:file")
        rows.append([
            reader,
            f"{own:,.0f}" if own else "",
            f"{own / files:.2f}" if own and files else "",
            f"{theirs:,.0f}" if theirs else "",
            f"{own / theirs:.1f} times" if own and theirs else "",
        ])  # fmt: skip
    rows += [[peer, f"{medians[peer]:,.0f}", "", "", ""] for peer in OTHERS if peer in medians]
    return ["reader", "Gesso, images/s", "of its `readers.file`", "DALI, images/s", "Gesso beside DALI"], rows


def show(setting, readers, found, rounds, seconds, record):
    columns, rows = table(found, readers)
    print(f"\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    if record:
        sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts" / "lib"))
        import records

        command = f"benches/peers/readers.py table FOLDER --device {setting.device} --batch {setting.batch}"
        command += f" --rounds {rounds} --peer NAME=PYTHON ..."
        spread = f"medians of {rounds} rounds of {seconds:g} s in turn"
        title = f"Readers as a classifier's training input, {setting.device}"
        print(records.write(f"readers-{setting.device}", title, command, spread, columns, rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ours = [f"{peer}:{reader}" for peer in ("gesso", "dali") for reader in READERS]
    parser.add_argument("what", choices=["make", "table", *ours, *OTHERS])
    parser.add_argument("--images", type=int, default=training.IMAGES, help="of `make`")
    parser.add_argument("--readers", nargs="+", default=[*READERS], choices=[*READERS])
    training.add_options(parser)
    options = parser.parse_args()
    setting = training.setting_of(options)
    if options.what == "make":
        training.IMAGES = options.images
        return make(options.folder)
    if options.what != "table":
        training.PEERS.update({name: partial(batches, *name.split(":")) for name in ours})
        return training.measure(options.what, setting, options.seconds)
    interpreters = dict(peer.split("=", 1) for peer in options.peer)
    if not interpreters or not interpreters.keys() <= {"gesso", "dali", *OTHERS}:
        parser.error(f"give peers as NAME=PYTHON, of gesso, dali, {', '.join(OTHERS)}")
    programs = {}
    for reader in options.readers:
        programs |= {f"{peer}:{reader}": interpreters[peer] for peer in ("gesso", "dali") if peer in interpreters}
    programs |= {peer: interpreters[peer] for peer in OTHERS if peer in interpreters}
    found = training.in_turn(__file__, setting, programs, options)
    show(setting, options.readers, found, options.rounds, options.seconds, options.record)


if __name__ == "__main__":
    main()
