"""Training transforms of `gesso.convert` beside torchvision: what was drawn is an output of the pipeline, too, and
torchvision's own functions must make the same bits of it."""

import copy
import io

import numpy as np
import pytest
from gesso import convert, exact_augment, fn
from gesso.convert import ConversionError, source
from PIL import Image

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
from torchvision import transforms as v1  # noqa: E402
from torchvision.transforms import functional as f1  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as f2  # noqa: E402

BILINEAR = v1.InterpolationMode.BILINEAR
SIDES = ((37, 50), (64, 64), (51, 40), (90, 33))


def picture(number, height, width):
    """Noise, smooth colours, gray, or few levels."""
    rng = np.random.default_rng([57, number])
    pixels = rng.integers(0, 256, (height, width, 3), np.uint8)
    if number % 4 == 1:
        rows, columns = np.mgrid[0:height, 0:width]
        pixels = np.stack([rows * 3 % 256, columns * 2 % 256, (rows + columns) % 256], 2).astype(np.uint8)
    elif number % 4 == 2:
        pixels = np.repeat(pixels[..., :1], 3, 2) // 3 + 60
    elif number % 4 == 3:
        pixels = pixels // 128 * 90 + rng.integers(0, 2, pixels.shape, np.uint8)
    return pixels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "images"
    for kind in ("a", "b"):
        (path / kind).mkdir(parents=True)
    for number in range(24):
        Image.fromarray(picture(number, *SIDES[number % 4])).save(path / "ab"[number % 2] / f"{number:02}.png")
    return path


def run(folder, transforms, monkeypatch, batch=200, takes="pil", recorded=("augment",)):
    """Samples of a converted loader: pixels, label, the file, and what was drawn for each call of an operator."""
    drawn = []

    def recording(function):
        def called(images, **options):
            drawn.extend(value for value in options.values() if hasattr(value, "source") or hasattr(value, "device"))
            return function(images, **options)

        return called

    for name in recorded:
        monkeypatch.setattr(fn.gesso, name, recording(getattr(fn.gesso, name)))
    made = convert.torchvision(transforms, train=folder, takes=takes)
    text = made.source.replace("return pixels, labels", "return pixels, labels, encoded, *exact_augment.drawn")
    monkeypatch.setattr(exact_augment, "drawn", drawn, raising=False)
    if "exact_augment," not in text:
        text = text.replace("import fn", "import exact_augment, fn")
    outputs = source.definition(text)(batch_size=batch, num_threads=2, seed=57).run()
    for number in range(batch):
        pixels, label, encoded, *drawn = (np.asarray(output.as_cpu().at(number)) for output in outputs)
        yield pixels, label, Image.open(io.BytesIO(encoded.tobytes())).convert("RGB"), drawn


FACTORS = {"brightness": "adjust_brightness", "contrast": "adjust_contrast", "saturation": "adjust_saturation"}
FACTORS |= {"hue": "adjust_hue", "sharpness": "adjust_sharpness"}


def applied(functions, image, operation, magnitude, **moving):
    """torchvision's answer to one operation."""
    name, magnitude = exact_augment.OPERATIONS[operation], float(magnitude)
    if name in FACTORS:
        return getattr(functions, FACTORS[name])(image, magnitude)
    if name in ("posterize", "solarize"):
        return getattr(functions, name)(image, int(magnitude) if name == "posterize" else magnitude)
    if name in ("auto_contrast", "equalize", "invert"):
        return getattr(functions, name.replace("_", ""))(image)
    if name == "grayscale":
        return functions.rgb_to_grayscale(image, 3) if torch.is_tensor(image) else functions.to_grayscale(image, 3)
    if name == "rotate":
        return functions.rotate(image, magnitude, **moving)
    shear = float(np.degrees(np.arctan(magnitude)))
    shears = {"shear_x": [shear, 0.0], "shear_y": [0.0, shear]}
    if name in shears:
        return functions.affine(image, 0.0, [0, 0], 1.0, shears[name], center=[0, 0], **moving)
    moves = {"translate_x": [int(magnitude), 0], "translate_y": [0, int(magnitude)]}
    return functions.affine(image, 0.0, moves[name], 1.0, [0.0, 0.0], **moving) if name in moves else image


