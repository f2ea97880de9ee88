from record import case, fn, np, source, types

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
    types.BOOL,
]
REALS = [1.5, 2.5, -0.5, 0.3, -0.49, float("nan"), float("inf"), 1e20, -1e20, 65519.0, 65520.0]
INTEGERS = [2**62, -5, 300, 65535, 2**31, 2**33, 16777217, 0]


@case()
def reals_of_every_type():
    return tuple(fn.constant(fdata=REALS, dtype=t) for t in TYPES)


@case()
def integers_of_every_type():
    return tuple(fn.constant(idata=INTEGERS, dtype=t) for t in TYPES)


@case()
def default_types():
    return (
        fn.constant(fdata=[1.5, 2.5]),
        fn.constant(idata=[2**40, -(2**40), 7]),
        fn.constant(idata=5),
        fn.constant(fdata=0.5),
    )


@case()
def shapes():
    return (
        fn.constant(idata=7, shape=[]),
        fn.constant(idata=7, shape=[2, 3]),
        fn.constant(idata=[1, 2, 3, 4], shape=[2, 2]),
        fn.constant(fdata=[0.5], shape=[3, 1]),
        fn.constant(idata=[], shape=[0, 3]),
        fn.constant(idata=[1], shape=[0, 3]),
        fn.constant(idata=[1, 2], shape=2),
        fn.constant(idata=list(range(6)), shape=[1, 2, 3, 1]),
    )


@case()
def from_numpy():
    return (
        types.Constant(np.arange(6).reshape(2, 3)),
        types.Constant(np.array([[0.5, 1e30]])),
        types.Constant(np.float32(2.5)),
        types.Constant(np.array([True, False])),
        types.Constant([1, 2, 3]),
        types.Constant(np.array([1, 2], np.uint16)),
    )


@case(inputs={"X": [np.zeros((2, 2, 3), np.uint8), np.ones((1, 2, 3), np.uint8), np.ones((4, 1, 3), np.uint8)]})
def one_for_each_sample():
    # A flip takes the layout that the constant gives the sum.
    x = source("X", ndim=3)
    image = fn.constant(idata=[10, 20, 30], shape=[1, 1, 3], dtype=types.UINT8, layout="HWC")
    return fn.constant(idata=[10, 20, 30], dtype=types.UINT8), x + image, fn.flip(image)
