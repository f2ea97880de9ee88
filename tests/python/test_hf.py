"""`gesso.hf.ImageProcessor` beside the processors of transformers: the same call, and every bit the same."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from gesso._native.engine import has_gpu
from gesso.convert import ConversionError, hf_classes, hf_processors, proof
from gesso.hf import ImageProcessor
from PIL import Image

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "conformance"), str(TESTS / "data" / "multimodal")]

import converted  # noqa: E402
import definitions  # noqa: E402

SIZES = ((97, 61), (333, 500), (240, 200))
# Fields of processors in front of vision-language models, beside those that their class has.
MULTIMODAL = (
    *((name, {}) for name in ("qwen2-vl", "qwen3-vl", "llava-next", "internvl", "pixtral", "gemma3", "minicpm-v")),
    *((name, {}) for name in ("idefics3", "smolvlm", "llama4")),
    ("internvl", {"crop_to_patches": False}),
    ("internvl", {"crop_to_patches": False, "size": {"height": 40, "width": 50}}),
    ("pixtral", {"patch_size": 28}),
    ("idefics3", {"return_row_col_info": True, "size": {"longest_edge": 128}, "max_image_size": {"longest_edge": 64}}),
    ("smolvlm", {"do_image_splitting": False, "return_row_col_info": True, "do_pad": False}),
    ("smolvlm", {"do_pad": False}),
    ("llama4", {"do_normalize": False}),
    ("minicpm-v", {"slice_mode": False}),
)


def rows():
    """Fields of processors: each class's own, some settings, and those in front of vision-language models."""
    settings = [(name, {}) for name in hf_classes.CLASSES] + list(converted.HF_SETTINGS)[::3]
    made = [{"image_processor_type": name, **hf_classes.CLASSES[name][1], **more} for name, more in settings]
    return [*made, *(definitions.PROCESSORS[name] | more for name, more in MULTIMODAL)]


def picture(height, width):
    return Image.fromarray(definitions.picture(height, width))


@pytest.fixture(scope="module")
def pictures():
    return [picture(*size) for size in SIZES]


def theirs(fields, backend="torchvision"):
    """The processor of transformers."""
    pytest.importorskip("transformers", minversion="5")
    return hf_processors.loaded(fields["image_processor_type"], fields, backend)


def check(ours, other):
    """Whether two answers are the same to the bit."""
    assert type(ours) is type(other) and set(ours) == set(other)
    for name, expected in other.items():
        found = ours[name]
        if isinstance(expected, list):
            assert found == expected and type(found) is list, name
            continue
        if str(expected.dtype) == "torch.bfloat16":
            assert found.dtype == expected.dtype, name
            found, expected = found.float(), expected.float()
        assert (type(found), found.dtype, tuple(found.shape)) == (type(expected), expected.dtype, tuple(expected.shape))
        assert np.asarray(found).tobytes() == np.asarray(expected).tobytes(), name


@pytest.mark.parametrize("backend", ["torchvision", "pil"])
@pytest.mark.parametrize("fields", rows(), ids=lambda fields: fields["image_processor_type"])
def test_answers_are_those_of_transformers(fields, backend, pictures):
    if fields["image_processor_type"] == "Llama4ImageProcessor" and backend == "pil":
        with pytest.raises(ConversionError, match="by torchvision alone"):
            ImageProcessor(fields, backend=backend)
        return
    if fields["image_processor_type"] in converted.OF_TORCH_ALONE and backend == "pil":
        pytest.skip("signatures differ from version to version")
    if fields["image_processor_type"] == "VideoMAEImageProcessor":
        with pytest.raises(ConversionError, match="takes clips"):
            ImageProcessor(fields, backend=backend)
        return
    other, ours = theirs(fields, backend), ImageProcessor(fields, backend=backend)
    check(ours(pictures[1], return_tensors="pt"), other(pictures[1], return_tensors="pt"))
    kind = "pt" if backend == "torchvision" else "np"
    try:
        expected = other(pictures, return_tensors=kind)
    except (ValueError, RuntimeError):
        with pytest.raises(ValueError, match="different shapes"):
            ours(pictures, return_tensors=kind)
    else:
        check(ours(images=pictures, return_tensors=kind), expected)


@pytest.mark.parametrize("more", [{}, {"do_pad": False}])
def test_images_of_each_list_follow_one_another(more, pictures):
    pytest.importorskip("torch")
    sides = {"size": {"longest_edge": 128}, "max_image_size": {"longest_edge": 64}, "return_row_col_info": True}
    fields = definitions.PROCESSORS["idefics3"] | sides | more
    other, ours = theirs(fields), ImageProcessor(fields)
    several = np.stack([np.asarray(pictures[0])] * 2)
    for images in (
        pictures[0],
        [[pictures[0]], [pictures[0]]],
        [pictures[:1], pictures[1:]],
        [[], pictures[:2], pictures[2:]],
        several,
        [several, several],
        [[np.asarray(image) for image in pictures]],
    ):
        try:
            expected = other(images, return_tensors="pt")
        except RuntimeError:
            with pytest.raises(ValueError, match="different shapes"):
                ours(images, return_tensors="pt")
        else:
            check(ours(images, return_tensors="pt"), expected)


