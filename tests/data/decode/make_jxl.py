"""Makes jxl.npz in this directory: small JPEG XLs of every kind that is decoded, and their pixels as libjxl decodes
them.

    python make_jxl.py       (needs numpy, pillow, pillow-jxl-plugin, imagecodecs)

The recorded files are from pillow-jxl-plugin 1.3.8 and, for what that does not write, imagecodecs 2026.3.6; pixels are
from imagecodecs (both libjxl 0.11), as stored: no file is turned.

Writes
    jxl.npz       name -> encoded file, 1-D uint8;  name + "_pixels" -> height x width x channels, of the file's type
"""

import os

import imagecodecs
import numpy as np
import pillow_jxl  # noqa: F401, tells Pillow of the format
from make import exif, picture, save
from PIL import Image

HEIGHT, WIDTH = 17, 23


def encoded(samples, **options):
    return imagecodecs.jpegxl_encode(samples, **{"effort": 5, **options})


class Bits:
    """A bare codestream's header, bit by bit from the lowest of each byte."""

    def __init__(self, file):
        self.all = np.unpackbits(np.frombuffer(file, np.uint8), bitorder="little")
        self.at = 16

    def take(self, count):
        bits, self.at = self.all[self.at : self.at + count], self.at + count
        return int(bits @ (1 << np.arange(count)))

    def choice(self, *widths):
        """A number of one of four widths."""
        return self.take(widths[self.take(2)])


def turned(file, number):
    """A lossless file of 8 bits of RGB, with EXIF's number of how it is turned in its header."""
    bits = Bits(file)
    assert not bits.take(1), "sides that are no multiples of 8"
    bits.choice(9, 13, 18, 30)
    if not bits.take(3):
        bits.choice(9, 13, 18, 30)
    assert not bits.take(1), "metadata of its own"
    place = bits.at
    assert not bits.take(1), "no fields beyond the usual"
    assert not bits.take(1) and bits.take(2) == 0, "8 bits"
    bits.take(1)
    assert bits.take(2) == 0, "no channels beside colours"
    assert not bits.take(1) and bits.take(1), "sRGB as it is"
    behind = bits.at
    assert bits.take(2) == 0 and bits.take(1), "no extensions, usual transforms"
    end = bits.at
    header = [1, *((number - 1) >> np.arange(3) & 1), 0, 0, 0]
    start = np.concatenate([bits.all[:place], header, bits.all[place + 1 : behind], [1], bits.all[behind:end]])
    frames = file[-(-end // 8) :]
    return np.packbits(start.astype(np.uint8), bitorder="little").tobytes() + frames


def files():
    rgb, rgba, gray = (picture(WIDTH, HEIGHT, channels) for channels in (3, 4, 1))
    la = np.dstack([gray, rgb[:, :, 2]])
    noise = np.random.default_rng(5)
    wide = {
        channels: samples.astype(np.uint16) << 8 | noise.integers(0, 256, samples.shape, dtype=np.uint16)
        for channels, samples in ((1, gray), (3, rgb), (4, rgba))
    }
    yield "jxl_lossless", save(rgb, "JXL", lossless=True)
    yield "jxl_boxes", save(rgb, "JXL", lossless=True, use_container=True, exif=exif(6))
    yield "jxl_gray", save(gray, "JXL", lossless=True)
    yield "jxl_la", save(Image.fromarray(la, "LA"), "JXL", lossless=True)
    yield "jxl_rgba", save(rgba, "JXL", lossless=True)
    yield "jxl_1x1", save(rgb[:1, :1], "JXL", lossless=True)
    yield "jxl_lossy", save(rgb, "JXL", quality=85)
    yield "jxl_lossy_gray", save(gray, "JXL", quality=85)
    yield "jxl_lossy_rgba", save(rgba, "JXL", quality=85)
    # Several groups, which have bytes of their own.
    yield "jxl_groups", save(picture(264, 20, 3), "JXL", quality=60)
    yield "jxl_lossless_groups", save(picture(264, 8, 3), "JXL", lossless=True)
    # The coefficients of a JPEG.
    yield "jxl_jpeg", imagecodecs.jpegxl_encode_jpeg(save(rgb, "JPEG", quality=85))
    for channels, name in ((1, "gray"), (3, "rgb"), (4, "rgba")):
        yield f"jxl_16_{name}", encoded(wide[channels].squeeze(), lossless=True)
    yield "jxl_16_lossy", encoded(wide[3], lossless=False, distance=1.0)
    yield "jxl_10", encoded(wide[3] >> 6, lossless=True, bitspersample=10)
    yield "jxl_float", encoded((wide[3] / 65535).astype(np.float32), lossless=True)
    yield "jxl_half", encoded((wide[3] / 65535).astype(np.float16), lossless=True)
    yield "jxl_animation", encoded(np.stack([rgb, 255 - rgb]), lossless=True)
    plain = save(rgb[:9], "JXL", lossless=True)
    for number in range(2, 9):
        yield f"jxl_turned{number}", turned(plain, number)


def pixels(name, file):
    if name.startswith("jxl_turned"):
        # libjxl turns it, and there is nothing to ask it not to.
        return picture(WIDTH, HEIGHT, 3)[:9]
    found = imagecodecs.jpegxl_decode(file)
    if name == "jxl_animation":
        found = found[0]
    if found.dtype == np.float16:
        found = found.astype(np.float32)
    return found[..., None] if found.ndim == 2 else found


def main():
    arrays = {}
    for name, file in files():
        arrays[name] = np.frombuffer(file, np.uint8)
        arrays[f"{name}_pixels"] = pixels(name, file)
        if name.startswith("jxl_turned"):
            seen = imagecodecs.jpegxl_decode(file)
            assert seen.shape[:2] == ((9, WIDTH) if int(name[-1]) < 5 else (WIDTH, 9)), name
        print(name, len(file), arrays[f"{name}_pixels"].shape, arrays[f"{name}_pixels"].dtype)
    np.savez_compressed(os.path.join(os.path.dirname(os.path.abspath(__file__)), "jxl.npz"), **arrays)


if __name__ == "__main__":
    main()
