"""Makes kinds.npz in this directory: BMP, JPEG 2000 and AVIF of rarer kinds, and their pixels.

    python make_kinds.py      (needs nvidia-dali, numpy, pillow, imagecodecs)

Files are put together here, box by box and row by row. Codestreams of JPEG 2000 are by OpenJPEG 2.5, pictures of AV1 by
libavif 1.4, both of imagecodecs 2026.3.6, which is called by ctypes for what it does not offer itself. Pixels of BMPs
are DALI 2.4's where it decodes them; what it gets wrong or refuses is known here: the samples that the file was made
of. Layers of AVIF are decoded by Pillow 13 (libavif 1.4).

Writes
    kinds.npz     name -> encoded file, 1-D uint8;  name + "_pixels" -> height x width x channels of the file, uint8;
                  name + "_gray" -> DALI's gray, where pixels are its answer
"""

import ctypes
import glob
import io
import os
import struct
import tempfile

import imagecodecs
import numpy as np
from make import Dali, picture
from PIL import Image

W, H = 13, 9
RGBA = picture(W, H, 4)
R, G, B, A = (RGBA[..., i].astype(np.uint32) for i in range(4))
RNG = np.random.default_rng(7)


# ---- BMP -------------------------------------------------------------------------------------------------------------


def bmp(bits, data, header=40, compression=0, palette=b"", masks=(), colors=0, flip=False, planes=1):
    info = struct.pack(
        "<IiiHHIIiiII", header, W, -H if flip else H, planes, bits, compression, len(data), 0, 0, colors, 0
    )
    if header == 12:
        info = struct.pack("<IHHHH", 12, W, H, 1, bits)
    behind = b"".join(struct.pack("<I", mask) for mask in masks)
    if header >= 52 and header != 64:
        info, behind = info + behind, b""
    body = info[:header].ljust(header, b"\0") + behind + palette
    return struct.pack("<2sIHHI", b"BM", 14 + len(body) + len(data), 0, 0, 14 + len(body)) + body + data


def rows(samples, bits, flip=False):
    out = b""
    for row in samples if flip else samples[::-1]:
        if bits < 8:
            row = np.packbits((row[:, None] >> np.arange(bits - 1, -1, -1) & 1).astype(np.uint8)).tobytes()
        elif bits == 24:
            row = row[:, 2::-1].astype(np.uint8).tobytes()
        else:
            row = row.astype({8: "u1", 16: "<u2", 32: "<u4"}[bits]).tobytes()
        out += row + bytes(-len(row) % 4)
    return out


def palette(count, entry=4):
    colors = RNG.integers(0, 256, (count, 3), np.uint8)
    return b"".join(bytes(color[::-1]).ljust(entry, b"\0") for color in colors), colors


