from record import case, fn, noise, np, source, types

SHAPES = [(5, 7, 3), (4, 6, 3), (1, 9, 3)]
IMAGES = {"X": noise(*SHAPES)}
TYPES = [types.UINT8, types.INT16, types.INT32, types.FLOAT16, types.FLOAT]


def x(dtype=types.UINT8, layout="HWC"):
    return source("X", dtype, layout=layout)


@case(inputs=IMAGES)
def color_twist():
    return (
        fn.color_twist(x(), hue=-10.0, saturation=0.7, brightness=1.1, contrast=1.2),
        fn.color_twist(x(), hue=271.5),
        fn.color_twist(x(), saturation=3.0),
        fn.color_twist(x(), brightness=0.4),
        fn.color_twist(x(), contrast=0.2),
        fn.color_twist(x()),
    )


@case(inputs=IMAGES)
def hsv():
    return (
        fn.hsv(x(), hue=20.0, saturation=1.3, value=0.9),
        fn.hsv(x(), value=1.5),
        fn.hsv(x(), hue=180.0, dtype=types.FLOAT),
    )


@case(inputs=IMAGES)
def each_alone():
    return (
        fn.hue(x(), hue=45.0),
        fn.saturation(x(), saturation=0.0),
        fn.saturation(x(), saturation=2.0, image_type=types.RGB),
    )


@case(inputs=IMAGES)
def to_other_types():
    return tuple(fn.color_twist(x(), hue=30.0, saturation=1.5, contrast=0.9, dtype=t) for t in TYPES)


for dtype, of in (
    (np.int16, types.INT16),
    (np.int32, types.INT32),
    (np.float16, types.FLOAT16),
    (np.float32, types.FLOAT),
):

    def declare(dtype=dtype, of=of):
        def function():
            return tuple(fn.color_twist(x(of), hue=30.0, saturation=1.5, contrast=0.9, dtype=t) for t in TYPES) + (
                fn.hsv(x(of), hue=5.0),
                fn.hue(x(of), hue=70.0),
            )

        function.__name__ = f"from_{dtype.__name__}"
        case(inputs={"X": noise(*SHAPES, dtype=dtype)})(function)

    declare()


@case(
    inputs=IMAGES
    | {"H": [np.array(v, np.float32) for v in (5, 100, -30)], "S": [np.array([v], np.float32) for v in (1.5, 0, 1)]}
)
def per_sample():
    h, s = source("H", types.FLOAT, 0), source("S", types.FLOAT, 1)
    return fn.color_twist(x(), hue=h, brightness=s), fn.hsv(x(), saturation=s), fn.hue(x(), hue=h)


@case(inputs={"X": noise((2, 3, 4, 3), (1, 2, 5, 3), (3, 2, 2, 3))})
def frames():
    return fn.color_twist(source("X", ndim=4), hue=100.0), fn.hsv(source("X", ndim=4), saturation=0.3)
