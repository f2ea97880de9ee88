"""The kernels that fold samples along dimensions, on the host (emulator.h), against numpy: every kind, ragged batches,
one chunk and many, samples without elements, the ends of integer types."""

import numpy as np
import pytest
from emulator import built, needs_compiler, source
from layouts import layout

THREADS = 64
ROW, PARAMS = layout("reduce").Row, layout("reduce").Params
NAMES = {
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "float32": "float",
    "float64": "double",
    "bool": "bool",
}
# Shapes of a batch, and which dimensions are folded.
BATCHES = [
    ([(40, 30, 3), (7, 200, 3), (1, 1, 3)], (0, 1)),
    ([(40, 30, 3), (7, 90, 1)], (2,)),
    ([(50, 60), (0, 60), (3, 40)], (0,)),
    ([(3, 1), (70, 5)], ()),
    ([(5000,), (1,), (0,), (300,)], (0,)),
    ([(2, 3, 4, 1, 5, 2), (3, 1, 2, 2, 7, 1)], (1, 3, 4)),
    ([()], ()),
]

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    programs = {}

    def build(fold, finish, given, result, accumulator):
        types = [NAMES[np.dtype(dtype).name] for dtype in (given, result, accumulator)]
        key = (fold, finish, *types)
        if key not in programs:
            definitions = dict(zip(["FOLD", "FINISH", "FROM", "TO", "ACC"], key), THREADS=THREADS)
            folder = tmp_path_factory.mktemp("reduce")
            programs[key] = built(folder, "reduce", ["common.cuh"], source("reduce.cu"), definitions.items())
        return programs[key]

    return build


def row(shape, folded, lanes, chunks):
    """As the host describes a sample."""
    made, axes, stride, result = np.zeros(1, ROW), [], 1, 1
    for d in reversed(range(len(shape))):
        if shape[d] == 1 or 0 in shape:
            continue
        place = 0 if d in folded else result
        if axes and (axes[-1][2] == 0) == (place == 0):
            axes[-1] = (axes[-1][0] * shape[d], *axes[-1][1:])
        else:
            axes.append((shape[d], stride, place))
        stride, result = stride * shape[d], result * (1 if d in folded else shape[d])
    for a, axis in enumerate(axes):
        for name, value in zip(("extent", "stride", "result"), axis):
            made["axis"][name][0, a] = value
    made["results"] = np.prod([shape[d] for d in range(len(shape)) if d not in folded], dtype=int)
    made["each"] = np.prod([shape[d] for d in folded], dtype=int)
    made["mean_step"], made["axes"] = 1, len(axes)
    made["chunks"], made["lanes"] = chunks, lanes
    strides = [stride for _, stride, place in axes if place == 0]
    made["step"] = strides[0] if len(strides) == 1 else 0
    return made


def folded(program, samples, axes, result, means=None, lanes=8, chunks=1, blocks=2, together=False, **params):
    values = np.zeros(1, PARAMS)
    for name, value in params.items():
        values[name] = value
    arrays = [np.array([len(samples), blocks, together], np.uint64).tobytes(), values.tobytes()]
    for i, sample in enumerate(samples):
        own = np.zeros(0, np.float32) if means is None else np.ascontiguousarray(means[i], np.float32)
        arrays += [row(sample.shape, axes, lanes, chunks).tobytes(), sample.tobytes(), own.tobytes()]
    made, found, at = np.frombuffer(program(arrays), result), [], 0
    for sample in samples[: 1 if together else None]:
        shape = tuple(n for d, n in enumerate(sample.shape) if d not in axes)
        size = np.prod(shape, dtype=int)
        found.append(made[at : at + size].reshape(shape))
        at += size
    assert at == made.size
    return found


def noise(shapes, dtype, seed=1):
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.floating):
        return [rng.normal(3, 50, shape).astype(dtype) for shape in shapes]
    info = np.iinfo(dtype)
    return [rng.integers(info.min, info.max, shape, dtype, endpoint=True) for shape in shapes]


