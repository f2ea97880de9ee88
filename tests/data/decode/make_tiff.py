"""Makes tiff.npz in this directory: small TIFFs of the kinds that libtiff reads, and RGB of them.

    python make_tiff.py       (needs numpy, pillow, imagecodecs)

Files are put together here, tag by tag. Bilevel rows are coded by Pillow 12 (libtiff 4.7), JPEGs, JPEG 2000, JPEG XL,
WebP and Zstandard by imagecodecs 2026.3.6. What is right follows from the samples: of chroma and CIE L*a*b* by
libtiff's formulas in numpy, of JPEGs as imagecodecs decodes them.

Writes
    tiff.npz      name -> encoded file, 1-D uint8;  name + "_pixels" -> height x width x 3, uint8
"""

import io
import os
import struct
import zlib

import imagecodecs
import numpy as np
from make import picture
from PIL import Image
from tiff_old_jpegs import old_jpegs
from tiff_parts import (
    FILL,
    GRAY,
    ICC_LAB,
    INKS,
    LAB,
    PALETTE,
    RGB,
    YCBCR,
    coded,
    nearest,
    old,
    old_lzw,
    pack_bits,
    packed,
    rgb_of_gray,
    rgb_of_lab,
    rgb_of_ycbcr,
    split_jpeg,
    subsampled,
    tiff,
    tiles,
    usual,
)


