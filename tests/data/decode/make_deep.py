"""Makes deep.npz in this directory: JPEGs of 12 bits, lossless JPEGs, and their samples.

    python make_deep.py LIBTURBOJPEG      (a library of libjpeg-turbo 3; needs numpy, imagecodecs)

JPEGs of 12 bits are made by libjpeg-turbo, which is called by ctypes, and read by imagecodecs' own copy of it.
Lossless JPEGs are put together here, sample by sample, so that it is known what is in them; imagecodecs decodes those
that it can, by other decoders than libjpeg-turbo, and has to agree.

Writes
    deep.npz    name -> encoded file, 1-D uint8;  name + "_samples" -> height x width x channels, uint16, as the file
                has them;  name + "_luma" -> its luma, where that is stored
"""

import ctypes
import struct
import sys
from pathlib import Path

import imagecodecs
import numpy as np
from make import jpeg_segment, picture

W, H = 29, 21
SUBSAMPLING = {"444": 0, "422": 1, "420": 2, "gray": 3, "440": 4}
# Numbers of parameters of libjpeg-turbo.
QUALITY, SUBSAMP, PRECISION, OPTIMIZE, PROGRESSIVE, ARITHMETIC, RESTART_ROWS = 3, 4, 7, 11, 12, 14, 19
COLORSPACE, RGB_PIXELS, GRAY_PIXELS, CMYK_PIXELS = 8, 0, 6, 11


def deep(bits, channels):
    """A picture of so many bits, whose lowest ones are not 0."""
    rng = np.random.default_rng(bits)
    wide = picture(W, H, channels).astype(np.uint32) * ((1 << bits) - 1) // 255
    noise = rng.integers(0, max(1, 1 << bits >> 7), wide.shape)
    return np.clip(wide + noise, 0, (1 << bits) - 1).astype(np.uint16)


# ---- 12 bits ---------------------------------------------------------------------------------------------------------


def twelve(library, samples, **parameters):
    pixels = {1: GRAY_PIXELS, 3: RGB_PIXELS, 4: CMYK_PIXELS}[samples.shape[2]]
    library.tj3Init.restype = ctypes.c_void_p
    library.tj3GetErrorStr.restype = ctypes.c_char_p
    handle = ctypes.c_void_p(library.tj3Init(0))
    names = dict(
        quality=QUALITY,
        subsampling=SUBSAMP,
        optimize=OPTIMIZE,
        progressive=PROGRESSIVE,
        arithmetic=ARITHMETIC,
        restart_rows=RESTART_ROWS,
        colorspace=COLORSPACE,
    )
    for name, value in {"quality": 95, **parameters}.items():
        if library.tj3Set(handle, names[name], value):
            raise RuntimeError(library.tj3GetErrorStr(handle))
    height, width, _ = samples.shape
    buffer, size = ctypes.c_void_p(), ctypes.c_size_t()
    samples = np.ascontiguousarray(samples.astype(np.int16))
    if library.tj3Compress12(
        handle,
        samples.ctypes.data_as(ctypes.c_void_p),
        width,
        0,
        height,
        pixels,
        ctypes.byref(buffer),
        ctypes.byref(size),
    ):
        raise RuntimeError(library.tj3GetErrorStr(handle))
    return ctypes.string_at(buffer, size.value)


def lossy(library):
    """(name, file, samples, luma or None)"""
    rgb, gray = deep(12, 3), deep(12, 1)
    kinds = {
        f"jpeg12_{name}": (rgb, dict(subsampling=number)) for name, number in SUBSAMPLING.items() if name != "gray"
    }
    kinds["jpeg12_gray"] = gray, dict(subsampling=SUBSAMPLING["gray"])
    kinds["jpeg12_prog"] = rgb, dict(subsampling=SUBSAMPLING["420"], progressive=1)
    kinds["jpeg12_prog_gray"] = gray, dict(subsampling=SUBSAMPLING["gray"], progressive=1)
    kinds["jpeg12_arithmetic"] = rgb, dict(subsampling=SUBSAMPLING["422"], arithmetic=1)
    kinds["jpeg12_rst"] = rgb, dict(subsampling=SUBSAMPLING["420"], restart_rows=1)
    kinds["jpeg12_rgb"] = rgb, dict(subsampling=SUBSAMPLING["444"], colorspace=0)
    kinds["jpeg12_cmyk"] = deep(12, 4), dict(subsampling=SUBSAMPLING["444"], colorspace=3)
    kinds["jpeg12_ycck"] = deep(12, 4), dict(subsampling=SUBSAMPLING["420"], colorspace=4)
    for name, (samples, parameters) in kinds.items():
        file = twelve(library, samples, **parameters)
        decoded = imagecodecs.jpeg8_decode(file).reshape(samples.shape)
        luma = None
        if samples.shape[2] == 3 and name != "jpeg12_rgb":
            luma = imagecodecs.jpeg8_decode(file, outcolorspace="GRAYSCALE").reshape(H, W, 1)
        yield name, file, decoded, luma


