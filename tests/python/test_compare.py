"""`gesso.compare` and the command line of it."""

import os
import subprocess
import sys

import gesso
import numpy as np
import pytest
from gesso import fn, types
from PIL import Image

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def pipeline(arithmetic="pillow", normalization=None):
    """Resizes to 64 and cuts out 56, as most evaluations do."""
    made = gesso.Pipeline(batch_size=4, num_threads=1, device_id=None)
    with made:
        encoded = fn.external_source(name="IMAGE", dtype=types.UINT8, ndim=1)
        images = fn.decoders.image(encoded, adjust_orientation=False)
        images = fn.resize_crop_mirror(images, resize_shorter=64, crop=[56, 56], arithmetic=arithmetic)
        if normalization:
            images = fn.crop_mirror_normalize(images, mean=MEAN, std=STD, arithmetic=normalization)
        made.set_outputs(images)
    return made


@pytest.fixture
def photos(tmp_path):
    """Some files, the second of them with the largest contrasts."""
    folder, rng = tmp_path / "photos", np.random.default_rng(3)
    folder.mkdir()
    for number, most in enumerate((20, 256, 100)):
        pixels = Image.fromarray(rng.integers(0, most, (20, 30, 3), np.uint8)).resize(
            (150 + number, 100), Image.NEAREST
        )
        pixels.save(folder / f"{number}.png")
    return sorted(folder.iterdir())


def test_equal_pixels(photos):
    found = gesso.compare(pipeline(), photos, "pillow", resize=64, crop=56)
    assert found.within() and found.largest == found.mean == 0
    assert found.histogram[0] == (0, 3 * 56 * 56 * 3)
    assert [file.path for file in found.files] == [str(path) for path in photos]
    assert "3 files beside pillow: 0 differ" in str(found)


def test_equal_floats_and_a_last_bit(photos):
    arguments = {"resize": 64, "crop": 56, "mean": MEAN, "std": STD}
    assert gesso.compare(pipeline("pillow", "torchvision"), photos, "pillow", **arguments).within()
    found = gesso.compare(pipeline("pillow", "torchvision-v2"), photos, "pillow", **arguments)
    assert found.is_float and not found.within() and found.within(1e-6)


def test_what_differs_is_told_and_drawn(photos, tmp_path):
    found = gesso.compare(pipeline("dali"), photos, "pillow", resize=64, crop=56)
    assert found.worst.path == str(photos[1]) and found.largest == found.worst.largest > 16
    assert sum(count for _, count in found.histogram) == 3 * 56 * 56 * 3
    assert f"worst file: {photos[1]}" in str(found)
    found.save_picture(tmp_path / "worst.png")
    with Image.open(tmp_path / "worst.png") as picture:
        drawn = np.asarray(picture)
    expected = np.asarray(Image.open(photos[1]).resize((96, 64), Image.BILINEAR))[4:60, 20:76]
    assert drawn.shape == (56, 3 * 56 + 8, 3)
    np.testing.assert_array_equal(drawn[:, 60:116], expected)
    far = np.abs(drawn[:, :56].astype(int) - expected)
    np.testing.assert_array_equal(drawn[:, 120:] > 0, far > 0)


def test_a_function_whose_channels_come_first(photos):
    def planes(path):
        image = Image.open(path).resize((96, 64), Image.BILINEAR)
        return np.asarray(image)[4:60, 20:76].transpose(2, 0, 1)

    found = gesso.compare(pipeline(), photos[:2], planes)
    assert found.within(values_only=True) and found.reference == "planes"
    # The order of dimensions is told, and counts.
    assert not found.within()
    assert (
        "another order of dimensions: the pipeline's shape is (56, 56, 3), the reference's (3, 56, 56) (2 files)"
        in str(found)
    )


def test_another_type_is_told_and_counts(photos):
    def floats(path):
        return np.asarray(Image.open(path).resize((96, 64), Image.BILINEAR))[4:60, 20:76].astype(np.float64)

    found = gesso.compare(pipeline(), photos[:2], floats)
    assert found.largest == 0 and found.within(values_only=True) and not found.within(255)
    assert "another type: the pipeline's is uint8, the reference's float64 (2 files)" in str(found)


@pytest.mark.parametrize("tolerance", [float("nan"), float("inf"), -1])
def test_what_is_no_tolerance(photos, tolerance):
    with pytest.raises(ValueError, match="argument `tolerance` is .*, expected a number from 0 on"):
        gesso.compare(pipeline(), photos[:1], "pillow", resize=64, crop=56).within(tolerance)


