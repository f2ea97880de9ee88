"""Every row of docs/guides/from-torchvision.md: both cells run, and what they make differs by no more than the row
says."""

import io
import re
import runpy
import tempfile
from pathlib import Path

import numpy as np
import pytest
from gesso import dynamic

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guides" / "from-torchvision.md").read_text(encoding="utf-8")
CELLS = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|(?: ([\d.]+) \|)?$", PAGE, re.MULTILINE)
FIXED = [row for row in CELLS if row[2]]
RANDOM = [row[:2] for row in CELLS if not row[2]]


def picture():
    """Waves and grain, not as bright as dark, so that a wrong centre shows."""
    y, x = np.mgrid[0:120, 0:160].astype(np.float32)
    waves = [90 + 80 * np.sin(x / 17 + y / 31 + c) * np.cos(y / 13) for c in range(3)]
    return (np.stack(waves, -1) + np.random.default_rng(0).normal(0, 6, (120, 160, 3))).clip(0, 255).astype(np.uint8)


PICTURE = picture()


def torchvision(code):
    modes = {name: getattr(v2.InterpolationMode, name) for name in ("BILINEAR", "BICUBIC", "NEAREST_EXACT")}
    names = {"F": v2.functional, "v2": v2, "torch": torch, "image": torch.from_numpy(PICTURE).permute(2, 0, 1), **modes}
    return eval(code, names).numpy()


DEFINITION = """
from gesso import fn, pipeline_def, types
from gesso.auto_aug import auto_augment, rand_augment, trivial_augment

@pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1, enable_conditionals=True, seed=1)
def pipeline():
    images = fn.external_source(name="images", dtype=types.UINT8, ndim=3, layout="HWC")
    return {code}
"""


def ours(code):
    # From a file: what `if` means in a definition is read from its source.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "definition.py"
        path.write_text(DEFINITION.format(code=code))
        pipeline = runpy.run_path(str(path))["pipeline"]()
        return pipeline.run(images=[PICTURE])[0].as_array()[0]


def alike(theirs, mine):
    """Theirs in the layout of mine."""
    return theirs.transpose(1, 2, 0) if theirs.shape != mine.shape else theirs


def test_the_page_has_its_rows():
    assert len(FIXED) > 20 and len(RANDOM) > 7


@pytest.mark.parametrize(("theirs", "mine", "most"), FIXED)
def test_fixed_transforms(theirs, mine, most):
    mine = ours(mine)
    theirs = alike(torchvision(theirs), mine)
    assert theirs.shape == mine.shape and theirs.dtype == mine.dtype
    difference = np.abs(theirs.astype(float) - mine.astype(float)).mean()
    assert difference <= float(most), difference


@pytest.mark.parametrize(("theirs", "mine"), RANDOM)
def test_random_transforms(theirs, mine):
    mine = ours(mine)
    theirs = alike(torchvision(theirs), mine)
    assert theirs.shape == mine.shape and theirs.dtype == mine.dtype


def test_what_differs_does():
    """The page warns of these; a row for them would be welcome once they do not."""
    images = {
        "F.adjust_hue(image, 0.1)": "fn.hue(images, hue=36.0)",
        "F.adjust_contrast(image, 1.3)": "fn.contrast(images, contrast=1.3)",
        "F.resize(image, [60, 90], v2.InterpolationMode.NEAREST)": "fn.resize(images, size=[60, 90], interp_type=types.INTERP_NN)",
    }
    for theirs, mine in images.items():
        mine = ours(mine)
        assert np.abs(alike(torchvision(theirs), mine).astype(float) - mine).mean() > 2


def test_files_become_the_same_pixels():
    image = pytest.importorskip("PIL.Image")
    data = io.BytesIO()
    image.fromarray(PICTURE).save(data, "JPEG", quality=90, subsampling="4:2:0")
    file = np.frombuffer(data.getvalue(), np.uint8)
    mine = np.asarray(dynamic.decoders.image(file))
    theirs = pytest.importorskip("torchvision.io").decode_image(torch.from_numpy(file.copy()))
    assert (theirs.permute(1, 2, 0).numpy() == mine).all() and (np.asarray(image.open(data)) == mine).all()
