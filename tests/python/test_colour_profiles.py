"""`color_management="srgb"` beside LittleCMS (Pillow's `ImageCms`): black of profiles that is not quite black, tables
for other intents, inks."""

import io
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from gesso import types
from pictures import decoded, picture
from PIL import Image, ImageChops, ImageCms

sys.path.insert(0, str(Path(__file__).parents[1] / "data" / "decode"))
import make_profiles as made

# By tables of colours, where those near the border of sRGB are the farthest away, and how far all are on average.
MOST, MOST_OF_TABLES, USUAL = 2, 16, 0.6
GRAY_OF_TABLES = 4
BLACK = 0.012


def sampled(black, gamma=2.2, count=1024):
    """A curve of samples that begins with some light."""
    levels = np.round((black + (1 - black) * np.linspace(0, 1, count) ** gamma) * 65535).astype(">u2")
    return b"curv" + bytes(4) + struct.pack(">I", count) + levels.tobytes()


def lifted(black):
    """The curve of sRGB, which begins with some light."""
    scale = (1 - black) ** (1 / 2.4)
    numbers = (2.4, scale / 1.055, scale * 0.055 / 1.055, (1 - black) / 12.92, 0.04045, black, black)
    return b"para" + bytes(4) + struct.pack(">HH", 4, 0) + made.fixed(*numbers)


def shaper(curve):
    """Tags of a matrix and a curve."""
    columns = made.matrix(made.P3).T
    tags = {
        name + b"XYZ": b"XYZ " + bytes(4) + made.fixed(*column) for name, column in zip((b"r", b"g", b"b"), columns)
    }
    return tags | {name + b"TRC": curve for name in (b"r", b"g", b"b")}


def in_lab(light):
    """CIE L*a*b* of light in XYZ."""
    ratio = np.clip(light / made.D50, 0, None)
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (ratio * 24389 / 27 + 16) / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1)


def table(light, inputs, side, bits=16):
    """A table (`mft1`, `mft2`) of what each of `side` levels of every input is in XYZ."""
    levels = np.linspace(0, 1, side)
    grid = np.stack(np.meshgrid(*[levels] * inputs, indexing="ij"), -1).reshape(-1, inputs)
    head = bytes(4) + struct.pack(">4B", inputs, 3, side, 0) + made.fixed(1, 0, 0, 0, 1, 0, 0, 0, 1)
    lab = (in_lab(light(grid)) + [0, 128, 128]) * ([652.8, 256, 256] if bits == 16 else [2.55, 1, 1])
    values = np.clip(np.round(lab), 0, 2**bits - 1)
    if bits == 8:
        ramp = bytes(range(256))
        return b"mft1" + head + ramp * inputs + values.astype(np.uint8).tobytes() + ramp * 3
    ramp = struct.pack(">2H", 0, 65535)
    return b"mft2" + head + struct.pack(">2H", 2, 2) + ramp * inputs + values.astype(">u2").tobytes() + ramp * 3


def of_colors(black, gamma=2.2):
    """Light of red, green and blue, none of which is darker than some black."""
    return lambda rgb: (black + (1 - black) * rgb**gamma) @ made.matrix(made.P3).T


def of_inks(inks):
    """Light that inks let through: each takes its own third, black takes from all, and never all."""
    cyan, magenta, yellow, black = inks.T
    through = np.stack([1 - 0.92 * cyan, 1 - 0.85 * magenta - 0.1 * cyan, 1 - 0.88 * yellow - 0.05 * magenta], 1)
    rgb = np.clip(through, 0.03, 1) * (1 - 0.94 * black)[:, None]
    return rgb**1.8 @ made.matrix(made.SRGB).T


def colors_of(tags, version, pcs=b"XYZ ", kind=b"mntr"):
    return made.profile(b"RGB ", tags, pcs, kind, version)


def profiles():
    """Name, profile, and whether its colours are those of a table."""
    for version in (2, 4):
        yield f"samples, version {version}", colors_of(shaper(sampled(BLACK)), version), False
        yield f"no black, version {version}", colors_of(shaper(sampled(0.0)), version), False
        dark, light = (table(of_colors(black), 3, 17) for black in (0.0, BLACK))
        yield f"table, version {version}", colors_of({b"A2B0": light}, version, b"Lab ", b"scnr"), True
        yield f"dark table, version {version}", colors_of({b"A2B0": dark}, version, b"Lab ", b"scnr"), True
        small = table(of_colors(BLACK), 3, 17, 8)
        yield f"table of bytes, version {version}", colors_of({b"A2B0": small}, version, b"Lab ", b"scnr"), True
    yield "curves", colors_of(shaper(lifted(BLACK)), 4), False
    yield "more black than there is", colors_of(shaper(sampled(0.3)), 4), False
    yield "a table for one intent, and a matrix", colors_of({b"A2B1": light} | shaper(lifted(0.0)), 4), False


