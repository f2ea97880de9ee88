"""Readers of data sets that the library has itself give what those in the interpreter give, to the last detail."""

import io
import json
import random
import struct
import tarfile

import numpy as np
import pytest
from gesso import fn, tfrecord, types
from native_readers import ORDERS, both, compared, contents, failures, field, of, runs_on, same_from_a_file, varint

# --- webdataset


def write_archive(path, files):
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT if "pax" in str(path) else tarfile.GNU_FORMAT) as tar:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return str(path)


@pytest.fixture
def archives(tmp_path):
    drawn = random.Random(3)
    paths = []
    for part, kind in enumerate(("gnu", "pax", "empty", "gnu")):
        files = []
        for i in range(0 if kind == "empty" else 4):
            stem = f"{'long' * 30}/{part}/{i}" if i == 2 else f"d.x/{part}{i}"
            parts = [
                ("JPG", drawn.randbytes(i)),
                ("cls", struct.pack("<i", 10 * part + i)),
                ("seg.png", drawn.randbytes(600)),
            ]
            files += [(f"{stem}.{extension}", data) for extension, data in parts if drawn.random() < 0.8]
        paths.append(
            write_archive(tmp_path / f"{kind}{part}.tar", [*files, ("d.x/none", b"?"), (f"d.x/.{part}", b"hidden")])
        )
    return paths


def indices(archives, tmp_path, version="v1.2"):
    made = []
    for number, path in enumerate(archives):
        samples, last = [], None
        with tarfile.open(path) as archive:
            for member in filter(tarfile.TarInfo.isfile, archive):
                folder, _, name = member.name.rpartition("/")
                stem, _, extension = name.partition(".")
                if stem and (folder, stem) != last:
                    samples.append([])
                if stem:
                    last = folder, stem
                    samples[-1].append((extension, member.offset_data, member.size))
        lines = [
            " ".join(f"{ext or '-'} {at} {size}{' name' * (version == 'v1.2')}" for ext, at, size in sample)
            for sample in samples
        ]
        made.append(tmp_path / f"{number}.idx")
        made[-1].write_text(f"{version} {len(lines)}\n" + "\n".join(lines) + "\n")
    return [str(path) for path in made]


@pytest.mark.parametrize("options", ORDERS)
def test_samples_of_archives(archives, monkeypatch, options):
    compared(
        monkeypatch,
        lambda: tuple(fn.readers.webdataset(paths=archives, ext=["jpg", "cls", "seg.png;JPG"], **options, name="r")),
    )


@pytest.mark.parametrize("behavior", ["", "empty", "skip"])
@pytest.mark.parametrize("folds", [False, True])
def test_components_of_archives(archives, tmp_path, monkeypatch, behavior, folds):
    options = {
        "missing_component_behavior": behavior,
        "case_sensitive_extensions": not folds,
        "dtypes": [types.UINT8, types.INT32],
    }
    for more in (
        {},
        {"index_paths": indices(archives, tmp_path)},
        {"index_paths": indices(archives, tmp_path, "v1.1")},
    ):
        first = "jpg" if folds else "JPG"

        def define(more=more, first=first):
            return tuple(fn.readers.webdataset(paths=archives, ext=[first, "cls"], **options, **more, name="r"))

        compared(monkeypatch, define, 12)
    # One output.
    compared(monkeypatch, lambda: fn.readers.webdataset(paths=archives[0], ext="cls", name="r"), 8)


def test_states_of_archives(archives, monkeypatch):
    for order in ({"random_shuffle": True, "initial_fill": 5}, {"shuffle_after_epoch": True}):

        def define(order=order):
            return tuple(fn.readers.webdataset(paths=archives, ext=["jpg", "cls"], **order, name="r"))

        settings = {"enable_checkpointing": True, "seed": None}
        stream = of(define, **settings)
        for _ in range(5):
            stream.run()
        state = stream.checkpoint()
        expected = [contents(stream.run()) for _ in range(6)]
        again, staged = both(monkeypatch, lambda define=define, state=state: of(define, **settings, checkpoint=state))
        assert again.checkpoint() == staged.checkpoint() == state
        for each in expected:
            assert contents(again.run()) == contents(staged.run()) == each
        for pipeline in (again, staged):
            pipeline.restart()
        assert contents(again.run()) == contents(staged.run())


