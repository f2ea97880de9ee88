"""TIFF: palettes of every depth, inks, colours of JPEG, and JPEGs as strips and tiles, with tables of their own and
shared ones."""

import io
import struct

from PIL import Image, TiffImagePlugin
from record import case, fn, np, source, types

SHORT, LONG = 3, 4
PALETTE, INKS, YCBCR, RGB = 3, 5, 6, 2


def tiff(parts, size, bits, photometric, samples, rows=None, endian="<", **more):
    """A file of strips or, with tile sizes, of tiles; `more` has further tags: tNUMBER=(type, values)."""
    tags = {
        256: (SHORT, [size[0]]),
        257: (SHORT, [size[1]]),
        258: (SHORT, [bits] * samples),
        259: (SHORT, [1]),
        262: (SHORT, [photometric]),
        277: (SHORT, [samples]),
    } | {int(name[1:]): value for name, value in more.items()}
    offsets, body = [], b""
    for part in parts:
        offsets.append(8 + len(body))
        body += part + b"\0" * (len(part) % 2)
    if 322 not in tags:
        tags[278] = (SHORT, [rows or size[1]])
    places = (324, 325) if 322 in tags else (273, 279)
    tags |= {places[0]: (LONG, offsets), places[1]: (LONG, [len(part) for part in parts])}
    start = 8 + len(body)
    entries, extra, behind = b"", b"", start + 2 + 12 * len(tags) + 4
    for tag, (kind, values) in sorted(tags.items()):
        raw = struct.pack(endian + {SHORT: "H", LONG: "I"}[kind] * len(values), *values)
        entries += struct.pack(endian + "HHI", tag, kind, len(values))
        if len(raw) > 4:
            entries += struct.pack(endian + "I", behind + len(extra))
            extra += raw
        else:
            entries += raw.ljust(4, b"\0")
    head = (b"II" if endian == "<" else b"MM") + struct.pack(endian + "HI", 42, start)
    return np.frombuffer(
        head + body + struct.pack(endian + "H", len(tags)) + entries + struct.pack(endian + "I", 0) + extra, np.uint8
    )


def colored(bits, size=(13, 9), rows=4, endian="<"):
    rng = np.random.default_rng(bits)
    row = (size[0] * bits + 7) // 8
    data = rng.integers(0, 256, (size[1], row), dtype=np.uint8)
    colours = np.arange(3 << bits, dtype=np.uint32) * 40_503 % 65_536
    return tiff(
        [data[y : y + rows].tobytes() for y in range(0, size[1], rows)],
        size,
        bits,
        PALETTE,
        1,
        rows=rows,
        endian=endian,
        t320=(SHORT, colours.tolist()),
    )


