"""Makes profiles.npz in this directory: pictures with colour profiles, and what they are in sRGB.

    python make_profiles.py     (needs numpy, Pillow)

Profiles are put together here: primaries and a curve, or a table. Colours are converted by LittleCMS (Pillow 12,
ImageCms, perceptual intent).

Writes
    profiles.npz    name -> file, 1-D uint8;  name + "_srgb" -> its pixels in sRGB, uint8
"""

import io
import os
import struct
import zlib

import numpy as np
from PIL import Image, ImageCms

SRGB = ((0.3127, 0.3290), (0.64, 0.33), (0.30, 0.60), (0.15, 0.06))
P3 = ((0.3127, 0.3290), (0.680, 0.320), (0.265, 0.690), (0.150, 0.060))
WIDE = ((0.3127, 0.3290), (0.7347, 0.2653), (0.2000, 0.7200), (0.1000, 0.0500))
D50 = np.array([0.9642, 1.0, 0.8249])


def xyz(point):
    x, y = point
    return np.array([x / y, 1.0, (1 - x - y) / y])


def matrix(points):
    """RGB to XYZ, adapted to D50 by Bradford's matrix."""
    white, *primaries = (xyz(point) for point in points)
    columns = np.stack(primaries, 1)
    to_xyz = columns * np.linalg.solve(columns, white)
    cone = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])
    scale = np.diag((cone @ D50) / (cone @ white))
    return np.linalg.inv(cone) @ scale @ cone @ to_xyz


def fixed(*numbers):
    return struct.pack(f">{len(numbers)}i", *(round(number * 65536) for number in numbers))


def text(words):
    words = words.encode("utf-16-be")
    return b"mluc" + bytes(4) + struct.pack(">II2s2sII", 1, 12, b"en", b"US", len(words), 28) + words


def profile(space, tags, pcs=b"XYZ ", kind=b"mntr", version=4):
    tags = {b"desc": text("made"), b"cprt": text("nobody's"), b"wtpt": b"XYZ " + bytes(4) + fixed(*D50), **tags}
    table, data, start = b"", b"", 128 + 4 + 12 * len(tags)
    for name, body in tags.items():
        body += bytes(-len(body) % 4)
        table += name + struct.pack(">II", start + len(data), len(body))
        data += body
    size = start + len(data)
    head = struct.pack(">I4sI4s4s4s", size, bytes(4), version << 24, kind, space, pcs)
    head += struct.pack(">6H4s", 2026, 1, 1, 0, 0, 0, b"acsp") + bytes(28) + fixed(*D50) + bytes(48)
    return head + struct.pack(">I", len(tags)) + table + data


def curve(gamma):
    if gamma is None:
        return b"para" + bytes(4) + struct.pack(">HH", 3, 0) + fixed(2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)
    return b"para" + bytes(4) + struct.pack(">HH", 0, 0) + fixed(gamma)


def of_points(points, gamma=None):
    columns = matrix(points).T
    tags = {name + b"XYZ": b"XYZ " + bytes(4) + fixed(*column) for name, column in zip((b"r", b"g", b"b"), columns)}
    return profile(b"RGB ", tags | {name + b"TRC": curve(gamma) for name in (b"r", b"g", b"b")})


def of_gray(gamma):
    return profile(b"GRAY", {b"kTRC": curve(gamma)})


def of_table(points, gamma, side=17):
    """A table of colours (`mft2`) in CIE L*a*b*."""
    levels = np.linspace(0, 1, side) ** gamma
    rgb = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), -1).reshape(-1, 3)
    ratio = (rgb @ matrix(points).T) / D50
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (ratio * 24389 / 27 + 16) / 116)
    lab = np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1)
    coded = np.clip(
        np.round(np.stack([lab[:, 0] * 652.8, (lab[:, 1] + 128) * 256, (lab[:, 2] + 128) * 256], 1)), 0, 65535
    )
    head = b"mft2" + bytes(4) + struct.pack(">4B", 3, 3, side, 0) + fixed(1, 0, 0, 0, 1, 0, 0, 0, 1)
    ramp = struct.pack(">2H", 0, 65535) * 3
    body = head + struct.pack(">2H", 2, 2) + ramp + coded.astype(">u2").tobytes() + ramp
    # Of version 2: of version 4 LittleCMS takes the table for one whose black is not quite black.
    return profile(b"RGB ", {b"A2B0": body}, b"Lab ", b"scnr", 2)


