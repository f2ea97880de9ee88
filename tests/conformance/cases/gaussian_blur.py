from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((20, 33, 3), (31, 17, 3), (2, 3, 3))}
TYPES = {
    np.uint8: types.UINT8,
    np.uint16: types.UINT16,
    np.uint32: types.UINT32,
    np.uint64: types.UINT64,
    np.int8: types.INT8,
    np.int16: types.INT16,
    np.int32: types.INT32,
    np.int64: types.INT64,
    np.float16: types.FLOAT16,
    np.float32: types.FLOAT,
}


def x(dtype=types.UINT8, **options):
    return source("X", dtype, **({"layout": "HWC"} | options))


@case(inputs=IMAGES)
def windows():
    b = fn.gaussian_blur
    return (
        b(x(), sigma=1.0),
        b(x(), window_size=5),
        b(x(), sigma=2.5, window_size=9),
        b(x(), sigma=[0.5, 3.0]),
        b(x(), window_size=[3, 11]),
        b(x(), sigma=[1.0, 0.0], window_size=[0, 7]),
        b(x(), window_size=1),
        b(x(), sigma=0.1),
    )


@case(
    inputs=IMAGES
    | {
        "S": [np.array(v, np.float32) for v in (0.7, 2, 4)],
        "W": [np.array(v, np.int32) for v in ((3, 5), (7, 1), (9, 9))],
    }
)
def per_sample():
    return fn.gaussian_blur(x(), sigma=source("S", types.FLOAT, 0)), fn.gaussian_blur(
        x(), window_size=source("W", types.INT32, 1)
    )


for dtype, of in TYPES.items():

    def declare(dtype=dtype, of=of):
        def function():
            return fn.gaussian_blur(x(of), sigma=1.3), fn.gaussian_blur(x(of), window_size=7, dtype=types.FLOAT)

        function.__name__ = f"from_{dtype.__name__}"
        # DALI keeps float16 between two passes, we float32.
        case(
            inputs={"X": noise((9, 8, 1), (12, 3, 1), (1, 1, 1), dtype=dtype)}, tol=0.04 if dtype == np.float16 else 0
        )(function)

    declare()


@case(inputs={"X": noise((3, 12, 10), (3, 7, 9), (1, 5, 5))})
def planes():
    return fn.gaussian_blur(x(layout="CHW"), window_size=5)


@case(inputs={"X": noise((3, 12, 10), (3, 7, 9), (1, 5, 5))})
def volumes():
    return fn.gaussian_blur(x(layout="DHW"), window_size=[3, 5, 1])


@case(inputs={"X": noise((12, 10), (7, 9), (5, 5), dtype=np.float32)})
def without_a_layout():
    return fn.gaussian_blur(source("X", types.FLOAT, 2), window_size=[5, 3])


@case(inputs={"X": noise((2, 3, 4, 5, 3), (1, 1, 7, 9, 3), (3, 2, 5, 5, 3))})
def frames_of_volumes():
    return fn.gaussian_blur(x(layout="FDHWC"), sigma=[0.5, 1.0, 2.0])


@case(inputs={"X": noise((2, 3, 14, 5), (1, 1, 7, 9), (3, 2, 5, 5))})
def planes_of_frames():
    return fn.gaussian_blur(x(layout="FCHW"), sigma=1.0)


@case(inputs={"X": noise((70,), (7,), (5,), dtype=np.int16)})
def signals():
    return fn.gaussian_blur(x(types.INT16, layout="W"), sigma=3.0)