@pytest.mark.parametrize("shapes,axes", BATCHES)
@pytest.mark.parametrize("lanes,chunks", [(1, 1), (8, 3), (64, 1), (64, 5)])
def test_sums(compiled, shapes, axes, lanes, chunks):
    samples = noise(shapes, np.uint8)
    found = folded(
        compiled("SUM", "PLAIN", np.uint8, np.uint64, np.uint64), samples, axes, np.uint64, lanes=lanes, chunks=chunks
    )
    for sums, sample in zip(found, samples):
        np.testing.assert_array_equal(sums, sample.sum(axes, np.uint64))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64, np.int64, np.float32])
def test_extremes(compiled, dtype):
    for shapes, axes in BATCHES[:3]:
        samples = noise(shapes, dtype)
        samples[1][..., :1] = np.finfo(dtype).min if dtype == np.float32 else np.iinfo(dtype).min
        ends = np.finfo(dtype) if dtype == np.float32 else np.iinfo(dtype)
        for fold, extreme, nothing in [("LEAST", np.min, ends.max), ("MOST", np.max, ends.min)]:
            found = folded(compiled(fold, "PLAIN", dtype, dtype, dtype), samples, axes, dtype, chunks=2)
            for result, sample in zip(found, samples):
                np.testing.assert_array_equal(result, extreme(sample, axes, initial=nothing))


def test_what_is_no_number_is_no_extreme(compiled):
    nan, inf, end = np.nan, np.inf, np.finfo(np.float32).max
    samples = [np.array(values, np.float32) for values in ([1, nan, 3], [nan, inf, -inf], [inf, nan, inf], [nan])]
    least = folded(compiled("LEAST", "PLAIN", np.float32, np.float32, np.float32), samples, (0,), np.float32)
    most = folded(compiled("MOST", "PLAIN", np.float32, np.float32, np.float32), samples, (0,), np.float32)
    np.testing.assert_array_equal(least, np.float32([1, -inf, end, end]))
    np.testing.assert_array_equal(most, np.float32([3, inf, inf, -end]))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
@pytest.mark.parametrize("shapes,axes", BATCHES)
def test_means(compiled, dtype, shapes, axes):
    accumulator = {np.uint8: np.uint64, np.int16: np.int64, np.float32: np.float64}[dtype]
    samples = noise(shapes, dtype)
    found = folded(compiled("SUM", "MEAN", dtype, np.float32, accumulator), samples, axes, np.float32, chunks=3)
    with np.errstate(invalid="ignore"):
        for means, sample in zip(found, samples):
            count = np.float64(np.prod([sample.shape[a] for a in axes], dtype=int))
            np.testing.assert_allclose(means, sample.sum(axes, np.float64) / count, rtol=1e-6, atol=1e-30)


def test_integers_are_rounded_and_saturate(compiled):
    samples = [np.array(values, np.uint8) for values in ([0, 1], [1, 2], [255, 255, 254], [200, 100])]
    of = lambda fold, finish, given=samples: np.ravel(
        folded(
            compiled(fold, finish, np.uint8, np.uint8, np.int64 if fold == "SQUARES" else np.uint64),
            given,
            (0,),
            np.uint8,
        )
    )
    np.testing.assert_array_equal(of("SUM", "MEAN"), [0, 2, 255, 150])
    np.testing.assert_array_equal(of("SUM", "PLAIN"), [1, 3, 255, 255])
    np.testing.assert_array_equal(of("SQUARES", "MEAN"), [0, 2, 255, 255])
    np.testing.assert_array_equal(of("SQUARES", "ROOT"), [1, 2, 255, 158])
    assert of("SUM", "MEAN", [np.zeros(0, np.uint8)]) == 0
    signed = [np.array([-128, -128], np.int8)]
    assert folded(compiled("SUM", "PLAIN", np.int8, np.int8, np.int64), signed, (0,), np.int8)[0] == -128


