from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((20, 33, 3), (31, 17, 3), (9, 8, 3))}


def x(dtype=types.UINT8, **options):
    return source("X", dtype, **({"layout": "HWC"} | options))


@case(inputs=IMAGES)
def to_fit():
    return tuple(
        fn.rotate(x(), angle=a, fill_value=17) for a in (15.0, 45.0, 90.0, -30.0, 135.0, 271.3, 180.0, 0.0, 1e-3)
    )


@case(inputs=IMAGES)
def keeping_size():
    return (
        fn.rotate(x(), angle=15.0, keep_size=True),
        fn.rotate(x(), angle=-100.0, keep_size=True, fill_value=0),
        fn.rotate(x(), angle=61.3, keep_size=True, interp_type=types.INTERP_NN, fill_value=200),
    )


@case(inputs=IMAGES)
def to_a_size():
    return fn.rotate(x(), angle=25.0, size=[12, 50]), fn.rotate(
        x(), angle=25.0, size=[12.5, 7.4], fill_value=3, dtype=types.FLOAT
    )


@case(inputs=IMAGES | {"A": [np.array(a, np.float32) for a in (10, 200.5, -77)]})
def per_sample():
    return fn.rotate(x(), angle=source("A", types.FLOAT, 0)), fn.rotate(
        x(), angle=source("A", types.FLOAT, 0), fill_value=1, keep_size=True
    )


@case(inputs={"X": noise((20, 33, 1), (31, 17, 1), (9, 8, 1), dtype=np.float32)})
def floats():
    return fn.rotate(x(types.FLOAT), angle=33.0, fill_value=-7.5), fn.rotate(
        x(types.FLOAT), angle=33.0, dtype=types.INT16
    )


@case(inputs={"X": noise((2, 12, 10, 3), (1, 7, 9, 3), (3, 5, 5, 3))})
def frames():
    return fn.rotate(x(layout="FHWC"), angle=40.0, fill_value=1)


ANGLES = [np.array(a, np.float32) for a in ([63.5, -161.8], [-77], [9.3, -180, -104.8])]


@case(
    inputs={
        "X": noise((2, 8, 27, 3), (1, 4, 3, 3), (3, 5, 18, 3)),
        "A": ANGLES,
        "V": noise((2, 4, 8, 9, 1), (1, 5, 4, 3, 1), (3, 4, 5, 6, 1)),
    }
)
def an_angle_for_each_frame():
    angle = fn.per_frame(source("A", types.FLOAT, 1))
    v = source("V", layout="FDHWC")
    return (
        fn.rotate(x(layout="FHWC"), angle=angle, fill_value=1),
        fn.rotate(x(layout="FHWC"), angle=angle, keep_size=True),
        fn.rotate(v, angle=angle, axis=[1.0, 2, 3], fill_value=0),
    )


@case(inputs={"X": noise((6, 7, 8, 2), (1, 7, 9, 2), (5, 5, 5, 2))})
def volumes():
    v = x(layout="DHWC")
    return (
        fn.rotate(v, angle=30.0, axis=[1.0, 2, 3], fill_value=5),
        fn.rotate(v, angle=-75.0, axis=[0.0, 0, 1], keep_size=True),
        fn.rotate(v, angle=0.0, axis=[0.0, 1, 0]),
        fn.rotate(v, angle=90.0, axis=[1.0, 0, 0], interp_type=types.INTERP_NN),
    )