def test_values_that_are_no_numbers(photos):
    ours = np.float32([0, np.nan, np.inf, np.nan])
    found = gesso.Comparison("other", [])
    found.add("file", ours, np.float32([0, np.nan, np.inf, 1]))
    assert found.largest == np.inf and found.files[0].differing == 1 and found.histogram[-1] == (np.inf, 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"reference": "pil"}, "the reference is 'pil', expected pillow, torchvision, opencv or `module:function`"),
        ({"reference": "no_module:function"}, "cannot import `no_module`"),
        ({"reference": "os:no_function"}, "module `os` has no function `no_function`"),
        ({"reference": "pillow", "resize": 0}, "argument `resize` is 0, expected one size or two"),
        ({"reference": "pillow", "filter": "sinc"}, "argument `filter` is 'sinc', expected one of nearest"),
        ({"reference": "pillow", "filter": "area"}, "Pillow has no filter `area`"),
        ({"reference": "pillow", "mean": MEAN}, "expected both `mean` and `std`"),
        (
            {"reference": "pillow", "crop": 5000},
            "0.png: the reference fails: the window of 5000 x 5000 pixels is larger",
        ),
        (
            {"reference": "pillow"},
            r"0.png: the reference fails: it made an array of shape .100, 150, 3., the pipeline one of shape .56, 56, 3.",
        ),
        ({"reference": str, "crop": 9}, "argument `crop` is for the references pillow"),
        (
            {"reference": lambda path: 1 / 0},
            r"0.png: the reference fails: `.*test_compare.py`, line \d+: ZeroDivisionError: division by zero",
        ),
        (
            {"reference": lambda path: sys.exit(0)},
            r"0.png: the reference fails: `.*test_compare.py`, line \d+: SystemExit: code of the user ends",
        ),
        (
            {"reference": lambda path: np.zeros((56, 56, 3), complex)},
            "it made an array of type complex128, expected real numbers",
        ),
        ({"reference": "pillow", "output": 1, "crop": 56}, "output 1 is not there: the pipeline has 1"),
    ],
)
def test_wrong_calls(photos, arguments, says):
    with pytest.raises((ValueError, RuntimeError), match=says):
        gesso.compare(pipeline(), photos, **arguments)


def test_files_and_pipelines_that_cannot_be_used(photos, tmp_path):
    (tmp_path / "text.jpg").write_text("no picture")
    with pytest.raises(RuntimeError, match="text.jpg: the pipeline fails: .*"):
        gesso.compare(pipeline(), [tmp_path / "text.jpg"], "pillow")
    with pytest.raises(ValueError, match="there are no files to compare"):
        gesso.compare(pipeline(), [], "pillow")
    two = gesso.Pipeline(batch_size=1, num_threads=1, device_id=None)
    with two:
        two.set_outputs(fn.external_source(name="a"), fn.external_source(name="b"))
    with pytest.raises(RuntimeError, match=r"expected one input, which takes a file, found \['a', 'b'\]"):
        gesso.compare(two, photos, "pillow")


def test_the_command_line(photos, tmp_path):
    pipeline().serialize(filename=str(tmp_path / "model.dali"))
    (tmp_path / "training.py").write_text(
        "import numpy as np\nfrom PIL import Image\n\n\ndef black(path):\n    return np.zeros((56, 56, 3), np.uint8)\n"
    )

    def run(*arguments):
        words = [sys.executable, "-m", "gesso", "compare", "model.dali", "photos", *arguments]
        path = os.pathsep.join([os.path.dirname(os.path.dirname(gesso.__file__)), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}
        )

    same = run("--reference", "pillow", "--resize", "64", "--crop", "56,56")
    assert (same.returncode, same.stderr) == (0, "") and "0 differ" in same.stdout
    other = run("--reference", "training:black", "--picture", "where.png")
    assert other.returncode == 1 and "largest difference: 25" in other.stdout and (tmp_path / "where.png").exists()
    assert run("--reference", "training:black", "--tolerance", "255").returncode == 0
    for tolerance in ("nan", "inf", "-1"):
        wrong = run("--reference", "training:black", f"--tolerance={tolerance}")
        assert wrong.returncode == 2 and "expected a number from 0 on" in wrong.stderr
    # A program that ends itself is no success.
    for text, says in (
        ("import sys\n\nsys.exit(0)\n", "leaves.py`, line 3: SystemExit: code of the user ends the program with 0"),
        ("import sys\n\n\ndef load(path):\n    sys.exit(0)\n", "leaves.py`, line 5: SystemExit"),
        ("import no_such_module\n", "leaves.py`, line 1: ModuleNotFoundError"),
        ("def load(path:\n", "leaves.py`, line 1: SyntaxError"),
        ("def load(path):\n    raise ValueError('\\x1b[2J')\n", "leaves.py`, line 2: ValueError: \\x1b[2J"),
    ):
        (tmp_path / "leaves.py").write_text(text)
        wrong = run("--reference", "leaves:load")
        assert wrong.returncode == 2 and says in wrong.stderr, wrong.stderr
    (tmp_path / "leaves.py").write_text("import sys\n\nsys.exit(0)\n")
    words = [sys.executable, "-m", "gesso", "compare", "leaves.py", "photos", "--reference", "pillow"]
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(gesso.__file__))}
    wrong = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert wrong.returncode == 2 and "`leaves.py`, line 3: SystemExit" in wrong.stderr
    (tmp_path / "floats.py").write_text(
        "from training import black\n\n\ndef load(path):\n    return black(path) + 0.5\n"
    )
    assert run("--reference", "floats:load", "--tolerance", "255").returncode == 1
    assert run("--reference", "floats:load", "--tolerance", "255", "--values-only").returncode == 0
    wrong = run("--reference", "nothing")
    assert wrong.returncode == 2 and wrong.stderr.startswith("error: the reference is 'nothing'")
    assert run().returncode == 2
    # What is no image is left out and counted.
    (tmp_path / "photos" / "notes.txt").write_text("no image")
    same = run("--reference", "pillow", "--resize", "64", "--crop", "56,56")
    assert (same.returncode, same.stderr) == (0, "photos: 1 files are left out: their names end like no image\n")
    for photo in photos:
        photo.unlink()
    assert "there is no image in `photos`" in run("--reference", "pillow").stderr
