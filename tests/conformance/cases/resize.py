from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((20, 33, 3), (31, 17, 3), (9, 9, 3))}
GRAY = {"X": noise((3, 20, 33), (3, 31, 17), (3, 9, 9), dtype=np.float32)}


def x(**kw):
    return source("X", **({"layout": "HWC"} | kw))


@case(inputs=IMAGES, tol=1, mean=0.02)
def filters_down():
    outputs = [fn.resize(x(), size=[7, 8], interp_type=t, antialias=a) for t in range(6) for a in (True, False)]
    return tuple(outputs[:-1])


# The window of a Gaussian ends with weights above 0: where a tap lies at its end, another rounding on a GPU gives
# another tap.
@case(inputs=IMAGES, tol=1, mean=0.02)
def gaussian_without_antialiasing_on_the_host():
    return fn.resize(x(), size=[7, 8], interp_type=types.INTERP_GAUSSIAN, antialias=False)


@case(inputs=IMAGES, tol=1, mean=0.02)
def filters_up():
    return tuple(fn.resize(x(), size=[40, 50], interp_type=t) for t in range(6))


@case(inputs=GRAY, tol=2e-2)
def planes_of_float():
    p = source("X", types.FLOAT, layout="CHW")
    return tuple(fn.resize(p, resize_x=12, resize_y=25, interp_type=t) for t in range(5))


@case(inputs=GRAY, tol=2e-2)
def gaussian_planes_of_float_on_the_host():
    return fn.resize(
        source("X", types.FLOAT, layout="CHW"), resize_x=12, resize_y=25, interp_type=types.INTERP_GAUSSIAN
    )


@case(inputs={"X": noise((2, 12, 10, 3), (1, 7, 9, 3), (3, 5, 5, 3))}, tol=1, mean=0.02)
def frames():
    return fn.resize(source("X", layout="FHWC"), size=[6, 7])


@case(inputs={"X": noise((2, 2, 14, 12), (2, 1, 7, 9), (1, 3, 5, 5), dtype=np.uint16)}, tol=1, mean=0.02)
def channels_of_frames():
    return fn.resize(source("X", types.UINT16, layout="CFHW"), size=[6, 7])


@case(inputs={"X": noise((14, 12, 1), (7, 9, 1), (5, 5, 1), dtype=np.int16)}, tol=1, mean=0.02)
def int16_to_both_types():
    p = source("X", types.INT16, layout="HWC")
    return fn.resize(p, size=[9, 5]), fn.resize(p, size=[9, 5], dtype=types.FLOAT)


@case(inputs=IMAGES, tol=1, mean=0.02)
def modes():
    image = x()
    return (
        fn.resize(image, size=[12, 12], mode="not_larger"),
        fn.resize(image, size=[12, 12], mode="not_smaller"),
        fn.resize(image, size=[0, 11], mode="stretch"),
        fn.resize(image, size=[13, 0]),
        fn.resize(image, resize_x=10),
        fn.resize(image, resize_shorter=8),
        fn.resize(image, resize_longer=24),
        fn.resize(image, resize_shorter=16, max_size=20),
        fn.resize(image, resize_x=30, max_size=[9, 18]),
        fn.resize(image, size=[-10, 12]),
        fn.resize(image, resize_y=-7),
        fn.resize(image, size=[10.5, 11.4]),
        fn.resize(image, size=[40, 60], mode="not_smaller", max_size=[50, 61]),
    )


@case(inputs=IMAGES, tol=1, mean=0.02)
def without_subpixel_scale():
    image = x()
    return fn.resize(image, resize_x=11, subpixel_scale=False), fn.resize(image, resize_x=11)


@case(inputs=IMAGES, tol=1, mean=0.03)
def regions():
    image = x()
    return (
        fn.resize(image, size=[8, 9], roi_start=[1.5, 2], roi_end=[8, 7.25]),
        fn.resize(image, size=[8, 9], roi_start=[0.1, 0.9], roi_end=[0.8, 0.2], roi_relative=True),
        fn.resize(image, resize_shorter=6, roi_start=[-3, -2], roi_end=[12, 14], interp_type=2),
    )


