"""The kernels of signals and spectra on the host, against numpy."""

import numpy as np
import pytest
from emulator import needs_compiler, place, table_kernel
from layouts import layout, packed
from test_elementwise_kernels import address, noise

TYPES = {"uint8_t": np.uint8, "int16_t": np.int16, "uint64_t": np.uint64, "float": np.float32, "double": np.float64}

pytestmark = needs_compiler


def signal(length, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=length).astype(dtype)


# ---- decibels

DECIBELS, PARTS = "to from largest elements", layout("decibels").PARTS


def in_decibels(values, factor, floor, reference):
    ratio = values.astype(np.float64) * (1 if reference == 0 else 1 / reference)
    return factor * np.log2(np.maximum(ratio, floor))


def test_decibels_of_the_largest(tmp_path):
    samples = [np.abs(signal(n, n)) for n in (40_000, 1, 700)] + [np.zeros(9, np.float32)]
    memory, largest = [], len(samples)
    rows = [(place(i), place(i), place(largest, 4 * PARTS * i), sample.size) for i, sample in enumerate(samples)]
    memory = samples + [np.full((len(samples), PARTS), 9e9, np.float32)]
    params = (3.01, 1e-20, 5)
    find = table_kernel(tmp_path, "decibels", DECIBELS, entry="largest", params="factor floor inverse")
    memory = find(rows, memory, blocks=PARTS, param=params)
    np.testing.assert_array_equal(memory[-1].max(1), [sample.max() for sample in samples])
    scale = table_kernel(tmp_path, "decibels", DECIBELS, entry="decibels", params="factor floor inverse")
    made = scale(rows, memory, param=params)
    for found, sample in zip(made, samples):
        np.testing.assert_allclose(found, in_decibels(sample, 3.01, 1e-20, sample.max()), rtol=1e-5, atol=1e-5)


# ---- preemphasis


@pytest.mark.parametrize("border", ["CLAMP", "REFLECT", "ZERO"])
@pytest.mark.parametrize(
    "source,target", [("uint8_t", "float"), ("float", "int16_t"), ("double", "double"), ("int16_t", "uint8_t")]
)
def test_preemphasis(kernel, source, target, border):
    run = kernel(
        "preemphasis",
        "to from elements coefficient unused",
        params="border",
        FROM=source,
        TO=target,
        REAL="double" if source == "double" else "float",
    )
    for length, coefficient in ((0, 0.5), (1, 0.5), (50, -0.97), (50, 0)):
        values = (signal(length) * 90).astype(np.int64).astype(TYPES[source])
        out = np.zeros(length, TYPES[target])
        run((address(out), address(values), length, coefficient, 0), param=(layout("preemphasis").constants[border],))
        first = (
            [0.0]
            if border == "ZERO" or length == 0
            else values[[min(1, length - 1) if border == "REFLECT" else 0]].astype(float)
        )
        before = np.concatenate([first, values.astype(float)])[:length]
        expected = values - np.float32(coefficient).astype(float) * before
        if out.dtype.kind == "f":
            np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-5)
        else:
            assert (
                np.abs(out - np.clip(np.rint(expected), *[np.iinfo(out.dtype).min, np.iinfo(out.dtype).max])) <= 1
            ).all()


# ---- bands


def test_bands(kernel):
    values, weights = signal((3, 17, 5)), signal(30, 1)
    bands = [(0, 17, 0, 1.0), (4, 3, 17, -2.0), (0, 0, 20, 1.0), (12, 5, 20, 0.5)]
    table = b"".join(packed(layout("bands").Band, "first count start scale", *band) for band in bands)
    table = np.frombuffer(table, np.uint8).copy()
    out = np.zeros((3, 4, 5), np.float32)
    kernel("bands", "to from bands weights elements extent count inner unused")(
        (address(out), address(values), address(table), address(weights), out.size, 17, 4, 5, 0)
    )
    expected = np.stack(
        [
            scale * np.einsum("onk,n->ok", values[:, first : first + count], weights[start : start + count])
            for first, count, start, scale in bands
        ],
        1,
    )
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


