"""Loops with `capture=True`: the same results as without, made ahead by one plan."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest
from gesso import dynamic as d
from gesso._dynamic import plans
from PIL import Image


@pytest.fixture
def here(monkeypatch):
    """How many plans the loop's own thread runs."""
    made, run, main = [], plans.run, threading.current_thread()

    def watched(*arguments, **named):
        if threading.current_thread() is main:
            made.append(1)
        return run(*arguments, **named)

    monkeypatch.setattr(plans, "run", watched)
    return made


@pytest.fixture
def names(tmp_path):
    """Names of coded pictures."""
    made = []
    for i in range(10):
        noise = np.random.default_rng(i).integers(0, 256, (50, 60, 3), dtype=np.uint8)
        made.append(str(tmp_path / f"{i}.jpg"))
        Image.fromarray(noise).save(made[-1], quality=90)
    return made


def both(names, body, epochs=2, batch_size=2, modes=(d.EvalMode.eager, d.EvalMode.deferred)):
    """Results of a loop's body without and with capture, which must be the same; those of the latter."""
    for mode in modes:
        found = []
        for capture in (False, True):
            reader, state, results = d.readers.File(files=names), {}, []
            for _ in range(epochs):
                for i, (files, labels) in enumerate(reader.next_epoch(batch_size=batch_size, capture=capture)):
                    with mode:
                        made = body(files, i, state)
                        results.append([np.asarray(value) for batch in (labels, *made) for value in batch.tensors])
            found.append(results)
        assert len(found[0]) == len(found[1]) == epochs * 10 // batch_size
        for one, other in zip(*found):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_fixed_body_is_done_ahead(names, here):
    reader, counts = d.readers.File(files=names), []
    for _ in range(2):
        for files, _ in reader.next_epoch(batch_size=2, capture=True):
            here.clear()
            images = d.resize(d.decoders.image(files), size=[32, 32])
            d.crop_mirror_normalize(images, mean=[1.0, 2.0, 3.0]).evaluate()
            counts.append(len(here))
    assert counts == [1] + [0] * 9


def test_the_same_results(names):
    def body(files, _i, _state):
        images = d.decoders.image(files)
        return d.flip(d.resize(images, size=[20, 30])), images + 1, images.slice[3:9]

    both(names, body)


def test_random_numbers(names):
    def body(files, _i, state):
        rng = state.setdefault("rng", d.random.RNG(4))
        crop = d.random_resized_crop(d.decoders.image(files), size=[16, 16], rng=rng)
        return d.flip(crop, horizontal=d.random.coin_flip(batch_size=2, rng=rng)), d.noise.gaussian(crop, rng=rng)

    both(names, body)


def test_numbers_that_the_loop_draws_itself(names):
    def body(files, i, state):
        rng = state.setdefault("rng", d.random.RNG(4))
        for _ in range(i % 3):
            rng()
        drawn = d.random_resized_crop(d.decoders.image(files), size=[16, 16], rng=rng)
        if i == 3:
            rng.seed = 7
        return (drawn,)

    both(names, body, epochs=3)


def test_arguments_that_change(names):
    def body(files, i, _state):
        images = d.decoders.image(files)
        if i % 2:
            images = d.flip(images)
        return d.rotate(images, angle=float(i)), d.resize(images, size=[10 + i % 2, 12]), images * i

    both(names, body)


def test_what_is_made_of_batches_before(names):
    def body(files, _i, state):
        images = d.decoders.image(files)
        before = state.get("before", images)
        state["before"] = images
        return d.resize(before, size=[8, 8]), images - d.resize(before, size=[50, 60])

    both(names, body)


def test_arrays_of_the_program(names):
    factor = np.full((1, 1, 3), 2, np.float32)

    def body(files, i, _state):
        factor[:] = i
        return (d.decoders.image(files) * factor,)

    both(names, body)


