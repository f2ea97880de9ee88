from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((20, 33, 3), (31, 17, 3), (16, 16, 3))}
FLOATS = {"X": noise((20, 33, 3), (31, 17, 3), (16, 16, 3), dtype=np.float32)}
MIRRORS = {"M": [np.array(m, np.int32) for m in (0, 1, 3)]}


@case(inputs=IMAGES, tol=1, mean=0.03)
def cropped():
    x = source("X", layout="HWC")
    return (
        fn.resize_crop_mirror(x, resize_shorter=14, crop=[12, 10]),
        fn.resize_crop_mirror(x, size=[15, 20]),
        fn.resize_crop_mirror(x, size=[15, 20], crop_w=7, crop_h=5, crop_pos_x=0.9, crop_pos_y=0.1),
        fn.resize_crop_mirror(x, size=[15, 20], crop=[8.9, 7.2], rounding="truncate", interp_type=2),
    )


@case(inputs=IMAGES | MIRRORS, tol=1, mean=0.03)
def mirrored():
    x = source("X", layout="HWC")
    return (
        fn.resize_crop_mirror(x, resize_longer=40, crop=[12, 10], mirror=source("M", types.INT32, 0)),
        fn.resize_crop_mirror(x, resize_x=9, mirror=2, dtype=types.FLOAT),
    )


@case(inputs=FLOATS, tol=0.02)
def of_a_region():
    x = source("X", types.FLOAT, layout="HWC")
    return fn.resize_crop_mirror(
        x, resize_shorter=24, roi_start=[0.1, 0.2], roi_end=[0.9, 0.7], roi_relative=True, crop=[16, 14], mirror=1
    )


@case(inputs=IMAGES, tol=1, mean=0.03)
def under_the_old_name():
    x = source("X", layout="HWC")
    return (
        fn.fast_resize_crop_mirror(x, resize_shorter=9, crop=[8, 7]),
        fn.fast_resize_crop_mirror(x, resize_shorter=9, antialias=True),
    )