def in_srgb(image, profile):
    source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    # Step by step, not by a table that is made of all steps, whose colours are further away from theirs.
    converted = ImageCms.profileToProfile(
        image, source, ImageCms.createProfile("sRGB"), 0, "RGB", flags=ImageCms.Flags.NOOPTIMIZE
    )
    return np.asarray(converted).astype(int)


def pixels():
    """All of the dark, and colours of all kinds."""
    random = np.random.default_rng(2)
    dark = np.stack(np.meshgrid(*[np.arange(0, 40, 3)] * 3, indexing="ij"), -1).reshape(-1, 14, 3)
    grays = np.repeat(np.arange(252)[:, None], 3, 1).reshape(-1, 14, 3)
    return np.concatenate([dark, grays, random.integers(0, 256, (100, 14, 3))]).astype(np.uint8)


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    "name, profile, by_table", list(profiles()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_black_becomes_black(name, profile, by_table):
    image = Image.fromarray(pixels())
    (found,), _ = decoded([saved(image, "PNG", icc_profile=profile)], types.RGB, color_management="srgb")
    off = abs(found.astype(int) - in_srgb(image, profile))
    assert off.max() <= (MOST_OF_TABLES if by_table else MOST), f"{off.max()}, {off.mean():.3f} on average"
    assert off.mean() <= USUAL
    # Black, grays and white are what is seen first.
    grays = (pixels() == pixels()[..., :1]).all(-1)
    assert off[grays].max() <= (GRAY_OF_TABLES if by_table else MOST)


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("black", [0.0, BLACK])
def test_black_of_gray_becomes_black(version, black):
    profile = made.profile(b"GRAY", {b"kTRC": sampled(black)}, version=version)
    image = Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16))
    (found,), _ = decoded([saved(image, "PNG", icc_profile=profile)], types.GRAY, color_management="srgb")
    assert abs(found[..., 0].astype(int) - in_srgb(image, profile)[..., 0]).max() <= MOST


@pytest.mark.parametrize("version", [2, 4])
def test_gray_that_is_lightness_becomes_light(version):
    profile = made.profile(b"GRAY", {b"kTRC": made.curve(1.1)}, b"Lab ", version=version)
    image = Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16))
    (found,), _ = decoded([saved(image, "PNG", icc_profile=profile)], types.GRAY, color_management="srgb")
    assert abs(found[..., 0].astype(int) - in_srgb(image, profile)[..., 0]).max() <= MOST


def with_profile(file, profile):
    """A JPEG of inks with a profile, which Pillow writes for it, too."""
    payload = b"ICC_PROFILE\0\1\1" + profile
    return file[:2] + b"\xff\xe2" + struct.pack(">H", 2 + len(payload)) + payload + file[2:]


@pytest.mark.parametrize("version, bits", [(2, 8), (2, 16), (4, 8), (4, 16)])
@pytest.mark.parametrize("adobe", [True, False])
def test_inks_become_the_colours_that_their_profile_says(version, bits, adobe):
    profile = made.profile(b"CMYK", {b"A2B0": table(of_inks, 4, 9, bits)}, b"Lab ", b"prtr", version)
    smooth = np.concatenate([np.asarray(picture(64, 48)), np.asarray(picture(64, 48, 1))[..., None]], 2)
    file = saved(Image.fromarray(smooth, "CMYK"), "JPEG", quality=95)
    if not adobe:
        # Without the marker numbers are inks as they are.
        at = file.index(b"\xff\xee")
        file = file[:at] + file[at + 2 + int.from_bytes(file[at + 2 : at + 4], "big") :]
    file = with_profile(file, profile)
    inks = Image.open(io.BytesIO(file))
    assert inks.mode == "CMYK"
    # Pillow takes all for Adobe's.
    expected = in_srgb(inks if adobe else ImageChops.invert(inks), profile)
    (found,), _ = decoded([file], types.RGB, color_management="srgb", jpeg_fancy_upsampling=True)
    off = abs(found.astype(int) - expected)
    assert off.max() <= MOST_OF_TABLES and off.mean() <= USUAL, f"{off.max()}, {off.mean():.3f} on average"
