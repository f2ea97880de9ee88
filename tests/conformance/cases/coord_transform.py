from record import case, fn, noise, np, source, types

POINTS = {"X": noise((5, 2), (1, 2), (7, 2), dtype=np.float32)}
TYPES = {
    np.uint8: types.UINT8,
    np.uint16: types.UINT16,
    np.int16: types.INT16,
    np.int32: types.INT32,
    np.float32: types.FLOAT,
}


def x(dtype=types.FLOAT, ndim=2):
    return source("X", dtype, ndim)


@case(inputs=POINTS)
def matrices():
    t = fn.coord_transform
    return (
        t(x()),
        t(x(), M=2.0),
        t(x(), T=1.5),
        t(x(), M=[1.0, 2, 3, 4]),
        t(x(), M=[1.0, 2]),
        t(x(), M=[1.0, 2, 3, 4, 5, 6], T=[1.0, 2, 3]),
        t(x(), MT=[1.0, 2, 3, 4, 5, 6]),
        t(x(), MT=3.0),
        t(x(), T=[1.0, 2]),
    )


@case(
    inputs=POINTS
    | {
        "M": noise((3, 2), (3, 2), (3, 2), dtype=np.float32),
        "T": noise((3,), (3,), (3,), dtype=np.float32),
        "S": [np.array(s, np.float32) for s in (1, 2.5, -3)],
    }
)
def per_sample():
    m, t, s = source("M", types.FLOAT, 2), source("T", types.FLOAT, 1), source("S", types.FLOAT, 0)
    return (
        fn.coord_transform(x(), M=m, T=t),
        fn.coord_transform(x(), M=s, T=s),
        fn.coord_transform(x(), MT=fn.transforms.rotation(angle=s, center=[1.0, 2])),
    )


for dtype, of in TYPES.items():

    def declare(dtype=dtype, of=of):
        def function():
            return tuple(
                fn.coord_transform(x(of, 3), M=[0.3, 0.2, -0.1, 0.5, 1, 2], T=[1.5, -7], dtype=t)
                for t in {of, types.FLOAT}
            )

        function.__name__ = f"from_{dtype.__name__}"
        case(inputs={"X": noise((2, 5, 3), (1, 1, 3), (3, 2, 3), dtype=dtype)})(function)

    declare()


@case(inputs={"X": [np.zeros((0, 2)) for _ in range(3)]})
def no_points_of_another_type():
    return fn.coord_transform(source("X", None, 2), M=[1.0, 2, 3, 4, 5, 6])
