from record import case, fn, noise, np, source, types

MATRICES = {"X": [m for m in noise((2, 3), (2, 3), (2, 3), dtype=np.float32)]}
IN_SPACE = {"X": [m for m in noise((3, 4), (3, 4), (3, 4), dtype=np.float32)]}


def x():
    return source("X", types.FLOAT, 2)


@case()
def translations():
    t = fn.transforms.translation
    return (
        t(offset=[1.5, -2]),
        t(offset=[1.0]),
        t(offset=[1.0, 2, 3, 4, 5, 6]),
        fn.hidden.transform_translation(offset=[3.0, 4]),
    )


@case()
def scales():
    s = fn.transforms.scale
    return (
        s(scale=[2.0, 0.3]),
        s(scale=2.0),
        s(scale=2.0, ndim=3),
        s(scale=[2.0, 3], center=[5.5, -6]),
        s(scale=[0.7], ndim=2, center=[1.0, 2]),
    )


@case()
def rotations():
    r = fn.transforms.rotation
    return (
        r(angle=30.0),
        r(angle=-200.5, center=[10.0, 20.25]),
        r(angle=77.0, axis=[1.0, 2, 3]),
        r(angle=0.0, axis=[1.0, 2, 3]),
        r(angle=12.0, axis=[0.0, 0, -2], center=[1.0, 2, 3]),
    )


@case()
def shears():
    s = fn.transforms.shear
    return (
        s(shear=[0.5, -0.25]),
        s(angles=[20.0, -35]),
        s(angles=[20.0, -35], center=[3.0, 4.5]),
        s(shear=[1.0, 2, 3, 4, 5, 6]),
        s(angles=[1.0, 2, 3, 4, 5, 6], center=[1.0, -2, 3]),
    )


@case()
def crops():
    c = fn.transforms.crop
    return (
        c(),
        c(from_start=[1.0, 2], from_end=[5.0, 9.5], to_start=[0.5], to_end=[2.0, 4]),
        c(from_end=[3.0, 4, 5]),
        c(from_start=[1.0, 2], from_end=[5.0, 1], to_start=[3.0, 4], to_end=[1.0, 9], absolute=True),
        c(from_start=[1.0, 2], from_end=[5.0, 1], to_start=[3.0, 4], to_end=[1.0, 9]),
    )


@case(inputs=MATRICES)
def behind_another():
    return (
        fn.transforms.translation(x(), offset=[1.5, -2]),
        fn.transforms.scale(x(), scale=[3.0]),
        fn.transforms.rotation(x(), angle=30.0, center=[2.0, 3]),
        fn.transforms.shear(x(), shear=[0.2, 0.1]),
        fn.transforms.crop(x(), to_end=[2.0, 3]),
    )


@case(inputs=IN_SPACE)
def before_another():
    return (
        fn.transforms.translation(x(), offset=[1.5, -2, 1], reverse_order=True),
        fn.transforms.scale(x(), scale=[3.0], reverse_order=True),
        fn.transforms.rotation(x(), angle=30.0, axis=[1.0, 1, 0], reverse_order=True),
    )


@case(inputs=MATRICES | {"Y": noise((2, 3), (2, 3), (2, 3), dtype=np.float32, seed=2)})
def combined():
    y = source("Y", types.FLOAT, 2)
    return (
        fn.transforms.combine(x(), y),
        fn.transforms.combine(x(), y, y, x()),
        fn.transforms.combine(x(), y, reverse_order=True),
        fn.transforms.combine(x(), fn.transforms.rotation(angle=10.0)),
    )


@case(
    inputs={
        "A": [np.array(a, np.float32) for a in (10, 200.5, -77)],
        "V": noise((2,), (2,), (2,), dtype=np.float32),
        "S": noise((3, 2), (3, 2), (3, 2), dtype=np.float32),
    }
)
def per_sample():
    a, v, s = source("A", types.FLOAT, 0), source("V", types.FLOAT, 1), source("S", types.FLOAT, 2)
    return (
        fn.transforms.rotation(angle=a, center=v),
        fn.transforms.translation(offset=v),
        fn.transforms.shear(shear=v),
        fn.transforms.scale(scale=v, center=v),
        fn.transforms.crop(to_end=v),
        fn.transforms.shear(shear=s),
    )