# ---- lossless --------------------------------------------------------------------------------------------------------


class Bits:
    def __init__(self):
        self.bits = []

    def put(self, value, count):
        self.bits += [value >> i & 1 for i in range(count - 1, -1, -1)]

    def bytes(self):
        self.put(0xFF, -len(self.bits) % 8)
        return np.packbits(np.array(self.bits, np.uint8)).tobytes().replace(b"\xff", b"\xff\0")


def predicted(predictor, left, above, corner):
    return [
        None,
        left,
        above,
        corner,
        left + above - corner,
        left + ((above - corner) >> 1),
        above + ((left - corner) >> 1),
        (left + above) >> 1,
    ][predictor]


def differences(plane, bits, predictor, shift, restart):
    """What is coded of each sample (T.81, H.1)."""
    plane = plane.astype(np.int64) >> shift
    found = np.zeros_like(plane)
    for y, x in np.ndindex(plane.shape):
        first = y == 0 or (restart and y % restart == 0)
        if first and x == 0:
            value = 1 << (bits - shift - 1)
        elif first:
            value = plane[y, x - 1]
        elif x == 0:
            value = plane[y - 1, x]
        else:
            value = predicted(predictor, plane[y, x - 1], plane[y - 1, x], plane[y - 1, x - 1])
        found[y, x] = (plane[y, x] - value + 32767) % 65536 - 32767
    return found


def put_difference(to, value):
    """Its size, which has a code of five bits, and what it is among numbers of that size."""
    value = int(value)
    size = abs(value).bit_length()
    to.put(size, 5)
    if size < 16:
        to.put(value if value > 0 else value + (1 << size) - 1, size)


def scan(planes, factors, ids, predictor, shift, restart):
    """A scan with all these components, whose differences are `planes`."""
    head = bytes([len(planes)]) + b"".join(bytes([i, 0]) for i in ids) + bytes([predictor, 0, shift])
    out, bits, restarts = b"", Bits(), 0
    across, down = factors[0] if len(planes) > 1 else (1, 1)
    rows, columns = planes[0].shape[0] // down, planes[0].shape[1] // across
    for row, column in np.ndindex(rows, columns):
        if restart and column == 0 and row and row % restart == 0:
            out += bits.bytes() + bytes([0xFF, 0xD0 + restarts % 8])
            bits, restarts = Bits(), restarts + 1
        for plane, (h, v) in zip(planes, factors, strict=True):
            h, v = (h, v) if len(planes) > 1 else (1, 1)
            for y, x in np.ndindex(v, h):
                put_difference(bits, plane[row * v + y, column * h + x])
    return jpeg_segment(0xDA, head) + out + bits.bytes()


def lossless(planes, bits, predictor=1, shift=0, restart=0, ids=(1, 2, 3, 4), markers=b"", factors=None, apart=False):
    factors = factors or [(1, 1)] * len(planes)
    ids = ids[: len(planes)]
    height, width = H, W
    frame = struct.pack(">BHHB", bits, height, width, len(planes))
    frame += b"".join(bytes([i, h << 4 | v, 0]) for i, (h, v) in zip(ids, factors, strict=True))
    codes = bytes([0] * 4 + [17] + [0] * 11) + bytes(range(17))
    file = b"\xff\xd8" + markers + jpeg_segment(0xC3, frame) + jpeg_segment(0xC4, b"\0" + codes)
    if restart:
        file += jpeg_segment(0xDD, struct.pack(">H", restart * width))
    coded = [differences(plane, bits, predictor, shift, restart) for plane in planes]
    if apart:
        file += b"".join(
            scan([plane], [factor], [i], predictor, shift, restart)
            for plane, factor, i in zip(coded, factors, ids, strict=True)
        )
    else:
        file += scan(coded, factors, ids, predictor, shift, restart)
    return file + b"\xff\xd9"


JFIF = jpeg_segment(0xE0, b"JFIF\0\1\2\0\0\1\0\1\0\0")


def adobe(transform):
    return jpeg_segment(0xEE, b"Adobe\0d\0\0\0\0" + bytes([transform]))


def split(samples):
    return [samples[..., i] for i in range(samples.shape[2])]


