"""Makes avif.npz in this directory: small AVIFs of every kind that is decoded, and their pixels as libavif decodes
them.

    python make_avif.py       (needs numpy, pillow, imagecodecs)

The recorded files are from Pillow 12.0.0 (libavif 1.3.0) and, for what that does not write, imagecodecs 2026.3.6
(libavif 1.4.0); pixels are from Pillow, as stored: no file is turned.

Writes
    avif.npz       name -> encoded file, 1-D uint8;
                   name + "_pixels" -> height x width x (red, green, blue, alpha), uint8
"""

import io
import os

import imagecodecs
import numpy as np
from make import exif, picture, save
from PIL import Image


def wide(bits, channels):
    """Samples of so many bits: those of 8 bits, and noise in the bits behind them."""
    samples = picture(23, 17, channels, 3).astype(np.uint16) << (bits - 8)
    return samples | np.random.default_rng(5).integers(0, 1 << (bits - 8), samples.shape, dtype=np.uint16)


def encoded(samples, bits, **options):
    return imagecodecs.avif_encode(
        samples if bits > 8 else samples.astype(np.uint8), level=90, bitspersample=bits, speed=6, **options
    )


def files():
    rgb, rgba, gray = picture(23, 17, 3), picture(23, 17, 4), picture(23, 17, 1)
    la = Image.fromarray(np.dstack([gray, rgb[:, :, 2]]), "LA")
    as_usual = dict(quality=90, speed=6)
    for layout in ("4:2:0", "4:2:2", "4:4:4"):
        yield f"avif_{layout.replace(':', '')}", save(rgb, "AVIF", subsampling=layout, **as_usual)
    yield "avif_limited", save(rgb, "AVIF", subsampling="4:4:4", range="limited", **as_usual)
    yield "avif_gray", save(gray, "AVIF", subsampling="4:0:0", **as_usual)
    yield "avif_gray_limited", save(gray, "AVIF", subsampling="4:0:0", range="limited", **as_usual)
    yield "avif_rgba", save(rgba, "AVIF", **as_usual)
    yield "avif_premultiplied", save(rgba, "AVIF", subsampling="4:4:4", alpha_premultiplied=True, **as_usual)
    yield "avif_la", save(la, "AVIF", subsampling="4:0:0", **as_usual)
    yield "avif_1x1", save(rgb[:1, :1], "AVIF", **as_usual)
    for number in range(2, 9):
        yield f"avif_exif{number}", save(rgb[:9], "AVIF", exif=exif(number), **as_usual)
    frames = [Image.fromarray(rgb), Image.fromarray(255 - rgb)]
    yield "avif_sequence", save(frames[0], "AVIF", save_all=True, append_images=frames[1:], **as_usual)
    for bits in (10, 12):
        yield f"avif_{bits}_444", encoded(wide(bits, 3), bits, pixelformat="444")
        yield f"avif_{bits}_420", encoded(wide(bits, 3), bits, pixelformat="420")
    yield "avif_10_gray", encoded(wide(10, 1)[:, :, 0], 10, pixelformat="400")
    yield "avif_10_rgba", encoded(wide(10, 4), 10, pixelformat="444")
    for name, matrix in [("identity", 0), ("bt709", 1), ("bt2020", 9)]:
        yield f"avif_{name}", encoded(rgb, 8, pixelformat="444", matrix=matrix)
    yield "avif_ycgco", encoded(rgb, 8, pixelformat="444", matrix=8)


def main():
    arrays = {}
    for name, file in files():
        arrays[name] = np.frombuffer(file, np.uint8)
        arrays[f"{name}_pixels"] = np.array(Image.open(io.BytesIO(file)).convert("RGBA"))
    np.savez_compressed(os.path.join(os.path.dirname(os.path.abspath(__file__)), "avif.npz"), **arrays)
    print(len(arrays) // 2, "files")


if __name__ == "__main__":
    main()
