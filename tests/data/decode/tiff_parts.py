"""Parts of TIFFs, for make_tiff.py: files tag by tag, samples as they are stored, and the RGB of samples."""

import io
import struct

import imagecodecs
import numpy as np
from PIL import Image

GRAY, RGB, PALETTE, INKS, YCBCR, LAB, ICC_LAB = 1, 2, 3, 5, 6, 8, 9
FILL = bytes(int(f"{i:08b}"[::-1], 2) for i in range(256))
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 7: 1, 16: 8}


def tiff(width, height, chunks, tags, order="<", big=False, without=()):
    """A file of one image: `tags` is {tag: (type, values)}, or a number."""
    room, head = (8, 16) if big else (4, 8)
    tags = {tag: value if isinstance(value, tuple) else (3, [value]) for tag, value in tags.items()}
    tiled = 322 in tags
    tags = {256: (4, [width]), 257: (4, [height]), **tags}
    places, at, data = [], head, b""
    for chunk in chunks:
        places.append(at)
        chunk += b"\0" * (len(chunk) % 2)
        data, at = data + chunk, at + len(chunk)
    if not {273, 324} & set(tags):
        tags[324 if tiled else 273] = (4, places)
    tags[325 if tiled else 279] = (4, [len(chunk) for chunk in chunks])
    tags = {tag: tags[tag] for tag in sorted(tags) if tag not in without}
    entries, extra, behind = b"", b"", at + (8 if big else 2) + len(tags) * (20 if big else 12) + room
    for tag, (kind, values) in tags.items():
        if kind == 5:
            values = [part for value in values for part in (round(value * 10_000), 10_000)]
        raw = (
            values
            if isinstance(values, bytes)
            else struct.pack(
                f"{order}{len(values)}{ {1: 'B', 3: 'H', 4: 'I', 5: 'I', 7: 'B', 16: 'Q'}[kind] }", *values
            )
        )
        count = len(raw) // SIZES[kind]
        if len(raw) > room:
            place, extra = behind + len(extra), extra + raw
            raw = struct.pack(order + ("Q" if big else "I"), place)
        entries += struct.pack(order + ("HHQ" if big else "HHI"), tag, kind, count) + raw.ljust(room, b"\0")
    mark = b"II" if order == "<" else b"MM"
    first = struct.pack(order + "HHHQ", 43, 8, 0, at) if big else struct.pack(order + "HI", 42, at)
    count = struct.pack(order + ("Q" if big else "H"), len(tags))
    return mark + first + data + count + entries + bytes(room) + extra


def packed(samples, bits):
    """Rows of samples of so many bits, each row in whole bytes."""
    rows = samples.reshape(samples.shape[0], -1).astype(np.uint32)
    shifts = np.arange(bits - 1, -1, -1)
    return [np.packbits((row[:, None] >> shifts & 1).astype(np.uint8)).tobytes() for row in rows]


def pack_bits(data):
    return imagecodecs.packbits_encode(data)


def old_lzw(data):
    """LZW as the first writers had it: the lowest bits first, and no words, as the table is cleared in time."""
    codes = [code for i in range(0, len(data), 200) for code in (256, *data[i : i + 200])] + [257]
    bits = np.concatenate([code >> np.arange(9) & 1 for code in codes]).astype(np.uint8)
    return np.packbits(bits, bitorder="little").tobytes()


def usual(bits, colors, samples=1, **more):
    tags = {258: (3, [bits] * samples), 259: 1, 262: colors, 277: samples}
    return {**tags, **{int(name[1:]): value for name, value in more.items()}}


def rgb_of_gray(gray):
    return np.repeat(gray.reshape(gray.shape[:2])[:, :, None], 3, 2).astype(np.uint8)


def coded(bits, compression, options=None):
    """Data of a bilevel image as libtiff codes it, 1 for black."""
    from PIL import TiffImagePlugin

    out = io.BytesIO()
    more = {278: bits.shape[0], **(options or {})}
    info = TiffImagePlugin.ImageFileDirectory_v2()
    for tag, value in more.items():
        info[tag] = value
    Image.fromarray(bits == 0).save(out, "TIFF", compression=compression, tiffinfo=info)
    file = Image.open(io.BytesIO(out.getvalue()))
    (start,), (length,) = file.tag_v2[273], file.tag_v2[279]
    data = out.getvalue()[start : start + length]
    return data if file.tag_v2.get(266, 1) == 1 else data.translate(FILL), file.tag_v2[262]


def rgb_of_ycbcr(ycc):
    y, cb, cr = (ycc[..., i].astype(np.int64) - (128 if i else 0) for i in range(3))
    green = (-46_802 * cr - 22_553 * cb + 32_768) >> 16
    return np.clip(
        np.stack([y + ((91_881 * cr + 32_768) >> 16), y + green, y + ((116_130 * cb + 32_768) >> 16)], -1), 0, 255
    ).astype(np.uint8)


