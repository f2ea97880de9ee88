"""Small pipelines that say little about operators and much about a server: tests/server asks them of a real one."""

from cases.pipelines import IMAGES, photo
from record import case, fn, np, source, types

ROWS = {"X": [np.arange(i, i + 3, dtype=np.float32) for i in range(3)]}
PICTURES = [photo(90, 60, 4, quality=80), photo(61, 83, 5, quality=90), photo(77, 77, 6, quality=70)]


@case(inputs=ROWS, devices=True)
def identity(device):
    x = source("X", types.FLOAT, 1)
    return x.gpu() if device == "gpu" else x


@case(inputs=ROWS)
def plus_one():
    return fn.cast(source("X", types.FLOAT, 1) + 1.0, dtype=types.FLOAT, name="SUM")


@case(inputs=ROWS)
def plus_two():
    return fn.cast(source("X", types.FLOAT, 1) + 2.0, dtype=types.FLOAT, name="SUM")


@case(inputs=ROWS)
def plus_three():
    return fn.cast(source("X", types.FLOAT, 1) + 3.0, dtype=types.FLOAT, name="SUM")


@case(inputs={"LEFT": IMAGES["IMAGE"], "RIGHT": PICTURES}, tol=1)
def two_inputs():
    left = fn.decoders.image(source("LEFT", ndim=1))
    right = fn.decoders.image(source("RIGHT", ndim=1))
    return fn.resize(left, size=[32, 40], name="L"), fn.resize(right, size=[24, 16], name="R")


@case(inputs=IMAGES | {"SIZE": [np.array(s, np.float32) for s in ((20, 30), (30, 20), (25, 25))]}, tol=1)
def sized():
    return fn.resize(fn.decoders.image(source("IMAGE", ndim=1)), size=source("SIZE", types.FLOAT, 1), name="PIXELS")


@case(inputs={"CROPS": [np.arange(n * 6, dtype=np.uint8).reshape(n, 2, 3) for n in (2, 1, 3)]})
def crops():
    return fn.cast(source("CROPS", ndim=3), dtype=types.FLOAT, name="EACH")