@pytest.mark.parametrize(
    "dtype,result,accumulator",
    [
        (np.uint8, np.float32, np.int64),
        (np.uint16, np.float32, np.int64),
        (np.int16, np.float32, np.int64),
        (np.uint32, np.float32, np.float64),
        (np.int32, np.int32, np.int64),
        (np.int64, np.float32, np.float64),
        (np.uint64, np.uint64, np.uint64),
        (np.float32, np.float32, np.float64),
    ],
)
def test_squares(compiled, dtype, result, accumulator):
    (sample,) = noise([(6, 5)], dtype)
    square = sample.astype(np.float64) ** 2
    if np.dtype(dtype).itemsize == 8:
        # A product keeps its low bits.
        with np.errstate(over="ignore"):
            square = (sample * sample).astype(np.float64)
    elif dtype == np.uint16:
        square = (sample.astype(np.uint32) ** 2).astype(np.int32).astype(np.float64)
    if accumulator != np.float64 and result != np.float32:
        # And so does their sum.
        total = np.add.reduce(sample.astype(accumulator) ** 2, 0)
        square = np.broadcast_to(total.astype(np.float64) / 6, (6, 5))
    (found,) = folded(compiled("SQUARES", "MEAN", dtype, result, accumulator), [sample], (0,), result)
    expected = square.mean(0)
    if result != np.float32:
        expected = np.clip(expected, np.iinfo(result).min, np.iinfo(result).max)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1e-6)


def test_variances_of_no_dimension(compiled):
    (sample,) = noise([(3, 4)], np.float32)
    program = compiled("DISTANCES", "MEAN", np.float32, np.float32, np.float64)
    (found,) = folded(program, [sample], (), np.float32, [np.zeros((3, 4))], ddof=1)
    np.testing.assert_array_equal(found, np.zeros((3, 4)))


@pytest.mark.parametrize("ddof", [0, 1, 3])
@pytest.mark.parametrize("finish", ["MEAN", "ROOT", "SCALE"])
def test_distances_from_means(compiled, finish, ddof):
    shapes, axes = [(9, 4, 3), (70, 2, 3), (1, 1, 3), (3, 1, 3)], (0, 1)
    samples = noise(shapes, np.int16)
    means = [sample.mean(axes, dtype=np.float64) + 1 for sample in samples]
    program = compiled("DISTANCES", finish, np.int16, np.float32, np.float64)
    found = folded(program, samples, axes, np.float32, means, lanes=4, chunks=3, ddof=ddof, scale=2, epsilon=0.5)
    for result, sample, mean in zip(found, samples, means):
        degrees = sample.size / 3 - ddof
        variance = (
            ((sample - mean.astype(np.float32).astype(np.float64)) ** 2).sum(axes) / degrees
            if degrees > 0
            else np.zeros(3)
        )
        expected = {"MEAN": variance, "ROOT": np.sqrt(variance), "SCALE": 2 / np.sqrt(variance + 0.5)}[finish]
        np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_samples_with_common_results(compiled):
    samples = noise([(40, 30, 3), (7, 20, 3), (1, 1, 3)], np.float32)
    elements = np.concatenate([sample.reshape(-1, 3) for sample in samples]).astype(np.float64)
    (found,) = folded(
        compiled("SUM", "MEAN", np.float32, np.float32, np.float64),
        samples,
        (0, 1),
        np.float32,
        chunks=4,
        together=True,
    )
    np.testing.assert_allclose(found, elements.mean(0), rtol=1e-6)


def test_truth_values(compiled):
    sample = np.array([[1, 0, 7, 255], [0, 0, 1, 0]], np.uint8)
    (found,) = folded(compiled("SUM", "MEAN", bool, np.float32, np.uint64), [sample], (1,), np.float32)
    np.testing.assert_array_equal(found, [0.75, 0.25])
