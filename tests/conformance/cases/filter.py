from record import case, fn, noise, np, source, types

KERNELS = {
    "K": [
        np.random.default_rng(i).normal(size=s).astype(np.float32) / 4 for i, s in enumerate(((3, 3), (2, 5), (4, 1)))
    ]
}
IMAGES = {"X": noise((20, 33, 3), (31, 17, 3), (7, 9, 3))} | KERNELS
TYPES = {np.uint8: types.UINT8, np.uint16: types.UINT16, np.int16: types.INT16, np.float32: types.FLOAT}
BORDERS = ["reflect_101", "reflect_1001", "reflect", "clamp", "wrap", "constant"]


def x(dtype=types.UINT8, **options):
    return source("X", dtype, **({"layout": "HWC"} | options))


def k():
    return source("K", types.FLOAT, 2)


@case(inputs=IMAGES, tol=1, mean=0.01)
def borders():
    return tuple(fn.filter(x(), k(), border=b) for b in BORDERS) + (fn.experimental.filter(x(), k()),)


@case(inputs=IMAGES | {"V": [np.array(v, np.uint8) for v in (0, 100, 255)]}, tol=1, mean=0.01)
def border_of_a_value():
    return fn.filter(x(), k(), source("V", types.UINT8, 0), border="constant")


@case(inputs=IMAGES, tol=1, mean=0.01)
def valid():
    return fn.filter(x(), k(), mode="valid")


@case(inputs=IMAGES | {"A": [np.array(v, np.int32) for v in ((2, 0), (1, 4), (3, 0))]}, tol=1, mean=0.01)
def anchors():
    return (
        fn.filter(x(), k(), anchor=source("A", types.INT32, 1)),
        fn.filter(x(), k(), anchor=0),
        fn.filter(x(), k(), anchor=[1, -1]),
    )


for dtype, of in TYPES.items():

    def declare(dtype=dtype, of=of):
        def function():
            return fn.filter(x(of), k()), fn.filter(x(of), k(), dtype=types.FLOAT)

        function.__name__ = f"from_{dtype.__name__}"
        case(
            inputs={"X": noise((9, 8, 1), (12, 13, 1), (6, 5, 1), dtype=dtype)} | KERNELS,
            tol=1 if np.issubdtype(dtype, np.integer) else 0.02,
            mean=0.05,
        )(function)

    declare()


@case(inputs={"X": noise((3, 12, 10), (3, 7, 9), (1, 5, 5))} | KERNELS, tol=1, mean=0.01)
def planes():
    return fn.filter(x(layout="CHW"), k())


@case(inputs={"X": noise((2, 3, 14, 5), (1, 1, 7, 9), (3, 2, 5, 5))} | KERNELS, tol=1, mean=0.01)
def planes_of_frames():
    return fn.filter(x(layout="FCHW"), k(), mode="valid")


@case(inputs={"X": noise((12, 10), (7, 9), (5, 5))} | KERNELS, tol=1, mean=0.01)
def without_a_layout():
    return fn.filter(source("X", ndim=2), k())


@case(
    inputs={
        "X": noise((40, 30, 3), (20, 33, 3), (25, 26, 3)),
        "K": [np.random.default_rng(i).normal(size=(13, 11)).astype(np.float32) / 40 for i in range(3)],
    },
    tol=1,
    mean=0.01,
)
def large():
    return fn.filter(x(), k())
