"""Makes heif.npz in this directory: HEICs of every kind that is decoded, grids of AVIF and HEIC, and their pixels.

    python make_heif.py       (needs numpy, pillow, pillow-heif, pillow-avif-plugin)

Pictures are coded by x265 4.3 in libheif 1.23 (pillow-heif 1.8.1) and by libavif 1.4 (Pillow 13). Boxes around them are
put together here: no library writes grids, turned pictures and cut ones as they are needed. Pixels are those of
pillow-heif (libheif with libde265) and of Pillow (libavif), turned and cut as the file says.

Writes
    heif.npz      name -> encoded file, 1-D uint8;  name + "_pixels" -> height x width x channels, uint8
"""

import io
import os
import struct

import numpy as np
import pillow_heif
from make import picture
from PIL import Image

pillow_heif.register_heif_opener()
# Sides of tiles: x265 takes none below 16, MIAF none below 64 in a grid.
SIDE = 64


# ---- boxes -----------------------------------------------------------------------------------------------------------


def box(name, *parts):
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), name) + body


def full(name, *parts, version=0, flags=0):
    return box(name, struct.pack(">I", version << 24 | flags), *parts)


def heif(brand, items, main=1, references=()):
    """A file of items (type, bytes, properties), which are numbered from 1; of references (type, from, to)."""
    properties, uses, kinds = [], b"", b""
    for number, (kind, _, own) in enumerate(items, 1):
        places = b""
        for one in own:
            if one not in properties:
                properties.append(one)
            needed = one[4:8] in (b"hvcC", b"av1C", b"irot", b"imir", b"clap")
            places += bytes([properties.index(one) + 1 | needed << 7])
        uses += struct.pack(">HB", number, len(own)) + places
        kinds += full(b"infe", struct.pack(">HH4s", number, 0, kind), b"\0", version=2)

    def meta(start):
        table, at = b"", start
        for number, (_, data, _) in enumerate(items, 1):
            table += struct.pack(">HHHII", number, 0, 1, at, len(data))
            at += len(data)
        said = b"".join(
            box(kind, struct.pack(f">HH{len(to)}H", source, len(to), *to)) for kind, source, to in references
        )
        return full(
            b"meta",
            full(b"hdlr", bytes(4), b"pict", bytes(13)),
            full(b"pitm", struct.pack(">H", main)),
            full(b"iloc", struct.pack(">HH", 0x4400, len(items)), table),
            full(b"iinf", struct.pack(">H", len(items)), kinds),
            full(b"iref", said) if references else b"",
            box(b"iprp", box(b"ipco", *properties), full(b"ipma", struct.pack(">I", len(items)), uses)),
        )

    head = box(b"ftyp", brand, bytes(4), b"mif1", brand, b"miaf")
    data = box(b"mdat", *(data for _, data, _ in items))
    return head + meta(len(head) + len(meta(0)) + 8) + data


def within(file, name):
    """The first box called so, wherever it is, with its head."""
    at = file.index(name) - 4
    return file[at : at + struct.unpack_from(">I", file, at)[0]]


def ispe(width, height):
    return full(b"ispe", struct.pack(">II", width, height))


def nclx(matrix=6, is_full=True):
    return box(b"colr", b"nclx", struct.pack(">HHHB", 1, 13, matrix, is_full << 7))


def clap(width, height, x, y):
    return box(b"clap", struct.pack(">IIIIiIiI", width, 1, height, 1, x, 2, y, 2))


IROT = [box(b"irot", bytes([turns])) for turns in range(4)]
IMIR = [box(b"imir", bytes([axis])) for axis in range(2)]
# A cut at odd places: libheif then interpolates chroma, where it otherwise takes the nearest sample.
ODD = clap(61, 59, -1, 1)
ALPHA = {
    "HEIF": full(b"auxC", b"urn:mpeg:hevc:2015:auxid:1\0"),
    "AVIF": full(b"auxC", b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0"),
}


# ---- pictures --------------------------------------------------------------------------------------------------------


def encoded(pixels, format="HEIF", quality=80, **options):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format, quality=quality, **options)
    return out.getvalue()


