"""Arrays as numpy saves them. DALI reads column-major ones only where there is a GPU: unit tests have those."""

import io

from record import case, fn, np, source, types


def files(*arrays):
    def file(array):
        data = io.BytesIO()
        np.lib.format.write_array(data, np.ascontiguousarray(array) if np.ndim(array) else array, version=(1, 0))
        return np.frombuffer(data.getvalue(), np.uint8)

    return [file(array) for array in arrays]


def arrays(dtype, *shapes):
    rng = np.random.default_rng(5)
    return files(*(np.asarray(rng.normal(scale=90, size=shape)).astype(dtype) for shape in shapes))


@case(
    inputs={
        name: arrays(name, (2, 3), (1, 4), (3, 0))
        for name in (
            "uint8",
            "int8",
            "uint16",
            "int16",
            "uint32",
            "int32",
            "uint64",
            "int64",
            "float16",
            "float32",
            "float64",
            "bool",
        )
    }
)
def every_type():
    return tuple(
        fn.decoders.numpy(source(name, ndim=1))
        for name in (
            "uint8",
            "int8",
            "uint16",
            "int16",
            "uint32",
            "int32",
            "uint64",
            "int64",
            "float16",
            "float32",
            "float64",
            "bool",
        )
    )


@case(
    inputs={
        "X": arrays(np.float32, (2, 3, 2), (1, 4, 1), (3, 1, 1)),
        "S": files(np.float64(2.5), np.float64(-1), np.float64(300)),
    }
)
def other_types():
    x, s = source("X", ndim=1), source("S", ndim=1)
    return (
        *(
            fn.decoders.numpy(x, dtype=t)
            for t in (types.UINT8, types.INT16, types.FLOAT16, types.FLOAT64, types.INT64, types.BOOL)
        ),
        fn.decoders.numpy(s),
        fn.decoders.numpy(s, dtype=types.UINT8),
    )


@case(inputs={"X": [*arrays(np.float32, (2, 3)), *arrays(np.int16, (4, 4)), *arrays(np.uint8, (1, 1))]})
def mixed_types():
    return fn.decoders.numpy(source("X", ndim=1), dtype=types.FLOAT)