def files():
    gray, rgb = picture(23, 17, 1)[:, :, 0], picture(23, 17, 3)
    bits = (gray > 110).astype(np.uint8)
    wide = rgb.astype(np.uint16) * 257 ^ np.random.default_rng(5).integers(0, 256, rgb.shape, dtype=np.uint16)
    of_wide = np.floor(wide / 257.0 + 0.5).astype(np.uint8)
    black = rgb_of_gray(255 * bits)
    join = b"".join

    # Bits of bytes the other way round, by each compression.
    turned = lambda data: data.translate(FILL)
    one = join(packed(bits, 1))
    yield "fill_8", tiff(23, 17, [turned(gray.tobytes())], usual(8, GRAY, _266=2)), rgb_of_gray(gray)
    yield "fill_rgb", tiff(23, 17, [turned(rgb.tobytes())], usual(8, RGB, 3, _266=2)), rgb
    yield "fill_rgb16", tiff(23, 17, [turned(wide.astype(">u2").tobytes())], usual(16, RGB, 3, _266=2), ">"), of_wide
    yield "fill_1", tiff(23, 17, [turned(one)], usual(1, GRAY, _266=2)), black
    yield (
        "fill_4",
        tiff(23, 17, [turned(join(packed(gray >> 4, 4)))], usual(4, GRAY, _266=2)),
        rgb_of_gray((gray >> 4) * 17),
    )
    twelve = gray.astype(np.uint16) << 4 | gray >> 4
    of_twelve = rgb_of_gray(np.floor((twelve << 4) / 257.0 + 0.5))
    yield "fill_12", tiff(23, 17, [turned(join(packed(twelve, 12)))], usual(12, GRAY, _266=2)), of_twelve
    for name, number, code in [
        ("packbits", 32_773, pack_bits),
        ("lzw", 5, imagecodecs.lzw_encode),
        ("deflate", 8, zlib.compress),
        ("zstd", 50_000, imagecodecs.zstd_encode),
    ]:
        yield f"fill_{name}", tiff(23, 17, [turned(code(rgb.tobytes()))], usual(8, RGB, 3, _259=number, _266=2)), rgb
        yield f"fill_1_{name}", tiff(23, 17, [turned(code(one))], usual(1, GRAY, _259=number, _266=2)), black

    # Codes of fax, in one strip and in several; wide enough for long runs.
    line = np.zeros((9, 2_700), np.uint8)
    line[1, 1:] = line[2, 17:2_600] = line[3, :2_699] = line[4, ::2] = line[6, 1_300:] = 1
    line[7] = np.random.default_rng(2).integers(0, 2, 2_700)
    line[8] = np.roll(line[7], 2)
    for name, number, options in [
        ("group3", 3, None),
        ("group3", 3, {292: 1}),
        ("group3", 3, {292: 4}),
        ("group4", 4, None),
        ("tiff_ccitt", 2, None),
    ]:
        label = f"fax_{number}" + (f"_{options[292]}" if options else "")
        tags = {292: (4, [options[292]])} if options else {}
        for kind, samples in [("", bits), ("_wide", line)]:
            data, photometric = coded(1 - samples, name, options)
            shown = rgb_of_gray(255 * samples)
            height, width = samples.shape
            most = usual(1, photometric, _259=number)
            yield label + kind, tiff(width, height, [data], {**most, **tags}), shown
            yield f"fill_{label}{kind}", tiff(width, height, [turned(data)], {**most, **tags, 266: 2}), shown
    data, photometric = coded(1 - bits, "group4")
    yield (
        "fax_4_bare",
        tiff(23, 17, [data], usual(1, 0, _259=4), without=(262,)),
        black if photometric == 0 else 255 - black,
    )
    # Fewer rows than the tag says, and an end behind them.
    short = bits.copy()
    short[10:] = 1 - photometric  # zeros
    for label, name, number, options, end in [
        ("fax_4", "group4", 4, {}, b""),
        ("fax_3_4", "group3", 3, {292: 4}, bytes.fromhex("001001001001001001")),
    ]:
        part = coded(1 - bits[:10], name, options)[0] + end
        tags = usual(1, photometric, _259=number, **({"_292": (4, [4])} if options else {}))
        yield f"{label}_short", tiff(23, 17, [part], tags), rgb_of_gray(255 * short)
    strips = [coded(1 - bits[y : y + 5], "group4")[0] for y in range(0, 17, 5)]
    yield "fax_4_strips", tiff(23, 17, strips, usual(1, photometric, _259=4, _278=5)), black

    # Planes and tiles that do not divide the image, of odd depths, and what is told of them or not.
    planes = [join(packed(tile, 8)) for c in range(3) for tile in tiles(rgb[:, :, c], 16)]
    at = {322: 16, 323: 16}
    yield "planar_tiles", tiff(23, 17, planes, {**usual(8, RGB, 3, _284=2), **at}), rgb
    yield (
        "planar_tile",
        tiff(
            5, 5, [join(packed(tiles(rgb[:5, :5, c], 16)[0], 8)) for c in range(3)], {**usual(8, RGB, 3, _284=2), **at}
        ),
        rgb[:5, :5],
    )
    for depth in (10, 12, 14):
        samples = wide >> (16 - depth)
        shown = np.floor((samples << (16 - depth)) / 257.0 + 0.5).astype(np.uint8)
        yield (
            f"planar_{depth}",
            tiff(23, 17, [join(packed(samples[:, :, c], depth)) for c in range(3)], usual(depth, RGB, 3, _284=2)),
            shown,
        )
        yield (
            f"tiles_{depth}",
            tiff(23, 17, [join(packed(tile, depth)) for tile in tiles(samples, 16)], {**usual(depth, RGB, 3), **at}),
            shown,
        )
    yield "planar_16", tiff(23, 17, [wide[:, :, c].tobytes() for c in range(3)], usual(16, RGB, 3, _284=2)), of_wide
    yield (
        "planar_rows",
        tiff(
            23,
            17,
            [rgb[y : y + 4, :, c].tobytes() for c in range(3) for y in range(0, 17, 4)],
            usual(8, RGB, 3, _284=2, _278=4),
        ),
        rgb,
    )
    yield (
        "tiles_by_strips",
        tiff(
            23,
            17,
            [tile.tobytes() for tile in tiles(rgb, 16)],
            {**usual(8, RGB, 3), **at, 273: (4, [8, 776, 1544, 2312])},
            without=(324,),
        ),
        rgb,
    )
    yield "bare_gray", tiff(23, 17, [gray.tobytes()], usual(8, GRAY), without=(262, 277)), rgb_of_gray(gray)
    yield "bare_rgb", tiff(23, 17, [rgb.tobytes()], usual(8, RGB, 3), without=(262, 279)), rgb
    yield (
        "bare_lengths",
        tiff(
            23,
            17,
            [zlib.compress(rgb[y : y + 6].tobytes()) for y in range(0, 17, 6)],
            usual(8, RGB, 3, _259=8, _278=6),
            without=(279,),
        ),
        rgb,
    )
    whole = tiff(23, 17, [zlib.compress(rgb.tobytes())], usual(8, RGB, 3, _259=8))
    length = struct.pack("<HHII", 279, 4, 1, len(zlib.compress(rgb.tobytes())))
    assert length in whole
    yield "no_length", whole.replace(length, struct.pack("<HHII", 279, 4, 1, 0)), rgb
    yield "big", tiff(23, 17, [rgb[:9].tobytes(), rgb[9:].tobytes()], usual(8, RGB, 3, _278=9), ">", True), rgb
    more = np.dstack([rgb, gray, gray])
    yield "five_samples", tiff(23, 17, [more.tobytes()], usual(8, RGB, 5, _338=(3, [0, 0]))), rgb

    # Numbers as differences, and of other kinds.
    differences = np.diff(wide.astype(np.int64), axis=1, prepend=0).astype(">u2")
    yield (
        "differences_16",
        tiff(23, 17, [zlib.compress(differences.tobytes())], usual(16, RGB, 3, _259=8, _317=2), ">"),
        of_wide,
    )
    yield "no_differences", tiff(23, 17, [rgb.tobytes()], usual(8, RGB, 3, _317=2)), rgb
    for kind in ("f2", "f4", "f8"):
        reals = (rgb / 255.0).astype(kind)
        shown = np.floor(reals.astype(np.float32) * np.float32(255) + np.float32(0.5)).astype(np.uint8)
        size = reals.itemsize
        tags = usual(8 * size, RGB, 3, _339=(3, [3] * 3))
        yield f"float_{8 * size}", tiff(23, 17, [reals.astype("<" + kind).tobytes()], tags), shown
        rows = reals.astype(">" + kind).view(np.uint8).reshape(17, -1, size).transpose(0, 2, 1).reshape(17, -1, 3)
        rows = np.diff(rows.astype(int), axis=1, prepend=0).astype(np.uint8)
        yield (
            f"float_{8 * size}_differences",
            tiff(23, 17, [zlib.compress(rows.tobytes())], {**tags, 259: 8, 317: 3}),
            shown,
        )
    yield "old_lzw", tiff(23, 17, [old_lzw(rgb.tobytes())], usual(8, RGB, 3, _259=5)), rgb
    yield "zstd", tiff(23, 17, [imagecodecs.zstd_encode(rgb.tobytes())], usual(8, RGB, 3, _259=50_000)), rgb

    # Colours.
    for across, down in [(1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (4, 2), (4, 4)]:
        data, shown = subsampled(rgb, across, down)
        yield f"ycbcr_{across}{down}", tiff(23, 17, [data], usual(8, YCBCR, 3, _530=(3, [across, down]))), shown
    data, shown = subsampled(rgb[:16], 2, 2)
    yield (
        "ycbcr_lzw_strips",
        tiff(
            23,
            16,
            [imagecodecs.lzw_encode(data[: len(data) // 2]), imagecodecs.lzw_encode(data[len(data) // 2 :])],
            usual(8, YCBCR, 3, _259=5, _278=8),
        ),
        shown,
    )
    studio = (rgb // 2 + 40).astype(np.uint8)
    y = (studio[..., 0].astype(int) - 16) * np.float32(255) / np.float32(219)
    cb, cr = ((studio[..., i].astype(int) - 128) * np.float32(127) / np.float32(112) for i in (1, 2))
    inner = np.stack([y.astype(int), cb.astype(int) + 128, cr.astype(int) + 128], -1)
    yield (
        "ycbcr_studio",
        tiff(23, 17, [studio.tobytes()], usual(8, YCBCR, 3, _530=(3, [1, 1]), _532=(5, [16, 235, 128, 240, 128, 240]))),
        rgb_of_ycbcr(inner),
    )
    a, b = (rgb[..., i].view(np.int8) for i in (1, 2))
    yield (
        "lab",
        tiff(23, 17, [rgb.tobytes()], usual(8, LAB, 3)),
        rgb_of_lab(rgb[..., 0] * np.float32(100) / np.float32(255), a, b),
    )
    a, b = (wide[..., i].view(np.int16) / np.float32(256) for i in (1, 2))
    yield (
        "lab_16",
        tiff(23, 17, [wide.tobytes()], usual(16, LAB, 3)),
        rgb_of_lab(wide[..., 0] * np.float32(100) / np.float32(65_535), a, b),
    )
    a, b = (rgb[..., i].astype(int) - 128 for i in (1, 2))
    yield (
        "icc_lab",
        tiff(23, 17, [rgb.tobytes()], usual(8, ICC_LAB, 3)),
        rgb_of_lab(rgb[..., 0] * np.float32(100) / np.float32(255), a, b),
    )
    colors = picture(16, 16, 3, 2).reshape(-1, 3)
    palette = (3, [int(level) * 257 for level in colors.T.reshape(-1)])
    yield (
        "palette_alpha",
        tiff(23, 17, [np.dstack([gray, 255 - gray]).tobytes()], usual(8, PALETTE, 2, _320=palette, _338=2)),
        colors[gray],
    )
    nibbles = gray >> 4
    yield (
        "palette_4_tiles",
        tiff(
            23,
            17,
            [join(packed(tile, 4)) for tile in tiles(nibbles, 16)],
            {**usual(4, PALETTE, 1, _320=(3, [int(v) * 257 for v in colors[:16].T.reshape(-1)])), **at},
        ),
        colors[nibbles],
    )
    yield (
        "white_is_0_alpha",
        tiff(23, 17, [np.dstack([gray, gray]).tobytes()], usual(8, 0, 2, _338=2)),
        rgb_of_gray(255 - gray),
    )
    inks = picture(23, 17, 4)
    k = 255 - inks[..., 3:].astype(int)
    of_inks = ((255 - inks[..., :3].astype(int)) * k // 255).astype(np.uint8)
    yield "inks_planar", tiff(23, 17, [inks[..., c].tobytes() for c in range(4)], usual(8, INKS, 4, _284=2)), of_inks

    # Files in strips and tiles.
    big = picture(40, 24, 3)
    for name, options, photometric in [
        ("rgb", dict(colorspace="RGB", outcolorspace="RGB"), RGB),
        ("ycbcr", dict(subsampling="420"), YCBCR),
    ]:
        parts = [imagecodecs.jpeg8_encode(tile, level=90, **options) for tile in tiles(big[:12, :20], 32)]
        shown = imagecodecs.jpeg8_decode(
            parts[0], **({"colorspace": "RGB", "outcolorspace": "RGB"} if photometric == RGB else {})
        )
        yield (
            f"jpeg_tile_{name}",
            tiff(20, 12, parts, {**usual(8, photometric, 3, _259=7), 322: 32, 323: 32}),
            shown[:12, :20],
        )
    parts = [imagecodecs.jpeg8_encode(np.ascontiguousarray(big[..., c]), level=90) for c in range(3)]
    yield (
        "jpeg_planar",
        tiff(40, 24, parts, usual(8, RGB, 3, _259=7, _284=2)),
        np.dstack([imagecodecs.jpeg8_decode(part) for part in parts]),
    )
    part = imagecodecs.jpeg8_encode(gray, level=90)
    yield (
        "jpeg_white_is_0",
        tiff(23, 17, [part], usual(8, 0, 1, _259=7)),
        rgb_of_gray(255 - imagecodecs.jpeg8_decode(part)),
    )
    twelve = gray.astype(np.uint16) << 4 | gray >> 4
    part = imagecodecs.ljpeg_encode(twelve, bitspersample=12)
    tags = usual(12, GRAY, _259=7)
    yield "jpeg_lossless_12", tiff(23, 17, [part], tags), of_twelve
    yield (
        "jpeg_lossless_12_white_is_0",
        tiff(23, 17, [part], {**tags, 262: 0}),
        rgb_of_gray(np.floor(((4095 - twelve) << 4) / 257.0 + 0.5)),
    )
    square = picture(32, 32, 3)
    for name, number, code in [
        ("jpeg2000", 34_712, lambda s: imagecodecs.jpeg2k_encode(s, level=0, codecformat="j2k")),
        ("png", 34_933, imagecodecs.png_encode),
        ("webp", 50_001, lambda s: imagecodecs.webp_encode(s, lossless=True)),
        ("jpegxl", 50_002, lambda s: imagecodecs.jpegxl_encode(s, lossless=True)),
    ]:
        parts = [code(tile) for tile in tiles(square[:20], 16)]
        yield f"inside_{name}", tiff(32, 20, parts, {**usual(8, RGB, 3, _259=number), **at}), square[:20]

    # The first kind of JPEG in TIFF: tables and data apart, in one strip and in two; a whole one; its header apart.
    out = io.BytesIO()
    Image.fromarray(big).save(out, "JPEG", quality=90, subsampling=2)
    segments, data = split_jpeg(out.getvalue())
    shown = nearest(out.getvalue())
    quants = [table[1:65] for all_ in segments[0xDB] for table in [all_[i : i + 65] for i in range(0, len(all_), 65)]]
    huffman = {}
    for all_ in segments[0xC4]:
        while all_:
            count = 17 + sum(all_[1:17])
            huffman[all_[0]], all_ = all_[1:count], all_[count:]
    stored = [data, *quants, huffman[0], huffman[1], huffman[0x10], huffman[0x11]]
    places, at_ = [], 8
    for part in stored:
        places.append(at_)
        at_ += len(part) + len(part) % 2
    apart = {
        273: (4, places[:1]),
        519: (4, [places[1], places[2], places[2]]),
        520: (4, [places[3], places[4], places[4]]),
        521: (4, [places[5], places[6], places[6]]),
        512: 1,
    }
    one_length = {279: (4, [len(data)])}
    yield (
        "old_jpeg_tables",
        old(40, 24, stored, {**usual(8, YCBCR, 3, _259=6, _530=(3, [2, 2])), **apart, **one_length}),
        shown,
    )
    whole = out.getvalue()
    yield (
        "old_jpeg_whole",
        old(
            40,
            24,
            [whole],
            {
                **usual(8, YCBCR, 3, _259=6, _530=(3, [2, 2])),
                273: (4, [8]),
                279: (4, [len(whole)]),
                513: (4, [8]),
                514: (4, [len(whole)]),
            },
        ),
        shown,
    )
    head = whole[: len(whole) - len(data)]
    yield (
        "old_jpeg_header",
        old(
            40,
            24,
            [head, data],
            {
                **usual(8, YCBCR, 3, _259=6, _530=(3, [2, 2])),
                273: (4, [8 + len(head) + len(head) % 2]),
                279: (4, [len(data)]),
                513: (4, [8]),
                514: (4, [len(head)]),
            },
        ),
        shown,
    )
    yield (
        "old_jpeg_in_strip",
        old(40, 24, [whole], {**usual(8, YCBCR, 3, _259=6), 273: (4, [8]), 279: (4, [len(whole)])}),
        shown,
    )
    yield from old_jpegs(big, whole, stored, apart, one_length, gray)


def main():
    arrays = {}
    for name, file, pixels in files():
        arrays[f"tiff_{name}"] = np.frombuffer(file, np.uint8)
        arrays[f"tiff_{name}_pixels"] = np.ascontiguousarray(pixels, np.uint8)
    np.savez_compressed(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tiff.npz"), **arrays)
    print(len(arrays) // 2, "files")


if __name__ == "__main__":
    main()
