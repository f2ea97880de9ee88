"""Deferred calls: one plan for an expression, with the results of the same calls one by one."""

import gc
import threading
import weakref

import numpy as np
import pytest
from gesso import dynamic as d
from gesso import types
from gesso._dynamic import expressions, plans
from PIL import Image


@pytest.fixture
def runs(monkeypatch):
    """What plans run: for each the number of its outputs."""
    made, run = [], plans.run

    def watched(*arguments, **named):
        outputs = run(*arguments, **named)
        made.append(len(outputs))
        return outputs

    monkeypatch.setattr(plans, "run", watched)
    return made


@pytest.fixture
def files(tmp_path):
    """A batch of coded pictures."""
    names = []
    for i in range(4):
        noise = np.random.default_rng(i).integers(0, 256, (40 + 8 * i, 56, 3), dtype=np.uint8)
        names.append(str(tmp_path / f"{i}.jpg"))
        Image.fromarray(noise).resize((90, 70)).save(names[-1], quality=90)
    return next(iter(d.readers.File(files=names).next_epoch(batch_size=4)))[0]


def equal(one, other):
    assert one.layout == other.layout and one.dtype == other.dtype
    assert all(np.array_equal(mine, its) for mine, its in zip(one.tensors, other.tensors, strict=True))


def training(files, rng):
    images = d.decoders.image(files)
    small = d.resize(images, resize_shorter=48.0, interp_type=types.INTERP_TRIANGULAR)
    place = d.random.uniform(batch_size=4, range=[0.0, 1.0], shape=2, rng=rng)
    mirror = d.random.coin_flip(batch_size=4, rng=rng)
    return d.crop_mirror_normalize(
        small,
        crop=[32, 32],
        crop_pos_x=place.slice[0],
        crop_pos_y=place.slice[1],
        mirror=mirror,
        mean=[120.0, 110.0, 100.0],
        std=[60.0, 61.0, 62.0],
    )


