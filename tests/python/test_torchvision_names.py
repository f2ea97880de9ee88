"""`gesso.torchvision`: the pixels of torchvision's transforms of the same names."""

import numpy as np
import pytest

pytest.importorskip("torchvision")

import gesso.torchvision as g
import torch
from gesso.torchvision import functional as f
from PIL import Image
from torchvision.transforms import v2

F = v2.functional
RNG = np.random.default_rng(0)
COLOURS = RNG.integers(0, 256, (61, 83, 3), dtype=np.uint8)
IMAGES = [Image.fromarray(COLOURS), Image.fromarray(COLOURS[..., 0])]
BYTES = torch.from_numpy(COLOURS).permute(2, 0, 1).contiguous()
FLOATS = torch.rand(2, 3, 47, 52, generator=torch.Generator().manual_seed(0))
MODES = v2.InterpolationMode
ALL = [*IMAGES, BYTES, BYTES.repeat(2, 1, 1, 1), FLOATS]


def tensor(made):
    return F.pil_to_tensor(made) if isinstance(made, Image.Image) else made


def check(mine, theirs, inputs=ALL):
    """Both make the same of each input."""
    for data in inputs:
        made, wanted = mine(data), theirs(data)
        assert type(made) is type(wanted)
        assert torch.equal(tensor(made), tensor(wanted)), f"{data if isinstance(data, Image.Image) else data.shape}"


def of_each_kind(mine, theirs, inputs=ALL):
    """A `Compose` takes images or tensors."""
    for data in inputs:
        check(g.Compose(mine), theirs, [data])


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("CenterCrop", ((20, 31),)),
        ("CenterCrop", (90,)),
        ("Pad", ([3, 0, 5, 7], 9)),
        ("Pad", (4, 0, "reflect")),
        ("Pad", ((2, 3), 0, "symmetric")),
        ("Pad", ((2, 3), 0, "edge")),
        ("RandomHorizontalFlip", (1,)),
        ("RandomVerticalFlip", (1,)),
        ("Resize", ((30, 40),)),
        ("Resize", (30,)),
        ("Resize", (100, MODES.BICUBIC)),
        ("Resize", ((30, 40), MODES.NEAREST)),
        ("Resize", (30, MODES.NEAREST_EXACT)),
        ("Resize", (40, MODES.BILINEAR, 50)),
        ("Resize", (None, MODES.BILINEAR, 50)),
    ],
)
def test_transforms(name, arguments):
    of_each_kind([getattr(g, name)(*arguments)], getattr(v2, name)(*arguments))


def test_chains():
    mine = lambda: [g.Resize(40), g.CenterCrop(32), g.RandomHorizontalFlip(1), g.Normalize([0.5] * 3, [0.2, 0.3, 0.7])]
    theirs = v2.Compose(
        [v2.Resize(40), v2.CenterCrop(32), v2.RandomHorizontalFlip(1), v2.Normalize([0.5] * 3, [0.2, 0.3, 0.7])]
    )
    of_each_kind(mine(), theirs, [FLOATS, FLOATS[0]])
    mine = [g.Resize(40), g.ToPureTensor()]
    of_each_kind(mine, v2.Compose([v2.Resize(40), v2.PILToTensor()]), IMAGES)


@pytest.mark.parametrize("count", [1, 3])
def test_gray(count):
    every = torch.from_numpy(RNG.integers(0, 256, (3, 500, 600), dtype=np.uint8))
    of_each_kind([g.Grayscale(count)], v2.Grayscale(count), [*IMAGES, BYTES, every])
    check(lambda x: f.to_grayscale(x, count), lambda x: F.rgb_to_grayscale(x, count), [*IMAGES, BYTES])


@pytest.mark.parametrize("size, sigma", [(3, 1.0), ((5, 9), 2.0), ((7, 3), [0.5, 1.5]), (5, None)])
def test_blur(size, sigma):
    check(lambda x: f.gaussian_blur(x, size, sigma), lambda x: F.gaussian_blur(x, size, sigma), [IMAGES[0], BYTES])
    blurred, wanted = f.gaussian_blur(FLOATS, size, sigma), F.gaussian_blur(FLOATS, size, sigma)
    assert torch.allclose(blurred, wanted, atol=1e-5)
    if isinstance(sigma, float):
        of_each_kind([g.GaussianBlur(size, sigma)], v2.GaussianBlur(size, sigma), [IMAGES[0], BYTES])


@pytest.mark.parametrize(
    "jitter", [(1.3, 1.0, 1.0, 0.0), (1.0, 0.6, 1.0, 0.0), (1.0, 1.0, 1.7, 0.0), (1.0, 1.0, 1.0, 0.2)]
)
def test_jitter(jitter):
    fixed = [(value, value) for value in jitter]
    of_each_kind([g.ColorJitter(*fixed)], v2.ColorJitter(*fixed), [IMAGES[0], BYTES])
    assert g.Compose([g.ColorJitter(0.1, 0.1, 0.1, 0.1)])(FLOATS).shape == FLOATS.shape


