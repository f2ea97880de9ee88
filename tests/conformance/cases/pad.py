from record import case, fn, noise, np, source, types

RAGGED = {"X": noise((2, 3), (3, 1), (1, 5))}


def ints(*values):
    return [np.array(v, np.int32) for v in values]


@case(inputs=RAGGED)
def to_the_largest_of_the_batch():
    x = source("X", ndim=2)
    return fn.pad(x), fn.pad(x, fill_value=7)


@case(inputs=RAGGED)
def axes():
    x = source("X", layout="HW")
    return (
        fn.pad(x, axes=[0]),
        fn.pad(x, axes=[-1], fill_value=9),
        fn.pad(x, axis_names="H"),
        fn.pad(x, axes=[]),
        fn.pad(x, axis_names=""),
    )


@case(inputs=RAGGED)
def shape():
    x = source("X", ndim=2)
    return tuple(fn.pad(x, shape=shape) for shape in ((4, -1), 4, (4,), (1, 1), (0, 2), (-2, 6))) + (
        fn.pad(x, shape=4, axes=[1]),
    )


@case(inputs=RAGGED)
def align():
    x = source("X", ndim=2)
    return (
        fn.pad(x, align=(2, 4)),
        fn.pad(x, align=4),
        fn.pad(x, align=(2, 4), shape=(1, 1)),
        fn.pad(x, align=(2, 4), shape=(1, -1)),
        fn.pad(x, axes=[1, 0], align=(2, 4)),
    )


@case(
    inputs=RAGGED
    | {
        "F": [np.float32(v) for v in (1.7, -1.5, 300)],
        "S": ints([4, 4], [-1, 5], [1, 1]),
        "A": ints([4, 2], [1, 5], [3, 3]),
    }
)
def arguments_per_sample():
    x, shape, align = source("X", ndim=2), source("S", types.INT32, 1), source("A", types.INT32, 1)
    return fn.pad(x, fill_value=source("F", types.FLOAT, 0), shape=shape, align=align), fn.pad(x, align=align)


@case(
    inputs=RAGGED
    | {
        "A": ints([0, 1], [1, 0], [-1, 0]),
        "S": ints([4, 5], [4, 5], [2, 6]),
        "B": ints([0], [], [1]),
        "T": ints(4, 5, 1),
    }
)
def axes_per_sample():
    x = source("X", ndim=2)
    return (
        fn.pad(x, axes=source("A", types.INT32, 1), shape=source("S", types.INT32, 1)),
        fn.pad(x, axes=source("B", types.INT32, 1)),
        fn.pad(x, shape=source("T", types.INT32, 0)),
    )


@case(inputs={"X": noise((2, 1, 3), (1, 2, 3), (3, 3, 1))})
def channels():
    x = source("X", layout="HWC")
    return fn.pad(x, axis_names="C", align=4), fn.pad(x, axis_names="WC", shape=(4, 2), fill_value=5)


@case(inputs={"X": [np.zeros((0, 2), np.float32), *noise((2, 1), dtype=np.float32)]}, batch_size=2)
def a_sample_without_elements():
    return fn.pad(source("X", types.FLOAT, 2), fill_value=0.5)


for name, dtype in (
    ("int8", types.INT8),
    ("uint16", types.UINT16),
    ("int16", types.INT16),
    ("uint32", types.UINT32),
    ("int32", types.INT32),
    ("uint64", types.UINT64),
    ("int64", types.INT64),
    ("float16", types.FLOAT16),
    ("float32", types.FLOAT),
    ("bool", types.BOOL),
):

    def fill_values(dtype=dtype):
        x = source("X", dtype, 1)
        return tuple(
            fn.pad(x, shape=2, fill_value=value) for value in (0.5, 2.5, -1.5, 300.7, float("nan"), 70000, 1e20)
        )

    fill_values.__name__ = f"fill_values_of_{name}"
    case(inputs={"X": [np.ones(1, name)]}, batch_size=1)(fill_values)