def test_archives_that_are_damaged(archives, tmp_path, monkeypatch):
    made = indices(archives[:1], tmp_path)

    def define():
        return fn.readers.webdataset(paths=archives[:1], index_paths=made, ext=["cls"], dtypes=[types.INT16], name="r")

    lines = (tmp_path / "0.idx").read_text().splitlines()
    for wrong in ("cls 512 3 x", "cls 1024 2 x", "cls 10240000 4 x"):
        (tmp_path / "0.idx").write_text("\n".join([f"v1.2 {len(lines)}", *lines[1:], wrong]))
        errors = failures(monkeypatch, define)
        assert errors and all("fn.readers.webdataset" in text and "test_native_readers.py" in text for text in errors)
    for wrong in ("v3 1", "v1.2 x", "v1.2 9\na"):
        (tmp_path / "0.idx").write_text(wrong)
        with pytest.raises((RuntimeError, ValueError)):
            of(define).build()
    (tmp_path / "cut.tar").write_bytes(open(archives[0], "rb").read()[:700])
    with pytest.raises(RuntimeError, match="ends within"):
        of(lambda: fn.readers.webdataset(paths=[str(tmp_path / "cut.tar")], ext=["cls"])).build()


def test_errors_behind_archives_name_the_sample(archives, monkeypatch):
    def define():
        return fn.decoders.image(
            fn.readers.webdataset(paths=archives, ext=["seg.png"], missing_component_behavior="skip", name="r")
        )

    errors = failures(monkeypatch, define)
    assert errors and all("sample" in text and "of the reader `r`" in text and ".tar:" in text for text in errors)


def test_archives_stay_in_the_interpreter_where_the_library_does_not_read_them(archives):
    for options in ({"on_missing": "skip"}, {"weights": [1] * 20}, {"seed": -1}, {"index_paths": []}):
        kind = "library" if "index_paths" in options else "interpreter"
        try:
            assert (
                runs_on(of(lambda options=options: fn.readers.webdataset(paths=archives, ext=["cls"], **options)))
                == kind
            )
        except (RuntimeError, ValueError) as error:
            assert "weights" in options, error


# --- records


def example(**features):
    """A record: features of texts, floats or whole numbers."""
    entries = []
    for name, values in features.items():
        if isinstance(values[0], bytes):
            made = field(1, b"".join(field(1, value) for value in values))
        elif isinstance(values[0], float):
            made = field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
        else:
            made = field(3, field(1, b"".join(varint(value & (1 << 64) - 1) for value in values)))
        entries.append(field(1, field(1, name.encode()) + field(2, made)))
    data = field(1, b"".join(entries))
    return struct.pack("<QI", len(data), 0) + data + bytes(4)


@pytest.fixture
def records(tmp_path):
    paths, indices = [], []
    for part in range(4):
        index, data = "", b""
        for i in range(0 if part == 2 else 4):
            number = 10 * part + i
            one = example(
                image=[b"file" * i],
                label=[number, -number],
                box=[0.5 * i] * 4 * (1 + i % 2),
                name=[b"n%d" % number, b"other"],
            )
            index += f"{len(data)} {len(one)}\n"
            data += one
        for kept, name, content in ((paths, f"{part}.tfrecord", data), (indices, f"{part}.idx", index.encode())):
            (tmp_path / name).write_bytes(content)
            kept.append(str(tmp_path / name))
    return {"path": paths, "index_path": indices}


FEATURES = {
    "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
    "label": tfrecord.FixedLenFeature([2], tfrecord.int64, -1),
    "box": tfrecord.VarLenFeature([4], tfrecord.float32, 0.0),
    "name": tfrecord.VarLenFeature(tfrecord.string, ""),
    "missing": tfrecord.FixedLenFeature([1], tfrecord.float32, 2.5),
    "no number": tfrecord.VarLenFeature(tfrecord.int64, 7),
    "no text": tfrecord.FixedLenFeature([1], tfrecord.string, "none"),
}


def examples(records, features=FEATURES, **options):
    return lambda: tuple(fn.readers.tfrecord(**records, features=features, **options, name="r").values())


@pytest.mark.parametrize("options", ORDERS)
def test_features_of_examples(records, monkeypatch, options):
    compared(monkeypatch, examples(records, **options))


def test_features_without_a_default_or_a_shape(records):
    assert runs_on(of(examples(records, {"label": tfrecord.FixedLenFeature([2], tfrecord.int64, None)}))) == "library"
    with pytest.raises(RuntimeError, match=r"its shape is \[-1\], expected fixed extents"):
        of(examples(records, {"label": tfrecord.FixedLenFeature([-1], tfrecord.int64, 0)})).build()


