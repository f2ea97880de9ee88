"""Operators that arrange elements and compute nothing: subscripts, dimensions, joins, permutations."""

from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((4, 6, 3), (2, 12, 3), (8, 4, 3))}
SAME = {"X": noise((4, 6, 3), (4, 6, 3), (4, 6, 3)), "Y": noise((4, 6, 3), (4, 6, 3), (4, 6, 3), seed=2)}
NUMBERS = {"I": [np.int32(v) for v in (1, -2, 0)], "J": [np.int64(v) for v in (-1, 2, 3)]}


def image(device):
    x = source("X", layout="HWC")
    return x.gpu() if device == "gpu" else x


@case(inputs=IMAGES, devices=True)
def subscripts(device):
    x = image(device)
    return (
        x[0],
        x[-1, 1],
        x[:, 1:-1],
        x[1:, :2, 0],
        x[:, :, ::-1],
        x[::2, -1:0:-3],
        x[5:1],
        x[-100:100, 1:, 2:],
        x[0, 0, 0],
    )


@case(inputs=IMAGES | NUMBERS)
def subscripts_per_sample():
    x, i, j = source("X", layout="HWC"), source("I", types.INT32, 0), source("J", types.INT64, 0)
    return x[i], x[:, i:], x[:j, :, 1], x[i, j, 0], x[:, j::-1], fn.flip(x[:, :, :2])


@case(inputs=IMAGES | {"S": [np.array(v, np.float32) for v in (1, 2, 3)]}, devices=True)
def new_dimensions(device):
    x = image(device)
    return (
        fn.expand_dims(x, axes=[0, 2]),
        fn.flip(fn.expand_dims(x, axes=[0], new_axis_names="F")),
        fn.expand_dims(x, axes=3),
        fn.expand_dims(source("S", types.FLOAT, 0), axes=[0, 1]),
        x[:, np.newaxis],
        x[np.newaxis],
    )


@case(inputs={"X": noise((4, 1, 3, 1), (2, 1, 5, 1), (1, 1, 1, 1))}, devices=True)
def squeeze(device):
    x = source("X", layout="HAWC")
    x = x.gpu() if device == "gpu" else x
    return (
        fn.squeeze(x, axes=[1]),
        fn.squeeze(x, axes=[3, 1, 7]),
        fn.squeeze(x, axes=[3, -1]),
        fn.flip(fn.squeeze(x, axis_names="A")),
        fn.squeeze(x, axes=[]),
    )


@case(inputs=IMAGES, devices=True)
def shape(device):
    x = image(device)
    return (
        x.shape(),
        x.shape(dtype=types.FLOAT),
        x.shape(dtype=types.UINT32)[-1],
        fn.hidden.shapes(source("X"), dtype=types.INT32),
    )


@case(inputs=IMAGES)
def same_bytes():
    x = source("X", layout="HWC")
    return fn.copy(x), fn.cast_like(x, fn.constant(fdata=1.5)), fn.cast_like(x * 1.7, x), fn.flip(fn.copy(x))


@case(inputs={"X": noise((4, 6, 4), (2, 12, 4), (8, 4, 8))})
def reinterpret():
    x = source("X", layout="HWC")
    wide = fn.reinterpret(x, dtype=types.INT32)
    return (
        wide,
        fn.reinterpret(wide, dtype=types.INT16),
        fn.reinterpret(x, dtype=types.UINT16, shape=[2, -1]),
        fn.reinterpret(x, dtype=types.INT8),
        fn.reinterpret(x, dtype=types.UINT16, rel_shape=[1, 1, 0.5]),
        fn.reinterpret(x, dtype=types.UINT16, src_dims=[1, 0, 2]),
        fn.reinterpret(x, dtype=types.UINT32, rel_shape=[-1]),
        fn.flip(fn.reinterpret(x, layout="CHW")),
        fn.reinterpret(x, dtype=types.UINT8, layout=""),
    )


@case(inputs=SAME, devices=True)
def cat(device):
    x, y = source("X", layout="HWC"), source("Y", layout="HWC")
    x, y = (x.gpu(), y.gpu()) if device == "gpu" else (x, y)
    return (
        fn.cat(x, y),
        fn.cat(x, y, x, axis=1),
        fn.cat(x, y, axis=-1),
        fn.flip(fn.cat(x[:2], y, axis_name="H")),
        fn.cat(x),
        fn.cat(x[4:], y),
    )


@case(inputs={"X": noise((4, 6, 3), (2, 12, 3), (8, 4, 3)), "Y": noise((1, 6, 3), (0, 12, 3), (8, 4, 3))}, devices=True)
def cat_ragged(device):
    x, y = source("X", ndim=3), source("Y", ndim=3)
    x, y = (x.gpu(), y.gpu()) if device == "gpu" else (x, y)
    return fn.cat(x, y, axis=0), fn.cat(y, x, y, axis=0), fn.cat(x[:, 0], y[:, 0])


@case(inputs=SAME | {"S": [np.array(v, np.float32) for v in (1, 2, 3)]}, devices=True)
def stack(device):
    x, y, s = source("X", layout="HWC"), source("Y", layout="HWC"), source("S", types.FLOAT, 0)
    x, y, s = (x.gpu(), y.gpu(), s.gpu()) if device == "gpu" else (x, y, s)
    return (
        fn.stack(x, y),
        fn.stack(x, y, x, axis=1),
        fn.stack(x, y, axis=-1),
        fn.flip(fn.stack(x, y, axis=0, axis_name="F")),
        fn.stack(s, s + 1),
        fn.stack(x),
    )


@case(inputs={"X": noise((4, 2, 3), (2, 2, 3), (3, 2, 3)), "P": [np.int32(v) for v in (2, 2, 0)]})
def frames_and_samples():
    x = source("X", layout="FHW")
    return (
        *fn.element_extract(x, element_map=[1, 0, 1]),
        fn.permute_batch(x, indices=[2, 0, 0]),
        fn.permute_batch(x, indices=source("P", types.INT32, 0)),
        fn.permute_batch(x, indices=[1, 2, 0]) + 1,
    )


@case(inputs={"X": noise((3, 0, 0), (1, 0, 0), (2, 0, 0))})
def squeeze_of_nothing():
    x = source("X", ndim=3)
    return fn.squeeze(x, axes=[1]), fn.squeeze(x, axes=[0]), fn.squeeze(x, axes=[2])