def in_srgb(image, icc):
    mode = "RGB" if image.mode != "RGBA" else "RGBA"
    flat = image.convert("RGB") if image.mode == "RGBA" else image
    source = ImageCms.ImageCmsProfile(io.BytesIO(icc))
    converted = ImageCms.profileToProfile(flat, source, ImageCms.createProfile("sRGB"), 0, outputMode="RGB")
    if mode == "RGBA":
        converted.putalpha(image.getchannel("A"))
    return np.asarray(converted)


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def with_chunks(png, chunks):
    """A PNG with chunks behind its header."""
    at = 8 + 25
    made = b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )
    return png[:at] + made + png[at:]


def wide(png_of, pixels, icc):
    """A PNG of 16 bits with a profile: Pillow writes none of RGB."""
    height, width, _ = pixels.shape
    rows = (pixels.astype(">u2") * 257).astype(">u2").reshape(height, -1)
    raw = b"".join(b"\0" + row.tobytes() for row in rows)
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)),
        (b"iCCP", b"made\0\0" + zlib.compress(icc)),
        (b"IDAT", zlib.compress(raw, 9)),
        (b"IEND", b""),
    ]
    return png_of[:8] + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


def files():
    random = np.random.default_rng(1)
    spread = random.integers(0, 256, (12, 16, 3), np.uint8)
    ramps = np.stack([np.tile(np.linspace(0, 255, 16), (12, 1))] * 3, -1).astype(np.uint8)
    pixels = np.concatenate([spread, ramps])
    color = Image.fromarray(pixels)
    gray = Image.fromarray(pixels[..., 0])
    alpha = color.copy()
    alpha.putalpha(gray)
    p3, wide_gamut, table = of_points(P3), of_points(WIDE, 1.8), of_table(P3, 2.2)
    png = saved(color, "PNG")
    for name, icc in [("p3", p3), ("wide", wide_gamut), ("table", table)]:
        yield f"png_{name}", saved(color, "PNG", icc_profile=icc), color, icc
    yield "png_alpha", saved(alpha, "PNG", icc_profile=p3), alpha, p3
    yield "png_16", wide(png, pixels, p3), color, p3
    yield "png_gray", saved(gray, "PNG", icc_profile=of_gray(1.8)), gray, of_gray(1.8)
    yield "png_codes", with_chunks(png, [(b"cICP", bytes([12, 13, 0, 1]))]), color, p3
    measured = (b"cHRM", struct.pack(">8I", *(round(number * 100000) for point in WIDE for number in point)))
    gamma = (b"gAMA", struct.pack(">I", 55556))
    yield "png_measured", with_chunks(png, [gamma, measured]), color, wide_gamut
    yield "png_srgb", with_chunks(png, [(b"sRGB", b"\0"), gamma]), color, None
    for kind, options in [
        ("JPEG", {"quality": 95}),
        ("WEBP", {"lossless": True}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("AVIF", {"quality": 100, "subsampling": "4:4:4"}),
    ]:
        file = saved(color, kind, icc_profile=p3, **options)
        yield f"{kind.lower()}_p3", file, Image.open(io.BytesIO(file)).convert("RGB"), p3
    # More than a segment holds.
    long = p3 + bytes(70_000)
    long = struct.pack(">I", len(long)) + long[4:]
    file = saved(color, "JPEG", quality=95, icc_profile=long)
    yield "jpeg_parts", file, Image.open(io.BytesIO(file)).convert("RGB"), p3
    file = saved(gray, "JPEG", quality=95, icc_profile=of_gray(1.8))
    yield "jpeg_gray", file, Image.open(io.BytesIO(file)), of_gray(1.8)
    yield "jpeg_none", saved(color, "JPEG", quality=95), Image.open(io.BytesIO(saved(color, "JPEG", quality=95))), None


def main():
    arrays = {}
    for name, file, image, icc in files():
        arrays[name] = np.frombuffer(file, np.uint8)
        arrays[f"{name}_srgb"] = np.asarray(image) if icc is None else in_srgb(image, icc)
        own = np.asarray(image.convert(image.mode if image.mode == "RGBA" else "RGB")).astype(int)
        print(f"{name}: {len(file)} bytes, up to {abs(own - arrays[f'{name}_srgb']).max()} levels")
    here = os.path.dirname(os.path.abspath(__file__))
    np.savez_compressed(os.path.join(here, "profiles.npz"), **arrays)


if __name__ == "__main__":
    main()
