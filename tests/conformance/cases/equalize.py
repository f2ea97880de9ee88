from record import case, fn, noise, np, source


def dull(*shapes):
    """Values that crowd around a few levels, a different one for each channel."""
    return [(x // 5 + 40 + 30 * np.arange(x.shape[-1])).astype(np.uint8) for x in noise(*shapes)]


@case(inputs={"X": dull((31, 27, 3), (4, 6, 3), (1, 9, 3))})
def channels_last():
    return fn.equalize(source("X", layout="HWC")), fn.experimental.equalize(source("X", layout="HWC"))


@case(inputs={"X": dull((3, 13, 17), (2, 4, 6), (1, 1, 9))})
def channels_first():
    return fn.equalize(source("X", layout="CHW"))


@case(inputs={"X": dull((13, 17), (4, 6), (1, 1))})
def gray_without_a_layout():
    return fn.equalize(source("X", ndim=2))


@case(inputs={"X": [np.full((3, 4, 2), v, np.uint8) for v in (0, 7, 255)]})
def plain():
    return fn.equalize(source("X", layout="HWC"))


@case(inputs={"X": dull((2, 13, 7, 3), (1, 4, 6, 3), (3, 3, 3, 3))})
def frames():
    return fn.equalize(source("X", layout="FHWC"))


@case(inputs={"X": dull((2, 3, 13, 7), (1, 3, 6, 3), (3, 1, 3, 3))})
def planes_of_frames():
    return fn.equalize(source("X", layout="FCHW"))


@case(inputs={"X": dull((2, 13, 7), (1, 6, 3), (3, 3, 3))})
def gray_frames():
    return fn.equalize(source("X", layout="FHW"))
