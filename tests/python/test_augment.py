"""`gesso.augment`: exact values for what was drawn, by torchvision where it is installed and by formulas else; and what
is drawn."""

import colorsys

import numpy as np
import pytest
from gesso import augment, fn, pipeline_def, types

SHAPE = (24, 20, 3)
IMAGES = [np.random.default_rng(i).integers(0, 256, SHAPE, dtype=np.uint8) for i in range(4)]
COUNT = 400


def run(define, batch=4, **settings):
    """Its outputs as arrays."""
    pipeline = pipeline_def(
        batch_size=batch, num_threads=1, device_id=None, prefetch_queue_depth=1, seed=11, **settings
    )(define)()
    return [[out.at(i) for i in range(batch)] for out in pipeline.run()]


def images(of=IMAGES):
    return fn.external_source(lambda: of, layout="HWC")


def stepwise(image, order, amounts):
    """The same by formulas, pixel by pixel, of values up to 1."""
    pixels = image.astype(np.float64) / 255
    for step in order:
        gray = (pixels * [0.2989, 0.587, 0.114]).sum(2, keepdims=True)
        amount = amounts[step]
        if amount is None:
            continue
        if step == 3:
            hsv = [colorsys.rgb_to_hsv(*pixel) for pixel in pixels.reshape(-1, 3)]
            pixels = np.array([colorsys.hsv_to_rgb((h + amount) % 1, s, v) for h, s, v in hsv]).reshape(pixels.shape)
            continue
        pixels = np.clip(pixels * amount + (1 - amount) * (0, gray.mean(), gray)[step], 0, 1)
    return pixels


def by_torchvision(image, order, amounts):
    torch = pytest.importorskip("torch")
    adjust = pytest.importorskip("torchvision").transforms.functional
    pixels = torch.from_numpy(image.transpose(2, 0, 1).astype(np.float32) / 255)
    functions = adjust.adjust_brightness, adjust.adjust_contrast, adjust.adjust_saturation, adjust.adjust_hue
    for step in order:
        pixels = functions[step](pixels, amounts[step]) if amounts[step] is not None else pixels
    return pixels.numpy().transpose(1, 2, 0)


@pytest.mark.parametrize("oracle", [stepwise, by_torchvision])
@pytest.mark.parametrize(
    "amounts",
    [
        [1.4, 0.5, 1.7, 0.3],
        [0.3, 1.8, 0.2, -0.45],
        [1.2, 0.7, None, None],
        [None, None, None, 0.1],
        [None, 1.5, 0.0, None],
    ],
)
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]])
def test_colors_for_what_was_drawn(oracle, amounts, order):
    def define():
        given = [None if amount is None else fn.constant(fdata=[float(amount)], shape=[]) for amount in amounts]
        return augment._jittered(
            fn.cast(images(), dtype=types.FLOAT) / 255.0, types.Constant(np.array(order, np.int32)), given, 1.0
        )

    (out,) = run(define)
    for i in range(2):
        assert np.abs(out[i] - oracle(IMAGES[i], order, amounts)).max() < 2e-5


def test_what_color_jitter_draws():
    gray = [np.full((1, 1, 3), 100, np.float32)] * COUNT
    (out,) = run(lambda: augment.color_jitter(images(gray), brightness=0.4), batch=COUNT)
    factors = np.array(out).reshape(COUNT, 3)[:, 0] / 100
    assert 0.6 <= factors.min() < 0.62 and 1.38 < factors.max() <= 1.4
    assert abs(factors.mean() - 1) < 0.04 and abs(factors.std() - 0.8 / 12**0.5) < 0.02


def test_the_order_is_drawn():
    """Brightness and then contrast, or the other way around, are two answers."""
    (out,) = run(
        lambda: augment.color_jitter(images([IMAGES[0]] * COUNT), brightness=(1.8, 1.8), contrast=(0.5, 0.5)),
        batch=COUNT,
    )
    kinds, counts = np.unique([sample.tobytes() for sample in out], return_counts=True)
    assert len(kinds) == 2 and abs(counts[0] / COUNT - 0.5) < 0.1


def test_color_jitter_of_nothing_and_of_bytes():
    same, changed = run(
        lambda: (augment.color_jitter(images()), augment.color_jitter(images(), 0.2, 0.2, 0.2, 0.1, seed=5))
    )
    assert all((same[i] == IMAGES[i]).all() for i in range(4))
    assert changed[0].dtype == np.uint8 and changed[0].shape == SHAPE and (changed[0] != IMAGES[0]).any()


def erased(parts):
    return [(part != 1).all(2) for part in parts]


