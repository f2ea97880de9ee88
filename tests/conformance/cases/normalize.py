from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((3, 4, 3), (2, 3, 3), (1, 5, 3))}
TOL = 3e-6


def image():
    return source("X", layout="HWC")


@case(inputs=IMAGES, tol=TOL)
def along_every_set_of_axes():
    sets = ([0], [1], [2], [0, 1], [0, 2], [1, 2], [2, 1, 0])
    return tuple(fn.normalize(image(), axes=axes, epsilon=1.0) for axes in sets) + (
        fn.normalize(image()),
        fn.normalize(image(), axis_names="WH"),
        fn.normalize(image(), axis_names="C"),
    )


@case(inputs=IMAGES, tol=TOL)
def options():
    x = image()
    return (
        fn.normalize(x, shift=3.0, scale=0.5),
        fn.normalize(x, epsilon=100.0),
        fn.normalize(x, ddof=1),
        fn.normalize(x, ddof=-3),
        fn.normalize(x, axes=[2], ddof=3, shift=1.0),
        fn.normalize(x, axes=[2], ddof=4, epsilon=0.25, scale=0.01),
    )


@case(inputs=IMAGES, tol=TOL)
def given_numbers():
    x = image()
    return (
        fn.normalize(x, mean=128.0, stddev=60.0),
        fn.normalize(x, mean=100.0),
        fn.normalize(x, mean=100.0, axes=[0, 1]),
        fn.normalize(x, stddev=50.0, axes=[0, 1]),
        fn.normalize(x, stddev=50.0, epsilon=70.0),
        fn.normalize(x, mean=1.0, stddev=0.0, epsilon=4.0, scale=0.01),
    )


@case(inputs={"X": [np.array([[1, 2, 3]], np.float32)]})
def a_deviation_of_zero():
    return fn.normalize(source("X", types.FLOAT, 2), mean=2.0, stddev=0.0)


CHANNELS = {
    "M": [np.array(v, np.float32).reshape(1, 1, 3) for v in ([1, 2, 3], [120, 100, 80], [0, 0, 255])],
    "D": [np.array(v, np.float32).reshape(1, 1, 3) for v in ([10, 20, 30], [55, 0, 60], [70, 60, 50])],
}


# Results up to 40: one unit in the last place of a float32.
@case(inputs=IMAGES | CHANNELS, tol=4e-6)
def given_tensors():
    x, m, d = image(), source("M", types.FLOAT, 3), source("D", types.FLOAT, 3)
    return (
        fn.normalize(x, mean=m, stddev=d),
        fn.normalize(x, mean=m),
        fn.normalize(x, stddev=d),
        fn.normalize(x, mean=m, stddev=50.0),
        fn.normalize(x, mean=100.0, stddev=d, epsilon=9.0),
        fn.normalize(x, mean=m, axes=[0, 1], ddof=1),
        fn.normalize(x, stddev=d, axis_names="HW"),
    )


@case(
    inputs=IMAGES
    | {
        "P": noise((3, 4, 3), (2, 3, 3), (1, 5, 3), dtype=np.float32),
        "R": noise((1, 4, 1), (1, 3, 1), (1, 5, 1), dtype=np.float32),
    },
    tol=5e-5,
)
def tensors_of_other_shapes():
    x, p, r = image(), source("P", types.FLOAT, 3), source("R", types.FLOAT, 3)
    return (
        fn.normalize(x, mean=p, stddev=64.0),
        fn.normalize(x, mean=r),
        fn.normalize(x, mean=r, axes=[0, 2], stddev=16.0),
    )


@case(inputs=IMAGES, tol=TOL)
def over_the_batch():
    x = image()
    return (
        fn.normalize(x, batch=True),
        fn.normalize(x, batch=True, axes=[0, 1]),
        fn.normalize(x, batch=True, axis_names="HW", ddof=1, epsilon=2.0),
        fn.normalize(x, batch=True, mean=100.0, axes=[0, 1]),
        fn.normalize(x, batch=True, stddev=32.0, axes=[1, 0]),
        fn.normalize(x, batch=True, mean=100.0, stddev=32.0),
    )


@case(inputs={"X": noise((7, 2, 5), (7, 3, 5), (7, 1, 5), dtype=np.int16)}, tol=TOL)
def over_the_batch_along_the_middle():
    return fn.normalize(source("X", types.INT16, 3), batch=True, axes=[1])


@case(
    inputs=IMAGES
    | {
        f"X{t.__name__}": noise((3, 5), (2, 5), (1, 5), dtype=t)
        for t in (np.int8, np.int16, np.uint16, np.int32, np.uint32, np.float32)
    },
    tol=TOL,
)
def types_of_inputs():
    known = dict(
        int8=types.INT8,
        int16=types.INT16,
        uint16=types.UINT16,
        int32=types.INT32,
        uint32=types.UINT32,
        float32=types.FLOAT,
    )
    return tuple(fn.normalize(source(f"X{t}", d, 2)) for t, d in known.items()) + (fn.normalize(image()),)


@case(inputs=IMAGES)
def types_of_outputs():
    return tuple(
        fn.normalize(image(), dtype=t, scale=100.0, shift=s)
        for t, s in (
            (types.UINT8, 128.0),
            (types.INT8, 0.0),
            (types.UINT16, 200.0),
            (types.INT16, 0.0),
            (types.UINT32, 300.0),
            (types.INT32, -7.0),
        )
    )


@case(
    inputs={
        "X": [np.full((3, 4), 7, np.float32), np.array([[1, 2, 3, np.nan]], np.float32), np.zeros((0, 4), np.float32)]
    },
    tol=TOL,
)
def nothing_differs():
    x = source("X", types.FLOAT, 2)
    return fn.normalize(x, shift=5.0), fn.normalize(x, axes=[0]), fn.normalize(x, axes=[1], epsilon=1.0)


@case(inputs={"X": [np.array([[1], [2], [5]], np.uint8) + np.arange(4500, dtype=np.uint8) % 7]}, tol=TOL)
def longer_than_a_chunk():
    x = source("X", ndim=2)
    return fn.normalize(x), fn.normalize(x, axes=[0]), fn.normalize(x, axes=[1])
