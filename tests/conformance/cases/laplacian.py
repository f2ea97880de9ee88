from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((20, 33, 3), (31, 17, 3), (2, 3, 3))}


def x(dtype=types.UINT8, **options):
    return source("X", dtype, **({"layout": "HWC"} | options))


@case(inputs=IMAGES)
def windows():
    p = fn.laplacian
    return (
        p(x()),
        p(x(), window_size=5),
        p(x(), window_size=[3, 7], dtype=types.FLOAT),
        p(x(), smoothing_size=1),
        p(x(), window_size=5, smoothing_size=[1, 3], scale=0.05),
        p(x(), scale=[0.1, -0.2]),
        p(x(), window_size=9, normalized_kernel=True, dtype=types.FLOAT),
    )


@case(inputs={"X": noise((9, 8, 1), (12, 3, 1), (1, 1, 1), dtype=np.float32)}, tol=1e-4)
def floats():
    return fn.laplacian(x(types.FLOAT)), fn.laplacian(x(types.FLOAT), window_size=5, normalized_kernel=True)


@case(inputs={"X": noise((2, 3, 4, 5, 3), (1, 1, 7, 9, 3), (3, 2, 5, 5, 3), dtype=np.int16)})
def frames_of_volumes():
    v = x(types.INT16, layout="FDHWC")
    return fn.laplacian(v, scale=0.1), fn.laplacian(v, smoothing_size=1, window_size=[3, 5, 7], dtype=types.FLOAT)


@case(inputs={"X": noise((70,), (7,), (5,), dtype=np.int32)})
def signals():
    return fn.laplacian(x(types.INT32, layout="W")), fn.laplacian(
        x(types.INT32, layout="W"), window_size=5, dtype=types.FLOAT
    )


@case(
    inputs=IMAGES
    | {
        "S": [np.array(v, np.float32) for v in (0.7, 2, 4)],
        "W": [np.array(v, np.int32) for v in ((3, 5), (7, 3), (9, 9))],
    }
)
def per_sample():
    return fn.laplacian(x(), window_size=source("W", types.INT32, 1), scale=source("S", types.FLOAT, 0))


@case(inputs=IMAGES, tol=1e-3, devices=True)
def on_a_device(device):
    i = x().gpu() if device == "gpu" else x()
    p = fn.laplacian
    return p(i), p(i, window_size=5, smoothing_size=1), p(i, window_size=7, normalized_kernel=True, dtype=types.FLOAT)