def test_bfloat16_is_of_torch_alone(pictures):
    ours = ImageProcessor(definitions.PROCESSORS["llama4"])
    with pytest.raises(ValueError, match="numpy has no bfloat16: expected 'pt'"):
        ours(pictures, return_tensors="np")


@pytest.mark.parametrize("name", ["ViTImageProcessor", "Qwen2VLImageProcessor", "DetrImageProcessor"])
def test_files_are_what_transformers_loads(name, tmp_path):
    other, ours = theirs({"image_processor_type": name}), ImageProcessor({"image_processor_type": name})
    from transformers.image_utils import load_image

    paths = proof.photos(tmp_path, 6)
    expected = other([load_image(str(path)) for path in paths], return_tensors="pt")
    check(ours(paths, return_tensors="pt"), expected)
    mixed = [path.read_bytes() if at % 2 else np.asarray(load_image(str(path))) for at, path in enumerate(paths)]
    check(ours(mixed, return_tensors="pt"), expected)
    # More than one batch.
    many, one = (ours([str(paths[0])] * count, return_tensors="np") for count in (70, 1))
    assert np.array_equal(many["pixel_values"], np.concatenate([one["pixel_values"]] * 70))


@pytest.mark.parametrize("backend", ["torchvision", "pil"])
def test_images_of_other_colours(backend, pictures):
    fields = {"image_processor_type": "CLIPImageProcessor", "size": 64, "crop_size": 64}
    other, ours = theirs(fields, backend), ImageProcessor(fields, backend=backend)
    alpha = pictures[1].copy()
    alpha.putalpha(Image.fromarray(definitions.picture(333, 500)[..., 1]))
    for image in (pictures[1].convert("L"), alpha, alpha.convert("LA"), alpha.quantize(16), alpha.convert("CMYK")):
        check(ours(image, return_tensors="pt"), other(image, return_tensors="pt"))
    pixels = np.asarray(alpha)
    for array in (pixels, np.moveaxis(pixels, -1, 0), pixels[..., :3], pixels[..., :1], pixels[None, ..., :3]):
        check(ours(array, return_tensors="pt"), other(array, return_tensors="pt"))
    thin = pixels[:3, :, :3]
    check(
        ours(thin, return_tensors="pt", input_data_format="channels_last"),
        other(thin, return_tensors="pt", input_data_format="channels_last"),
    )
    plain = ImageProcessor({"image_processor_type": "ViTImageProcessor"}, backend=backend)
    for image in (alpha, pixels, pixels[..., 0]):
        with pytest.raises(ValueError, match="image 1: .*`do_convert_rgb` of the processor is false"):
            plain([pictures[0], image], return_tensors="np")


def test_tensors_and_lists_of_lists(pictures):
    torch = pytest.importorskip("torch")
    fields = definitions.PROCESSORS["qwen2-vl"]
    other, ours = theirs(fields), ImageProcessor(fields)
    tensors = [torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1) for image in pictures]
    check(ours(tensors, return_tensors="pt"), other(tensors, return_tensors="pt"))
    nested = [[pictures[0]], [pictures[1], pictures[2]]]
    check(ours(nested, return_tensors="pt"), other(nested, return_tensors="pt"))
    alike = torch.stack([tensors[0], tensors[0].flip(1)])
    check(ours(alike, return_tensors="pt"), other(alike, return_tensors="pt"))


def test_a_call_may_change_fields(pictures):
    fields = definitions.PROCESSORS["internvl"] | {"crop_to_patches": True}
    other, ours = theirs(fields), ImageProcessor(fields)
    for more in ({"max_patches": 3}, {"size": {"height": 64, "width": 64}, "image_mean": (0.5, 0.5, 0.25)}, {}):
        options = {"return_tensors": "pt", **more}
        check(ours(pictures, **options), other(pictures, **options))
    for side in range(1, 40):
        assert ours(pictures[0], return_tensors="np", max_patches=side).num_patches >= 1


