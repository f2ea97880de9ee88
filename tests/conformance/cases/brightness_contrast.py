from record import case, fn, noise, np, source, types

SHAPES = [(5, 7, 3), (4, 6, 1), (3, 9, 4)]
IMAGES = {"X": noise(*SHAPES)}
TYPES = {np.uint8: types.UINT8, np.int16: types.INT16, np.int32: types.INT32, np.float32: types.FLOAT}


def x(dtype=types.UINT8, layout="HWC"):
    return source("X", dtype, layout=layout)


@case(inputs=IMAGES)
def brightness_and_contrast():
    return (
        fn.brightness_contrast(x(), brightness=1.2, contrast=0.8),
        fn.brightness_contrast(x(), brightness_shift=-0.2, contrast=1.7),
        fn.brightness_contrast(x(), contrast=0.5, contrast_center=31.5),
        fn.brightness_contrast(x()),
    )


@case(inputs=IMAGES)
def each_alone():
    return (
        fn.brightness(x(), brightness=0.7),
        fn.brightness(x(), brightness_shift=0.3),
        fn.contrast(x(), contrast=2.5),
        fn.contrast(x(), contrast=-0.5, contrast_center=100.0),
    )


@case(inputs=IMAGES)
def to_other_types():
    return tuple(
        fn.brightness_contrast(x(), brightness=1.3, brightness_shift=0.1, contrast=0.9, dtype=t) for t in TYPES.values()
    )


for dtype in (np.int16, np.int32, np.float32):

    def declare(dtype=dtype):
        def function():
            i = x(TYPES[dtype])
            return tuple(
                fn.brightness_contrast(i, brightness=0.9, brightness_shift=0.2, contrast=1.1, dtype=t)
                for t in TYPES.values()
            )

        function.__name__ = f"from_{dtype.__name__}"
        case(inputs={"X": noise(*SHAPES, dtype=dtype)})(function)

    declare()


@case(
    inputs=IMAGES
    | {"B": [np.array(v, np.float32) for v in (0.5, 1, 2)], "C": [np.array([v], np.float32) for v in (1.5, 0, 1)]}
)
def per_sample():
    return fn.brightness_contrast(x(), brightness=source("B", types.FLOAT, 0), contrast=source("C", types.FLOAT, 1))


@case(inputs={"X": noise((2, 3, 4, 3), (1, 2, 5, 3), (3, 2, 2, 3))})
def frames():
    return fn.brightness_contrast(source("X", ndim=4), brightness=1.4), fn.contrast(source("X", ndim=4), contrast=0.3)


@case(inputs=IMAGES | {"C": [np.array(v, np.float32) for v in (0.5, 1, 2)]})
def contrast_per_sample():
    return fn.contrast(x(), contrast=source("C", types.FLOAT, 0))