def test_features_that_are_wrong(records, tmp_path, monkeypatch):
    for feature in (
        tfrecord.FixedLenFeature([3], tfrecord.int64, 0),
        tfrecord.FixedLenFeature([2], tfrecord.float32, 0.0),
    ):
        errors = failures(monkeypatch, examples(records, {"label": feature}))
        assert len(errors) == 4 and all(
            "fn.readers.tfrecord" in text and "test_native_readers.py" in text for text in errors
        )
    (tmp_path / "1.idx").write_text("0 10\n1 9\n999999 3\n9223372036854775807 9\n")
    assert failures(monkeypatch, examples(records, {"label": FEATURES["label"]}), 10)
    damaged = bytearray((tmp_path / "0.tfrecord").read_bytes())
    for at in (14, 20, 25, 40):
        damaged[at] ^= 0xFF
    (tmp_path / "0.tfrecord").write_bytes(damaged)
    assert failures(monkeypatch, examples(records), 10)


def test_features_that_some_examples_lack(tmp_path, monkeypatch):
    data = [example(label=[i, i], text=[b"x"]) if i % 4 else example(other=[3]) for i in range(7)]
    (tmp_path / "a").write_bytes(b"".join(data))
    (tmp_path / "a.idx").write_text("".join(f"{sum(map(len, data[:i]))} {len(data[i])}\n" for i in range(7)))
    given = {"path": [str(tmp_path / "a")], "index_path": [str(tmp_path / "a.idx")]}
    # A missing one is a single number: as in DALI it does not fit beside lists.
    errors = failures(monkeypatch, examples(given, {"label": FEATURES["label"]}), 8)
    assert errors and all("Inconsistent data dimensionality" in text for text in errors)
    compared(monkeypatch, examples(given, {"label": tfrecord.FixedLenFeature([2], tfrecord.int64, 4)}), 8, batch_size=1)
    compared(monkeypatch, examples(given, {"text": tfrecord.VarLenFeature(tfrecord.string, "")}), 8)


@pytest.fixture
def recorded(tmp_path):
    index, data, paths = [], b"", []
    for part in range(2):
        whole = b""
        for i in range(6):
            number = 6 * part + i
            labels = [0.5 * k for k in range(i % 3)]
            record = (
                struct.pack("<IfQQ", len(labels), number, number, 0)
                + struct.pack(f"<{len(labels)}f", *labels)
                + b"x" * i
            )
            index.append(f"{number}\t{len(data) + len(whole)}\n")
            parts = [(0, record)] if i != 4 else [(1, record[:8]), (2, record[8:16]), (3, record[16:])]
            for kind, piece in parts:
                whole += struct.pack("<II", 0xCED7230A, kind << 29 | len(piece)) + piece + bytes(-len(piece) % 4)
        data += whole
        paths.append(str(tmp_path / f"{part}.rec"))
        (tmp_path / f"{part}.rec").write_bytes(whole)
    (tmp_path / "all.idx").write_text("".join(reversed(index)))
    return {"path": paths, "index_path": [str(tmp_path / "all.idx")]}


@pytest.mark.parametrize("options", ORDERS)
def test_images_of_records(recorded, monkeypatch, options):
    compared(monkeypatch, lambda: tuple(fn.readers.mxnet(**recorded, **options, name="r")))


def test_records_that_are_wrong(recorded, tmp_path, monkeypatch):
    def define():
        return tuple(fn.readers.mxnet(**recorded, name="r"))

    index = (tmp_path / "all.idx").read_text()
    (tmp_path / "all.idx").write_text("99 5\n" + index)
    assert failures(monkeypatch, define)
    (tmp_path / "all.idx").write_text(index)
    damaged = bytearray((tmp_path / "0.rec").read_bytes())
    damaged[4:8], damaged[8:12] = b"\xff\0\0\0", b"\xff\xff\xff\xff"
    (tmp_path / "0.rec").write_bytes(damaged)
    assert failures(monkeypatch, define)


# --- arrays


@pytest.fixture
def arrays(tmp_path):
    for i in range(11):
        (tmp_path / "set" / f"{i % 2}").mkdir(parents=True, exist_ok=True)
        array = np.arange(6 + i, dtype=np.float32)[None] * [[1], [2]]
        array = np.asfortranarray(array.astype(np.float32)) if i % 3 == 1 else array.astype(np.float32)
        np.save(tmp_path / "set" / (f"{i:02}.npy" if i < 3 else f"{i % 2}/{i:02}.npy"), array)
    with open(tmp_path / "set" / "new.npy", "wb") as file:
        np.lib.format.write_array(file, np.ones((2, 1), np.float32), version=(2, 0))
        file.write(b"more")
    (tmp_path / "set" / "list.txt").write_text("1/03.npy\n\n00.npy\n 0/04.npy\n")
    return tmp_path / "set"


