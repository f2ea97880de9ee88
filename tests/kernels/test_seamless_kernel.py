"""The kernels of SeamlessM4T's features on the host, against numpy."""

import numpy as np
import pytest
from emulator import needs_compiler, place, table_kernel
from layouts import layout, packed
from test_unit_variance_kernel import depth

ROW = "to mask from columns sums outcome windows groups depth"
PARAMS = "window turns filters weights emphasis floor levels epsilon bands stride"
KNOWN = layout("seamless_features")
# The filters: first bin, weights. One of them has none, and one is all of them.
FILTERS = [(0, [0.5, 1.0, 0.25]), (7, []), (40, [1.0]), (0, [0.125] * 257)]
FACTORS = np.hanning(KNOWN.WINDOW) ** 0.85
FLOOR, EPSILON, BLOCKS = 2.0**-23, np.float32(1e-7), 3

pytestmark = needs_compiler


def windows_of(signal):
    return 1 + (signal.size - KNOWN.WINDOW) // KNOWN.STEP


def expected(signal, stride):
    """Features and mask of a signal."""
    windows = windows_of(signal)
    at = np.arange(windows)[:, None] * KNOWN.STEP + np.arange(KNOWN.WINDOW)
    samples = (signal * np.float32(32768))[at].astype(np.float64)
    samples -= samples.mean(1, keepdims=True)
    before = np.concatenate([samples[:, :1], samples[:, :-1]], 1)
    spectra = np.fft.rfft((samples - 0.97 * before) * FACTORS, KNOWN.LENGTH, axis=1).astype(np.complex64)
    powers = np.abs(spectra.astype(np.complex128)) ** 2
    bands = [powers[:, first : first + len(weights)] @ np.asarray(weights, float) for first, weights in FILTERS]
    columns = np.log(np.maximum(bands, FLOOR)).astype(np.float32)
    mean = [column.mean() for column in columns]
    deviation = [np.sqrt(column.var(ddof=1) + EPSILON) for column in columns]
    groups = (windows + windows % 2) // stride
    made = np.zeros((groups * stride, len(FILTERS)), np.float32)
    made[:windows] = ((columns.T - mean) / deviation)[: groups * stride]
    return made, (np.arange(groups) * stride + 1 < windows).astype(np.int32)


def run(folder, given, stride):
    """Features, masks and what the kernel says of each band."""
    count, bands = len(given), len(FILTERS)
    windows = [windows_of(signal) for signal in given]
    groups = [(number + number % 2) // stride for number in windows]
    starts = np.cumsum([0] + [len(weights) for _, weights in FILTERS])
    table = b"".join(
        packed(KNOWN.Band, "first count start", first, len(weights), start)
        for (first, weights), start in zip(FILTERS, starts)
    )
    circle = np.exp(-2j * np.pi * np.arange(KNOWN.LENGTH) / KNOWN.LENGTH)
    tables = [
        FACTORS,
        np.stack([circle.real, circle.imag], 1),
        np.frombuffer(table, np.uint8),
        np.concatenate([np.asarray(weights, float) for _, weights in FILTERS]),
    ]
    outputs = [np.full((number * stride, bands), np.nan, np.float32) for number in groups]
    masks = [np.full(number, 77, np.int32) for number in groups]
    columns = [np.full((bands, number), 77, np.float32) for number in windows]
    sums = [np.full((BLOCKS, 2 << depth(number)), np.nan, np.float32) for number in windows]
    outcomes = [np.full(bands, 77, np.uint32) for _ in given]
    memory = [part for parts in (given, outputs, masks, columns, sums, outcomes, tables) for part in parts]
    rows = [
        (*(place(part * count + i) for part in (1, 2, 0, 3, 4, 5)), windows[i], groups[i], depth(windows[i]))
        for i in range(count)
    ]
    param = (*(place(6 * count + i) for i in range(4)), 0.97, FLOOR, 32768, EPSILON, bands, stride)
    for entry in ("logarithms", "normalized"):
        kernel = table_kernel(folder, "seamless_features", ROW, entry, PARAMS, RADICES="4,4,4,4,2")
        memory = kernel(rows, memory, BLOCKS, KNOWN.THREADS, param)
    return memory[count : 2 * count], memory[2 * count : 3 * count], memory[5 * count : 6 * count]


@pytest.mark.parametrize("stride", [2, 3])
def test_features(tmp_path, stride):
    random = np.random.default_rng(stride)
    given = [random.normal(size=size).astype(np.float32) * 0.1 for size in (560, 720, 4321)]
    given.append(np.zeros(900, np.float32))
    features, masks, outcomes = run(tmp_path, given, stride)
    for signal, found, mask, outcome in zip(given, features, masks, outcomes):
        wanted, there = expected(signal, stride)
        assert (outcome == KNOWN.MADE).all()
        np.testing.assert_array_equal(mask, there)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, np.finfo(np.float32).max])
def test_what_has_no_power_is_told(tmp_path, value):
    given = [np.full(900, 0.25, np.float32) for _ in range(2)]
    given[1][500:510] = value
    _, _, outcomes = run(tmp_path, given, 2)
    wrong = KNOWN.NO_NUMBERS
    assert (outcomes[0] == KNOWN.MADE).all() and list(outcomes[1] == wrong) == [True, False, True, True]
