from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((5, 7, 3), (4, 6, 3), (9, 8, 3))}
PLANES = {"X": noise((5, 7), (4, 6), (9, 8))}
LINES = {"X": [np.arange(n, dtype=np.int32) for n in (10, 14, 59)]}


def ints(*values, dtype=np.int32):
    return [np.array(v, dtype) for v in values]


def floats(*values):
    return ints(*values, dtype=np.float32)


@case(inputs=IMAGES)
def x_stands_before_y():
    return fn.slice(source("X", layout="HWC"), start=(1, 2), shape=(3, 2))


@case(inputs=IMAGES)
def without_a_layout():
    return fn.slice(source("X", ndim=3), start=(1, 2), end=(3, 4))


@case(inputs={"X": noise((3, 5, 7), (3, 4, 6), (3, 3, 4))})
def planes():
    return fn.slice(source("X", layout="CHW"), rel_start=(0.1, 0.2), rel_end=(0.9, 0.8))


@case(inputs=PLANES)
def every_way_to_say_it():
    x = source("X", layout="HW")
    ends = [
        {"start": 1},
        {"rel_start": 0.3},
        {"end": 3},
        {"rel_end": 0.6},
        {"shape": 2},
        {"rel_shape": (0.5, 0.6)},
        {"start": (1, 2), "end": (3, 2)},
        {"start": 1, "rel_end": 0.9},
        {"start": 2, "shape": (1, 0)},
        {"start": 1, "rel_shape": 0.3},
        {"rel_start": 0.3, "end": 4},
        {"rel_start": 0.2, "rel_end": 0.7},
        {"rel_start": 0.1, "shape": 2},
        {"rel_start": (0.1, 0.2), "rel_shape": 0.6},
    ]
    return tuple(fn.slice(x, **end) for end in ends)


@case(inputs={"X": noise((4, 5, 6), (3, 3, 3), (7, 5, 6))})
def axes():
    x = source("X", layout="ABC")
    return (
        fn.slice(x, start=1, shape=2, axes=[-1]),
        fn.slice(x, start=(0, 1), shape=(2, 1), axes=[2, 0]),
        fn.slice(x, start=(0, 1), shape=(2, 1), axis_names="BA"),
        fn.slice(x, start=1, end=(3, 2, 2), axes=[]),
        fn.slice(x, start=1, end=3, axis_names=""),
    )


@case(inputs={"X": noise((2, 4, 5, 3), (1, 3, 3, 3))}, batch_size=2)
def four_dimensions_without_a_layout():
    return fn.slice(source("X", ndim=4), start=(0, 1), shape=(1, 2), axis_names="DW")


@case(
    inputs=PLANES
    | {"A": ints([0, 1], [1, 0], [-1, -2]), "S": ints([1, 2], [2, 1], [0, 3]), "N": ints([2, 3], [3, 2], [8, 4])}
)
def arguments_per_sample():
    x, axes = source("X", layout="HW"), source("A", types.INT32, 1)
    return (
        fn.slice(x, axes=axes, start=source("S", types.INT32, 1), shape=source("N", types.INT32, 1)),
        fn.slice(x, axes=axes, start=1, rel_end=0.9),
    )


@case(
    inputs=PLANES
    | {
        "S": floats([0.1, 0.2], [0.3, 0], [0.25, 0.5]),
        "N": floats([0.5, 0.25], [0.6, 1], [0.75, 0.5]),
        "B": ints(1, 2, 0),
    }
)
def relative_arguments_per_sample():
    x = source("X", layout="HW")
    start, size = source("S", types.FLOAT, 1), source("N", types.FLOAT, 1)
    return (
        fn.slice(x, rel_start=start, rel_shape=size),
        fn.slice(x, rel_start=start, rel_end=1.0),
        fn.slice(x, rel_start=start, shape=1),
        fn.slice(x, start=source("B", types.INT32, 0), rel_end=size, out_of_bounds_policy="trim_to_shape", axes=[0, 1]),
    )


@case(inputs=PLANES | {"S": floats([0.1, 0.2], [0.3, 0], [0.25, 0.5]), "N": floats([0.5, 0.25], [0.6, 1], [0.75, 0.5])})
def float_inputs_are_relative():
    return fn.slice(source("X", layout="HW"), source("S", types.FLOAT, 1), source("N", types.FLOAT, 1))


