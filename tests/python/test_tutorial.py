"""The pages of the documentation do what they say: their Python runs as it stands, from top to bottom."""

import io
import json
import os
import re
import runpy
import subprocess
import sys
import tarfile
import wave
from pathlib import Path

import gesso
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def blocks(page, language):
    return re.findall(
        rf"^```{language}\n(.*?)^```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def test_the_tutorial_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    program = []
    for block in blocks("getting-started/python.md", "python"):
        name = re.match(r"# (\w+\.py)\n", block)
        if name:
            (tmp_path / name[1]).write_text(block)
        else:
            program.append(block)
    (tmp_path / "tutorial.py").write_text("".join(program))
    names = runpy.run_path(str(tmp_path / "tutorial.py"))
    printed = capsys.readouterr().out
    for line in re.findall(r"print\(.*# (.*)$", "".join(program), re.MULTILINE):
        assert line.strip() in printed, printed
    assert names["batch"].shape == (8, 64, 64, 3) and names["array"].shape == (2, 3, 224, 224)
    # What the page's commands do with the files that it made.
    assert (tmp_path / "photo.png").read_bytes() == names["file"].tobytes()
    written = subprocess.run(
        [sys.executable, "-m", "gesso", "serialize", "preprocess.py", "-o", "model.dali"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert written.returncode == 0, written.stderr
    from gesso import Pipeline

    (out,) = Pipeline.deserialize(filename="model.dali", prefetch_queue_depth=1).run(IMAGE=[names["file"]])
    assert (out.as_array()[0] == names["array"][0]).all()


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="the standard library's signatures differ from version to version"
)
def test_the_reference_is_fresh():
    make = runpy.run_path(str(ROOT / "scripts" / "lib" / "python_reference.py"))["page"]
    page = ROOT / "docs" / "reference" / "python-api.md"
    assert page.read_text(encoding="utf-8") == make(), (
        f"run `python3 scripts/lib/python_reference.py > docs/{page.name}`"
    )


PAGES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_python_of_the_pages_is_python(page):
    for block in blocks(page, "python"):
        compile(block, page, "exec")


# --- recipes for training, each on a small data set that has the names that its page uses


def jpeg(shade=0):
    data = io.BytesIO()
    pixels = np.full((40, 60, 3), shade, np.uint8)
    pytest.importorskip("PIL.Image").fromarray(pixels).save(data, "JPEG")
    return data.getvalue()


def run_page(*pages):
    """Runs the Python of pages as one program, in the folder at hand; its names."""
    program = "".join(block for page in pages for block in blocks(f"guides/training/{page}.md", "python"))
    Path("program.py").write_text(program)
    return runpy.run_path("program.py")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def images(here):
    for i in range(70):
        folder = here / "images" / ("cat", "dog")[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.jpg").write_bytes(jpeg(i))
    return here


def test_the_page_of_dynamic_mode(here):
    for name in ("a.jpg", "b.jpg"):
        Path(name).write_bytes(jpeg())
    Path("program.py").write_text("".join(blocks("guides/dynamic.md", "python")))
    names = runpy.run_path("program.py")
    assert names["turned"].batch_size == 2 and names["pictures"].tensors[0].layout == "HWC"
    assert Path("run_0000.json").exists()


def test_the_page_of_python(images, capsys):
    Path("program.py").write_text("".join(blocks("guides/python.md", "python")))
    names = runpy.run_path("program.py")
    assert names["array"].shape == (8, 3, 224, 224) and capsys.readouterr().out.startswith("[(3, 224, 224), ")
    made = names["augmented"](prefetch_queue_depth=1)
    (out,) = made.run(images=[np.zeros((30, 40, 3), np.uint8)] * 8)
    assert len(out) == 8
    assert [
        output.shape
        for output in names["model"](prefetch_queue_depth=1).run(images=[np.frombuffer(jpeg(), np.uint8)])[0].arrays
    ] == [(224, 224, 3)]


def test_a_folder_of_images(images):
    pytest.importorskip("torch")
    names = run_page("image-folder")
    assert names["images"].shape == (6, 3, 224, 224) and set(names["labels"].ravel().tolist()) <= {0, 1}


def test_images_with_a_csv_file(here):
    pytest.importorskip("torch")
    (here / "photos").mkdir()
    for i in range(70):
        (here / "photos" / f"{i}.jpg").write_bytes(jpeg(i))
    (here / "photos/labels.csv").write_text("image,age,height\n" + "".join(f"{i}.jpg,{i},{i / 2}\n" for i in range(70)))
    (here / "names.csv").write_text("image,name\n1.jpg,cat\n2.jpg,dog\n")
    names = run_page("csv-labels")
    assert names["images"].shape == (6, 3, 224, 224) and names["labels"].shape == (6, 2)
    assert (names["labels"][:, 0] == 2 * names["labels"][:, 1]).all()
    assert (here / "photos/classes.csv").read_text() == "image,class\n1.jpg,0\n2.jpg,1\n"


def test_going_on_after_a_stop(images):
    torch = pytest.importorskip("torch")
    run_page("image-folder", "resume")
    assert isinstance(torch.load("last.pt")["data"][0], bytes)
    # One batch was taken before the state was saved: the second one is the last of the epoch.
    names = run_page("image-folder", "resume")
    assert names["step"] == 0 and len(names["batch"][0]["data"]) == 6


def test_several_processes(images, monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "torch", None)
    images, labels = run_page("many-gpus")["pipeline"].run()
    assert images.as_array().shape == (64, 224, 224, 3)
    assert "'number_of_shards': 2, 'shard_id': 1" in capsys.readouterr().out


def test_tar_archives(here):
    for part in range(2):
        with tarfile.open(f"shard-{part}.tar", "w") as archive:
            for i in range(8):
                for name, data in ((f"{part}{i}.jpg", jpeg(i)), (f"{part}{i}.cls", str(i).encode())):
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))
    (command,) = blocks("guides/training/webdataset.md", "")
    done = subprocess.run(
        command.replace("gesso", f"{sys.executable} -m gesso", 1), shell=True, capture_output=True, text=True
    )
    if "has no command line" in done.stderr:
        pytest.skip("the library was built without the command line")
    assert done.returncode == 0, done.stderr
    names = run_page("webdataset")
    assert len(names["numbers"]) == 64 and set(names["numbers"]) == set(range(8))


def test_boxes(here):
    (here / "train2017").mkdir()
    images = [{"id": i, "file_name": f"{i}.jpg", "width": 60, "height": 40} for i in range(4)]
    for image in images:
        (here / "train2017" / image["file_name"]).write_bytes(jpeg())
    boxes = [
        {"id": i, "image_id": i, "category_id": 3, "bbox": [0, 0, 15, 10], "area": 150, "iscrowd": 0} for i in range(4)
    ]
    content = {"images": images, "annotations": boxes, "categories": [{"id": 3}]}
    (here / "instances_train2017.json").write_text(json.dumps(content))
    names = run_page("coco")
    found = {tuple(box) for batch in names["boxes"].arrays for box in batch.tolist()}
    assert found <= {(0, 0, 0.25, 0.25), (0.75, 0, 1, 0.25)} and names["images"].as_array().shape == (16, 300, 300, 3)


def test_sound(here):
    (here / "sounds" / "bell").mkdir(parents=True)
    lines = []
    for i in range(3):
        path = here / "sounds" / "bell" / f"{i}.wav"
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(np.sin(np.arange(2000 + 500 * i) / 5 * 3000).astype(np.int16).tobytes())
        lines.append(json.dumps({"audio_filepath": str(path), "duration": 0.2, "text": f"bell {i}"}))
    (here / "train.json").write_text("\n".join(lines))
    names = run_page("audio")
    assert names["spectra"].as_array().shape[:2] == (16, 80) and set(names["words"]) == {"bell 0", "bell 1", "bell 2"}


def test_hdf5_and_parquet(here, monkeypatch):
    h5py, pa, pq = pytest.importorskip("h5py"), pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (here / "train").mkdir()
    with h5py.File("train/a.h5", "w") as file:
        file["images"], file["labels"] = np.zeros((9, 30, 20, 3), np.uint8), np.arange(9)
    pq.write_table(pa.table({"image": [{"bytes": jpeg(i)} for i in range(9)], "label": range(9)}), "train/a.parquet")
    # The hub is not asked: its module is one of ours, and the data set that it gives is the one above.
    Path("huggingface_hub.py").write_text(
        "def snapshot_download(name, repo_type, allow_patterns):\n    return 'train'\n"
    )
    monkeypatch.syspath_prepend(str(here))
    monkeypatch.delitem(sys.modules, "huggingface_hub", raising=False)
    names = run_page("hdf5-parquet")
    assert set(names["labels"].as_array().tolist()) == set(range(9)) and names["images"].as_array().shape == (
        64,
        224,
        224,
        3,
    )


def dicom(path, syntax, files, photometric, bits):
    """A DICOM file with these pictures in it."""
    import pydicom
    from pydicom import encaps

    tags = pydicom.Dataset()
    tags.file_meta = pydicom.dataset.FileMetaDataset()
    tags.file_meta.TransferSyntaxUID = pydicom.uid.UID(syntax)
    tags.file_meta.MediaStorageSOPClassUID = pydicom.uid.SecondaryCaptureImageStorage
    tags.file_meta.MediaStorageSOPInstanceUID = tags.SOPInstanceUID = pydicom.uid.generate_uid()
    tags.SOPClassUID = pydicom.uid.SecondaryCaptureImageStorage
    tags.PhotometricInterpretation, tags.NumberOfFrames = photometric, len(files)
    tags.SamplesPerPixel = 1 if photometric.startswith("MONO") else 3
    tags.Rows, tags.Columns, tags.PixelRepresentation = 21, 29, 0
    tags.BitsStored, tags.HighBit, tags.BitsAllocated = bits, bits - 1, 8 if bits <= 8 else 16
    tags.PixelData = encaps.encapsulate(files)
    tags["PixelData"].VR = "OB"
    tags.save_as(path, enforce_file_format=True)


def test_dicom(here):
    pytest.importorskip("pydicom")
    names = run_page("dicom")
    stored = np.load(ROOT / "tests" / "data" / "decode" / "deep.npz")
    for syntax, photometric, bits, files in (
        (57, "MONOCHROME2", 12, ["sof3_12_gray", "sof3_12_gray"]),
        (70, "MONOCHROME2", 16, ["sof3_16_psv1", "sof3_16_rst"]),
        (57, "RGB", 8, ["sof3_8_rgb"]),
        (57, "RGB", 8, ["sof3_apart"]),
        (51, "MONOCHROME2", 12, ["jpeg12_gray"]),
        (51, "YBR_FULL_422", 12, ["jpeg12_422"]),
    ):
        dicom("a.dcm", f"1.2.840.10008.1.2.4.{syntax}", [stored[name].tobytes() for name in files], photometric, bits)
        for values, name in zip(names["stored_values"]("a.dcm"), files, strict=True):
            off = np.abs(values.astype(int) - stored[f"{name}_samples"]).max()
            assert off <= (1 if name.startswith("jpeg12") else 0), (name, off)
    # What a lossless file's colours are, its tags say: the same file with another word has other colours.
    file = stored["sof3_8_rgb"].tobytes()
    dicom("a.dcm", "1.2.840.10008.1.2.4.57", [file], "YBR_FULL", 8)
    (values,) = names["stored_values"]("a.dcm")
    luma, blue, red = (stored["sof3_8_rgb_samples"][..., i].astype(float) for i in range(3))
    rgb = np.stack(
        [luma + 1.402 * (red - 128), luma - 0.344 * (blue - 128) - 0.714 * (red - 128), luma + 1.772 * (blue - 128)], -1
    )
    assert np.abs(values - rgb.clip(0, 255)).max() <= 1


def test_ray(images):
    pytest.importorskip("ray.data")
    Path("program.py").write_text("".join(blocks("guides/training/ray.md", "python")))
    paths = os.pathsep.join([str(Path(gesso.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "program.py"], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "(70, 3, 224, 224)" in done.stdout