@pytest.mark.parametrize("options", ORDERS)
def test_arrays(arrays, monkeypatch, options):
    compared(monkeypatch, lambda: fn.readers.numpy(file_root=str(arrays), **options, name="r"))


def test_lists_of_arrays(arrays, monkeypatch):
    for options in (
        {"file_list": str(arrays / "list.txt")},
        {"file_list": str(arrays / "list.txt"), "file_root": str(arrays)},
        {"files": [str(arrays / "00.npy"), str(arrays / "01.npy")]},
        {"files": ["00.npy", "1/05.npy"], "file_root": str(arrays) + "/"},
        {"file_root": str(arrays), "file_filter": "*4.npy", "cache_header_information": True},
    ):
        compared(monkeypatch, lambda options=options: fn.readers.numpy(**options, random_shuffle=True, name="r"), 8)


def test_types_of_arrays(tmp_path, monkeypatch):
    for dtype in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?"):
        np.save(tmp_path / "a.npy", np.arange(6).reshape(1, 2, 3).astype(dtype))
        compared(monkeypatch, lambda: fn.readers.numpy(files=[str(tmp_path / "a.npy")], name="r"), 2)
    for shape in ((), (0,), (3, 0, 2)):
        np.save(tmp_path / "a.npy", np.zeros(shape, np.int16))
        compared(monkeypatch, lambda: fn.readers.numpy(files=[str(tmp_path / "a.npy")], name="r"), 2)


def test_arrays_that_are_wrong(tmp_path, monkeypatch):
    good = np.zeros((2, 3), np.float32)
    for i, other in enumerate(
        (np.zeros(3, np.float32), good.astype(np.int32), good.astype(">f4"), good.astype(np.complex64), np.array(["a"]))
    ):
        np.save(tmp_path / "0.npy", good)
        np.save(tmp_path / "1.npy", other)
        errors = failures(
            monkeypatch, lambda: fn.readers.numpy(files=[str(tmp_path / f"{i}.npy") for i in range(2)], name="r"), 3
        )
        assert errors or i == 2, other.dtype
    for data in (
        b"",
        b"\x93NUMPY\x01\0\xff\xff",
        b"\x93NUMPY\x03\0\0\0\0\0",
        (tmp_path / "0.npy").read_bytes()[:-1],
        b"text",
    ):
        (tmp_path / "1.npy").write_bytes(data)
        assert failures(
            monkeypatch, lambda: fn.readers.numpy(files=[str(tmp_path / f"{i}.npy") for i in range(2)], name="r"), 3
        )


@pytest.mark.parametrize(
    "options",
    [
        {"roi_start": [0, 1]},
        {"roi_start": [1], "roi_shape": [1], "roi_axes": [0]},
        {"rel_roi_shape": [0.5, 0.5], "rel_roi_start": [0.25, 0.3]},
        {"rel_roi_end": [1.5], "roi_axes": [-1], "out_of_bounds_policy": "pad", "fill_value": 7.0},
        {"roi_start": [-1, 2], "roi_end": [9, 30], "out_of_bounds_policy": "trim_to_shape"},
    ],
)
def test_regions_of_arrays(arrays, monkeypatch, options):
    compared(monkeypatch, lambda: fn.readers.numpy(file_root=str(arrays), file_filter="0*.npy", **options, name="r"))
    path, names = str(arrays / "0" / "04.npy"), ("roi_start", "roi_end", "roi_shape", "rel_roi_start", "rel_roi_end")
    fed = {name: options[name] for name in names if name in options and "rel_roi_shape" not in options}

    def define():
        given = {name: fn.constant(fdata=list(value)) for name, value in fed.items() if "rel" in name}
        given |= {
            name: fn.constant(idata=list(value), dtype=types.INT32) for name, value in fed.items() if "rel" not in name
        }
        return fn.readers.numpy(files=[path], **{**options, **given}, name="r")

    assert contents(of(define).run()) == contents(of(lambda: fn.readers.numpy(files=[path], **options, name="r")).run())


def test_regions_that_are_wrong(arrays, monkeypatch):
    for options in ({"roi_start": [5, 0], "roi_end": [4, 1]}, {"roi_end": [90]}, {"roi_end": [1], "roi_axes": [2]}):
        assert failures(
            monkeypatch, lambda options=options: fn.readers.numpy(file_root=str(arrays), **options, name="r")
        )
    for options in ({"roi_end": [1], "rel_roi_end": [1.0]}, {"roi_end": [1], "roi_shape": [1]}):
        with pytest.raises(RuntimeError, match="mutually exclusive"):
            of(lambda options=options: fn.readers.numpy(file_root=str(arrays), **options, name="r")).build()


