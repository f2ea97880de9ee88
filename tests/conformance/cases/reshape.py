from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((4, 6, 3), (2, 12, 3), (8, 1, 9))}


@case(inputs=IMAGES)
def shape():
    x = source("X", ndim=3)
    return (
        fn.reshape(x, shape=[-1]),
        fn.reshape(x, shape=[8, -1]),
        fn.reshape(x, shape=[3, 4, 6]),
        fn.reshape(x, shape=[2, 2, -7, 2, 3]),
        fn.reshape(x, shape=72),
    )


@case(inputs=IMAGES)
def layouts():
    # A flip works on the layout that is left.
    x = source("X", layout="HWC")
    results = [
        fn.reshape(x, shape=[6, 4, 3]),
        fn.reshape(x, shape=[1, 4, 6, 3], layout="FHWC"),
        fn.reshape(x, layout="CHW"),
        fn.reshape(x, shape=[3, 8, 3], layout="CHW"),
    ]
    return tuple(fn.flip(r) for r in results) + (fn.flip(fn.reshape(fn.reshape(x, layout=""), layout="HWC")),)


@case(inputs=IMAGES | {"S": [np.array(v, np.int32) for v in ((-1, 9), (4, 18), (72, 1))]})
def shape_per_sample():
    x = source("X", ndim=3)
    return (
        fn.reshape(x, shape=source("S", types.INT32, 1)),
        fn.reshape(x, source("S", types.INT32, 1)),
        fn.reshape(x, shape=fn.cast(source("S", types.INT32, 1), dtype=types.INT8), layout="HW"),
    )


@case(inputs={"X": noise((4, 6, 3), (2, 12, 3), (8, 2, 9))})
def relative_shape():
    x = source("X", layout="HWC")
    return (
        fn.reshape(x, rel_shape=[0.5, 2, 1]),
        fn.reshape(x, rel_shape=[0.5, -1]),
        fn.reshape(x, rel_shape=[1, 0.5, 1, -1]),
        fn.reshape(x, rel_shape=[-1, 0.5, 2, 1], src_dims=[-1, 1, 0, 2]),
        fn.reshape(x, rel_shape=[2.4, -1], src_dims=[-1, 0]),
        fn.flip(fn.reshape(x, rel_shape=[1, -3, 1])),
    )


@case(
    inputs={
        "X": noise((4, 6, 3), (2, 12, 3), (8, 2, 9)),
        "R": [np.array(v, np.float32) for v in ((0.5, -1), (2, 0.5), (-1, 1))],
    }
)
def relative_shape_per_sample():
    x, r = source("X", ndim=3), source("R", types.FLOAT, 1)
    return fn.reshape(fn.reshape(x, rel_shape=[1, -1]), rel_shape=r), fn.reshape(
        x, rel_shape=fn.constant(fdata=[3.0, -1.0]), src_dims=[-1, 0]
    )


@case(inputs={"X": noise((4, 6, 1), (2, 12, 1), (8, 1, 1))})
def source_dims():
    x = source("X")  # with a declared rank DALI expects the output to keep it
    return (
        fn.reshape(x, src_dims=[-1, 1, 0]),
        fn.reshape(x, src_dims=[0, 1]),
        fn.reshape(x, src_dims=[0, -1, -1, 1]),
        fn.flip(fn.reshape(fn.reshape(x, layout="HWC"), src_dims=[2, 0, 1])),
    )


@case(
    inputs={
        "X": noise((4, 6, 3), (2, 12, 3), (8, 1, 9)),
        "E": [np.zeros(s, np.float32) for s in ((0, 3), (2, 0), (2, 3))],
        "S": [np.array(v, np.float64) for v in (1, 2, 3)],
    }
)
def scalars_and_nothing():
    s = source("S", types.FLOAT64, 0)
    return (
        fn.reshape(s, shape=[1, 1]),
        fn.reshape(fn.reshape(s, shape=[1]), shape=fn.constant(idata=[], shape=[0])),
        fn.reshape(source("E", types.FLOAT, 2), shape=[-1]),
        fn.reshape(source("X", ndim=3), shape=[3, -1]) + 1,
    )