def subsampled(ycc, across, down):
    """Data in which chroma of the first of several pixels is that of all, and what is shown of it."""
    height, width = ycc.shape[:2]
    full = np.pad(ycc, ((0, -height % down), (0, -width % across), (0, 0)), mode="edge")
    data, shown = b"", full.copy()
    for y in range(0, full.shape[0], down):
        for x in range(0, full.shape[1], across):
            block = full[y : y + down, x : x + across]
            data += block[..., 0].tobytes() + block[0, 0, 1:].tobytes()
            shown[y : y + down, x : x + across, 1:] = block[0, 0, 1:]
    return data, rgb_of_ycbcr(shown[:height, :width])


def rgb_of_lab(light, a, b):
    """libtiff's way, with the white of D50."""
    f = np.float32
    light, a, b = (np.asarray(v, f) for v in (light, a, b))
    dark = light < 8.856
    root = np.where(dark, f(7.787) * (light * f(100) / f(903.292) / f(100)) + f(16) / f(116), (light + f(16)) / f(116))
    y = np.where(dark, light * f(100) / f(903.292), f(100) * root**3)
    other = lambda r, full: np.where(r < 0.2069, full * (r - f(0.13793)) / f(7.787), full * r**3)
    xyz = np.stack([other(a / f(500) + root, f(96.425)), y, other(root - b / f(200), f(82.468))], -1)
    matrix = np.array([[3.2410, -1.5374, -0.4986], [-0.9692, 1.8760, 0.0416], [0.0556, -0.2040, 1.0570]], f)
    step = ((np.clip(xyz @ matrix.T, 1, 100) - 1) / f(99 / 1500)).astype(int)
    return np.rint(255 * (np.minimum(step, 1500) / 1500) ** (1 / 2.4)).astype(np.uint8)


def tiles(samples, side):
    """Parts of an array of rows and columns, the last ones filled up."""
    height, width = samples.shape[:2]
    rest = ((0, -height % side), (0, -width % side)) + ((0, 0),) * (samples.ndim - 2)
    full = np.pad(samples, rest, mode="edge")
    return [
        np.ascontiguousarray(full[y : y + side, x : x + side])
        for y in range(0, full.shape[0], side)
        for x in range(0, full.shape[1], side)
    ]


def split_jpeg(file):
    """Segments of a JPEG by marker, and its data."""
    at, found = 2, {}
    while True:
        marker, length = file[at + 1], struct.unpack(">H", file[at + 2 : at + 4])[0]
        found.setdefault(marker, []).append(file[at + 4 : at + 2 + length])
        at += 2 + length
        if marker == 0xDA:
            return found, file[at:]


def old(width, height, stored, tags, without=()):
    """A file whose tags say themselves where things lie."""
    file = tiff(width, height, stored, {**tags, 273: tags[273]}, without=without)
    # Lengths are those of the strips, not of all that is stored.
    return tiff_with_length(file, tags[279][1])


def tiff_with_length(file, lengths, tag=279):
    at = struct.unpack("<I", file[4:8])[0]
    for i in range(struct.unpack("<H", file[at : at + 2])[0]):
        place = at + 2 + 12 * i
        if struct.unpack("<H", file[place : place + 2])[0] == tag:
            # Several of them are where those of all that is stored are.
            if len(lengths) > 1:
                start = struct.unpack("<I", file[place + 8 : place + 12])[0]
                raw = struct.pack(f"<{len(lengths)}I", *lengths)
                file = file[:start] + raw + file[start + len(raw) :]
                return file[:place] + struct.pack("<HHII", tag, 4, len(lengths), start) + file[place + 12 :]
            return file[:place] + struct.pack("<HHII", tag, 4, 1, lengths[0]) + file[place + 12 :]
    raise ValueError("no lengths")


def nearest(file):
    """RGB of a JPEG with chroma replicated."""
    return rgb_of_ycbcr(nearest_ycc(file))


def nearest_ycc(file):
    """Luma and chroma of it."""
    image = Image.open(io.BytesIO(file))
    image.draft("YCbCr", image.size)
    width, height = image.size
    # Reduced to half, chroma is as it is stored: each of its samples stands for 2 x 2 pixels.
    luma = Image.open(io.BytesIO(file))
    luma.draft("L", luma.size)
    small = Image.open(io.BytesIO(file))
    small.draft("YCbCr", (width // 2, height // 2))
    chroma = np.array(small)[..., 1:].repeat(2, 0).repeat(2, 1)[:height, :width]
    return np.dstack([np.array(luma), chroma])