def coded(pixels, *properties, format="HEIF", **options):
    """One picture as an item: of a file of its own, without the boxes around it."""
    file = encoded(pixels, format, **options)
    height, width = pixels.shape[:2]
    data = within(file, b"mdat")[8:]
    name, config = (b"hvc1", b"hvcC") if format == "HEIF" else (b"av01", b"av1C")
    return name, data, [within(file, config), ispe(width, height), *properties]


def smooth(width, height, seed):
    """A picture that compresses well: waves of colours."""
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    waves = [np.sin(x / (5.0 + seed) + c) + np.cos(y / (7.0 + c) + seed) for c in range(3)]
    return np.clip(128 + 60 * np.stack(waves, -1), 0, 255).astype(np.uint8)


def grid(rows, columns, width, height):
    return struct.pack(">BBBBHH", 0, 0, rows - 1, columns - 1, width, height)


def grids(brand, format, **options):
    """A grid of 2 x 3 tiles, of which the last ones are cut; the same turned, and of whole tiles with alpha."""
    whole = smooth(3 * SIDE, 2 * SIDE, 1)
    parts = [whole[y : y + SIDE, x : x + SIDE] for y in (0, SIDE) for x in (0, SIDE, 2 * SIDE)]
    tiles = [coded(part, nclx(), format=format, **options) for part in parts]
    dimg = lambda number: (b"dimg", number, list(range(number - 6, number)))
    # Pillow does not cut AVIFs.
    cut = [] if format == "AVIF" else [clap(3 * SIDE - 23, 2 * SIDE - 9, -1, 1)]
    width, height = 3 * SIDE - 20, 2 * SIDE - 6
    put = (b"grid", grid(2, 3, width, height), [ispe(width, height), nclx(), *cut])
    yield "grid", heif(brand, [*tiles, put], 7, [dimg(7)])
    turned = (put[0], put[1], [*put[2], IROT[1], IMIR[0]])
    yield "grid_turned", heif(brand, [*tiles, turned], 7, [dimg(7)])
    gray = [part[:, :, 1] for part in parts]
    more = {} if format == "HEIF" else {"subsampling": "4:0:0"}
    opaque = [coded(part, format=format, **options, **more) for part in gray]
    size = ispe(3 * SIDE, 2 * SIDE)
    both = [*tiles, (b"grid", grid(2, 3, 3 * SIDE, 2 * SIDE), [size, nclx()])]
    both += [*opaque, (b"grid", grid(2, 3, 3 * SIDE, 2 * SIDE), [size, ALPHA[format]])]
    yield "grid_alpha", heif(brand, both, 7, [dimg(7), dimg(14), (b"auxl", 14, [7])])


def tiles():
    """Pictures for the engines of a device, which take no sides below 144: of phones, a grid of whole tiles, turned."""
    side, size = 144, (276, 278)
    whole = smooth(2 * side, 2 * side, 1)
    parts = [whole[y : y + side, x : x + side] for y in (0, side) for x in (0, side)]
    for name, own in (("tiles", []), ("tiles_turned", [IROT[3], IMIR[1]])):
        coded_parts = [coded(part, nclx(), quality=50) for part in parts]
        put = (b"grid", grid(2, 2, *size), [ispe(*size), nclx(), *own])
        yield name, heif(b"heic", [*coded_parts, put], 5, [(b"dimg", 5, [1, 2, 3, 4])])
    deep = pillow_heif.from_bytes("RGB;16", (160, 150), (smooth(160, 150, 2).astype(np.uint16) << 8).tobytes())
    out = io.BytesIO()
    deep.save(out, quality=50, chroma="420")
    data, config = within(out.getvalue(), b"mdat")[8:], within(out.getvalue(), b"hvcC")
    # x265 says format range extensions of which it uses none: to Main 10, as cameras say.
    config = config.replace(b"\x04\x08\x00\x00", b"\x02\x20\x00\x00")
    one = (b"hvc1", data, [config, ispe(160, 150), nclx(9, is_full=False)])
    yield "tiles_10", heif(b"heic", [one])
    yield "tiles_one", heif(b"heic", [coded(smooth(176, 144, 3), quality=50)])