def bmps():
    """Name, file, and pixels where DALI's are not right or not there."""
    index = RNG.integers(0, 16, (H, W))
    entries, colors = palette(16)
    short, core = entries[: 4 * 16], b"".join(entries[i : i + 3] for i in range(0, 64, 4))
    yield "bmp_os2_core", bmp(4, rows(index, 4), 12, palette=core), None
    for length in (16, 24, 64):
        yield (
            f"bmp_os2_{length}",
            bmp(4, rows(index, 4), length, palette=short),
            None if length == 64 else colors[index],
        )
    yield "bmp_os2_24_bits", bmp(24, rows(RGBA, 24), 64), None
    yield "bmp_v5_palette", bmp(8, rows(index, 8), 124, palette=short, colors=16), None
    yield "bmp_2_bits", bmp(2, rows(index % 4, 2), palette=short[:16]), colors[index % 4]
    yield "bmp_no_planes", bmp(24, rows(RGBA, 24), planes=0), None
    stored = R << 16 | G << 8 | B
    yield "bmp_32_topdown", bmp(32, rows(stored, 32, True), flip=True), np.dstack([RGBA[..., :3], np.full_like(A, 255)])
    usual, opaque = (0xFF0000, 0xFF00, 0xFF), np.dstack([RGBA[..., :3], np.full((H, W), 255)])
    for length in (40, 52, 56, 108, 124):
        none = (0,) if length >= 56 else ()
        turned = bmp(32, rows(B << 16 | G << 8 | R, 32), length, 3, masks=usual[::-1] + none)
        yield f"bmp_masks_{length}", turned, opaque
        if length >= 56:
            yield (
                f"bmp_alpha_{length}",
                bmp(32, rows(stored | A << 24, 32), length, 3, masks=usual + (0xFF000000,)),
                RGBA,
            )
    yield "bmp_alpha_masks", bmp(32, rows(stored | A << 24, 32), 40, 6, masks=usual + (0xFF000000,)), RGBA
    ten = R << 22 | 3 << 20 | G << 12 | B << 2 | 1
    wide = [(c << 2 | low) * 255 // 1023 for c, low in ((R, 3), (G, 0), (B, 1))]
    yield (
        "bmp_masks_10_bits",
        bmp(32, rows(ten, 32), 56, 3, masks=(0x3FF << 20, 0x3FF << 10, 0x3FF, 0)),
        np.dstack(wide + [opaque[..., 3]]),
    )
    five = R >> 3 << 10 | G >> 3 << 5 | B >> 3
    low = RGBA[..., :3] & 0xF8
    for length in (40, 108):
        none = (0,) if length >= 56 else ()
        yield f"bmp_16_{length}", bmp(16, rows(five, 16), length), low
        yield f"bmp_555_{length}", bmp(16, rows(five, 16), length, 3, masks=(0x7C00, 0x3E0, 0x1F) + none), low
        six = R >> 3 << 11 | G >> 2 << 5 | B >> 3
        yield (
            f"bmp_565_{length}",
            bmp(16, rows(six, 16), length, 3, masks=(0xF800, 0x7E0, 0x1F) + none),
            RGBA[..., :3] & [0xF8, 0xFC, 0xF8],
        )
    one = bmp(16, rows(five | A >> 7 << 15, 16), 56, 3, masks=(0x7C00, 0x3E0, 0x1F, 0x8000))
    yield "bmp_1555", one, np.dstack([low, (A >> 7) * 255])
    four = bmp(16, rows(R >> 4 << 8 | G >> 4 << 4 | B >> 4 | A >> 4 << 12, 16), 56, 3, masks=(0xF00, 0xF0, 0xF, 0xF000))
    yield "bmp_4444", four, (RGBA >> 4) * 17
    many, wide = palette(256)
    canvas = np.zeros((H, W), int)
    canvas[H - 1, :5], canvas[H - 2, 7:11] = 3, 7
    canvas[H - 4, 2:8], canvas[H - 5] = 9, 5
    holes = bytes([5, 3, 0, 2, 2, 1, 4, 7, 0, 0, 0, 0, 0, 2, 2, 0, 6, 9, 0, 0, 13, 5, 0, 1])
    yield "bmp_runs_holes", bmp(8, holes, 40, 1, many), None
    assert (wide[canvas] == ANSWERS("bmp_runs_holes", bmp(8, holes, 40, 1, many))).all()
    yield "bmp_runs_early", bmp(8, bytes([5, 3, 0, 0, 4, 4, 0, 1]), 40, 1, many), None
    runs = b"".join(bytes([W - 5, y, 0, 5, 1, 2, 3, 4, y, 0, 0, 0]) for y in range(H)) + b"\0\1"
    line = np.array([[y] * (W - 5) + [1, 2, 3, 4, y] for y in range(H)])
    yield "bmp_runs_os2", bmp(8, runs, 64, 1, many), None
    yield "bmp_runs_topdown", bmp(8, runs, 40, 1, many, flip=True), None
    halves = b"".join(bytes([W - 5, 0x5A, 0, 5, 0x12, 0x34, 0x50, 0, 0, 0]) for _ in range(H - 1)) + b"\0\1"
    line = np.array([[5, 10] * 4 + [1, 2, 3, 4, 5]] * (H - 1))
    yield "bmp_runs_4_bits", bmp(4, halves, 40, 2, entries), colors[np.vstack([np.zeros((1, W), int), line])]
    full = b"".join(bytes([W - 1, 10 + y, 20, 30, 0, 0]) for y in range(H)) + b"\0\1"
    seen = np.zeros((H, W, 3), int)
    seen[:, : W - 1] = [[[30, 20, 10 + H - 1 - y]] for y in range(H)]
    yield "bmp_runs_24_bits", bmp(24, full, 64, 4), seen


def ANSWERS(name, file, color="rgb"):
    answer = DALI(data=file, color=color)
    assert not isinstance(answer, str), (name, answer)
    return answer


# ---- JPEG 2000 -------------------------------------------------------------------------------------------------------


class Component(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in "dx dy w h x0 y0 prec bpp sgnd".split()]


def library(name):
    # Loads what the library itself needs.
    imagecodecs.avif_version()
    return ctypes.CDLL(
        glob.glob(os.path.join(os.path.dirname(imagecodecs.__file__), "..", "imagecodecs.libs", f"lib{name}-*"))[0]
    )


def codestream(planes, bits=None, signed=None, steps=None):
    """Planes of samples, which may be smaller, without loss."""
    jp2, count = library("openjp2"), len(planes)
    jp2.opj_image_create.restype = jp2.opj_create_compress.restype = ctypes.c_void_p
    jp2.opj_stream_create_default_file_stream.restype = ctypes.c_void_p
    components = (Component * count)()
    for i, plane in enumerate(planes):
        dx, dy = (steps or [(1, 1)] * count)[i]
        depth = (bits or [8] * count)[i]
        components[i] = Component(
            dx, dy, plane.shape[1], plane.shape[0], 0, 0, depth, depth, (signed or [0] * count)[i]
        )
    image = ctypes.c_void_p(jp2.opj_image_create(count, components, 0))
    grid = ctypes.cast(image, ctypes.POINTER(ctypes.c_uint32))
    grid[2], grid[3] = W, H
    # Behind four sides, a count and a number of colours stand the components, of 64 bytes each, whose samples are at
    # byte 48.
    base = ctypes.cast(image, ctypes.POINTER(ctypes.c_uint64))[3]
    for i, plane in enumerate(planes):
        samples = np.ascontiguousarray(plane, np.int32)
        ctypes.memmove(ctypes.c_void_p.from_address(base + 64 * i + 48).value, samples.ctypes.data, samples.nbytes)
    parameters = ctypes.create_string_buffer(40_000)
    jp2.opj_set_default_encoder_parameters(parameters)
    numbers = ctypes.cast(parameters, ctypes.POINTER(ctypes.c_int))
    # Rates are allocated; one layer of all data; three resolutions.
    numbers[5] = 1
    numbers[LAYERS], numbers[LAYERS + 201] = 1, 3
    codec = ctypes.c_void_p(jp2.opj_create_compress(0))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.j2k")
        assert jp2.opj_setup_encoder(codec, parameters, image)
        stream = ctypes.c_void_p(jp2.opj_stream_create_default_file_stream(path.encode(), 0))
        assert (
            jp2.opj_start_compress(codec, image, stream)
            and jp2.opj_encode(codec, stream)
            and jp2.opj_end_compress(codec, stream)
        )
        jp2.opj_stream_destroy(stream)
        with open(path, "rb") as file:
            return file.read()


# Where the parameters have their layers, in words of 4 bytes: behind 14 words, 32 changes of the order of 148 bytes
# each and their number.
LAYERS = 14 + 32 * 148 // 4 + 1


def box(kind, body):
    return struct.pack(">I4s", 8 + len(body), kind) + body


def jp2(stream, colors, *boxes):
    """`colors` is a number of box `colr`, or a whole one."""
    if isinstance(colors, int):
        colors = box(b"colr", bytes([1, 0, 0]) + struct.pack(">I", colors))
    size = box(b"ihdr", struct.pack(">IIHBBBB", H, W, stream[41], 7, 7, 0, 0))
    return (
        box(b"jP  ", b"\r\n\x87\n")
        + box(b"ftyp", b"jp2 \0\0\0\0jp2 ")
        + box(b"jp2h", size + colors + b"".join(boxes))
        + box(b"jp2c", stream)
    )


def cdef(*entries):
    return box(b"cdef", struct.pack(">H", len(entries)) + b"".join(struct.pack(">HHH", *entry) for entry in entries))


def rgb_of_ycc(y, blue, red, middle=128, most=255):
    y, blue, red = y.astype(float), blue.astype(float) - middle, red.astype(float) - middle
    rgb = np.dstack([y + 1.402 * red, y - 0.344136 * blue - 0.714136 * red, y + 1.772 * blue])
    return np.rint(np.clip(rgb, 0, most) * 255 / most)


def jp2s():
    planes = [plane.astype(np.int32) for plane in (R, G, B, A)]
    four, three, two, one = (codestream(planes[:n]) for n in (4, 3, 2, 1))
    rgb = RGBA[..., :3]
    yield "jp2_four", jp2(four, 16), RGBA
    yield "jp2_bare_four", four, RGBA
    yield "jp2_alpha", jp2(four, 16, cdef((0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 1, 0))), RGBA
    yield "jp2_alpha_first", jp2(four, 16, cdef((0, 1, 0), (1, 0, 1), (2, 0, 2), (3, 0, 3))), RGBA[..., [1, 2, 3, 0]]
    yield "jp2_premultiplied", jp2(four, 16, cdef((0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 2, 0))), RGBA
    yield "jp2_unspecified", jp2(four, 16, cdef((0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 65535, 65535))), RGBA
    yield "jp2_reversed", jp2(three, 16, cdef((0, 0, 3), (1, 0, 2), (2, 0, 1))), rgb[..., ::-1]
    yield "jp2_bad_profile", jp2(four, box(b"colr", b"\2\0\0" + b"junk" * 40)), RGBA
    yield "jp2_two_colr", jp2(three, box(b"colr", b"\1\0\0\0\0\0\x10") + box(b"colr", b"\1\0\0\0\0\0\x12")), rgb
    yield "jp2_gray_alpha", jp2(two, 17, cdef((0, 0, 1), (1, 1, 0))), RGBA[..., :2]
    yield "jp2_bilevel", jp2(one, 0), RGBA[..., :1]
    ycc = rgb_of_ycc(R, G, B)
    yield "jp2_sycc", jp2(three, 18), ycc
    yield (
        "jp2_sycc_alpha",
        jp2(four, 18, cdef((0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 1, 0))),
        np.dstack([ycc, RGBA[..., 3]]),
    )
    half = [planes[0], planes[1][::2, ::2], planes[2][::2, ::2]]
    steps = [(1, 1), (2, 2), (2, 2)]
    whole = [plane.repeat(2, 0).repeat(2, 1)[:H, :W] for plane in half[1:]]
    smaller, wide = codestream(half, steps=steps), rgb_of_ycc(R, *whole)
    yield "jp2_sycc_420", jp2(smaller, 18), wide
    yield "jp2_bare_420", smaller, wide
    yield "jp2_rgb_420", jp2(smaller, 16), np.dstack([R, *whole])
    with_alpha = codestream(half + [planes[3]], steps=steps + [(1, 1)])
    yield (
        "jp2_sycc_420_alpha",
        jp2(with_alpha, 18, cdef((0, 0, 1), (1, 0, 2), (2, 0, 3), (3, 1, 0))),
        np.dstack([wide, RGBA[..., 3]]),
    )
    bits = codestream([planes[0], planes[1] // 16, planes[2] // 8, planes[3] // 128], bits=[8, 4, 5, 1])
    yield "jp2_mixed_bits", jp2(bits, 16), np.dstack([R, G // 16 * 17, np.rint(B // 8 * 255 / 31), A // 128 * 255])
    twelve = [plane * 4095 // 255 for plane in planes[:3]]
    for name, less, signed in (("12", 0, 0), ("12_signed", 2048, 1)):
        coded = codestream([plane - less for plane in twelve], bits=[12] * 3, signed=[signed] * 3)
        yield f"jp2_{name}", jp2(coded, 16), np.rint(np.dstack(twelve) * 255 / 4095)
    coded = codestream([plane - 128 for plane in planes[:3]], signed=[1] * 3)
    yield "jp2_8_signed", jp2(coded, 16), rgb
    index = np.arange(W * H).reshape(H, W) % 20
    table = RNG.integers(0, 256, (20, 4), np.uint8)
    named, columns = (
        codestream([index]),
        lambda n, order: box(b"cmap", b"".join(struct.pack(">HBB", 0, 1, i) for i in order[:n])),
    )
    pclr = lambda n, rows=20: box(b"pclr", struct.pack(">HB", rows, n) + b"\7" * n + table[:rows, :n].tobytes())
    yield "jp2_palette_3", jp2(named, 16, pclr(3), columns(3, range(3))), table[index][..., :3]
    yield "jp2_palette_4", jp2(named, 16, pclr(4), columns(4, range(4))), table[index]
    yield "jp2_palette_order", jp2(named, 16, pclr(3), columns(3, [2, 1, 0])), table[index][..., 2::-1]
    yield "jp2_palette_short", jp2(named, 16, pclr(3, 10), columns(3, range(3))), table[np.minimum(index, 9)][..., :3]
    mixed = box(
        b"cmap", b"".join(struct.pack(">HBB", *entry) for entry in [(0, 1, 0), (0, 1, 1), (0, 1, 2), (1, 0, 0)])
    )
    yield (
        "jp2_palette_direct",
        jp2(codestream([index, planes[3]]), 16, pclr(3), mixed),
        np.dstack([table[index][..., :3], A]),
    )
    wider = box(
        b"pclr", struct.pack(">HB", 20, 3) + b"\x0b" * 3 + (table[:, :3].astype(int) * 16).astype(">u2").tobytes()
    )
    yield (
        "jp2_palette_12",
        jp2(named, 16, wider, columns(3, range(3))),
        np.rint(table[index][..., :3] * 16.0 * 255 / 4095),
    )


# ---- AVIF ------------------------------------------------------------------------------------------------------------


def layered(gray):
    """A gray picture of two layers."""

    class Data(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    avif = library("avif")
    avif.avifImageCreate.restype = avif.avifEncoderCreate.restype = ctypes.c_void_p
    image = ctypes.c_void_p(avif.avifImageCreate(gray.shape[1], gray.shape[0], 8, 4))
    avif.avifImageAllocatePlanes(image, 1)
    plane = ctypes.c_void_p.from_address(image.value + 24).value
    stride = ctypes.c_uint32.from_address(image.value + 48).value
    for y, row in enumerate(gray):
        ctypes.memmove(plane + y * stride, row.tobytes(), row.size)
    encoder = ctypes.c_void_p(avif.avifEncoderCreate())
    # Of its numbers of 4 bytes: speed, layers beside the first, quality.
    numbers = ctypes.cast(encoder, ctypes.POINTER(ctypes.c_int))
    numbers[2], numbers[7] = 6, 1
    for quality in (10, 95):
        numbers[8] = quality
        assert avif.avifEncoderAddImage(encoder, image, ctypes.c_uint64(1), 0) == 0
    data = Data()
    assert avif.avifEncoderFinish(encoder, ctypes.byref(data)) == 0
    return ctypes.string_at(data.data, data.size)


def with_property(file, kind, body):
    """A file whose one picture of AV1 has a property more; its bytes move."""

    def inside(boxes, change):
        out, at = b"", 0
        while at < len(boxes):
            length, name = struct.unpack_from(">I4s", boxes, at)
            out, at = out + change(name, boxes[at + 8 : at + length]), at + length
        return out

    added = len(box(kind, body)) + 1

    def of_iprp(name, data):
        if name == b"ipco":
            of_iprp.count = len(list(boxes_of(data))) + 1
            return box(name, data + box(kind, body))
        # Version, count, item; then how many properties it has, and which.
        count = data[10]
        return box(
            name,
            data[:10] + bytes([count + 1]) + data[11 : 11 + count] + bytes([0x80 | of_iprp.count]) + data[11 + count :],
        )

    def of_meta(name, data):
        if name == b"iloc":
            # Of one item with one part: sizes of 4 bytes, no base.
            at = len(data) - 8
            return box(
                name, data[:at] + struct.pack(">I", struct.unpack_from(">I", data, at)[0] + added) + data[at + 4 :]
            )
        return box(name, inside(data, of_iprp)) if name == b"iprp" else box(name, data)

    return inside(
        file, lambda name, data: box(name, data[:4] + inside(data[4:], of_meta)) if name == b"meta" else box(name, data)
    )


def boxes_of(boxes):
    at = 0
    while at < len(boxes):
        length, name = struct.unpack_from(">I4s", boxes, at)
        yield name
        at += length


def avifs():
    rgb, gray = RGBA[..., :3], np.ascontiguousarray(RGBA[..., 0])
    file = layered(gray)
    yield "avif_layers", file, np.array(Image.open(io.BytesIO(file)).convert("L"))[..., None]
    out = io.BytesIO()
    Image.fromarray(gray).save(out, "AVIF", quality=100, subsampling="4:0:0", speed=6)
    whole = np.array(Image.open(io.BytesIO(out.getvalue())).convert("L"))[..., None]
    # 5 x 4 pixels, whose middle is 1 to the right of the picture's and 1.5 above it.
    clap = struct.pack(">IIIIiIiI", 5, 1, 8, 2, 1, 1, -3, 2)
    yield "avif_clap", with_property(out.getvalue(), b"clap", clap), whole[1:5, 5:10]
    derived = lambda primaries, matrix: imagecodecs.avif_encode(
        np.ascontiguousarray(rgb),
        level=90,
        bitspersample=8,
        speed=6,
        pixelformat="444",
        primaries=primaries,
        matrix=matrix,
    )
    for name, primaries, matrix in (("709", 1, 1), ("2020", 9, 9)):
        file = derived(primaries, matrix)
        said = struct.pack(
            ">4sHHH", b"nclx", primaries, struct.unpack_from(">H", file, file.find(b"nclx") + 6)[0], matrix
        )
        assert said in file
        pixels = np.array(Image.open(io.BytesIO(file)).convert("RGB"))
        yield f"avif_derived_{name}", file.replace(said, said[:-2] + b"\0\x0c"), pixels


def main():
    arrays = {}
    for name, file, pixels in bmps():
        if pixels is None:
            pixels = ANSWERS(name, file)
            arrays[f"{name}_gray"] = ANSWERS(name, file, "gray")
        arrays[name], arrays[f"{name}_pixels"] = np.frombuffer(file, np.uint8), pixels.astype(np.uint8)
    for name, file, pixels in [*jp2s(), *avifs()]:
        arrays[name], arrays[f"{name}_pixels"] = np.frombuffer(file, np.uint8), pixels.astype(np.uint8)
    np.savez_compressed(os.path.join(os.path.dirname(os.path.abspath(__file__)), "kinds.npz"), **arrays)
    print(sum(1 for name in arrays if name.endswith("_pixels")), "files")


if __name__ == "__main__":
    DALI = Dali()
    main()
