from record import case, fn, noise, source, types

SPACES = [types.RGB, types.BGR, types.GRAY, types.YCbCr]
COLORS = {"X": noise((41, 57, 3), (4, 6, 3), (1, 9, 3))}


def convert(image, a, b):
    return fn.color_space_conversion(image, image_type=a, output_type=b)


@case(inputs=COLORS)
def from_three_channels():
    return tuple(convert(source("X", layout="HWC"), a, b) for a in SPACES for b in SPACES if a != b and a != types.GRAY)


@case(inputs={"X": noise((16, 16, 1), (4, 6, 1), (1, 9, 1))})
def from_gray():
    return tuple(convert(source("X", ndim=3), types.GRAY, b) for b in SPACES if b != types.GRAY)


@case(inputs={"X": noise((2, 3, 4, 3), (1, 2, 5, 3), (3, 2, 2, 3))})
def frames():
    return convert(source("X", layout="FHWC"), types.RGB, types.GRAY), convert(source("X"), types.RGB, types.YCbCr)


@case(inputs={"X": noise((2, 2, 3, 4, 3), (1, 1, 2, 5, 3), (2, 3, 2, 2, 3))})
def frames_of_volumes():
    return convert(source("X", ndim=5), types.BGR, types.GRAY)
