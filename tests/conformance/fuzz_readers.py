"""Random configurations of readers, in Gesso and in DALI: the same samples, labels and padding over three epochs, and
behind a checkpoint.

    GESSO_LIBRARY=target/release/libtriton_gesso.so PYTHONPATH=python python tests/conformance/fuzz_readers.py --cases
    2000

Needs nvidia.dali, pillow and lmdb in the interpreter; no GPU. Prints each configuration that differs; the same seed
makes the same ones."""

import argparse
import io
import json
import random
import struct
import sys
import tarfile
import tempfile
import warnings
import wave
from pathlib import Path

import gesso
import gesso.fn
import gesso.tfrecord
import lmdb
import numpy as np
import nvidia.dali
import nvidia.dali.fn
import nvidia.dali.tfrecord
from PIL import Image

SIZES = (1, 2, 3, 5, 8, 17, 33, 64, 150)


class Data:
    """Data sets of each kind and size, made when they are first wanted."""

    def __init__(self, root):
        self.root, self.made = Path(root), {}

    def of(self, kind, size):
        key = kind, size
        if key not in self.made:
            folder = self.root / f"{kind}-{size}"
            folder.mkdir()
            self.made[key] = getattr(self, kind)(folder, size)
        return self.made[key]

    def file(self, folder, size):
        for i in range(size):
            label = folder / f"{i % 3}"
            label.mkdir(exist_ok=True)
            (label / f"{i:04}.jpg").write_bytes(struct.pack("<I", i))
        return {"file_root": str(folder)}

    def numpy(self, folder, size):
        for i in range(size):
            np.save(folder / f"{i:04}.npy", np.full((2, 3), i, np.float32))
        return {"file_root": str(folder)}

    def coco(self, folder, size):
        numbers = random.Random(size)
        images = [{"id": 7 * i % 1009, "file_name": f"{i}.jpg", "width": 50, "height": 40} for i in range(size)]
        annotations = []
        for image in images:
            (folder / image["file_name"]).write_bytes(struct.pack("<I", image["id"]))
            for _ in range(numbers.randrange(4)):
                box = [numbers.randrange(20), numbers.randrange(20), numbers.randrange(1, 20), numbers.randrange(1, 20)]
                kind = numbers.choice([2, 5, 9])
                annotations.append(
                    {"id": len(annotations), "image_id": image["id"], "category_id": kind, "bbox": box, "iscrowd": 0}
                )
        content = {"images": images, "annotations": annotations, "categories": [{"id": i} for i in (2, 5, 9)]}
        (folder / "instances.json").write_text(json.dumps(content))
        return {"file_root": str(folder), "annotations_file": str(folder / "instances.json"), "image_ids": True}

    def webdataset(self, folder, size):
        paths = []
        for part in range(min(size, 3)):
            path = folder / f"{part}.tar"
            with tarfile.open(path, "w") as archive:
                for i in range(part, size, min(size, 3)):
                    for extension in ("jpg", "cls"):
                        info = tarfile.TarInfo(f"{i:04}.{extension}")
                        info.size = 4
                        archive.addfile(info, io.BytesIO(struct.pack("<I", i)))
            paths.append(str(path))
        return {"paths": paths, "ext": ["jpg", "cls"]}

    def tfrecord(self, folder, size):
        paths, indices = [], []
        for part in range(min(size, 2)):
            path = folder / f"{part}"
            with open(path, "wb") as file, open(folder / f"{part}.idx", "w") as index:
                for i in range(part, size, min(size, 2)):
                    value = b"\x0a\x05\x0a\x03" + f"{i:03}".encode()  # a BytesList
                    entry = b"\x0a\x01a\x12" + bytes([len(value)]) + value
                    features = b"\x0a" + bytes([len(entry)]) + entry
                    record = b"\x0a" + bytes([len(features)]) + features
                    index.write(f"{file.tell()} {len(record) + 16}\n")
                    file.write(struct.pack("<QI", len(record), 0) + record + b"\0\0\0\0")
            paths.append(str(path))
            indices.append(str(folder / f"{part}.idx"))
        return {"path": paths, "index_path": indices}

    def mxnet(self, folder, size):
        with open(folder / "a.rec", "wb") as file, open(folder / "a.idx", "w") as index:
            for i in range(size):
                index.write(f"{i}\t{file.tell()}\n")
                record = struct.pack("<IfQQI", 0, i % 5, i, 0, i)
                file.write(struct.pack("<II", 0xCED7230A, len(record)) + record)
        return {"path": [str(folder / "a.rec")], "index_path": [str(folder / "a.idx")]}

    def records(self, folder, messages):
        """A database as Caffe makes it."""
        database = lmdb.open(str(folder), map_size=1 << 20)
        with database.begin(write=True) as transaction:
            for i, message in enumerate(messages):
                transaction.put(f"{i:08}".encode(), message)
        database.close()
        return {"path": str(folder)}

    def caffe(self, folder, size):
        # Datum { data: 4 bytes, label, encoded: true }
        return self.records(
            folder, [b"\x22\x04" + struct.pack("<I", i) + b"\x28" + bytes([i % 100]) + b"\x38\x01" for i in range(size)]
        )

    def caffe2(self, folder, size):
        messages = []
        for i in range(size):
            # TensorProtos { an encoded image: type STRING, string_data; a label: type INT32, int32_data }
            image = b"\x10\x04\x32\x04" + struct.pack("<I", i)
            label = b"\x10\x02\x22\x01" + bytes([i % 100])
            messages.append(b"".join(b"\x0a" + bytes([len(part)]) + part for part in (image, label)))
        return self.records(folder, messages)

    def nemo_asr(self, folder, size):
        lines = []
        for i in range(size):
            with wave.open(str(folder / f"{i}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(16000)
                file.writeframes(struct.pack("<20h", *range(i, i + 20)))
            lines.append(
                json.dumps({"audio_filepath": str(folder / f"{i}.wav"), "duration": 20 / 16000, "text": f"number {i}"})
            )
        (folder / "all.json").write_text("\n".join(lines) + "\n")
        return {"manifest_filepaths": [str(folder / "all.json")], "read_idxs": True}

    def sequence(self, folder, size):
        for part in range(min(size, 3)):
            (folder / f"{part}").mkdir()
            # Two frames more than sequences.
            for i in range(len(range(part, size, min(size, 3))) + 2):
                Image.fromarray(np.full((4, 6, 3), 80 * part + i, np.uint8)).save(folder / f"{part}" / f"{i:04}.png")
        return {"file_root": str(folder), "sequence_length": 3}


LISTED = ("file", "numpy", "coco", "nemo_asr", "sequence")  # whose lists are shuffled as a whole
KINDS = (*LISTED, "webdataset", "tfrecord", "mxnet", "caffe", "caffe2")
NEVER_SHUFFLED_AGAIN = (
    "mxnet",
    "caffe",
    "caffe2",
    "sequence",
)  # mxnet has one index, the others have no `shuffle_after_epoch`


def draw(numbers):
    """A configuration: kind, samples, arguments of the reader, arguments of the pipeline, batches before the
    checkpoint."""
    kind, size = numbers.choice(KINDS), numbers.choice(SIZES)
    shards = numbers.randint(1, min(size, 5))
    options = {"num_shards": shards, "shard_id": numbers.randrange(shards)}
    for name, share in (
        ("pad_last_batch", 0.5),
        ("random_shuffle", 0.6),
        ("read_ahead", 0.2),
        ("lazy_init", 0.2),
        ("dont_use_mmap", 0.2),
    ):
        options[name] = numbers.random() < share
    again = (
        numbers.random() < 0.3
        and not (options["random_shuffle"] and kind in LISTED)
        and kind not in NEVER_SHUFFLED_AGAIN
    )
    if again:
        options["shuffle_after_epoch"] = True
        if numbers.random() < 0.5:
            options["shuffle_after_epoch_seed"] = numbers.randrange(1 << 40)
    elif numbers.random() < 0.4:
        options["stick_to_shard"] = True
    if numbers.random() < 0.7:
        options["initial_fill"] = numbers.choice([1, 2, 7, 30, 1024])
    if numbers.random() < 0.4:
        options["seed"] = numbers.randrange(1 << 31)
    options["prefetch_queue_depth"] = numbers.randint(1, 3)
    pipeline = {
        "batch_size": numbers.choice([1, 2, 3, 8, 20]),
        "num_threads": 1,
        "seed": numbers.randrange(1 << 31),
        "device_id": None,
    }
    pipeline["prefetch_queue_depth"] = numbers.randint(1, 3)
    checkpoint = numbers.randrange(12) if numbers.random() < 0.3 else None
    return kind, size, options, pipeline, checkpoint


def build(package, kind, data, options, settings):
    reader = getattr(package.fn.readers, kind)
    if kind == "tfrecord":
        feature = package.tfrecord.FixedLenFeature((), package.tfrecord.string, "")
        options = {**options, "features": {"a": feature}}
    pipeline = package.Pipeline(**settings)
    with pipeline:
        outputs = reader(**data, **options, name="reader")
        outputs = list(outputs.values()) if isinstance(outputs, dict) else outputs
        pipeline.set_outputs(*(outputs if isinstance(outputs, (list, tuple)) else [outputs]))
    pipeline.build()
    return pipeline


def batches(pipeline, count):
    """So many batches: for each output the bytes of each sample."""
    found = []
    for _ in range(count):
        found.append([[np.asarray(output.at(i)).tobytes() for i in range(len(output))] for output in pipeline.run()])
    return found


def answers(package, kind, data, options, settings, checkpoint, count):
    if checkpoint is None:
        pipeline = build(package, kind, data, options, settings)
        return pipeline.reader_meta("reader"), batches(pipeline, count)
    settings = {**settings, "enable_checkpointing": True}
    pipeline = build(package, kind, data, options, settings)
    meta, before = pipeline.reader_meta("reader"), batches(pipeline, checkpoint)
    restored = build(package, kind, data, options, {**settings, "checkpoint": pipeline.checkpoint()})
    return meta, before + batches(restored, count)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong, kinds = 0, dict.fromkeys(KINDS, 0)
    with tempfile.TemporaryDirectory() as root:
        data = Data(root)
        for case in range(chosen.cases):
            kind, size, options, settings, checkpoint = draw(random.Random(chosen.seed * 1_000_003 + case))
            given = data.of(kind, size)
            count = 3 * -(-size // settings["batch_size"]) + 2
            both = [
                answers(package, kind, given, options, settings, checkpoint, count) for package in (gesso, nvidia.dali)
            ]
            kinds[kind] += 1
            if both[0] != both[1]:
                wrong += 1
                print(
                    f"case {case} differs: {kind} of {size}, {options}, {settings}, checkpoint behind {checkpoint}",
                    flush=True,
                )
            if sys.stderr.isatty():
                print(f"\r{case + 1} of {chosen.cases}", end="", file=sys.stderr)
    print(
        f"{chosen.cases - wrong} of {chosen.cases} configurations alike ({', '.join(f'{n} {kind}' for kind, n in kinds.items())})"
    )
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
