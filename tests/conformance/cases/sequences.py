"""Operators on sequences: frames rearranged, arguments that differ from frame to frame, what is known of a tensor."""

from record import case, fn, noise, np, source, types

VIDEO = {"X": noise((3, 8, 9, 3), (1, 5, 7, 3), (4, 6, 6, 3))}


def video(device="cpu"):
    x = source("X", layout="FHWC")
    return x.gpu() if device == "gpu" else x


def values(*counts, width=None, low=0.3, high=2.0, seed=3):
    rng = np.random.default_rng(seed)
    return [rng.uniform(low, high, (n,) if width is None else (n, width)).astype(np.float32) for n in counts]


@case(inputs=VIDEO, devices=True)
def sequence_rearrange(device):
    x = video(device)
    return fn.sequence_rearrange(x, new_order=[0, 0]), fn.sequence_rearrange(x, new_order=[0])


@case(inputs=VIDEO | {"O": [np.array(o, np.int32) for o in ([2, 0, 1, 1, 2], [0], [3, 0])]})
def sequence_rearrange_per_sample():
    x = video()
    return fn.sequence_rearrange(x, new_order=source("O", types.INT32, 1)), fn.sequence_rearrange(
        fn.cast(x, dtype=types.FLOAT), new_order=source("O", types.INT32, 1)
    )


@case(inputs=VIDEO | {"A": [np.arange(6, dtype=np.int32).reshape(2, 3)] * 3})
def properties():
    x, a = video(), source("A", types.INT32, 2)
    return (
        fn.get_property(x, key="layout"),
        fn.get_property(x, key="source_info"),
        fn.get_property(a, key="layout"),
        fn.get_property(fn.per_frame(a), key="layout"),
        fn.get_property(fn.per_frame(x), key="layout"),
        fn.get_property(fn.per_frame(fn.reshape(a, layout="XY"), replace=True), key="layout"),
        fn.per_frame(a),
    )


@case(
    tol=1,
    mean=0.02,
    inputs=VIDEO | {"A": values(3, 1, 4), "B": values(1, 1, 1), "C": values(3, 1, 4, width=2)},
    devices=True,
)
def arguments_per_frame(device):
    x = video(device)
    a, b, c = (source(name, types.FLOAT, ndim) for name, ndim in (("A", 1), ("B", 1), ("C", 2)))
    return (
        fn.brightness(x, brightness=fn.per_frame(a)),
        fn.brightness_contrast(x, contrast=fn.per_frame(a), brightness_shift=fn.per_frame(b)),
        fn.hsv(x, hue=fn.per_frame(a * 90)),
        fn.gaussian_blur(x, sigma=fn.per_frame(a)),
        fn.gaussian_blur(x, sigma=fn.per_frame(c)),
        fn.rotate(x, angle=fn.per_frame(a * 30), keep_size=True, fill_value=7),
        fn.color_twist(x, saturation=fn.per_frame(a), brightness=b[0]),
    )


@case(tol=1e-3, inputs={"A": values(3, 1, 4), "C": values(3, 1, 4, width=2)})
def transforms_per_frame():
    a, c = fn.per_frame(source("A", types.FLOAT, 1)), fn.per_frame(source("C", types.FLOAT, 2))
    rotation = fn.transforms.rotation(angle=a)
    moved = fn.transforms.translation(rotation, offset=[1.0, 2.0])
    return (
        rotation,
        moved,
        fn.transforms.scale(moved, scale=c),
        fn.transforms.shear(shear=c),
        fn.get_property(moved, key="layout"),
        fn.transforms.combine(rotation, moved),
        fn.transforms.crop(from_start=c, to_end=[3.0, 4.0]),
    )


@case(tol=1, mean=0.02, inputs=VIDEO | {"A": values(3, 1, 4), "K": [np.full((3, 3), 1 / 9, np.float32)] * 3})
def matrices_per_frame():
    x, rotation = video(), fn.transforms.rotation(angle=fn.per_frame(source("A", types.FLOAT, 1)))
    kernel = source("K", types.FLOAT, 2)
    return (
        fn.warp_affine(x, matrix=rotation, fill_value=3),
        fn.warp_affine(x, rotation),
        fn.warp_affine(x[0], rotation),
        fn.experimental.filter(x, kernel, anchor=[0, 1]),
        fn.laplacian(x, scale=fn.per_frame(source("A", types.FLOAT, 1)), dtype=types.FLOAT),
    )


@case(tol=1e-4, inputs={"P": noise((3, 5, 2), (1, 4, 2), (4, 2, 2), dtype=np.float32), "M": values(3, 1, 4, width=4)})
def points_per_frame():
    p, m = (
        source("P", types.FLOAT, 3),
        fn.per_frame(fn.reshape(source("M", types.FLOAT, 2), shape=[-1, 2, 2]), replace=True),
    )
    return fn.coord_transform(fn.reshape(p, layout="FNC"), M=m), fn.coord_transform(p, M=m)
