"""Dynamic mode on a GPU: deferred calls and loops with `capture=True` give what the same calls give one by one. Skipped
without a GPU."""

import numpy as np
import pytest
from gesso import dynamic as d
from gesso._dynamic import plans
from gesso._native import engine as _engine

if not _engine.has_gpu():
    pytest.skip("no GPU", allow_module_level=True)
image = pytest.importorskip("PIL.Image")


def host(batch):
    return [np.asarray(sample) for sample in batch.cpu().tensors]


def chain(pictures, rng):
    small = d.resize(pictures.gpu(), size=[40, 50])
    place = d.random.uniform(batch_size=4, range=[0.0, 1.0], rng=rng)
    return d.crop_mirror_normalize(small, crop=[32, 32], crop_pos_x=place, mean=[1.0, 2.0, 3.0], dtype=d.float32)


def test_deferred_calls(monkeypatch):
    numbers = np.random.default_rng(0)
    pictures = d.batch([numbers.integers(0, 256, (60, 70 + i, 3), np.uint8) for i in range(4)], layout="HWC")
    reference = host(chain(pictures, d.random.RNG(1)))
    run, made = plans.run, []
    monkeypatch.setattr(plans, "run", lambda *a, **k: made.append(1) or run(*a, **k))
    with d.EvalMode.deferred:
        together = chain(pictures, d.random.RNG(1))
        assert together.device.device_type == "gpu"
        together.evaluate()
    # The place, and all the rest.
    assert len(made) == 2
    assert all(np.array_equal(one, other) for one, other in zip(host(together), reference, strict=True))


def test_random_numbers_are_those_of_the_host():
    drawn = [d.random.uniform(shape=[100], rng=d.random.RNG(5), device=place).cpu() for place in ("cpu", "gpu")]
    assert np.allclose(drawn[0], drawn[1], atol=1e-6)


def test_loops_with_capture(tmp_path):
    names = []
    for i in range(8):
        coarse = np.random.default_rng(i).integers(0, 256, (7, 9, 3), np.uint8)
        names.append(str(tmp_path / f"{i}.jpg"))
        image.fromarray(coarse).resize((120 + i, 90), image.BICUBIC).save(names[-1], quality=90, subsampling=0)
    found = []
    for capture in (False, True):
        rng, reader, results = d.random.RNG(3), d.readers.File(files=names), []
        for _ in range(2):
            for files, _ in reader.next_epoch(batch_size=4, capture=capture):
                pictures = d.resize(d.decoders.image(files, device="gpu"), size=[64, 64])
                mirror = d.random.coin_flip(batch_size=4, rng=rng)
                results.append(host(d.crop_mirror_normalize(pictures, mirror=mirror, dtype=d.float32)))
        found.append(results)
    for one, other in zip(*found, strict=True):
        # What decodes a file, and so how it rounds, may differ from run to run.
        assert max(abs(a - b).max() for a, b in zip(one, other, strict=True)) <= 6