# ---- spectra


def spectra(values, window, step, length, centered, mirrors):
    before = window.size // 2 if centered else 0
    count = values.size // step + 1 if centered else (values.size - window.size) // step + 1
    at = np.arange(count)[:, None] * step - before + np.arange(window.size)
    inside = (at >= 0) & (at < values.size)
    period = max(2 * values.size - 2, 1)
    folded = at % period
    folded = np.minimum(folded, period - folded)
    samples = np.where(inside | mirrors, values[folded], 0) * window
    return np.abs(np.fft.rfft(samples, length)) ** 2


def pairs(values):
    return np.stack([values.real, values.imag], 1).astype(np.float32)


@pytest.mark.parametrize(
    "length,taps,step",
    [
        (64, 64, 16),
        (64, 40, 7),
        (4, 4, 2),
        (8192, 8000, 3000),
        (30, 30, 11),
        (1, 1, 3),
        (2, 2, 1),
        (3, 2, 1),
        (401, 400, 160),
        (16384, 9000, 4000),
        (8193, 8193, 4000),
        (10000, 9000, 9000),
    ],
)
def test_spectra(tmp_path, length, taps, step):
    large, span = int(length > 8192), 1 << (2 * length - 2).bit_length()
    blocks = 2
    fast = int(length >= 4 and length & (length - 1) == 0)
    run = table_kernel(
        tmp_path,
        "spectrum",
        "to from samples windows",
        params="window turns chirp filter memory taps step before mirrors squares bins_last",
        LENGTH=f"{length}u",
        FAST=fast,
        LARGE=large,
        SPAN=f"{span}u",
    )
    window = signal(taps, 5)
    convolves = large and not fast
    parts = span if convolves else length
    turns = pairs(np.exp(2j * np.pi * np.arange(parts // 2 if convolves else parts) / parts))
    chirp, circle = np.exp(1j * np.pi * (np.arange(length) ** 2 % (2 * length)) / length), np.zeros(span, complex)
    circle[:length], circle[span - length + 1 :] = chirp, chirp[:0:-1]
    places = [int(f"{place:0{span.bit_length() - 1}b}"[::-1] or "0", 2) for place in range(span)] if convolves else []
    tables = [
        window,
        turns,
        pairs(chirp),
        pairs(np.fft.fft(circle)[places] / span),
        np.zeros((blocks * 2, 2 * span) if large else 1, np.float32),
    ]
    # Also a signal that is shorter than a window, folded more than once.
    signals = [signal(n, n) for n in (9001 if length > 1000 else 300, max(3, taps // 4))]
    for centered, mirrors, squares, last in ((1, 1, 1, 0), (1, 0, 0, 1)):
        wanted = [spectra(s, window, step, length, centered, mirrors) for s in signals]
        rows = [(place(2 + i), place(i), s.size, w.shape[0]) for i, (s, w) in enumerate(zip(signals, wanted))]
        outputs = [np.zeros(w.shape if last else w.shape[::-1], np.float32) for w in wanted]
        memory = signals + outputs + tables
        before = taps // 2 if centered else 0
        params = (*(place(4 + i) for i in range(5)), taps, step, before, mirrors, squares, last)
        for found, powers in zip(run(rows, memory, blocks, param=params)[2:4], wanted):
            powers = powers if squares else np.sqrt(powers)
            np.testing.assert_allclose(found if last else found.T, powers, rtol=1e-4, atol=3e-6 * powers.max())


# ---- resampling


def sinc_table(lobes):
    entries = 64 * lobes + 1
    place = np.arange(entries) - entries // 2
    table = np.sinc(place / 64) * 0.5 * (1 + np.cos(place * 2 / entries * np.pi))
    return np.concatenate([[0], table, np.zeros(5)]).astype(np.float32)


def level(values, target):
    """Elements as floats, those without a sign from 0 or, for a target with one, from -1."""
    top = 1.0 if values.dtype.kind == "f" else np.iinfo(values.dtype).max
    unsigned = [kind == "u" for kind in (values.dtype.kind, np.dtype(target).kind)]
    level = values / top
    return level * 2 - 1 if unsigned == [True, False] else (level + 1) / 2 if unsigned == [False, True] else level


@pytest.mark.parametrize("source,target", [("float", "float"), ("int16_t", "uint8_t"), ("uint8_t", "float")])
@pytest.mark.parametrize("channels", [1, 3])
def test_resampling(tmp_path, source, target, channels):
    lobes, table = 5, sinc_table(5)
    row, params = "to from elements frames step channels", "table scale center lobes entries"
    run = table_kernel(tmp_path, "audio_resample", row, params=params, FROM=source, TO=target)
    param = (place(0), 32.0, 32 * lobes + 1, lobes, table.size)
    for frames, made in ((700, 1000), (900, 400), (3, 50), (0, 4)):
        values = noise(frames, channels, dtype=TYPES[source]) if source != "float" else signal((frames, channels))
        step = frames / made if frames else 0.3
        out = np.zeros((made, channels), TYPES[target])
        found = run([(place(2), place(1), out.size, frames, step, channels)], [table, values, out], param=param)[2]
        # The table reaches over its lobes at half of its density.
        x = np.arange(frames) - (np.arange(made) * step)[:, None]
        weights = np.where(np.abs(x) <= lobes, np.interp(x * 32 + 32 * lobes + 1, np.arange(table.size), table), 0)
        expected = weights @ level(values, TYPES[target])
        top = 1 if target == "float" else np.iinfo(TYPES[target]).max
        difference = np.abs(found - (expected if top == 1 else np.clip(np.rint(expected * top), 0, top)))
        assert difference.max(initial=0) <= (2e-3 if top == 1 else 2)


# ---- silence


@pytest.mark.parametrize("source,total", [("int16_t", "int64_t"), ("float", "double"), ("uint64_t", "double")])
def test_regions(tmp_path, source, total):
    def built(entry):
        return table_kernel(
            tmp_path,
            "nonsilent",
            "from means begin length positions window",
            entry=entry,
            params="ratio reference",
            FROM=source,
            SUM=total,
        )

    values = [np.abs(signal(n, n) * 50) for n in (3000, 300, 7, 20)] + [np.zeros(600), np.zeros(0)]
    values[0][:900], values[0][2500:] = 0, 1
    values = [v.astype(TYPES[source]) for v in values]
    lengths = [min(16, v.size) for v in values]
    means = [
        np.convolve(v.astype(float) ** 2, np.ones(n), "valid") / n if n else np.zeros(0)
        for v, n in zip(values, lengths)
    ]
    count, rows = len(values), []
    for i, (window, mean) in enumerate(zip(lengths, means)):
        rows.append(
            (place(i), place(count + i), place(2 * count, 8 * i), place(2 * count, 8 * i + 4), mean.size, window)
        )
    memory = values + [np.zeros(mean.size, np.float32) for mean in means] + [np.full((count, 2), -7, np.int32)]
    memory = built("mean_squares")(rows, memory, param=(0, 0))
    for found, mean in zip(memory[count:], means):
        np.testing.assert_allclose(found, mean, rtol=1e-5, atol=1e-5 * mean.max(initial=0))
    for ratio, reference in ((0.3, -1.0), (0.5, 1000.0), (1.0, 1e30)):
        regions = built("nonsilent")(
            rows, memory, blocks=1, threads=layout("nonsilent").THREADS, param=(ratio, reference)
        )[-1]
        for region, mean, window in zip(regions, memory[count:], lengths):
            loud = np.flatnonzero(
                mean >= np.float32(ratio) * (mean.max(initial=0) if reference < 0 else np.float32(reference))
            )
            assert tuple(region) == ((loud[0], loud[-1] - loud[0] + window) if loud.size else (0, 0))
