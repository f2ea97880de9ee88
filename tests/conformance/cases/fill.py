"""Operators that make tensors of one value."""

from record import case, fn, noise, np, source, types

TYPES = [types.UINT8, types.INT16, types.UINT64, types.FLOAT16, types.FLOAT, types.FLOAT64, types.BOOL]


@case(
    inputs={
        "S": [np.array(v, np.int32) for v in ((2, 3), (1, 4), (0, 5))],
        "V": [np.array(v, np.float32) for v in (1.5, -2, 7)],
    }
)
def full():
    s, v = source("S", types.INT32, 1), source("V", types.FLOAT, 0)
    return (
        fn.full(v, shape=[2, 3]),
        fn.full(v),
        fn.full(v, shape=s),
        fn.full(5, shape=[2]),
        fn.full(np.float32([[1], [2]]), shape=[3, 2, 4]),
        fn.full(np.float32([[3, 4]]), shape=[2]),
        fn.full(np.float32([3, 4])),
    )


@case(
    inputs={
        "S": [np.array(v, np.int32) for v in ((2, 3), (1, 4), (0, 5))],
        "N": [np.array(v, np.int32) for v in (2, 3, 4)],
    }
)
def zeros_and_ones():
    s, n = source("S", types.INT32, 1), source("N", types.INT32, 0)
    return (
        fn.zeros(shape=[2, 2]),
        fn.ones(),
        fn.ones(shape=s),
        fn.zeros(shape=n),
        fn.zeros(shape=[]),
        *(fn.ones(shape=3, dtype=t) for t in TYPES),
    )


@case(inputs={"X": noise((4, 6, 3), (2, 12, 3), (8, 4, 3)), "F": noise((2, 3), (1, 3), (4, 3), dtype=np.float32)})
def like():
    x, f = source("X", layout="HWC"), source("F", types.FLOAT, 2)
    return (
        fn.flip(fn.zeros_like(x)),
        fn.ones_like(f),
        fn.ones_like(x, dtype=types.FLOAT),
        fn.full_like(x, np.float32([3.5, -4, 500])),
        fn.full_like(f, 7),
        fn.full_like(x, np.float32(2.5)),
        fn.zeros_like(f, dtype=types.BOOL),
    )
