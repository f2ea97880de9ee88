"""The programs in examples/python do what they say."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import gesso
import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"


def example(name, *words, timeout=300):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(gesso.__file__).parents[1]), str(EXAMPLES)]),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def losses(text):
    return [float(number) for number in re.findall(r"loss ([0-9.]+)", text)]


def save(path, pixels):
    pytest.importorskip("PIL.Image").fromarray(pixels).save(path)


def test_the_classifier_learns():
    pytest.importorskip("torch")
    found = losses(example("train_classifier.py", "--made", "--epochs", 3))
    assert len(found) == 3 and found[-1] < 0.5 * found[0]


def test_the_detector_learns():
    pytest.importorskip("torch")
    found = losses(example("detection.py", "--made", "--epochs", 4))
    assert len(found) == 4 and found[-1] < 0.7 * found[0]


def test_the_detector_takes_annotations_of_coco(tmp_path):
    pytest.importorskip("torch")
    images = [{"id": i, "file_name": f"{i}.jpg", "width": 80, "height": 60} for i in range(6)]
    for image in images:
        save(tmp_path / image["file_name"], np.full((60, 80, 3), 90, np.uint8))
    boxes = [
        {"id": i, "image_id": i, "category_id": 18, "bbox": [10, 10, 30, 30], "area": 900, "iscrowd": 0}
        for i in range(6)
    ]
    (tmp_path / "a.json").write_text(json.dumps({"images": images, "annotations": boxes, "categories": [{"id": 18}]}))
    assert len(losses(example("detection.py", tmp_path, tmp_path / "a.json", "--epochs", 1))) == 1


def test_ray_data(tmp_path):
    pytest.importorskip("ray.data")
    for i in range(20):
        save(tmp_path / f"{i:02}.png", np.full((30, 40, 3), i * 10, np.uint8))
    (tmp_path / "99.png").write_bytes(b"no image")
    assert "20 images of the shape (3, 224, 224)" in example("ray_data.py", tmp_path)
    program = (
        "import ray_data\n"
        f"rows = ray_data.dataset({str(tmp_path)!r}, batch_size=8, side=16).take_all()\n"
        "for row in sorted(rows, key=lambda row: row['path']): print('ROW', row['path'], row['image'].shape, row['image'].mean())\n"
    )
    (tmp_path / "rows.py").write_text(program)
    rows = [line.split() for line in example(tmp_path / "rows.py").splitlines() if line.startswith("ROW")]
    assert len(rows) == 20
    for i, row in enumerate(rows):
        assert row[1].endswith(f"{i:02}.png") and "(3, 16, 16)" in " ".join(row)
        assert abs(float(row[-1]) - (i * 10 / 127.5 - 1)) < 1e-4