def tensor(image, version):
    return f1.pil_to_tensor(image) if version == "v1" else f2.pil_to_tensor(image)


JITTERS = {
    "all": {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1},
    "strong": {"brightness": (0, 3), "contrast": (0, 4), "saturation": (0, 4), "hue": 0.5},
    "two": {"saturation": 0.9, "brightness": (1, 1.5)},
}


@pytest.mark.parametrize("takes", ["pil", "tensor"])
@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("jitter", JITTERS)
def test_color_jitter_equals_torchvision_to_the_bit(folder, monkeypatch, jitter, version, takes):
    transforms, functions = {"v1": (v1, f1), "v2": (v2, f2)}[version]
    steps = [transforms.Resize((50, 61)), transforms.ColorJitter(**JITTERS[jitter]), *ending(transforms, takes)]
    seen = set()
    for pixels, _, image, (operations, magnitudes) in run(
        folder, transforms.Compose(steps), monkeypatch, 200, takes=takes
    ):
        image = steps[0](tensor(image, version) if takes == "tensor" else image)
        for operation, magnitude in zip(operations, magnitudes, strict=True):
            image = applied(functions, image, operation, magnitude)
        expected = image if takes == "tensor" else f1.pil_to_tensor(image)
        np.testing.assert_array_equal(pixels, expected.numpy())
        seen.add(tuple(operations))
    assert len(seen) == (2 if jitter == "two" else 24)


def ending(transforms, takes):
    return [] if takes == "tensor" else [transforms.PILToTensor()]


ONE = {
    "RandomInvert": (),
    "RandomEqualize": (),
    "RandomAutocontrast": (),
    "RandomPosterize": (3,),
    "RandomSolarize": (100.5,),
    "RandomAdjustSharpness": (1.75,),
    "RandomGrayscale": (),
}


@pytest.mark.parametrize("takes", ["pil", "tensor"])
@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("name", ONE)
def test_single_operations_equal_torchvision_to_the_bit(folder, monkeypatch, name, version, takes):
    if (name, takes) == ("RandomGrayscale", "pil"):
        pytest.skip("written without the operator; test_convert_libraries.py has it")
    transforms, functions = {"v1": (v1, f1), "v2": (v2, f2)}[version]
    step = getattr(transforms, name)(*ONE[name], p=0.6)
    count = 0
    for pixels, _, image, drawn in run(
        folder, transforms.Compose([step, *ending(transforms, takes)]), monkeypatch, 100, takes=takes
    ):
        image = tensor(image, version) if takes == "tensor" else image
        (operation,), (magnitude,) = drawn
        if name == "RandomSolarize" and operation:
            assert magnitude == 101
        image = applied(functions, image, operation, magnitude)
        expected = image if takes == "tensor" else f1.pil_to_tensor(image)
        np.testing.assert_array_equal(pixels, expected.numpy())
        count += bool(operation)
    assert 40 <= count <= 80


def automatic(transforms):
    """Classes with settings."""
    policies = transforms.AutoAugmentPolicy
    return {
        "rand": transforms.RandAugment(),
        "rand-strong": transforms.RandAugment(3, 14, 15, interpolation=BILINEAR, fill=[124, 116, 104]),
        "trivial": transforms.TrivialAugmentWide(),
        "trivial-linear": transforms.TrivialAugmentWide(interpolation=BILINEAR, fill=7),
        "imagenet": transforms.AutoAugment(),
        "cifar": transforms.AutoAugment(policies.CIFAR10, interpolation=BILINEAR),
        "svhn": transforms.AutoAugment(policies.SVHN, fill=128),
    }