def files():
    rgb, rgba, gray = picture(46, 34, 3), picture(46, 34, 4), picture(46, 34, 1)
    gray = gray[:, :, 0] if gray.ndim == 3 else gray
    for layout in ("420", "422", "444"):
        yield f"heic_{layout}", encoded(rgb, chroma=layout)
    yield "heic_rgba", encoded(rgba)
    yield "heic_gray", encoded(gray)
    yield "heic_odd", encoded(smooth(33, 21, 2))
    yield "heic_16x16", encoded(smooth(16, 16, 3))
    for limited in (True, False):
        name = "limited" if limited else "full"
        yield f"heic_{name}", heif(b"heic", [coded(smooth(64, 64, 1), nclx(is_full=not limited), ODD)])
    for matrix in (1, 9):
        yield f"heic_matrix_{matrix}", heif(b"heic", [coded(smooth(64, 64, 1), nclx(matrix), ODD)])
    yield "heic_unsaid", heif(b"heic", [coded(smooth(64, 64, 1), ODD)])
    wide = (smooth(64, 64, 1).astype(np.uint16) << 8) + 77
    for chroma in ("420", "444"):
        image = pillow_heif.from_bytes("RGB;16", (64, 64), wide.tobytes())
        out = io.BytesIO()
        pillow_heif.options.SAVE_HDR_TO_12_BIT = False
        image.save(out, quality=80, chroma=chroma)
        yield f"heic_10_{chroma}", out.getvalue()
    one = lambda *own: heif(b"heic", [coded(smooth(64, 64, 4), nclx(), ODD, *own)])
    for turns in range(1, 4):
        yield f"heic_irot{turns}", heif(b"heic", [coded(smooth(128, 64, 4), nclx(), clap(121, 59, 1, 1), IROT[turns])])
    for axis in range(2):
        yield f"heic_imir{axis}", one(IMIR[axis])
        yield f"heic_irot3_imir{axis}", one(IROT[3], IMIR[axis])
        yield f"heic_imir{axis}_irot1", one(IMIR[axis], IROT[1])
    cut = lambda *own: heif(b"heic", [coded(smooth(64, 64, 4), nclx(), *own)])
    yield "heic_clap", cut(clap(40, 30, 2, -4))
    yield "heic_clap_turned", cut(clap(40, 30, -6, 8), IROT[3])
    tile = coded(smooth(64, 64, 5), nclx())
    yield (
        "heic_iden",
        heif(b"heic", [tile, (b"iden", b"", [ispe(64, 64), nclx(), ODD, IROT[2]])], 2, [(b"dimg", 2, [1])]),
    )
    yield "heic_second", heif(b"heic", [coded(smooth(64, 64, 6)), coded(smooth(64, 64, 7), nclx(), ODD)], 2)
    yield from ((f"heic_{name}", file) for name, file in grids(b"heic", "HEIF"))
    yield from ((f"heic_{name}", file) for name, file in tiles())
    yield from ((f"avif_{name}", file) for name, file in grids(b"avif", "AVIF", speed=8))


def pixels(file):
    image = Image.open(io.BytesIO(file))
    array = np.array(image)
    return array[..., None] if array.ndim == 2 else array


def main():
    arrays = {}
    for name, file in files():
        arrays[name] = np.frombuffer(file, np.uint8)
        arrays[f"{name}_pixels"] = pixels(file)
        print(name, len(file), arrays[f"{name}_pixels"].shape)
    np.savez_compressed(os.path.join(os.path.dirname(os.path.abspath(__file__)), "heif.npz"), **arrays)


if __name__ == "__main__":
    main()