@case(inputs=PLANES | {"S": floats([1, 2.5], [0.4, 0.5], [3, 1]), "N": floats([0.5, 0.25], [0.6, 0.75], [0.5, 0.5])})
def float_inputs_may_be_absolute():
    x, start, size = source("X", layout="HW"), source("S", types.FLOAT, 1), source("N", types.FLOAT, 1)
    return (
        fn.slice(x, start, size, normalized_anchor=False, out_of_bounds_policy="pad"),
        fn.slice(x, start, size, normalized_anchor=False, normalized_shape=False),
        fn.slice(x, size, start, normalized_shape=False, out_of_bounds_policy="pad"),
    )


@case(inputs=PLANES | {"S": ints([1, 2], [0, 1], [3, 1]), "N": ints([2, 1], [3, 3], [1, 0])})
def integer_inputs_are_absolute():
    return fn.slice(source("X", layout="HW"), source("S", types.INT32, 1), source("N", types.INT32, 1), axis_names="HW")


@case(inputs=PLANES | {"S": ints([1], [0], [3], dtype=np.int64), "N": ints([2], [3], [1], dtype=np.int64)})
def long_inputs():
    return fn.slice(source("X", layout="HW"), source("S", types.INT64, 1), source("N", types.INT64, 1), axes=[-2])


@case(inputs=LINES | {"E": floats(0.65, 0.39285713, 0.7881356), "N": floats(0.25, 0.5, 0.050847456)})
def relative_ends_are_rounded_in_float():
    x, end, size = source("X", types.INT32, 1), source("E", types.FLOAT, 0), source("N", types.FLOAT, 0)
    pad = dict(axes=[0], out_of_bounds_policy="pad", fill_values=-1)
    return (
        fn.slice(x, rel_end=end, **pad),
        fn.slice(x, rel_start=end, **pad),
        fn.slice(x, rel_start=end, rel_shape=size, **pad),
        fn.slice(x, rel_start=end, shape=3, **pad),
        fn.slice(x, start=1, rel_shape=end, **pad),
    )


@case(inputs=LINES | {"S": floats([0.15], [0.70833331], [0.7881356]), "N": floats([0.25], [0.85810482], [0.050847456])})
def relative_inputs_are_rounded_in_double():
    x, start, size = source("X", types.INT32, 1), source("S", types.FLOAT, 1), source("N", types.FLOAT, 1)
    return fn.slice(x, start, size, axes=[0], out_of_bounds_policy="pad", fill_values=-1)


@case(inputs={"X": noise((3,), (5,), (1,), dtype=np.int16)})
def every_policy():
    x = source("X", types.INT16, 1)
    policies = ("trim_to_shape", "pad", "edge", "reflect", "reflect_101", "wrap")
    return tuple(
        fn.slice(x, start=start, shape=12, axes=[0], out_of_bounds_policy=policy)
        for start in (-5, 9, -20)
        for policy in policies
    )


@case(inputs={"X": noise((2, 2, 2), (1, 3, 2))}, batch_size=2)
def fill_values_per_channel():
    x, pad = source("X", layout="HWC"), dict(start=-1, out_of_bounds_policy="pad")
    return (
        fn.slice(x, end=3, fill_values=[7, 8], **pad),
        fn.slice(x, end=3, fill_values=[7, 8, 9, 10], axes=[2], **pad),
        fn.slice(x, end=2, axes=[2], **pad),
    )


@case(inputs={"X": noise((2, 2), (3, 2))}, batch_size=2)
def fill_values_of_rows():
    return fn.slice(source("X", layout="BC"), start=-1, end=3, axes=[0], fill_values=[7, 8], out_of_bounds_policy="pad")


@case(
    inputs={"X": [np.array([1.9, -3, 300], np.float32), np.array([0.5, np.nan, np.inf, 254.9], np.float32)]},
    batch_size=2,
)
def fractions_are_dropped():
    x = source("X", types.FLOAT, 1)
    return tuple(
        fn.slice(x, start=-2, shape=7, axes=[0], out_of_bounds_policy="reflect", dtype=dtype)
        for dtype in (types.UINT8, types.FLOAT16, types.FLOAT)
    )
