import itertools

from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((5, 7, 3), (4, 6, 3), (1, 9, 3))}


@case(inputs=IMAGES)
def default_reverses():
    return fn.transpose(source("X", layout="HWC"))


@case(inputs=IMAGES)
def without_a_layout():
    return tuple(fn.transpose(source("X", ndim=3), perm=list(perm)) for perm in itertools.permutations(range(3)))


@case(inputs=IMAGES)
def layouts():
    # A flip needs the layout that the transposition leaves.
    x = source("X", layout="HWC")
    planes, named = fn.transpose(x, perm=[2, 0, 1]), fn.transpose(x, perm=[1, 0, 2], output_layout="HWC")
    kept = fn.transpose(x, perm=[1, 0, 2], transpose_layout=False)
    fixed = fn.transpose(x, perm=[1, 2, 0], output_layout="CHW", transpose_layout=False)
    return tuple(fn.flip(v, horizontal=1) for v in (planes, named, kept, fixed))


TYPES = dict(
    uint8=types.UINT8,
    uint16=types.UINT16,
    uint32=types.UINT32,
    uint64=types.UINT64,
    int8=types.INT8,
    int16=types.INT16,
    int32=types.INT32,
    int64=types.INT64,
    float16=types.FLOAT16,
    float32=types.FLOAT,
    float64=types.FLOAT64,
    bool=types.BOOL,
)


@case(inputs={f"X{t}": [np.arange(24).reshape(2, 3, 4).astype(t)] for t in TYPES})
def every_type():
    return tuple(fn.transpose(source(f"X{t}", d, 3), perm=[1, 2, 0]) for t, d in TYPES.items())


@case(
    inputs={
        "S": [np.array(7, np.int32)] * 3,
        "V": [np.arange(n, dtype=np.int16) for n in (3, 1, 0)],
        "E": [np.zeros(s, np.float32) for s in ((0, 3), (2, 0), (2, 3))],
        "F": noise((2, 3, 4, 5), (1, 2, 1, 3), (3, 1, 1, 1)),
    }
)
def other_ranks():
    f = source("F", ndim=4, layout="FHWC")
    return (
        fn.transpose(source("S", types.INT32, 0)),
        fn.transpose(source("V", types.INT16, 1)),
        fn.transpose(source("E", types.FLOAT, 2)),
        fn.transpose(f, perm=[0, 3, 1, 2]),
        fn.transpose(f, perm=[3, 0, 2, 1]),
        fn.transpose(f, perm=[0, 1, 3, 2]),
    )


@case(inputs={"X": [np.arange(70 * 33 * 3, dtype=np.uint16).reshape(70, 33, 3)]})
def larger_than_a_block():
    x = source("X", types.UINT16, 3)
    return (
        fn.transpose(x, perm=[2, 0, 1]),
        fn.transpose(x, perm=[1, 0, 2]),
        fn.transpose(fn.transpose(x, perm=[2, 1, 0]), perm=[1, 2, 0]),
    )
