from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((20, 33, 3), (31, 17, 3), (9, 300, 3))}
# No place falls between two pixels, where a device and the host may take different ones.
MATRIX = [0.9124, 0.1094, 5.034, -0.0505, 1.1212, -3.0747]
TYPES = {np.uint8: types.UINT8, np.int16: types.INT16, np.int32: types.INT32, np.float32: types.FLOAT}


def x(dtype=types.UINT8, **options):
    return source("X", dtype, **({"layout": "HWC"} | options))


@case(inputs=IMAGES)
def borders_and_filters():
    return tuple(
        fn.warp_affine(x(), matrix=MATRIX, interp_type=t, **fill)
        for t in (types.INTERP_NN, types.INTERP_LINEAR)
        for fill in ({}, {"fill_value": 128.5}, {"fill_value": -3})
    )


@case(inputs=IMAGES)
def the_other_way():
    return fn.warp_affine(x(), matrix=MATRIX, inverse_map=False, fill_value=7), fn.warp_affine(
        x(), matrix=MATRIX, inverse_map=False
    )


@case(inputs=IMAGES)
def to_another_size():
    return (
        fn.warp_affine(x(), matrix=MATRIX, size=[13.5, 600], fill_value=0),
        fn.warp_affine(x(), matrix=[1.37, 0, 0, 0, 0.77, 0], size=[41, 22]),
    )


@case(
    inputs=IMAGES
    | {
        "M": [np.array(m, np.float32).reshape(2, 3) for m in (MATRIX, [1, 0, 0, 0, 1, 0], [0, 1, 3.5, -1, 0, 20])],
        "S": [np.array(s, np.float32) for s in ((5.9, 7), (12, 1), (30, 31))],
    }
)
def per_sample():
    m, s = source("M", types.FLOAT, 2), source("S", types.FLOAT, 1)
    return (
        fn.warp_affine(x(), matrix=m, fill_value=3),
        fn.warp_affine(x(), m, inverse_map=False, fill_value=9),
        fn.warp_affine(x(), matrix=m, size=s),
    )


for dtype, of in TYPES.items():

    def declare(dtype=dtype, of=of):
        def function():
            targets = list(TYPES.values()) if dtype == np.float32 else [of, types.FLOAT]
            return tuple(
                fn.warp_affine(x(of), matrix=MATRIX, dtype=t, fill_value=f) for t in targets for f in (2.75, -40.25)
            ) + (fn.warp_affine(x(of), matrix=MATRIX, interp_type=types.INTERP_NN, dtype=types.FLOAT, fill_value=0.5),)

        function.__name__ = f"from_{dtype.__name__}"
        case(inputs={"X": noise((12, 13, 2), (5, 6, 2), (9, 3, 2), dtype=dtype)})(function)

    declare()


@case(inputs={"X": noise((2, 12, 10, 3), (1, 7, 9, 3), (3, 5, 5, 3))})
def frames():
    return fn.warp_affine(x(layout="FHWC"), matrix=MATRIX), fn.warp_affine(
        x(layout="FHWC"), matrix=MATRIX, size=[4, 5], fill_value=1
    )


@case(inputs={"X": noise((6, 7, 8, 2), (1, 7, 9, 2), (5, 5, 5, 2))})
def volumes():
    matrix = [0.9137, 0.1071, 0.2113, -1.0177, -0.0513, 1.1193, 0.1031, 2.0231, 0.1079, 0.0137, 0.8191, 0.3319]
    v = x(layout="DHWC")
    return (
        fn.warp_affine(v, matrix=matrix),
        fn.warp_affine(v, matrix=matrix, fill_value=9, inverse_map=False),
        fn.warp_affine(v, matrix=matrix, interp_type=types.INTERP_NN, size=[3, 4, 300]),
    )


@case(inputs={"X": noise((2, 4, 5, 3, 1), (1, 7, 9, 3, 1), (3, 5, 5, 2, 1))})
def frames_of_volumes():
    return fn.warp_affine(
        x(layout="FDHWC"),
        matrix=[0.9137, 0.1071, 0.2113, -1.0177, -0.0513, 1.1193, 0.1031, 2.0231, 0.1079, 0.0137, 0.8191, 0.3319],
    )
