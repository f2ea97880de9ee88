"""Class numbers and look-up tables; erased regions."""

from record import case, fn, noise, np, source, types

TYPES = [
    types.UINT8,
    types.UINT16,
    types.UINT32,
    types.UINT64,
    types.INT8,
    types.INT16,
    types.INT32,
    types.INT64,
    types.FLOAT16,
    types.FLOAT,
]


@case(
    inputs={
        "S": [np.int32(v) for v in (1, 5, -1)],
        "X": noise((4, 2), (1, 3), (1, 1)),
        "F": [np.array(v, np.float32) for v in ([1.7], [0.2], [2.5])],
    }
)
def one_hot():
    s, x, f = source("S", types.INT32, 0), source("X", layout="AB"), source("F", types.FLOAT, 1)
    return (
        fn.one_hot(s, num_classes=3),
        fn.one_hot(x % 4, num_classes=4),
        fn.one_hot(x % 4, num_classes=3, axis=0),
        fn.one_hot(x % 4, num_classes=3, axis=1, axis_name="O"),
        fn.one_hot(f, num_classes=3, on_value=2.7, off_value=-1.2, dtype=types.INT16),
        fn.one_hot(f, num_classes=3, axis=-1),
        fn.one_hot(f, num_classes=3, axis=0),
        fn.one_hot(s, num_classes=2, axis=0, on_value=2.5, dtype=types.UINT8),
    )


@case(inputs={"S": [np.full((1, 1), v, np.int64) for v in (1, 5, 0)]})
def one_hot_of_single_numbers():
    s = source("S", types.INT64, 2)
    return fn.one_hot(s, num_classes=3), fn.one_hot(s, num_classes=3, axis=-1), fn.one_hot(s)


@case(
    inputs={
        "X": noise((4, 6), (2, 12), (8, 4)),
        "I": [np.array(v, np.int64) for v in ([1, -1], [65535, 65536], [2**40, 2])],
    }
)
def lookup_table():
    x, i = source("X", layout="HW"), source("I", types.INT64, 1)
    keys, values = [1, 2, 200, 1, 255, 65535], [0.5, 300, 7.5, -7.5, 1e10, 2.5]
    return (
        fn.lookup_table(x, keys=keys, values=values),
        fn.lookup_table(i, keys=keys, values=values, default_value=9.5),
        fn.lookup_table(x),
        fn.lookup_table(x, default_value=3.0),
    ) + tuple(fn.lookup_table(x, keys=keys, values=values, default_value=-3.5, dtype=t) for t in TYPES)


@case(
    inputs={
        "X": noise((4, 6, 3), (2, 12, 3), (8, 4, 3)),
        "A": [np.array(v, np.float32) for v in ((0, 1), (-1, 2.5), (3, 1, 0, 0))],
        "S": [np.array(v, np.float32) for v in ((1, 1), (2, 2), (1.5, 1, 2, 3))],
        "V": [np.array(v, np.float32) for v in ([7, 8, 9.9], [1, 2, 3], [-1, 300, 9.9])],
    }
)
def erase():
    x, a, s = source("X", layout="HWC"), source("A", types.FLOAT, 1), source("S", types.FLOAT, 1)
    return (
        fn.erase(x, anchor=[0, 1], shape=[1, 2], fill_value=9.7),
        fn.erase(x, anchor=a, shape=s, fill_value=source("V", types.FLOAT, 1)),
        fn.erase(x, anchor=[1, 0], shape=[2, 1], axes=[1, 0], fill_value=[-1, 2, 300]),
        fn.erase(x, anchor=[0.2, 0.3], shape=[0.5, 0.5], normalized=True),
        fn.erase(x, anchor=[0.2, 0.3], shape=[1, 1], normalized_anchor=True, axis_names="WH", fill_value=5),
        fn.erase(x, anchor=[1.6, 2], shape=[1.5, 0.3], normalized_shape=False, centered_anchor=True, fill_value=5),
        fn.erase(x, anchor=[1], shape=[1], axis_names="C", fill_value=[1, 2, 3]),
        fn.erase(x, shape=[2, 2], fill_value=5),
        fn.erase(x, fill_value=3),
    )


@case(
    inputs={
        "X": noise((3, 4, 6, 2), (1, 2, 12, 2), (2, 8, 4, 2), dtype=np.float32),
        "Y": noise((3, 4), (5, 2), (2, 8), dtype=np.int16),
    }
)
def erase_of_other_layouts():
    x, y = source("X", types.FLOAT, layout="FHWC"), source("Y", types.INT16, 2)
    return (
        fn.erase(x, anchor=[0, 1, 1], shape=[1, 2, 9], fill_value=2.5),
        fn.erase(x, anchor=[1, 1], shape=[2, 9], axis_names="HW", fill_value=[2.5, -1]),
        fn.erase(y, anchor=[1, 0], shape=[1, 1], axes=[0, 1], fill_value=70000),
    )
