#!/usr/bin/env python3
"""Makes the files beside it: drawn here, encoded by OpenJPEG in Pillow (pip install pillow numpy)."""

import pathlib

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).parent


def picture(width, height):
    y, x = np.mgrid[0:height, 0:width]
    waves = np.stack([x * 2 + y, 255 - x - y, 128 + 100 * np.sin(x * 0.2) * np.cos(y * 0.15)], -1)
    return Image.fromarray((waves % 256).astype(np.uint8))


def main():
    image = picture(90, 70)
    image.save(HERE / "lossless.jp2")
    image.save(HERE / "codestream.j2k", no_jp2=True)
    image.save(HERE / "tiles.jp2", tile_size=(32, 32))
    image.save(HERE / "lossy.jp2", irreversible=True, quality_mode="rates", quality_layers=[8])
    image.convert("L").save(HERE / "gray.jp2")
    image.convert("RGBA").save(HERE / "alpha.jp2")


main()
