from record import case, fn, noise, np, source, types


@case(inputs={"X": noise((20, 33, 3), (31, 17, 3), (9, 9, 3))}, tol=1, mean=0.03)
def by_numbers():
    x = source("X", ndim=3)
    r = fn.tensor_resize
    return (
        r(x, sizes=[7, 8], axes=[0, 1]),
        r(x, sizes=[40, 0], axes=[0, -2], mode="stretch"),
        r(x, sizes=[0, 9], axes=[0, 1], mode="stretch"),
        r(x, sizes=[12, 13], axes=[0, 1], interp_type=types.INTERP_CUBIC),
        r(x, sizes=[5, 7], axes=[0, 1], roi_start=[1, 2], roi_end=[8, 7], dtype=types.FLOAT),
    )


@case(
    inputs={
        "X": noise((3, 20, 33), (3, 31, 17), (1, 9, 9), dtype=np.float32),
        "S": [np.array(s, np.float32) for s in ((5, 6), (4, 9), (-7, 3))],
    },
    tol=2e-2,
)
def by_names():
    x = source("X", types.FLOAT, layout="CHW")
    return (
        fn.tensor_resize(x, sizes=[7.0, 8.0], axis_names="HW"),
        fn.experimental.hidden.tensor_resize(x, sizes=source("S", types.FLOAT, 1), axis_names="HW"),
    )


@case(inputs={"X": noise((20, 33), (31, 17), (9, 9), dtype=np.int16)}, tol=1, mean=0.03)
def all_dimensions():
    x = source("X", types.INT16, 2)
    return (
        fn.tensor_resize(x, sizes=[10, 11]),
        fn.tensor_resize(x, sizes=[12, 12], mode="not_larger"),
        fn.tensor_resize(x, sizes=[30, 28], max_size=[25, 26]),
    )


FLOATS = {"X": noise((1, 2, 4, 6), (1, 1, 5, 3), (1, 3, 2, 2), dtype=np.float32)}


@case(inputs=FLOATS, tol=2e-2)
def by_scales():
    x = source("X", types.FLOAT, 4)
    r = fn.tensor_resize
    return (
        *(r(x, scales=[1.0, 1.0, 0.6, 0.7], alignment=a, antialias=False) for a in (0, 0.5, 1)),
        r(x, scales=[1.5, 2.0], axes=[2, 3], interp_type=types.INTERP_CUBIC),
        r(x, scales=[1.0, 1.0, 0.7, 1.3], size_rounding="truncate"),
        r(x, scales=[1.0, 1.0, 0.7, 1.3], size_rounding="ceil", alignment=[0, 0, 1, 0]),
        r(x, scales=[1.0, 1.0, 2.0, 3.0], alignment=0, interp_type=types.INTERP_NN),
        r(x, scales=[1.0, 1.0, 0.6, 0.7], subpixel_scale=False),
    )


@case(inputs=FLOATS, tol=2e-2)
def other_numbers_of_dimensions_on_the_host():
    x = source("X", types.FLOAT, 4)
    r = fn.tensor_resize
    return (
        r(x, sizes=[9], axes=[3]),
        r(x, sizes=[3], axes=[2]),
        r(x, sizes=[4, 5, 6], axes=[1, 2, 3]),
        r(x, sizes=[1, 1, 7, 8]),
        r(x, scales=[2.0, 1.0, 2.0], axes=[1, 2, 3]),
        r(x, sizes=[0, 0, 5, 0], mode="stretch"),
    )