EXPRESSIONS = {
    "training": training,
    "random crop": lambda files, rng: d.random_resized_crop(d.decoders.image(files), size=[20, 24], rng=rng) / 255.0,
    "window": lambda files, rng: d.flip(d.decoders.image_random_crop(files, rng=rng), vertical=1),
    "two draws": lambda files, rng: d.noise.gaussian(
        d.random_resized_crop(d.decoders.image(files), size=[16, 16], rng=rng), stddev=20.0, rng=rng
    ),
    "arithmetic": lambda files, rng: (d.decoders.image(files).slice[3:20, :, 0] * 2 - 7) / 3.0,
    "negative places": lambda files, rng: d.decoders.image(files).slice[-30:-2, 5, :] + 1,
    "floats": lambda files, rng: d.reductions.mean(d.cast(d.decoders.image(files), dtype=types.FLOAT), axes=[0, 1]),
    "stack": lambda files, rng: (lambda x: d.stack(x, d.flip(x), axis=0))(
        d.resize(d.decoders.image(files), size=[9, 9])
    ),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_results_are_those_of_calls_one_by_one(files, name):
    one_by_one = EXPRESSIONS[name](files, d.random.RNG(3))
    for _ in range(2):
        with d.EvalMode.deferred:
            together = EXPRESSIONS[name](files, d.random.RNG(3))
            assert together._invocation_result.invocation.is_waiting
        equal(together, one_by_one)


def test_an_expression_is_one_plan(files, runs):
    with d.EvalMode.deferred:
        made = d.crop_mirror_normalize(d.resize(d.decoders.image(files), size=[32, 32]), mean=[1.0, 2.0, 3.0])
    assert not runs
    made.evaluate()
    assert runs == [1]
    made.evaluate()
    assert runs == [1]


def test_the_plan_is_kept(files):
    def chain():
        with d.EvalMode.deferred:
            return d.flip(d.resize(d.decoders.image(files), size=[31, 33]), horizontal=1).evaluate()

    chain()
    before = plans.kept.cache_info().misses
    chain()
    assert plans.kept.cache_info().misses == before


def test_what_two_share_is_run_once(files, runs):
    with d.EvalMode.deferred:
        images = d.decoders.image(files)
        one, two = d.resize(images, size=[20, 20]), d.resize(images, size=[30, 30])
    one.evaluate()
    assert runs == [2]  # the images, for the other one, and its own result
    assert not images._invocation_result.invocation.is_waiting
    two.evaluate()
    assert runs == [2, 1]
    equal(one, d.resize(images, size=[20, 20]))
    equal(two, d.resize(images, size=[30, 30]))


def test_what_is_asked_for_later_is_kept_the_next_time(files, runs):
    for _ in range(2):
        with d.EvalMode.deferred:
            images = d.decoders.image(files)
            small = d.resize(images, size=[21, 22])
        runs.clear()
        small.evaluate(), images.evaluate()
    assert runs == [2]
    equal(images, d.decoders.image(files))


def test_what_nobody_asks_for_is_not_done(files, runs):
    with d.EvalMode.deferred:
        d.decoders.image(files)
        d.flip(d.decoders.image(files))
    assert runs == []


def test_one_tensor_and_numbers(files):
    with d.EvalMode.deferred:
        picture = d.decoders.image(files).tensors[1]
        mean = d.reductions.mean(d.cast(d.resize(picture, size=[8, 8]), dtype=types.FLOAT))
        assert mean.ndim == 0
        darker = d.decoders.image(files) * (mean / 255.0)
    eager = d.reductions.mean(d.cast(d.resize(d.decoders.image(files).tensors[1], size=[8, 8]), dtype=types.FLOAT))
    assert mean.item() == eager.item()
    equal(darker, d.decoders.image(files) * (eager / 255.0))


def test_a_long_chain(runs):
    with d.EvalMode.deferred:
        value = d.tensor(np.zeros(3, np.float32))
        for i in range(expressions.MOST_CALLS * 5):
            value = value + (i % 3)
    assert np.array_equal(value, [sum(i % 3 for i in range(expressions.MOST_CALLS * 5))] * 3)
    assert 5 <= len(runs) <= 7


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_failure_names_the_line_of_the_call_that_failed(files, place):
    size = [[8, 8], [8, 8]]
    with d.EvalMode.deferred:
        images = d.decoders.image(files)
        if place == 0:
            images = d.crop(images, crop=[500, 500])  # line 0
        images = d.resize(images, size=size[0])
        if place == 1:
            images = d.crop(images, crop=[500, 500])  # line 1
        images = d.flip(images)
        if place == 2:
            images = d.crop(images, crop=[500, 500])  # line 2
        last = d.cast(images, dtype=types.FLOAT)
    with pytest.raises(RuntimeError) as caught:
        last.evaluate()
    assert f"# line {place}" in str(caught.value) and str(caught.value).count("It was called at") == 1
    with pytest.raises(RuntimeError):
        last.evaluate()


def test_nothing_is_kept(files):
    with d.EvalMode.deferred:
        images = d.decoders.image(files)
        seen = weakref.ref(images._invocation_result.invocation)
        small = d.resize(images, size=[5, 5]).evaluate()
        del images
        for _ in range(1000):
            small + 1
    gc.collect()
    assert seen() is None
    assert small._invocation_result.invocation._consumers is None


def test_threads_ask_for_the_same():
    with d.EvalMode.deferred:
        base = d.random.uniform(shape=[1000], rng=d.random.RNG(1), batch_size=2)
        made = [base * (i + 1.0) for i in range(8)]
    threads = [threading.Thread(target=value.evaluate) for value in made for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, value in enumerate(made):
        equal(value, base * (i + 1.0))


def test_random_operators_draw_when_they_are_called():
    def drawn(mode):
        rng = d.random.RNG(11)
        with mode:
            one, two = (d.random.uniform(batch_size=2, shape=[4], rng=rng) for _ in range(2))
            two.evaluate(), one.evaluate()
        return [np.asarray(value) for batch in (one, two) for value in batch]

    assert np.array_equal(drawn(d.EvalMode.eager), drawn(d.EvalMode.deferred))
    assert len({value.tobytes() for value in drawn(d.EvalMode.eager)}) == 4


def test_random_operators_need_no_plan_for_each_draw():
    rng = d.random.RNG(2)
    d.random.normal(shape=[3], rng=rng)
    before = plans.kept.cache_info().misses
    values = {float(d.random.normal(shape=[1], rng=rng).item()) for _ in range(20)}
    assert len(values) == 20 and plans.kept.cache_info().misses <= before + 1


def test_draws_are_independent():
    """Neighbouring samples and neighbouring calls share nothing, and the numbers are spread as they should be."""
    rng = d.random.RNG(8)
    calls = [d.random.uniform(batch_size=16, shape=[500], range=[0.0, 1.0], rng=rng) for _ in range(20)]
    rows = np.stack([np.asarray(sample) for call in calls for sample in call.tensors])
    correlations = np.corrcoef(rows) - np.eye(len(rows))
    assert abs(correlations).max() < 0.25
    counts, _ = np.histogram(rows, bins=20, range=(0, 1))
    expected = rows.size / 20
    assert ((counts - expected) ** 2 / expected).sum() < 60  # 19 degrees of freedom


def test_modes_may_change(files, runs):
    with d.EvalMode.deferred:
        images = d.decoders.image(files)
    small = d.resize(images, size=[12, 12])
    assert runs == [1] and images._invocation_result.invocation.is_waiting
    equal(small, d.resize(d.decoders.image(files), size=[12, 12]))