def rgb_of(ycc, bits):
    """T.871 in the whole numbers that libjpeg has, of samples of so many bits."""
    y, blue, red = (ycc[..., i].astype(np.int64) for i in range(3))
    blue, red = blue - (1 << (bits - 1)), red - (1 << (bits - 1))
    half = 1 << 15
    rgb = [
        y + ((91881 * red + half) >> 16),
        y + ((-22554 * blue - 46802 * red + half) >> 16),
        y + ((116130 * blue + half) >> 16),
    ]
    return np.clip(np.stack(rgb, -1), 0, (1 << bits) - 1).astype(np.uint16)


def undone():
    """(name, file, samples, luma or None)"""
    for predictor in range(1, 8):
        gray = deep(16, 1)
        yield f"sof3_16_psv{predictor}", lossless(split(gray), 16, predictor), gray, None
    for bits in range(2, 16):
        gray = deep(bits, 1)
        yield f"sof3_{bits}_gray", lossless(split(gray), bits, 1 + bits % 7), gray, None
    for bits in (8, 10, 12, 16):
        rgb = deep(bits, 3)
        yield f"sof3_{bits}_rgb", lossless(split(rgb), bits, 6), rgb, None
        ycc = lossless(split(rgb), bits, 4, markers=JFIF)
        yield f"sof3_{bits}_jfif", ycc, rgb_of(rgb, bits), rgb[..., :1]
    rgb = deep(8, 3)
    yield "sof3_adobe0", lossless(split(rgb), 8, 2, markers=adobe(0)), rgb, None
    yield "sof3_adobe1", lossless(split(rgb), 8, 5, markers=adobe(1)), rgb_of(rgb, 8), rgb[..., :1]
    yield "sof3_ids", lossless(split(rgb), 8, 7, ids=b"RGB"), rgb, None
    yield "sof3_apart", lossless(split(rgb), 8, 3, apart=True), rgb, None
    rgb = deep(12, 3)
    yield "sof3_12_rst", lossless(split(rgb), 12, 7, restart=2), rgb, None
    yield "sof3_12_shift", lossless(split(rgb), 12, 1, shift=3), rgb >> 3 << 3, None
    gray = deep(16, 1)
    yield "sof3_16_rst", lossless(split(gray), 16, 4, restart=1), gray, None
    yield "sof3_16_shift", lossless(split(gray), 16, 1, shift=4), gray >> 4 << 4, None
    inks = deep(8, 4)
    yield "sof3_cmyk", lossless(split(inks), 8, 1, markers=adobe(0)), inks, None
    inks = deep(16, 4)
    yield "sof3_16_cmyk", lossless(split(inks), 16, 1), inks, None

    # Green and blue of every other pixel, which are repeated.
    rgb = deep(10, 3)
    rgb[..., 1:] = rgb[::2, ::2, 1:].repeat(2, 0).repeat(2, 1)[:H, :W]
    red = np.pad(rgb[..., 0], ((0, H % 2), (0, W % 2)), "edge")
    planes = [red, rgb[::2, ::2, 1], rgb[::2, ::2, 2]]
    yield "sof3_10_420", lossless(planes, 10, 1, factors=[(2, 2), (1, 1), (1, 1)]), rgb, None


def refused():
    """Files that are not decoded."""
    yield "sof3_two", lossless(split(deep(8, 3))[:2], 8)
    yield "jpegls_gray", imagecodecs.jpegls_encode(np.ascontiguousarray(deep(8, 1)[..., 0].astype(np.uint8)))


def main():
    library = ctypes.CDLL(sys.argv[1])
    arrays = {}
    for name, file, samples, luma in [*lossy(library), *undone()]:
        arrays[name] = np.frombuffer(file, np.uint8)
        arrays[f"{name}_samples"] = samples.astype(np.uint16)
        if luma is not None:
            arrays[f"{name}_luma"] = luma.astype(np.uint16)
        if name.startswith("sof3_"):
            check(name, file, samples)
    arrays |= {name: np.frombuffer(file, np.uint8) for name, file in refused()}
    np.savez_compressed(Path(__file__).with_name("deep.npz"), **arrays)


def check(name, file, samples):
    """Another decoder has to see what was put in. It knows no colours."""
    if "jfif" in name or "adobe1" in name or "420" in name:
        return
    for decode in (imagecodecs.jpegsof3_decode, imagecodecs.ljpeg_decode):
        try:
            found = decode(file)
        except Exception as error:
            print(f"{name}: {decode.__name__}: {error}")
            continue
        if found.shape[:1] == (samples.shape[2],) and found.ndim == 3:
            found = np.moveaxis(found, 0, -1)
        same = found.size == samples.size and (found.reshape(samples.shape) == samples).all()
        print(f"{name}: {decode.__name__}: {'the same' if same else 'another'}")


if __name__ == "__main__":
    main()