def test_what_random_erasing_draws():
    ones = [np.ones((40, 50, 3), np.uint8)] * COUNT
    (out,) = run(lambda: augment.random_erasing(images(ones), p=0.75, value=[7, 8, 9]), batch=COUNT)
    holes = erased(out)
    assert abs(np.mean([hole.any() for hole in holes]) - 0.75) < 0.07
    areas, ratios, tops = [], [], []
    for hole, image in zip(holes, out):
        if not hole.any():
            assert (image == 1).all()
            continue
        rows, columns = np.flatnonzero(hole.any(1)), np.flatnonzero(hole.any(0))
        assert hole.sum() == len(rows) * len(columns) and (image[hole] == [7, 8, 9]).all()
        areas.append(hole.sum() / hole.size)
        ratios.append(len(rows) / len(columns))
        tops.append(rows[0] / (40 - len(rows)))
    assert 0.015 < min(areas) < 0.05 and 0.28 < max(areas) < 0.35 and abs(np.mean(areas) - 0.175) < 0.02
    assert 0.25 < min(ratios) < 0.45 and 2.2 < max(ratios) < 3.6 and abs(np.mean(np.log(ratios))) < 0.12
    assert min(tops) == 0 and max(tops) == 1 and abs(np.mean(tops) - 0.5) < 0.06


def test_a_rectangle_for_what_was_drawn():
    def define():
        drawn = [np.full(10, 0.9, np.float32), np.full(10, 4.0, np.float32), np.array([0.5, 0.25], np.float32)]
        drawn[0][3:] = 0.25
        drawn[1][3:] = 0.64
        anchor, shape = augment._rectangle(images(), (0, 1), *(types.Constant(d) for d in drawn), types.Constant(True))
        none = augment._rectangle(
            images(),
            (0, 1),
            types.Constant(np.full(10, 1.0, np.float32)),
            *(types.Constant(d) for d in drawn[1:]),
            types.Constant(True),
        )
        return anchor, shape, none[1]

    anchor, shape, none = run(define)
    # The fourth is the first that fits: sqrt(480 * 0.25 * 0.64) = 8.76 and sqrt(480 * 0.25 / 0.64) = 13.69.
    assert shape[0].tolist() == [9, 14] and anchor[0].tolist() == [int(0.5 * (24 - 9 + 1)), int(0.25 * (20 - 14 + 1))]
    assert none[0].tolist() == [0, 0]


def test_erasing_with_noise():
    zeros = [np.zeros((40, 50, 3), np.float32)] * 8
    (out,) = run(lambda: augment.random_erasing(images(zeros), p=1, value="random"), batch=8)
    noise = np.concatenate([sample[sample != 0] for sample in out])
    assert len(noise) > 1000 and abs(noise.mean()) < 0.05 and abs(noise.std() - 1) < 0.05


def test_mixup():
    batch = [np.full((2, 3, 3), 10 * i, np.uint8) for i in range(6)]

    def define():
        return augment.mixup(
            images(batch), fn.external_source(lambda: [np.int32(i) for i in range(6)]), alpha=0.4, num_classes=6
        )

    mixed, labels = run(define, batch=6)
    for i in range(6):
        (other,) = [j for j in range(6) if j != i and labels[i][j] > 0]
        weight = labels[i][i]
        assert abs(labels[i].sum() - 1) < 1e-6 and abs(weight - labels[0][0]) < 1e-6
        assert np.abs(mixed[i] - (weight * 10 * i + (1 - weight) * 10 * other)).max() < 1e-4


def test_weights_of_mixup_are_those_of_the_beta_distribution():
    one = [np.zeros((1, 1, 3), np.uint8)] * 2

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, seed=3)
    def define():
        return augment.mixup(
            images(one), fn.external_source(lambda: [np.int32(0), np.int32(1)]), alpha=0.5, num_classes=2
        )[1]

    pipeline = define()
    weights = np.array([pipeline.run()[0].at(0)[0] for _ in range(COUNT)])
    assert abs(weights.mean() - 0.5) < 0.06 and abs(weights.var() - 0.125) < 0.02


@pytest.mark.parametrize(
    "wrong, text",
    [
        (lambda: augment.color_jitter(images(), brightness=-1), "`brightness` is -1"),
        (lambda: augment.color_jitter(images(), hue=0.6), "`hue` is 0.6"),
        (lambda: augment.random_erasing(images(), p=2), "`p` is 2"),
        (lambda: augment.random_erasing(images(), ratio=(0, 1)), "`ratio` is"),
        (lambda: augment.random_erasing(images(), value="noise"), "`value` is 'noise'"),
        (lambda: augment.mixup(images(), images(), alpha=0), "`alpha` is 0"),
    ],
)
def test_wrong_arguments_say_so(wrong, text):
    with pytest.raises(ValueError, match=text.replace("(", r"\(")):
        run(wrong)