@case(inputs=IMAGES | {"S": [np.array(v, np.float32) for v in ((5, 6), (0, 9), (-7, 3))]}, tol=1, mean=0.03)
def per_sample():
    return fn.resize(x(), size=source("S", types.FLOAT, 1), interp_type=4)


@case(
    inputs=IMAGES
    | {
        "A": [np.array(v, np.float32) for v in ((0.1, 0.2), (0.0, 0.5), (0.3, 0.3))],
        "B": [np.array(v, np.float32) for v in ((0.9, 0.7), (1.0, 0.0), (0.8, 1.2))],
    },
    tol=1,
    mean=0.03,
)
def regions_per_sample():
    return fn.resize(
        x(),
        resize_y=9,
        resize_x=8,
        roi_start=source("A", types.FLOAT, 1),
        roi_end=source("B", types.FLOAT, 1),
        roi_relative=True,
        min_filter=2,
        mag_filter=1,
    )


@case(inputs=IMAGES, tol=1, mean=0.02)
def with_attributes():
    return tuple(fn.resize(x(), size=[9, 8], save_attrs=True))


VOLUMES = {"X": noise((5, 12, 16, 2), (9, 7, 11, 2), (2, 3, 20, 2))}


@case(tol=1, mean=0.01, inputs=VOLUMES)
def volumes():
    x = source("X", layout="DHWC")
    return (
        fn.resize(x, size=[4, 6, 8]),
        fn.resize(x, resize_x=20, interp_type=types.INTERP_CUBIC),
        fn.resize(x, resize_shorter=6, interp_type=types.INTERP_LANCZOS3),
        fn.resize(x, size=[3, -5, 30], antialias=False),
        fn.resize(x, resize_z=3, resize_y=9, mode="stretch"),
        fn.resize(x, resize_z=3, resize_x=9),
        fn.resize(x, size=[7, 7, 7], mode="not_larger", max_size=[6, 20, 20]),
        fn.resize(x, resize_longer=13, interp_type=types.INTERP_NN),
    )


@case(tol=2e-4, inputs={"X": noise((5, 12, 16, 2), (9, 7, 11, 2), (2, 3, 20, 2), dtype=np.float32)}, devices=False)
def volumes_of_floats():
    x = source("X", types.FLOAT, layout="DHWC") / 60
    sizes = ([4, 6, 8], [15, 6, 40], [3, 24, 8], [15, 24, 4], [2, 2, 2])
    return (
        *(fn.resize(x, size=s) for s in sizes),
        *(fn.resize(x, size=s, interp_type=types.INTERP_CUBIC) for s in sizes),
        fn.resize(x, size=[4, 6, 8], roi_start=[0.1, 0.2, 0.7], roi_end=[0.8, 0.9, 0.3], roi_relative=True),
        fn.resize(x, size=[4, 6, 8], roi_start=[0.5, -2, 3], roi_end=[2, 9, 30.5]),
        fn.resize(x, size=[4, 6, 8], interp_type=types.INTERP_NN, roi_start=[0.3, 0, 1.7], roi_end=[1.8, 2.5, 9]),
    )


@case(tol=1, mean=0.01, inputs={"X": noise((2, 3, 5, 12, 16), (2, 1, 4, 4, 5), (2, 2, 3, 3, 3))})
def volumes_of_planes():
    x = source("X", layout="FCDHW")
    return *fn.resize(x, size=[4, 6, 8], save_attrs=True), fn.resize(x, size=[4, 6, 8], dtype=types.FLOAT)


@case(inputs={"X": noise((2, 12, 10, 3), (1, 7, 9, 3), (3, 5, 5, 3))}, tol=1, mean=0.02)
def frames_without_a_layout():
    resized = fn.resize(source("X", ndim=4), size=[6, 5])
    return resized, fn.get_property(resized, key="layout")


@case(inputs={"X": noise((12, 10, 3), (7, 9, 3), (5, 5, 3))}, tol=1, mean=0.02)
def layouts_that_are_taken():
    x = source("X", ndim=3)
    made = fn.resize(x, size=[6, 5]), fn.resize_crop_mirror(x, size=[6, 5], crop=(3, 4)), fn.flip(x)
    return tuple(fn.get_property(image, key="layout") for image in made)
