"""The kernel of Whisper's features on the host, against numpy in doubles."""

import numpy as np
import pytest
from emulator import needs_compiler, place, table_kernel
from layouts import layout, packed

ROW = "to from given samples windows loudest outcome"
PARAMS = "window turns filters weights memory floor range step bands parts"
# The filters: first bin, weights. One of them has none.
FILTERS = [(0, [0.5, 1.0, 0.25]), (2, []), (1, [1.0]), (3, [0.125] * 5)]
FLOOR, RANGE = 1e-10, 8.0

pytestmark = needs_compiler


def factors(length):
    found, radix = [], 4
    while length > 1:
        while length % radix == 0:
            found.append(radix)
            length //= radix
        radix = {4: 2, 2: 3}.get(radix, radix + 2)
    return found or [1]


def filters_of(bins):
    """Those that lie within so many bins."""
    return [(min(first, bins), weights[: max(0, bins - first)]) for first, weights in FILTERS]


def logarithms(given, samples, length, step):
    """What the kernel makes before it looks for the loudest: a row for each filter."""
    whole = np.concatenate([given, np.zeros(samples - given.size)])
    windows = (samples + length // 2 * 2 - length) // step
    at = np.arange(windows)[:, None] * step - length // 2 + np.arange(length)
    at = at % max(2 * samples - 2, 1)
    at = np.where(at < samples, at, 2 * samples - 2 - at)
    spectra = np.fft.rfft(whole[at].astype(np.float64) * window_of(length), length, axis=1).astype(np.complex64)
    powers = spectra.real.astype(np.float64) ** 2 + spectra.imag.astype(np.float64) ** 2
    bands = [powers[:, first : first + len(w)] @ np.asarray(w, float) for first, w in filters_of(powers.shape[1])]
    return np.log10(np.maximum(np.asarray(bands).reshape(len(FILTERS), windows), FLOOR)).astype(np.float32)


def window_of(length):
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length) if length > 1 else np.ones(1)


def signals(step):
    random = np.random.default_rng(step)
    tone = np.sin(np.arange(700) * 0.3) * np.linspace(0, 1, 700) ** 8
    sounds = [(tone, 700), (random.normal(size=90), 150), (random.normal(size=1), 1), (np.zeros(0), 40)]
    return [(sound.astype(np.float32), samples) for sound, samples in sounds]


def run(folder, length, step, given, large, blocks=3):
    """Features and outcomes of signals, pairs of samples that are there and of how many there are with silence."""
    count, bins = len(given), length // 2 + 1
    windows = [(samples + length // 2 * 2 - length) // step for _, samples in given]
    starts = np.cumsum([0] + [len(weights) for _, weights in filters_of(bins)])
    table = b"".join(
        packed(layout("log_mel").Band, "first count start", first, len(weights), start)
        for (first, weights), start in zip(filters_of(bins), starts)
    )
    circle = np.exp(-2j * np.pi * np.arange(length) / length)
    tables = [
        window_of(length),
        np.stack([circle.real, circle.imag], 1),
        np.frombuffer(table, np.uint8),
        np.concatenate([np.asarray(weights, float) for _, weights in filters_of(bins)]),
        np.full((count * blocks, 2, length, 2) if large else 1, np.nan),
    ]
    outputs = [np.full((len(FILTERS), number), np.nan, np.float32) for number in windows]
    loudest, outcomes = np.full((count, blocks), np.nan, np.float32), np.full(count, 77, np.uint32)
    memory = [sound for sound, _ in given] + outputs + [loudest, outcomes] + tables
    rows = [
        (place(count + i), place(i), sound.size, samples, windows[i])
        + (place(2 * count, 4 * blocks * i), place(2 * count + 1, 4 * i))
        for i, (sound, samples) in enumerate(given)
    ]
    radices = ",".join(map(str, factors(length)))
    shape = dict(LENGTH=f"{length}u", RADICES=radices, LARGE=int(large))
    param = (*(place(2 * count + 2 + i) for i in range(5)), FLOOR, RANGE, step, len(FILTERS), blocks)
    features = table_kernel(folder, "log_mel", ROW, params=PARAMS, **shape)
    finish = table_kernel(folder, "log_mel", ROW, "finish", PARAMS, LENGTH="1u", RADICES="1", LARGE=0)
    memory = finish(rows, features(rows, memory, blocks, param=param), param=param)
    return memory[count : 2 * count], memory[2 * count + 1]


@pytest.mark.parametrize(
    "length,step,large", [(400, 160, 0), (15, 7, 0), (22, 3, 1), (64, 100, 0), (1, 5, 0), (2, 1, 1)]
)
def test_features(tmp_path, length, step, large):
    given = signals(step)
    made, outcomes = run(tmp_path, length, step, given, large)
    assert (outcomes == layout("log_mel").MADE).all()
    for (sound, samples), found in zip(given, made):
        expected = logarithms(sound, samples, length, step)
        assert found.shape == expected.shape
        if expected.size:
            expected = (np.maximum(expected, expected.max() - np.float32(RANGE)) + 4) / 4
        np.testing.assert_allclose(found, expected, rtol=0, atol=2.0**-22)


@pytest.mark.parametrize("value", [np.nan, np.inf, np.finfo(np.float32).max])
def test_what_has_no_power_is_told(tmp_path, value):
    given = [(sound[:600], 700) for sound, _ in signals(160)[:1]] * 2
    given[1] = (np.where(np.arange(600) // 2 == 125, np.float32(value), given[1][0]), 700)
    made, outcomes = run(tmp_path, 400, 160, given, 0)
    # A sum of two values as large as floats are is no float.
    assert list(outcomes) == [layout("log_mel").MADE, layout("log_mel").NO_NUMBERS]
    expected = logarithms(*given[0], 400, 160)
    expected = (np.maximum(expected, expected.max() - np.float32(RANGE)) + 4) / 4
    np.testing.assert_allclose(made[0], expected, rtol=0, atol=2.0**-22)