def test_what_a_call_does_not_know_is_named(pictures):
    pytest.importorskip("transformers")
    ours = ImageProcessor({"image_processor_type": "ViTImageProcessor"})
    for options, says in (
        ({"sizes": 5}, "field `sizes` of ViTImageProcessor is 5: it is not known"),
        ({"text": "x"}, "field `text`"),
        ({"num_labels": 5}, "argument `num_labels` is not known"),
        ({"size": picture(2, 2)}, "a field is a `PIL.Image.Image`"),
        ({"resample": 99}, "field `resample` of ViTImageProcessor is 99"),
        ({"input_data_format": "none"}, "argument `input_data_format` is 'none'"),
        ({"device": "tpu"}, "argument `device` is 'tpu': expected `cpu`, `cuda` or `cuda:N`"),
        ({"return_tensors": "tf"}, "argument `return_tensors` is 'tf': expected 'pt' or 'np'"),
        ({"return_tensors": None}, "argument `return_tensors` is None"),
    ):
        with pytest.raises(ValueError, match=says):
            ours(pictures, **{"return_tensors": "np", **options})
    for images, says in (
        ([], "no image"),
        ([pictures[0], b""], "image 1: "),
        ([pictures[0], b"no image at all"], "image 1: "),
        ("https://a.b/c.jpg", "image 0: an address, expected a path"),
        (5, "image 0: a `builtins.int`, expected an image of Pillow"),
        (np.zeros((5, 5, 3), np.float32), "image 0: an array of float32, expected uint8"),
        (np.zeros((0, 5, 3), np.uint8), "image 0: an array of shape .0, 5, 3., expected at least one pixel"),
        (np.zeros((5, 7, 9), np.uint8), "image 0: .*expected channels first or last"),
        (np.zeros((1, 2, 3, 4, 5), np.uint8), "image 0: an array of shape .1, 2, 3, 4, 5., expected"),
    ):
        with pytest.raises(ValueError, match=says):
            ours(images, return_tensors="np")
    with pytest.raises(FileNotFoundError):
        ours("no-such-file.jpg", return_tensors="np")
    thin = ImageProcessor(definitions.PROCESSORS["qwen2-vl"])
    with pytest.raises(ValueError, match="image 1: .*at most 200 times"):
        thin([pictures[0], picture(1, 999)], return_tensors="np")
    with pytest.raises(ConversionError, match="`Wav2Vec2FeatureExtractor` is served alone"):
        ImageProcessor(definitions.EXTRACTORS["wav2vec2"][0])
    if not has_gpu():
        with pytest.raises(RuntimeError, match="argument `device` is 'cuda:1', and there is no GPU"):
            ours(pictures, return_tensors="np", device="cuda:1")


def test_made_of_a_folder_a_processor_and_fields(tmp_path, pictures):
    processor = theirs(definitions.PROCESSORS["pixtral"])
    processor.save_pretrained(tmp_path)
    expected = processor(pictures, return_tensors="np")
    for ours in (ImageProcessor.from_pretrained(tmp_path), ImageProcessor(processor), ImageProcessor(str(tmp_path))):
        check(ours(pictures, return_tensors="np"), expected)
        check(ours.preprocess(pictures, return_tensors="np"), expected)
    smaller = ImageProcessor.from_pretrained(tmp_path, size={"longest_edge": 100}, backend="pil", num_threads=1)
    other = theirs(definitions.PROCESSORS["pixtral"] | {"size": {"longest_edge": 100}}, "pil")
    check(smaller(pictures, return_tensors="np"), other(pictures, return_tensors="np"))
    assert smaller.backend == "pil" and smaller.size == {"longest_edge": 100} and smaller.do_pad is True
    assert "Pillow and numpy" in repr(smaller) and "fn.decoders.image" in smaller.source
    with pytest.raises(AttributeError, match="no `sizes`"):
        _ = smaller.sizes
    with pytest.raises(ConversionError, match="field `longest`"):
        ImageProcessor.from_pretrained(tmp_path, longest=5)


def test_threads_copies_and_children(pictures):
    pytest.importorskip("transformers")
    ours = ImageProcessor(definitions.PROCESSORS["qwen2-vl"])
    expected = [ours(image, return_tensors="np") for image in pictures]
    with ThreadPoolExecutor(6) as threads:
        for at, found in enumerate(threads.map(lambda image: ours(image, return_tensors="np"), pictures * 8)):
            check(found, expected[at % len(pictures)])
    for other in (pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours)):
        check(other(pictures[0], return_tensors="np"), expected[0])
    with multiprocessing.get_context("fork").Pool(1) as children:
        check(children.apply(ours, (pictures[0],), {"return_tensors": "np"}), expected[0])


def test_answers_outlive_the_processor(pictures):
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    answer = ImageProcessor({"image_processor_type": "ViTImageProcessor"})(pictures, return_tensors="pt")
    kept = answer["pixel_values"].clone()
    ImageProcessor({"image_processor_type": "ViTImageProcessor"})(pictures[::-1], return_tensors="pt")
    assert torch.equal(answer["pixel_values"], kept)
    answer["pixel_values"].zero_()


def test_importing_takes_no_library():
    program = "import sys, gesso.hf; assert not {'transformers', 'torch', 'PIL'} & set(sys.modules), sys.modules"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