@pytest.mark.parametrize("size", [(60, 47), (48, 48)])
@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("name", automatic(v1))
def test_automatic_augmentation_equals_torchvision_to_the_bit(folder, monkeypatch, name, version, size):
    transforms, functions = {"v1": (v1, f1), "v2": (v2, f2)}[version]
    step, resize, seen = automatic(transforms)[name], transforms.Resize(size), set()
    moving = {"interpolation": step.interpolation, "fill": None if step.fill is None else step.fill}
    transform = transforms.Compose([resize, step, transforms.PILToTensor()])
    for pixels, _, image, (operations, magnitudes) in run(folder, transform, monkeypatch, 150):
        image = resize(image)
        for operation, magnitude in zip(operations, magnitudes, strict=True):
            image = applied(functions, image, operation, magnitude, **moving)
            seen.add((exact_augment.OPERATIONS[operation], float(magnitude) > 0))
        np.testing.assert_array_equal(pixels, f1.pil_to_tensor(image).numpy())
    assert len(seen) > 12


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_rotations_equal_torchvision_to_the_bit(folder, monkeypatch, version):
    transforms, functions = {"v1": (v1, f1), "v2": (v2, f2)}[version]
    for degrees, options in ((30, {}), ((-200, 400), {"interpolation": BILINEAR, "fill": (1, 2, 3)}), ((90, 90), {})):
        transform = transforms.Compose([transforms.RandomRotation(degrees, **options), transforms.PILToTensor()])
        for pixels, _, image, (operations, magnitudes) in run(folder, transform, monkeypatch, 100):
            expected = applied(functions, image, operations[0], magnitudes[0], **options)
            np.testing.assert_array_equal(pixels, f1.pil_to_tensor(expected).numpy())


@pytest.mark.parametrize("takes", ["pil", "tensor"])
@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("settings", [(3, (0.1, 2.0)), ((5, 9), 1.3), (23, (0.5, 4))])
def test_blurs_equal_torchvision_to_the_bit(folder, monkeypatch, settings, version, takes):
    transforms, functions = {"v1": (v1, f1), "v2": (v2, f2)}[version]
    step, sigmas = transforms.GaussianBlur(*settings), set()
    transform = transforms.Compose([step, *ending(transforms, takes)])
    grid = np.linspace(*step.sigma, 64) if step.sigma[0] < step.sigma[1] else [step.sigma[0]]
    tables = [
        [np.array(row, np.float32) for row in rows]
        for rows in convert.torchvision(transform, train=folder, takes=takes).stage.steps[1].given
    ]
    for pixels, _, image, (x, _) in run(folder, transform, monkeypatch, 60, takes=takes, recorded=("blur",)):
        place = next(number for number, row in enumerate(tables[0]) if (row == x).all())
        expected = functions.gaussian_blur(f1.pil_to_tensor(image), list(step.kernel_size), [float(grid[place])] * 2)
        np.testing.assert_array_equal(pixels, expected.numpy())
        sigmas.add(place)
    assert len(sigmas) == (1 if len(grid) == 1 else len(sigmas)) and (len(grid) == 1 or len(sigmas) > 20)


# Rectangles, mixtures, some of several

NORMALIZED = ([0.5, 0.4, 0.3], [0.2, 0.25, 0.3])


