"""`gesso.convert` beside the libraries that it reads definitions of, where they are installed.
`tests/conformance/converted.py` compares every class and setting."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from gesso import convert
from gesso.convert import ConversionError, from_hf, hf_classes, proof
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

import converted

ROWS = [row for number, row in enumerate(converted.rows()) if number % 9 == 4]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """One of each kind but the last, and few: the script takes a hundred."""
    return proof.photos(tmp_path_factory.mktemp("photos"), 6)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.library}-{row.name}")
def test_rows_are_equal_to_the_bit(row, photos):
    pytest.importorskip(row.library)
    found = convert.prove(row.make(), photos[: 3 if "Detr" in row.name or "Former" in row.name else 6])
    assert found.is_equal, str(found)


# Hugging Face


def test_defaults_are_those_of_the_classes():
    transformers = pytest.importorskip("transformers")
    for name, (_, defaults) in hf_classes.CLASSES.items():
        made = getattr(transformers, name)()
        for field, value in defaults.items():
            found = getattr(made, field)
            found = (
                dict(found)
                if hasattr(found, "shortest_edge")
                else tuple(found)
                if isinstance(found, (list, tuple))
                else found
            )
            assert found == value, (name, field, found)
        for field in ("do_center_crop", "do_pad", "do_convert_rgb", "crop_size", "pad_size"):
            assert field in defaults or not getattr(made, field, None), (name, field)


def test_a_processor_is_what_its_configuration_is(tmp_path):
    transformers = pytest.importorskip("transformers")
    for name in ("CLIPImageProcessor", "DetrImageProcessor", "SamImageProcessor"):
        processor = getattr(transformers, name)(resample=3)
        processor.save_pretrained(tmp_path)
        made = convert.transformers(processor)
        assert (
            made.stage == convert.transformers(tmp_path).stage
            and made.stage.title == f"{name} of transformers, by torchvision"
        )
    by_pillow = convert.transformers(transformers.CLIPImageProcessorPil())
    assert by_pillow.stage.title == "CLIPImageProcessor of transformers, by Pillow and numpy"

    class Own(transformers.ViTImageProcessor):
        pass

    with pytest.raises(ConversionError, match="expected an image processor of transformers"):
        convert.transformers(Own())


def test_the_proof_of_a_folder_is_of_what_transformers_reads_there(tmp_path, photos, monkeypatch):
    transformers = pytest.importorskip("transformers", minversion="5")
    processor = {"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    nested = {"image_processor": processor | {"image_mean": [0.1, 0.2, 0.3]}, "processor_class": "CLIPProcessor"}
    (tmp_path / "processor_config.json").write_text(json.dumps(nested))
    for backend in ("torchvision", "pil"):
        assert convert.prove(convert.transformers(tmp_path, backend=backend), photos[:2]).is_equal
    # A wrong reading does not prove itself.
    monkeypatch.setattr(from_hf, "read", lambda path: processor)
    assert not convert.prove(convert.transformers(tmp_path), photos[:2]).is_equal
    monkeypatch.setattr(from_hf, "read", lambda path: {"image_processor_type": "DeiTImageProcessor"})
    with pytest.raises(
        ConversionError, match="transformers makes a `ViTImageProcessor` of it, here it is read as `DeiTImageProcessor`"
    ):
        convert.transformers(tmp_path).reference()
    monkeypatch.undo()
    for name in ("ViTImageProcessorPil", "ViTImageProcessorFast", "ViTFeatureExtractor"):
        (tmp_path / "processor_config.json").unlink(missing_ok=True)
        field = "feature_extractor_type" if name.endswith("Extractor") else "image_processor_type"
        (tmp_path / "preprocessor_config.json").write_text(json.dumps({field: name, "size": 32, "image_mean": 0.3}))
        assert convert.prove(convert.transformers(tmp_path), photos[:2]).is_equal
    # What transformers refuses is refused here, too.
    with pytest.raises(ValueError, match="`image_mean` and `image_std`"):
        transformers.ViTImageProcessor.from_dict({"image_mean": None})(Image.new("RGB", (9, 9)))


def test_requests_of_several_images_are_padded_as_transformers_pads(photos):
    transformers = pytest.importorskip("transformers")
    from transformers.image_utils import load_image

    processor = transformers.DetrImageProcessor(size={"shortest_edge": 100, "longest_edge": 150})
    theirs = processor([load_image(str(path)) for path in photos], return_tensors="np")
    ours = convert.transformers(processor)().run(IMAGE=[np.fromfile(path, np.uint8) for path in photos])
    for name, output in zip(("pixel_values", "pixel_mask"), ours, strict=True):
        np.testing.assert_array_equal([np.asarray(output.at(number)) for number in range(len(photos))], theirs[name])


def test_a_difference_is_told(photos):
    pytest.importorskip("transformers")
    made = convert.transformers({"image_processor_type": "ViTImageProcessor"}, arithmetic="dali")
    found = convert.prove(made, photos)
    assert not found.is_equal and "equal to the bit on 0 of 6" in str(found) and "largest difference 0.0" in str(found)
    made = convert.transformers({"image_processor_type": "YolosImageProcessor"})
    made.reference = lambda: lambda path: [np.zeros((3, 8, 8), np.float32), np.zeros((8, 8), np.int64)]
    assert "another shape on 2 of 2" in str(convert.prove(made, photos[:2]))


# torchvision


def composed(*steps, version="v1"):
    transforms = pytest.importorskip("torchvision.transforms" if version == "v1" else "torchvision.transforms.v2")
    return transforms.Compose([step(transforms) for step in steps])


NORMALIZED = (lambda t: t.ToTensor(), lambda t: t.Normalize([0.5] * 3, [0.5] * 3))


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        (
            (lambda t: t.Lambda(lambda image: image), *NORMALIZED),
            r"transform \[0\] is `Lambda`: a function of yours has no stage",
        ),
        ((lambda t: t.RandomHorizontalFlip(), *NORMALIZED), r"transform \[0\] is `RandomHorizontalFlip`: it is random"),
        ((lambda t: t.GaussianBlur(3), *NORMALIZED), r"transform \[0\] is `GaussianBlur`: it is random"),
        ((*NORMALIZED, lambda t: t.Resize(9)), "transform `Resize` comes behind normalized floats"),
        (
            (NORMALIZED[0], lambda t: t.Resize(9, t.InterpolationMode.NEAREST)),
            "field `interpolation` of Resize is 'nearest'",
        ),
        ((NORMALIZED[0], lambda t: t.Pad(9, 3)), "field `fill` of Pad is 3: behind floats"),
        ((lambda t: t.Resize(9),), "the transforms end with an image of Pillow"),
        (
            (lambda t: t.PILToTensor(), lambda t: t.Normalize([0.5] * 3, [0.5] * 3)),
            "transform `Normalize` is given bytes",
        ),
        ((*NORMALIZED, NORMALIZED[1]), "transform `Normalize` comes twice"),
        ((lambda t: t.ToTensor(), lambda t: t.Normalize([0.5], [0.0])), "`std` of Normalize"),
        (
            (lambda t: t.PILToTensor(), lambda t: t.Resize(9, antialias=False)),
            "field `antialias` of Resize is False: expected true",
        ),
        (
            (lambda t: t.PILToTensor(), lambda t: t.Resize(9, t.InterpolationMode.LANCZOS)),
            "field `interpolation` of Resize is 'lanczos'",
        ),
        ((lambda t: t.Compose([lambda image: image]),), r"transform \[0\]\[0\] is `function` of"),
        ((lambda t: t.Resize([0, 3]), *NORMALIZED), "field `size` of Resize"),
        ((lambda t: t.Grayscale(), *NORMALIZED), "field `num_output_channels` of Grayscale is 1: expected 3"),
        ((NORMALIZED[0], lambda t: t.Grayscale(3)), "transform `Grayscale` is given a tensor"),
        ((lambda t: t.Pad(-3), *NORMALIZED), "field `padding` of Pad is -3"),
        ((lambda t: t.Pad(3, padding_mode="constant", fill=999), *NORMALIZED), "field `fill` of Pad is 999"),
    ],
)
def test_transforms_without_an_equal_stage(steps, says):
    with pytest.raises(ConversionError, match=says):
        convert.torchvision(composed(*steps))


def test_transforms_of_version_2_without_an_equal_stage():
    torch = pytest.importorskip("torch")
    for steps, says in (
        (
            (lambda t: t.ToImage(), lambda t: t.ToDtype(torch.float16, scale=True)),
            "field `dtype` of ToDtype is torch.float16",
        ),
        ((lambda t: t.ToDtype(torch.float32, scale=True),), "is given an image of Pillow"),
        ((lambda t: t.ToImage(), lambda t: t.MixUp(num_classes=3)), "is `MixUp`: it is random"),
        ((lambda t: t.Resize(None, max_size=9), lambda t: t.ToImage()), "field `size` of Resize is None"),
    ):
        with pytest.raises(ConversionError, match=says):
            convert.torchvision(composed(*steps, version="v2"))


def test_names_of_transforms(tmp_path):
    models = pytest.importorskip("torchvision.models")
    (tmp_path / "training.py").write_text(
        "from torchvision.transforms import *\ntransform = Compose([CenterCrop(32), ToTensor()])\n"
    )
    assert convert.torchvision(f"{tmp_path / 'training.py'}:transform").stage.shape == (3, 32, 32)
    weights = models.ResNet50_Weights.IMAGENET1K_V2
    assert (
        convert.torchvision("ResNet50_Weights.IMAGENET1K_V2").stage == convert.torchvision(weights.transforms()).stage
    )
    assert convert.torchvision("weights.ResNet50_Weights.IMAGENET1K_V2").stage.shape == (3, 224, 224)
    for word, says in (
        (f"{tmp_path / 'training.py'}:other", "has no `other`"),
        ("NoWeights.V1", "is neither"),
        (f"{tmp_path}/no.py:a", "cannot read"),
    ):
        with pytest.raises(ConversionError, match=says):
            convert.torchvision(word)
    with pytest.raises(ConversionError, match="`VideoClassification`: it is not known"):
        convert.torchvision("R3D_18_Weights.DEFAULT")


# timm


def test_names_of_timm():
    timm = pytest.importorskip("timm")
    config = timm.data.resolve_data_config(pretrained_cfg=timm.models.get_pretrained_cfg("resnet50.a1_in1k").to_dict())
    assert convert.timm("resnet50.a1_in1k").stage == convert.timm(config).stage
    with pytest.raises(
        ConversionError, match="`no_model` is neither a file nor a model of timm|timm has no pretrained configuration"
    ):
        convert.timm("no_model")


# Training


def loader(tmp_path, *steps):
    """A converted loader of one image, in which red is the row and green the column, and how often it is read."""
    (tmp_path / "images" / "a").mkdir(parents=True)
    rows, columns = np.mgrid[0:200, 0:250].astype(np.uint8)
    Image.fromarray(np.stack([rows, columns, np.full_like(rows, 7)], 2)).save(tmp_path / "images" / "a" / "0.png")
    made = convert.torchvision(composed(*steps, lambda t: t.PILToTensor()), train=tmp_path / "images")
    return made(batch_size=1000, num_threads=2, seed=57)


def test_random_crops_are_as_likely_as_in_torchvision(tmp_path):
    transforms = pytest.importorskip("torchvision.transforms")
    torch = pytest.importorskip("torch")
    # By nearest neighbours the corners say where the window is.
    nearest = transforms.InterpolationMode.NEAREST
    pixels = np.stack(
        [
            np.asarray(image)
            for image in loader(tmp_path, lambda t: t.RandomResizedCrop(50, interpolation=nearest)).run()[0].as_cpu()
        ]
    ).astype(float)
    step = (pixels[:, :2, -1, -1] - pixels[:, :2, 0, 0]) / 49
    found = np.concatenate([50 * step, pixels[:, :2, 0, 0]], 1)
    torch.manual_seed(57)
    image = Image.new("RGB", (250, 200))
    windows = np.array(
        [transforms.RandomResizedCrop.get_params(image, [0.08, 1.0], [3 / 4, 4 / 3]) for _ in range(4000)], float
    )
    expected = windows[:, [2, 3, 0, 1]]
    for number in range(4):
        quantiles = np.linspace(0.1, 0.9, 9)
        np.testing.assert_allclose(
            np.quantile(found[:, number], quantiles), np.quantile(expected[:, number], quantiles), atol=12
        )


def test_random_windows_and_flips(tmp_path):
    pixels = np.stack(
        [
            np.asarray(image)
            for image in loader(tmp_path, lambda t: t.RandomCrop([198, 249]), lambda t: t.RandomHorizontalFlip(0.25))
            .run()[0]
            .as_cpu()
        ]
    )
    places, counts = np.unique(pixels[:, 0, 0, 0], return_counts=True)
    # Three rows and two columns are possible, all as likely.
    assert places.tolist() == [0, 1, 2] and (abs(counts - 333) < 60).all()
    is_flipped = pixels[:, 1, 0, 0] > pixels[:, 1, 0, -1]
    assert abs(is_flipped.mean() - 0.25) < 0.05
    lefts = np.where(is_flipped, pixels[:, 1, 0, -1], pixels[:, 1, 0, 0])
    assert set(lefts.tolist()) == {0, 1} and abs(lefts.mean() - 0.5) < 0.06


def test_some_images_are_gray(tmp_path):
    pixels = np.stack(
        [np.asarray(image) for image in loader(tmp_path, lambda t: t.RandomGrayscale(0.25)).run()[0].as_cpu()]
    )
    is_gray = (pixels[:, 0] == pixels[:, 1]).all(axis=(1, 2))
    assert abs(is_gray.mean() - 0.25) < 0.05
    with Image.open(tmp_path / "images" / "a" / "0.png") as image:
        np.testing.assert_array_equal(pixels[is_gray][0], np.repeat(np.asarray(image.convert("L"))[None], 3, 0))
        np.testing.assert_array_equal(pixels[~is_gray][0], np.asarray(image).transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (lambda t: t.RandAugment(), "`RandAugment` moves images by parts of their size, which varies"),
        (lambda t: t.RandomRotation(30, expand=True), "field `expand` of RandomRotation is True"),
        (
            lambda t: t.RandomRotation(30, t.InterpolationMode.BICUBIC),
            "field `interpolation` of RandomRotation is 'bicubic'",
        ),
        (lambda t: t.RandomAffine(30), "`RandomAffine`: its matrix is drawn of six numbers"),
        (lambda t: t.RandomPerspective(), "`RandomPerspective`: its coefficients are a least-squares solution"),
        (lambda t: t.GaussianBlur(65), "field `kernel_size` of GaussianBlur is"),
        (
            lambda t: t.RandomApply([t.ToTensor()]),
            r"transforms \[0\].transforms: for some images only they make tensors",
        ),
        (lambda t: t.RandomErasing(), "`RandomErasing` is given an image of Pillow"),
        (lambda t: t.RandomResizedCrop(9, scale=(0.5, 2)), "field `scale` of RandomResizedCrop"),
        (lambda t: t.RandomCrop(9, pad_if_needed=True), "field `pad_if_needed` of RandomCrop is True"),
        (lambda t: t.RandomHorizontalFlip(1.5), "field `p` of RandomHorizontalFlip is 1.5"),
    ],
)
def test_random_transforms_without_an_equal(step, says):
    with pytest.raises(ConversionError, match=says):
        convert.torchvision(composed(step, *NORMALIZED), train="images")


# Ultralytics


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("ending", [".png", ".tiff"])
def test_files_of_16_bits_are_within_a_level_of_opencv(tmp_path, channels, ending):
    cv2 = pytest.importorskip("cv2")
    pixels = np.random.default_rng(9).integers(0, 65536, (64, 64, channels), np.uint16)
    path = str(tmp_path / f"deep{ending}")
    assert cv2.imwrite(path, pixels)
    theirs = cv2.imread(path, cv2.IMREAD_COLOR)[..., ::-1].transpose(2, 0, 1)
    ours = np.asarray(convert.ultralytics(64)().run(IMAGE=[np.fromfile(path, np.uint8)])[0].at(0)) * 255
    assert np.abs(ours - theirs).max() <= 1.001