def packed(bits, channels, size=(13, 9), rows=4, endian="<", tile=None):
    """Samples of 9 to 15 bits, each row from a whole byte on."""
    values = np.random.default_rng(bits).integers(0, 1 << bits, (size[1], size[0] * channels))
    values[0, :2] = (1 << bits) - 1, 0

    def line(row):
        digits = "".join(f"{value:0{bits}b}" for value in row)
        return int(digits.ljust((len(digits) + 7) // 8 * 8, "0"), 2).to_bytes((len(digits) + 7) // 8, "big")

    if not tile:
        lines = [line(row) for row in values]
        return tiff(
            [b"".join(lines[y : y + rows]) for y in range(0, size[1], rows)],
            size,
            bits,
            RGB if channels == 3 else 1,
            channels,
            rows=rows,
            endian=endian,
        )
    whole = np.zeros((-(-size[1] // tile) * tile, -(-size[0] // tile) * tile * channels), values.dtype)
    whole[: size[1], : size[0] * channels] = values
    parts = [
        b"".join(line(row) for row in whole[y : y + tile, x : x + tile * channels])
        for y in range(0, whole.shape[0], tile)
        for x in range(0, whole.shape[1], tile * channels)
    ]
    return tiff(
        parts,
        size,
        bits,
        RGB if channels == 3 else 1,
        channels,
        endian=endian,
        t322=(SHORT, [tile]),
        t323=(SHORT, [tile]),
    )


def of_pillow(image, strip=1 << 16, **options):
    TiffImagePlugin.STRIP_SIZE, before = strip, TiffImagePlugin.STRIP_SIZE
    out = io.BytesIO()
    image.save(out, "TIFF", **options)
    TiffImagePlugin.STRIP_SIZE = before
    return np.frombuffer(out.getvalue(), np.uint8)


def picture(size, channels=3):
    rng = np.random.default_rng(size[0])
    pixels = rng.integers(0, 256, (size[1] // 3 + 1, size[0] // 3 + 1, 3), dtype=np.uint8)
    return Image.fromarray(pixels).resize(size, Image.BILINEAR).convert("RGB" if channels == 3 else "L")


def tiled(size, mode, **options):
    """Tiles of 16 x 16 and 32 x 16, a JPEG each with tables of its own."""
    image, (width, height) = picture(size, 1 if mode == "L" else 3), (32, 16)
    tiles = []
    for y in range(0, size[1], height):
        for x in range(0, size[0], width):
            out = io.BytesIO()
            image.crop((x, y, x + width, y + height)).save(out, "JPEG", **options)
            tiles.append(out.getvalue())
    photometric = dict(L=1, RGB=RGB, YCbCr=YCBCR)[mode]
    more = dict(t530=(SHORT, [2, 2] if options.get("subsampling") == 2 else [1, 1])) if mode == "YCbCr" else {}
    return tiff(
        tiles,
        size,
        8,
        photometric,
        1 if mode == "L" else 3,
        t259=(SHORT, [7]),
        t322=(SHORT, [width]),
        t323=(SHORT, [height]),
        **more,
    )


@case(
    inputs={
        "IMAGE": [
            colored(1),
            colored(2),
            colored(4),
            colored(8),
            colored(8, endian=">"),
            colored(4, endian=">", rows=9),
        ]
    },
    batch_size=6,
)
def palettes():
    x = source("IMAGE", ndim=1)
    return tuple(
        fn.decoders.image(x, device="cpu", output_type=t)
        for t in (types.RGB, types.BGR, types.GRAY, types.YCbCr, types.ANY_DATA)
    )


@case(inputs={"IMAGE": [colored(1), colored(8), of_pillow(picture((20, 14)).quantize(30), compression="tiff_lzw")]})
def palettes_of_other_types():
    x = source("IMAGE", ndim=1)
    return tuple(
        fn.decoders.image(x, device="cpu", output_type=types.RGB, dtype=t)
        for t in (types.UINT16, types.FLOAT, types.INT16)
    ) + (fn.peek_image_shape(x), fn.decoders.image_slice(x, [1, 2], [5, 4], device="cpu", axes=[0, 1]))


@case(
    inputs={
        "IMAGE": [
            of_pillow(picture((37, 29)), compression="jpeg"),
            of_pillow(picture((40, 61)), strip=40 * 3 * 16, compression="jpeg", quality=60),
            of_pillow(picture((33, 18), 1), compression="jpeg"),
            of_pillow(picture((50, 33), 1), strip=50 * 16, compression="jpeg", quality=50),
        ]
    },
    batch_size=4,
)
def jpegs_in_strips():
    x = source("IMAGE", ndim=1)
    return tuple(
        fn.decoders.image(x, device="cpu", output_type=t) for t in (types.RGB, types.BGR, types.GRAY, types.YCbCr)
    )


@case(
    inputs={
        "IMAGE": [
            tiled((70, 37), "YCbCr", subsampling=2),
            tiled((40, 20), "YCbCr", subsampling=0, quality=90),
            tiled((40, 20), "L"),
            tiled((40, 20), "RGB", keep_rgb=True),
        ]
    },
    batch_size=4,
)
def jpegs_in_tiles():
    x = source("IMAGE", ndim=1)
    return tuple(fn.decoders.image(x, device="cpu", output_type=t) for t in (types.RGB, types.GRAY)) + (
        fn.decoders.image(x, device="cpu", dtype=types.FLOAT),
    )


@case(
    inputs={
        "IMAGE": [
            of_pillow(picture((23, 17)).convert("YCbCr")),
            of_pillow(Image.merge("CMYK", [*picture((23, 17)).split(), picture((23, 17), 1)])),
            of_pillow(picture((19, 17)).convert("YCbCr"), compression="tiff_adobe_deflate"),
        ]
    }
)
def other_colours():
    x = source("IMAGE", ndim=1)
    return tuple(fn.decoders.image(x, device="cpu", output_type=t) for t in (types.RGB, types.GRAY, types.YCbCr))


@case(
    inputs={
        "IMAGE": [
            packed(10, 1),
            packed(12, 1),
            packed(14, 1, endian=">"),
            packed(10, 3),
            packed(12, 3),
            packed(14, 3, endian=">"),
            packed(12, 3, (37, 29), tile=16),
        ]
    },
    batch_size=7,
)
def samples_of_10_to_14_bits():
    x = source("IMAGE", ndim=1)
    return tuple(fn.decoders.image(x, device="cpu", output_type=t) for t in (types.RGB, types.GRAY)) + tuple(
        fn.decoders.image(x, device="cpu", output_type=types.RGB, dtype=t) for t in (types.UINT16, types.FLOAT)
    )