@pytest.mark.parametrize("place", ["behind", "before", "bytes"])
@pytest.mark.parametrize("value", [0, (0.25, -1, 2.5), "random"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_erased_rectangles_equal_torchvision(folder, version, value, place):
    transforms, functions = {"v1": (v1, f1), "v2": (v2, f2)}[version]
    value = (9, 0, 255) if place == "bytes" and value != 0 else value
    erase, normalize = transforms.RandomErasing(0.7, value=value), transforms.Normalize(*NORMALIZED)
    if place == "bytes":
        steps = [transforms.PILToTensor(), erase]
    else:
        steps = [transforms.ToTensor() if version == "v1" else v1.ToTensor()]
        steps += [normalize, erase] if place == "behind" else [erase, normalize]
    if value == "random" and place == "before":
        with pytest.raises(ConversionError, match=r'field `value` of RandomErasing is "random"'):
            convert.torchvision(transforms.Compose(steps), train=folder)
        return
    text = convert.torchvision(transforms.Compose(steps), train=folder).source
    made = source.definition(text.replace("return pixels, labels", "return pixels, encoded"))
    pixels, encoded = made(batch_size=200, num_threads=2, seed=57).run()
    erased = 0
    for number in range(200):
        found = torch.from_numpy(np.array(pixels.at(number)))
        image = Image.open(io.BytesIO(np.asarray(encoded.at(number)).tobytes())).convert("RGB")
        clean = image
        for step in steps:
            clean = clean if step is erase else step(clean)
        differs = (found != clean).any(0)
        rows, columns = np.flatnonzero(differs.any(1)), np.flatnonzero(differs.any(0))
        if not len(rows):
            continue
        erased += 1
        top, left = int(rows[0]), int(columns[0])
        height, width = int(rows[-1]) - top + 1, int(columns[-1]) - left + 1
        assert height < clean.shape[1] and width < clean.shape[2]
        part = found[:, top : top + height, left : left + width]
        if value == "random":
            assert len(np.unique(part)) > part.numel() // 2
            expected = functions.erase(clean, top, left, height, width, part)
        else:
            fill = torch.tensor(value, dtype=torch.float32).reshape(-1, 1, 1).to(found.dtype)
            expected = image
            for step in steps:
                expected = (
                    functions.erase(expected, top, left, height, width, fill) if step is erase else step(expected)
                )
        np.testing.assert_array_equal(found, expected)
    assert 110 <= erased <= 170


@pytest.mark.parametrize("kinds", [("MixUp",), ("CutMix",), ("CutMix", "MixUp")])
def test_mixtures_equal_torchvision(folder, kinds):
    mixes = [getattr(v2, kind)(num_classes=2, alpha=0.8) for kind in kinds]
    steps = [v1.Resize((40, 30)), v1.ToTensor(), v1.Normalize(*NORMALIZED)]
    last = mixes[0] if len(mixes) == 1 else v2.RandomChoice(mixes)
    text = convert.torchvision([v1.Compose(steps), last], train=folder, batch_size=16).source
    text = text.replace(
        "    pixels, labels = augment", "    before, numbers = pixels, labels\n    pixels, labels = augment", 1
    )
    made = source.definition(text.replace("return pixels, labels", "return pixels, labels, before, numbers"))
    pipeline, ways = made(num_threads=2, seed=57), set()
    for _ in range(24):
        outputs = [torch.from_numpy(np.array(output.as_array())) for output in pipeline.run()]
        pixels, labels, before, numbers = outputs
        vectors = torch.nn.functional.one_hot(numbers.reshape(-1).long(), 2).float()
        differs = (pixels != before).any(1)
        # Where all but a rectangle is as before, a rectangle was put there.
        is_cut = differs.flatten(1).float().mean(1).max() < 0.999 and not differs[:, 0, 0].all() or not differs.any()
        ways.add(bool(is_cut))
        # Where classes are mixed, an image's own one has the weight.
        own = (labels * vectors).sum(1)
        weights = sorted({float(weight) for weight in own[~(labels == vectors).all(1)]}) or [1.0]
        assert len(weights) == 1
        for number in range(16):
            place, found = mixed_with(number, pixels, before, labels, vectors, is_cut, weights)
            assert found, (number, place)
    assert ways == ({False} if kinds == ("MixUp",) else {True} if kinds == ("CutMix",) else {True, False})


def mixed_with(number, pixels, before, labels, vectors, is_cut, weights):
    """With which image of the batch one is mixed as torchvision mixes."""
    box, area = None, 0.0
    differs = (pixels != before).any(1).any(0)
    rows, columns = np.flatnonzero(differs.any(1)), np.flatnonzero(differs.any(0))
    for other in range(16):
        if other == number:
            continue
        if is_cut:
            expected = before[number].clone()
            if len(rows):
                box = np.s_[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
                expected[box] = before[other][box]
                area = (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1)
            weight = float(1.0 - area / (before.shape[2] * before.shape[3]))
            candidates = [weight]
        else:
            candidates = weights
        for weight in candidates:
            if not is_cut:
                expected = before[other].mul(1.0 - weight).add(before[number].mul(weight))
            label = vectors[other].mul(1.0 - weight).add(vectors[number].mul(weight))
            if torch.equal(pixels[number], expected) and torch.equal(labels[number], label):
                return other, True
    return None, False


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_some_images_and_one_of_several(folder, version):
    transforms = {"v1": v1, "v2": v2}[version]
    blur, jitter = transforms.GaussianBlur(3, (1.0, 1.0)), transforms.ColorJitter(brightness=(1.5, 1.5))
    flip, pad = transforms.RandomHorizontalFlip(1.0), transforms.Pad(3, 9)
    cases = (
        (transforms.RandomApply([jitter, blur], p=0.3), {0: 0.7, 3: 0.3}, lambda image: [image, blur(jitter(image))]),
        (
            transforms.RandomChoice([flip, blur, pad], p=[0.5, 0.3, 0.2]),
            {},
            lambda image: [flip(image), blur(image), pad(image)],
        ),
        (transforms.RandomApply([transforms.RandomChoice([pad, jitter])], p=0.5), {}, lambda i: [i, pad(i), jitter(i)]),
    )
    for step, _, answers in cases:
        text = convert.torchvision(transforms.Compose([step, transforms.PILToTensor()]), train=folder).source
        made = source.definition(text.replace("return pixels, labels", "return pixels, encoded"))
        pixels, encoded = made(batch_size=300, num_threads=2, seed=57).run()
        counts = np.zeros(3)
        for number in range(300):
            image = Image.open(io.BytesIO(np.asarray(encoded.at(number)).tobytes())).convert("RGB")
            expected = [f1.pil_to_tensor(answer).numpy() for answer in answers(image)]
            found = np.asarray(pixels.at(number))
            equal = [one.shape == found.shape and (one == found).all() for one in expected]
            assert any(equal), number
            counts[equal.index(True)] += 1
        chances = {2: [210, 90, 0], 3: [150, 90, 60] if "RandomChoice" == type(step).__name__ else [150, 75, 75]}
        assert (abs(counts - chances[len(expected)]) < 45).all(), counts


# What cannot be

WRONG = (None, True, "x", -1, 0.5, 10**9, float("nan"), float("inf"), [], (1,), (0.5, 0.2), (None, None))
WRONG += ({"a": 1}, [1, 2, 3, 4], 3, "random", b"x")
# Values among them that a field may have, and fields that change nothing here.
RIGHT = {
    **dict.fromkeys(("p", "sharpness_factor", "threshold", "alpha"), (0.5, 3)),
    **dict.fromkeys(("bits", "num_ops", "magnitude", "num_magnitude_bins", "num_classes", "size"), (3, (1,))),
    **dict.fromkeys(("brightness", "contrast", "saturation", "hue", "center", "expand"), (None,)),
    "value": (None, -1, 0.5, (1,), 3, "random"),
    "fill": (None, (1,), {"a": 1}, 3),
    "padding": (None, (1,), [1, 2, 3, 4], 3),
    "pad_if_needed": (None, []),
    **dict.fromkeys(("policy", "inplace", "antialias", "padding_mode"), WRONG),
}


def bases(transforms):
    """Transforms that are right."""
    made = [
        transforms.ColorJitter(0.4, 0.4, 0.4, 0.1),
        transforms.GaussianBlur(3, 1.0),
        transforms.RandomRotation(30),
        transforms.RandomErasing(),
        transforms.RandomApply([transforms.RandomInvert()]),
        transforms.RandomChoice([transforms.RandomInvert(), transforms.RandomEqualize()]),
        transforms.RandomGrayscale(0.2),
        transforms.RandomHorizontalFlip(),
        transforms.RandomResizedCrop(32),
        transforms.RandomCrop(20, padding=2),
        *automatic(transforms).values(),
        *(getattr(transforms, name)(*values) for name, values in ONE.items()),
    ]
    return [*made, *(kind(num_classes=3) for kind in (v2.MixUp, v2.CutMix))]


def test_mutated_transforms_name_the_field():
    refused = 0
    for base in bases(v1) + bases(v2):
        for field in (name for name in vars(base) if not name.startswith("_") and name != "training"):
            for value in WRONG:
                name = type(base).__name__
                if any(
                    value is right or value == right and type(value) is type(right) for right in RIGHT.get(field, ())
                ):
                    continue
                if (name, field) == ("RandomChoice", "p") and value in (None, (0.5, 0.2)):
                    continue
                each = copy.copy(base)
                each.__dict__ = dict(base.__dict__)
                each.__dict__.setdefault("_modules", {})
                each._modules = dict(each._modules)
                object.__setattr__(each, field, value)
                if getattr(each, field) is not value:
                    continue
                behind = name in ("RandomErasing", "MixUp", "CutMix")
                steps = [v1.ToTensor(), each] if behind else [each, v1.ToTensor()]
                with pytest.raises(ConversionError) as caught:
                    convert.torchvision([v1.Resize((32, 32)), *steps], train="images")
                    pytest.fail(f"{name} with {field} = {value!r} is taken")
                assert field in str(caught.value) or name in str(caught.value)
                refused += 1
    assert refused > 300


@pytest.mark.parametrize(
    ("steps", "options", "says"),
    [
        ([v1.RandAugment(), v1.ToTensor()], {}, "moves images by parts of their size, which varies"),
        (
            [v2.ToImage(), v2.Resize(9, v1.InterpolationMode.LANCZOS)],
            {},
            r"for tensors \(unsupported with Tensor input\)",
        ),
        ([v2.ToImage(), v2.Resize(9, antialias=False)], {}, "field `antialias` of Resize is False: expected true"),
        ([v1.ToTensor(), v1.ColorJitter(0.1)], {}, "`ColorJitter` is given floats: expected bytes"),
        (
            [v2.ToImage(), v2.TrivialAugmentWide()],
            {},
            "`TrivialAugmentWide` is given a tensor: there torch moves pixels",
        ),
        ([v2.ToImage(), v2.Resize((300, 300)), v2.ColorJitter(contrast=0.1)], {}, "tensors of 300 x 300 pixels"),
        ([v2.ToImage(), v2.ColorJitter(contrast=0.1)], {}, "tensors of any size, which torch sums in float32"),
        ([v1.ToTensor(), v1.RandomErasing(), v1.RandomCrop(9)], {}, "`RandomCrop`: it comes behind `RandomErasing`"),
        ([v1.ToTensor(), v2.MixUp(num_classes=3), v1.RandomErasing()], {}, "it comes behind what mixes images"),
        ([v2.ToImage(), v2.CutMix(num_classes=3)], {}, "`CutMix` is given bytes: expected floats"),
        ([v1.ToTensor(), v2.MixUp()], {}, "field `num_classes` of MixUp is None"),
        ([v1.ColorJitter(0.1), v1.ToTensor()], {"device": "mixed"}, "runs on a CPU alone"),
        ([v1.ColorJitter(0.1), v1.ToTensor()], {"arithmetic": "dali"}, "DALI does not have what it is made of"),
        ([v1.RandomApply([v1.RandAugment()]), v1.ToTensor()], {}, "`RandAugment` moves images by parts of their size"),
    ],
)
def test_training_transforms_without_an_equal(steps, options, says):
    with pytest.raises(ConversionError, match=says):
        convert.torchvision(steps, train="images", **options)