# --- images with boxes


@pytest.fixture
def images(tmp_path):
    drawn = random.Random(5)
    found, objects = [], []
    for i in range(11):
        found.append({"id": 7 * i % 11 + 3, "file_name": f"{i:02}.jpg", "width": 50 + i, "height": 40})
        (tmp_path / f"{i:02}.jpg").write_bytes(bytes(range(i)))
        for _ in range(drawn.randrange(4)):
            box = [drawn.random() * 20, drawn.randrange(20), drawn.choice([0.05, 0.1, 3, 7.25]), drawn.randrange(1, 9)]
            objects.append(
                {
                    "image_id": found[-1]["id"],
                    "category_id": drawn.choice([2, 5, 9]),
                    "bbox": box,
                    "iscrowd": drawn.choice([0, 0, 1]),
                }
            )
            polygons = [
                [drawn.random() * 40 for _ in range(2 * drawn.randrange(3, 6))] for _ in range(drawn.randrange(3))
            ]
            objects[-1]["segmentation"] = (
                polygons if drawn.random() < 0.8 else {"counts": [1000, 1000 + 40 * i], "size": [40, 50 + i]}
            )
    drawn.shuffle(objects)
    (tmp_path / "all.json").write_text(
        json.dumps({"images": found, "annotations": objects, "categories": [{"id": i} for i in (9, 2, 5)]})
    )
    return {"file_root": str(tmp_path), "annotations_file": str(tmp_path / "all.json")}


@pytest.mark.parametrize("options", ORDERS)
def test_images_with_boxes(images, monkeypatch, options):
    compared(monkeypatch, lambda: tuple(fn.readers.coco(**images, **options, name="r")))


@pytest.mark.parametrize(
    "options",
    [
        {"ltrb": True, "ratio": True, "image_ids": True},
        {"skip_empty": True, "size_threshold": 2.0, "include_iscrowd": False},
        {"ratio": True, "avoid_class_remapping": True, "images": ["03.jpg", "none.jpg", "01.jpg", "03.jpg"]},
        {"images": [], "polygon_masks": False, "save_img_ids": True},
        {"polygon_masks": True, "ratio": True, "image_ids": True},
        {"masks": True, "skip_empty": True, "include_iscrowd": False},
        {"pixelwise_masks": True, "image_ids": True},
    ],
)
def test_boxes_of_images(images, monkeypatch, options):
    compared(monkeypatch, lambda: tuple(fn.readers.coco(**images, **options, name="r")), 12)


def test_images_that_are_not_there(images, tmp_path, monkeypatch):
    (tmp_path / "04.jpg").unlink()
    errors = failures(monkeypatch, lambda: tuple(fn.readers.coco(**images, name="r")), 8)
    assert errors and all("04.jpg" in text for text in errors)


def test_annotations_that_were_saved(images, tmp_path, monkeypatch):
    folder = tmp_path / "saved"
    folder.mkdir()
    saving = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": str(folder)}
    for masks in ("polygon_masks", "pixelwise_masks"):
        made = of(lambda masks=masks: tuple(fn.readers.coco(**images, **saving, **{masks: True}, name="r")))
        loaded = {"file_root": images["file_root"], "preprocessed_annotations": str(folder), masks: True}
        again = of(lambda loaded=loaded: tuple(fn.readers.coco(**loaded, name="r")))
        for _ in range(4):
            assert contents(made.run()) == contents(again.run())
    (folder / "counts.dat").write_bytes(b"\1\0\0\0\xff\xff\xff\x7f")
    with pytest.raises(RuntimeError, match="Could not read .*counts.dat"):
        of(lambda: tuple(fn.readers.coco(**loaded))).build()


# --- files of pipelines


def test_loaded_files_give_the_same(archives, records, recorded, arrays, images):
    for define in (
        lambda: tuple(fn.readers.webdataset(paths=archives, ext=["jpg", "cls"], random_shuffle=True, name="r")),
        examples(records, random_shuffle=True),
        lambda: tuple(fn.readers.mxnet(**recorded, random_shuffle=True, name="r")),
        lambda: fn.readers.numpy(file_root=str(arrays), random_shuffle=True, name="r"),
        lambda: tuple(fn.readers.coco(**images, random_shuffle=True, name="r")),
    ):
        same_from_a_file(define)
