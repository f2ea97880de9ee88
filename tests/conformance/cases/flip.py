from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((5, 7, 3), (4, 6, 3), (1, 9, 3))}
FLAGS = {"H": [np.array(v, np.int32) for v in (1, 0, 1)], "V": [np.array(v, np.int32) for v in (0, 1, 1)]}


@case(inputs=IMAGES)
def default_is_horizontal():
    return fn.flip(source("X", layout="HWC"))


@case(inputs=IMAGES)
def without_a_layout():
    return fn.flip(source("X", ndim=3), vertical=1)


@case(inputs={"X": noise((3, 5, 7), (3, 4, 6), (1, 2, 2), dtype=np.float32)})
def planes_vertically():
    return fn.flip(source("X", types.FLOAT, layout="CHW"), horizontal=0, vertical=1)


@case(inputs={"X": noise((2, 3, 4, 3), (1, 2, 5, 3), (3, 2, 2, 3), dtype=np.int16)})
def volumes_in_depth():
    return fn.flip(source("X", types.INT16, layout="DHWC"), horizontal=0, depthwise=1)


@case(inputs=IMAGES | FLAGS)
def flags_per_sample():
    return fn.flip(
        source("X", layout="HWC"), horizontal=source("H", types.INT32, 0), vertical=source("V", types.INT32, 0)
    )


@case(inputs=IMAGES)
def images_have_no_depth():
    return fn.flip(source("X", layout="HWC"), horizontal=0, depthwise=1)


@case(inputs={"X": noise((2, 5, 7, 3), (1, 4, 6, 3), (3, 1, 9, 3))})
def frames_without_a_layout():
    flipped = fn.flip(source("X", ndim=4), vertical=1)
    return flipped, fn.get_property(flipped, key="layout")
