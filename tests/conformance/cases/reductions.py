"""Reductions: every kind, type and set of dimensions."""

from record import case, fn, noise, np, source, types

R = fn.reductions
INTEGERS = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32]
NAMES = {
    np.uint8: types.UINT8,
    np.int8: types.INT8,
    np.uint16: types.UINT16,
    np.int16: types.INT16,
    np.uint32: types.UINT32,
    np.int32: types.INT32,
    np.uint64: types.UINT64,
    np.int64: types.INT64,
}
OF_TYPES = {d.__name__: noise((4, 6, 3), (2, 12, 3), (8, 4, 3), dtype=d, seed=i) for i, d in enumerate(NAMES)}
FLOATS = {"X": noise((4, 6, 3), (2, 120, 3), (80, 4, 3), dtype=np.float32)}


@case(inputs=OF_TYPES)
def sums_and_extremes_of_integers():
    results = []
    for dtype, dali in NAMES.items():
        x = source(dtype.__name__, dali, layout="HWC")
        results += [
            R.sum(x),
            R.sum(x, axes=[0, 1]),
            R.min(x, axes=[-1]),
            R.max(x, axis_names="HC", keep_dims=True),
            R.min(x),
        ]
    return tuple(results)


@case(inputs=OF_TYPES)
def sums_in_the_type_of_the_input_on_the_host():
    return tuple(R.sum(source(dtype.__name__, dali, layout="HWC"), axes=1, dtype=dali) for dtype, dali in NAMES.items())


@case(inputs={k: v for k, v in OF_TYPES.items() if "64" not in k}, tol=1e6)
def means_of_integers():
    results = []
    for dtype in INTEGERS:
        x = source(dtype.__name__, NAMES[dtype], layout="HWC")
        scale = float(np.iinfo(dtype).max)
        results += [R.mean(x) / scale * 1e9, R.mean(x, axes=[0, 1]) / scale * 1e9, R.rms(x, axes=2) / scale * 1e9]
    return tuple(results)


@case(inputs={"uint8": OF_TYPES["uint8"], "int16": OF_TYPES["int16"]})
def means_in_the_type_of_the_input_on_the_host():
    x, y = source("uint8", types.UINT8, 3), source("int16", types.INT16, 3)
    return (
        R.mean(x, axes=[0, 1], dtype=types.UINT8),
        R.rms(x, dtype=types.UINT8),
        R.rms(x, axes=2, dtype=types.UINT8),
        R.mean(y, axes=[0, 2], dtype=types.INT16),
    )


@case(inputs=FLOATS, tol=0.02)
def floats():
    x = source("X", types.FLOAT, layout="HWC")
    return (
        R.sum(x),
        R.sum(x, axes=0),
        R.sum(x, axes=[1, 2], keep_dims=True),
        R.mean_square(x, axes=[0, 2]),
        R.sum(x, axes=[]),
    )


@case(inputs=FLOATS, tol=1e-4)
def means_and_deviations():
    x = source("X", types.FLOAT, layout="HWC")
    mean, by_channel, rows = R.mean(x), R.mean(x, axes=[0, 1]), R.mean(x, axis_names="W", keep_dims=True)
    return (
        mean,
        by_channel,
        rows,
        R.rms(x, axes=1),
        R.std_dev(x, mean),
        R.std_dev(x, by_channel, axes=[0, 1], keep_dims=True),
        R.std_dev(x, rows, axes=[1], ddof=1),
        R.min(x, axes=0),
        R.max(x),
    )


@case(inputs=FLOATS, tol=1e-2)
def variances():
    x = source("X", types.FLOAT, layout="HWC")
    return (
        R.variance(x, R.mean(x)),
        R.variance(x, R.mean(x, axes=[0]), axes=[0], ddof=1),
        R.variance(fn.cast(x, dtype=types.INT16), R.mean(x, axes=[1, 2]), axes=[1, 2]),
    )


@case(inputs={"X": noise((40, 60, 3), (30, 80, 3), (96, 25, 3))}, tol=1e-4)
def many_elements():
    """Of one result, so that a device works on them in several parts."""
    x = fn.stack(*[source("X", layout="HWC")] * 12)
    wide = fn.reshape(x, shape=[-1, 36])
    mean = R.mean(x, axes=[0, 1, 2])
    return (
        R.sum(x),
        R.sum(x, axes=[0, 1, 2]),
        R.sum(x, axes=[0]),
        R.sum(wide, axes=[0]),
        R.min(x + 0),
        R.max(x, axes=[1, 2, 3]),
        mean,
        R.mean(wide, axes=[0]),
        R.rms(x),
        R.std_dev(x, mean, axes=[0, 1, 2], keep_dims=True),
    )


@case(inputs=FLOATS)
def variances_of_no_dimension():
    x = source("X", types.FLOAT, layout="HWC")
    return R.variance(x, x * 0, axes=[]), R.std_dev(x, x * 0, axes=[], ddof=3)


@case(
    inputs={
        "X": [np.array(v, np.float32) for v in ([1, np.nan, 3], [np.nan, np.inf, -np.inf], [np.inf, np.nan, np.inf])],
        "E": [np.zeros(s, np.float32) for s in ((0, 3), (2, 0), (0, 0))],
        "S": [np.array(v, np.float32) for v in (1, 2, 3)],
    }
)
def odd_values():
    x, e, s = source("X", types.FLOAT, 1), source("E", types.FLOAT, 2), source("S", types.FLOAT, 0)
    return (
        R.min(x),
        R.max(x),
        R.sum(e),
        R.mean(e),
        R.min(e, axes=0),
        R.max(e, axes=1, keep_dims=True),
        R.sum(s),
        R.mean(s),
        R.min(fn.cast(e, dtype=types.UINT8)),
    )


@case(inputs={"X": noise((2, 3, 4), (4, 1, 2), (3, 3, 3))})
def no_dimension_by_name():
    x = source("X", layout="HWC")
    return (
        fn.reductions.sum(x, axis_names=""),
        fn.reductions.max(x, axis_names="", keep_dims=True),
        fn.reductions.sum(x, axes=[]),
    )