def test_samples_and_shapes(names):
    def body(files, _i, _state):
        images = d.decoders.image(files)
        height = images.shape[0][0]
        assert images.tensors[0].shape == (50, 60, 3)
        return d.crop(images, crop=[height // 2, 10]), d.as_batch([d.flip(images.tensors[1])])

    both(names, body)


def test_a_body_that_fails_names_its_line(names):
    reader = d.readers.File(files=names)
    for i, (files, _) in enumerate(reader.next_epoch(batch_size=2, capture=True)):
        cropped = d.crop(d.decoders.image(files), crop=[40 if i < 2 else 400, 10])  # this line
        if i < 2:
            cropped.evaluate()
            continue
        with pytest.raises(RuntimeError, match="It was called at") as caught:
            cropped.evaluate()
        assert "# this line" in str(caught.value)


def test_a_damaged_file(names):
    with open(names[6], "wb") as file:
        file.write(b"no picture")
    reader, failed = d.readers.File(files=names), []
    for i, (files, _) in enumerate(reader.next_epoch(batch_size=2, capture=True)):
        try:
            d.decoders.image(files).evaluate()
        except RuntimeError:
            failed.append(i)
    assert failed == [3]


def test_a_loop_left_in_the_middle_goes_on(names):
    reader = d.readers.File(files=names)
    firsts = []
    for _ in range(3):
        for files, labels in reader.next_epoch(batch_size=2, capture=True):
            d.decoders.image(files).evaluate()
            firsts.append(labels.tensors[0].item())
            if len(firsts) % 2 == 0:
                break
    assert firsts == [0, 2, 4, 6, 8, 0]


def test_two_loops_at_once(names):
    readers = [d.readers.File(files=names) for _ in range(2)]
    loops = [reader.next_epoch(batch_size=2, capture=True) for reader in readers]
    for (one, _), (other, _) in zip(*loops):
        made = [d.decoders.image(files) for files in (one, other)]
        assert all(np.array_equal(a, b) for a, b in zip(made[0].tensors, made[1].tensors))


def test_wrong_uses(names):
    reader = d.readers.File(files=names)
    with pytest.raises(ValueError, match="batch_size"):
        reader.next_epoch(capture=True)
    next(reader.next_epoch(batch_size=2, capture=True))
    with pytest.raises(RuntimeError, match="cannot switch"):
        reader.next_epoch(batch_size=2)
    with pytest.raises(ValueError, match="batch_size"):
        next(reader.next_epoch(batch_size=4, capture=True))
    with pytest.raises(RuntimeError, match="read ahead"):
        reader(batch_size=2)


def test_sources():
    buffer = np.zeros((3, 2), np.float32)

    def pieces():
        for i in range(6):
            buffer[:] = i
            yield d.as_batch(buffer)

    source = d.ExternalSource(pieces(), dtype=d.float32)
    found = [np.asarray(d.as_tensor(piece * 2.0 + 1.0)) for piece in source.captured(3)]
    assert [value[0, 0] for value in found] == [1, 3, 5, 7, 9, 11]
    with pytest.raises(RuntimeError, match="captured"):
        source()
    with pytest.raises(ValueError, match="batch_size"):
        next(source.captured(4))


def test_a_source_that_fails():
    def fail():
        raise KeyError("no more data")

    with pytest.raises(KeyError, match="no more data"):
        next(d.ExternalSource(fail).captured(2))


_LEFT = """
import os, sys
from gesso import dynamic as d

def turn(files):
    made = d.resize(d.decoders.image(files), size=[300, 300])
    made.evaluate()

reader = d.readers.File(files=sys.argv[1:])
for i, (files, _) in enumerate(reader.next_epoch(batch_size=2, capture=True)):
    turn(files)
    if i == 2:
        break
child = os.fork()
if child == 0:
    try:
        next(reader.next_epoch(batch_size=2, capture=True))
    except RuntimeError as error:
        os._exit(0 if "fork" in str(error) else 3)
    os._exit(4)
assert os.waitpid(child, 0)[1] == 0
turn(next(reader.next_epoch(batch_size=2, capture=True))[0])
print("done")
"""


def test_a_fork_and_the_end_of_the_program(names):
    found = subprocess.run([sys.executable, "-c", _LEFT, *names], capture_output=True, text=True, timeout=300)
    assert (found.returncode, found.stdout.strip()) == (0, "done"), found.stderr


def test_nothing_is_kept(names):
    reader, rng = d.readers.File(files=names), d.random.RNG(3)

    def turns(count):
        while count > 0:
            for i, (files, _) in enumerate(reader.next_epoch(batch_size=2, capture=True)):
                sizes = d.cast(files, dtype=d.float32) * float(i % 3) + d.random.uniform(batch_size=2, shape=1, rng=rng)
                d.reductions.sum(sizes).evaluate()
                count -= 1

    turns(30)
    gc.collect()
    before = len(gc.get_objects())
    turns(100)
    gc.collect()
    assert len(gc.get_objects()) < before + 200