def test_functions():
    check(lambda x: f.crop(x, -3, 5, 30, 100), lambda x: F.crop(x, -3, 5, 30, 100))
    check(lambda x: f.resized_crop(x, 3, 5, 30, 20, [11, 17]), lambda x: F.resized_crop(x, 3, 5, 30, 20, [11, 17]))
    check(f.horizontal_flip, F.horizontal_flip)
    check(lambda x: f.pad(x, [1, 2]), lambda x: F.pad(x, [1, 2]))
    check(lambda x: f.center_crop(x, [9, 70]), lambda x: F.center_crop(x, [9, 70]))
    assert torch.equal(f.normalize(FLOATS, [0.1] * 3, [0.3] * 3), F.normalize(FLOATS, [0.1] * 3, [0.3] * 3))
    for data in ALL:
        assert f.get_size(data) == F.get_size(data) and f.get_dimensions(data) == F.get_dimensions(data)
        assert f.get_image_size(data) == F.get_size(data)[::-1]
    for image in (*IMAGES, IMAGES[0].convert("RGBA")):
        assert torch.equal(f.pil_to_tensor(image), F.pil_to_tensor(image))
        assert torch.equal(f.to_tensor(image), F.to_tensor(image))
        assert f.to_pil_image(F.pil_to_tensor(image)).tobytes() == image.tobytes()


def test_random_windows():
    crop = g.Compose([g.RandomCrop((20, 30))], batch_size=64, seed=1)
    rows = torch.arange(61 * 83).reshape(1, 1, 61, 83).float().repeat(64, 1, 1, 1)
    places = {int(one[0, 0, 0]) for _ in range(20) for one in crop(rows)}
    assert {place // 83 for place in places} == set(range(42)) and {place % 83 for place in places} == set(range(54))
    padded = g.Compose([g.RandomCrop(100, 2, True)], batch_size=2)(FLOATS)
    assert padded.shape == (2, 3, 100, 100) and torch.isclose(padded.sum(), FLOATS.sum(), rtol=1e-4)
    with pytest.raises(RuntimeError):
        g.Compose([g.RandomCrop(100)], batch_size=2)(FLOATS)
    assert g.Compose([g.RandomResizedCrop((8, 9))])(BYTES).shape == (3, 8, 9)


def test_some_of_a_batch():
    batch = BYTES.repeat(16, 1, 1, 1)
    made = g.Compose([g.RandomApply([g.RandomHorizontalFlip(1), g.Grayscale(3)], 0.5)], batch_size=16, seed=3)(batch)
    turned = F.rgb_to_grayscale(F.hflip(BYTES), 3)
    kinds = [torch.equal(one, turned) + 2 * torch.equal(one, BYTES) for one in made]
    assert set(kinds) == {1, 2}
    gray = g.Compose([g.RandomGrayscale(1)])(IMAGES[0])
    assert gray.tobytes() == v2.RandomGrayscale(1)(IMAGES[0]).tobytes()


def test_mistakes():
    with pytest.raises(TypeError, match="took first"):
        transform = g.Compose([g.CenterCrop(2)])
        transform(BYTES)
        transform(IMAGES[0])
    for wrong, kind in (
        (lambda: g.CenterCrop((1, 2, 3)), ValueError),
        (lambda: g.CenterCrop("a"), TypeError),
        (lambda: g.Pad(1, padding_mode="wrap"), ValueError),
        (lambda: g.RandomApply([], 2), ValueError),
        (lambda: g.Resize(3, 9), ValueError),
        (lambda: g.Resize((3, 4), max_size=9), ValueError),
        (lambda: g.Normalize([0], [0]), ValueError),
        (lambda: g.GaussianBlur(4), ValueError),
        (lambda: g.ColorJitter(hue=0.7), ValueError),
        (lambda: g.CenterCrop(3, device="tpu"), ValueError),
        (lambda: g.CenterCrop(3)(BYTES), RuntimeError),
        (lambda: f.resize([1], 3), TypeError),
        (lambda: f.crop(BYTES, 0, 0, 0, 1), ValueError),
        (lambda: f.resize(IMAGES[0].convert("CMYK"), 3), ValueError),
        (lambda: f.normalize(FLOATS, [0.5] * 2, [0.5] * 3), RuntimeError),
        (lambda: g.Compose([g.CenterCrop(3)], batch_size=1)(FLOATS), RuntimeError),
    ):
        with pytest.raises(kind):
            wrong()
