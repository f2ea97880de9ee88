from record import case, fn, np, source, types

TIES = [
    np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 254.5, 255.5, 300, -129, 70000, 1e12, -1e12], np.float32),
    np.array([0.49999997, -0.2], np.float32),
    np.array([], np.float32),
]
INTS = [np.array([-(2**31), 2**31 - 1, -1, 0, 1, 127, 128, 255, 256, 32768, 65536], np.int32)] * 3
TARGETS = [types.UINT8, types.INT8, types.UINT16, types.INT16, types.INT32, types.FLOAT16, types.BOOL]


@case(inputs={"X": TIES})
def from_float():
    x = source("X", types.FLOAT, 1)
    return tuple(fn.cast(x, dtype=t) for t in TARGETS)


@case(inputs={"X": INTS})
def from_int():
    x = source("X", types.INT32, 1)
    return tuple(fn.cast(x, dtype=t) for t in TARGETS + [types.FLOAT, types.UINT32, types.INT64])
