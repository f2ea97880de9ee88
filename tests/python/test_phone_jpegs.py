"""JPEGs as phones and cameras write them, beside Pillow: several pictures in a file (MPO), a picture with a gain map
(Ultra HDR), a video or anything else behind the picture, profiles in several segments."""

import io
import struct

import numpy as np
import pytest
from gesso import fn, pipeline_def, types
from pictures import decoded, picture
from PIL import Image, ImageCms

SOI, EOI, APP1, APP2 = b"\xff\xd8", b"\xff\xd9", 0xE1, 0xE2
XMP = b"http://ns.adobe.com/xap/1.0/\0"
GAIN_MAP = b"urn:iso:std:iso:ts:21496:-1\0"
# What ways a picture is coded in.
WAYS = {
    "baseline": {},
    "4:2:0": {"subsampling": "4:2:0", "quality": 70},
    "progressive": {"progressive": True},
    "restarts": {"restart_marker_blocks": 3},
    "gray": {"gray": True},
}


def saved(image, kind="JPEG", **options):
    file = io.BytesIO()
    if options.pop("gray", False):
        image = image.convert("L")
    image.save(file, kind, **options)
    return file.getvalue()


def segment(marker, payload):
    return bytes([0xFF, marker]) + struct.pack(">H", 2 + len(payload)) + payload


def with_segments(file, *segments):
    """A JPEG with segments behind its first marker."""
    return file[:2] + b"".join(segments) + file[2:]


def index_of(*sizes, first):
    """The index of several pictures (CIPA DC-007), whose own first byte is at `first` of the file."""
    # Behind the segment's marker, length and `MPF\0`; from there on places are counted.
    start = first + 8
    entries = b""
    at = 0
    for number, size in enumerate(sizes):
        entries += struct.pack(">IIIHH", 0x030000 if number == 0 else 0, size, max(at - start, 0), 0, 0)
        at += size
    fields = [(0xB000, 7, 4, b"0100"), (0xB001, 4, 1, struct.pack(">I", len(sizes)))]
    fields.append((0xB002, 7, len(entries), struct.pack(">I", 8 + 2 + 3 * 12 + 4)))
    table = b"".join(struct.pack(">HHI", tag, kind, count) + value for tag, kind, count, value in fields)
    directory = struct.pack(">H", len(fields)) + table + bytes(4)
    return segment(APP2, b"MPF\0" + b"MM\0\x2a" + struct.pack(">I", 8) + directory + entries)


def ultra_hdr(image, **options):
    """A picture for any screen, and behind it a smaller one that says how much brighter each place may be."""
    about = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><hdrgm:Version>1.0</hdrgm:Version></x:xmpmeta>'
    gains = with_segments(
        saved(image.convert("L").resize((image.width // 4, image.height // 4))),
        segment(APP1, XMP + about),
        segment(APP2, GAIN_MAP + bytes(60)),
    )
    plain = saved(image, **options)
    head = with_segments(SOI, segment(APP1, XMP + about), segment(APP2, GAIN_MAP + bytes(4)))
    size = len(head) + len(index_of(0, 0, first=0)) + len(plain[2:])
    return head + index_of(size, len(gains), first=len(head)) + plain[2:] + gains


def behind():
    """What stands behind a picture, by its name."""
    yield "zeros", bytes(4_000)
    yield "fill bytes", b"\xff" * 4_001
    yield "noise", np.random.default_rng(5).integers(0, 256, 300_000, dtype=np.uint8).tobytes()
    yield "a video", struct.pack(">I4s4sI", 24, b"ftyp", b"mp42", 0) + b"isommp42" + bytes(2_000) + b"MotionPhoto_Data"
    yield "another picture", saved(picture(30, 40, seed=2))
    yield "a part of a picture", saved(picture(30, 40, seed=2))[:500]
    yield "scans", segment(0xDA, b"\x01\x01\0\0\x3f\0") * 400
    yield "ends", EOI * 100


def assert_equal(files):
    names, files = list(files), list(files.values())
    images, shapes = decoded(files, types.RGB, jpeg_fancy_upsampling=True)
    for name, file, image, shape in zip(names, files, images, shapes, strict=True):
        expected = np.array(Image.open(io.BytesIO(file)).convert("RGB"))
        assert shape == list(expected.shape), name
        assert np.array_equal(image, expected), name


@pytest.mark.parametrize("way", WAYS)
def test_whatever_stands_behind_a_picture_is_left_out(way):
    file = saved(picture(90, 70), **WAYS[way])
    assert_equal({name: file + rest for name, rest in behind()})


def test_of_several_pictures_the_first_comes():
    first, others = picture(90, 70), [picture(40, 30, seed=seed) for seed in (2, 3)]
    files = {f"{count} more": saved(first, "MPO", save_all=True, append_images=others[:count]) for count in (0, 1, 2)}
    files["turned"] = saved(first, "MPO", save_all=True, append_images=others, exif=orientation(1))
    assert [Image.open(io.BytesIO(file)).format for file in files.values()] == ["JPEG", "MPO", "MPO", "MPO"]
    assert_equal(files)
    turned = saved(first, "MPO", save_all=True, append_images=others, exif=orientation(6))
    (image,), (shape,) = decoded([turned], types.RGB, jpeg_fancy_upsampling=True)
    expected = np.rot90(np.array(Image.open(io.BytesIO(turned)).convert("RGB")), -1)
    assert np.array_equal(image, expected) and shape == list(expected.shape)


def orientation(number):
    exif = Image.Exif()
    exif[0x0112] = number
    return exif


@pytest.mark.parametrize("way", WAYS)
def test_of_ultra_hdr_the_picture_for_any_screen_comes(way):
    image = picture(96, 72)
    file = ultra_hdr(image, **WAYS[way])
    # Pillow finds the gain map where the index says that it is.
    opened = Image.open(io.BytesIO(file))
    assert (opened.format, opened.n_frames) == ("MPO", 2)
    opened.seek(1)
    assert opened.size == (24, 18)
    assert_equal({way: file, "a video behind it": file + bytes(5_000)})


def test_readers_and_parts_of_pictures_take_them(tmp_path):
    image = picture(96, 72)
    files = [ultra_hdr(image), saved(image, "MPO", save_all=True, append_images=[image]), saved(image) + bytes(900)]
    for number, file in enumerate(files):
        (tmp_path / f"{number}.jpg").write_bytes(file)

    @pipeline_def(batch_size=len(files), num_threads=2, device_id=None)
    def pipeline():
        read, _ = fn.readers.file(files=[str(tmp_path / f"{number}.jpg") for number in range(len(files))])
        settings = {"jpeg_fancy_upsampling": True}
        part = fn.decoders.image_slice(read, start=[8, 5], shape=[30, 40], axis_names="HW", **settings)
        return fn.decoders.image(read, **settings), part

    built = pipeline()
    built.build()
    whole, part = built.run()
    for i, file in enumerate(files):
        expected = np.array(Image.open(io.BytesIO(file)).convert("RGB"))
        assert np.array_equal(np.asarray(whole[i]), expected)
        assert np.array_equal(np.asarray(part[i]), expected[8:38, 5:45])


def long_profile(length):
    """A profile that is as long as several segments, with red and green exchanged: nobody takes it for sRGB."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    red, green = (profile.index(name, 128) for name in (b"rXYZ", b"gXYZ"))
    profile[red + 4 : red + 12], profile[green + 4 : green + 12] = (
        profile[green + 4 : green + 12],
        profile[red + 4 : red + 12],
    )
    profile += bytes(length - len(profile))
    return struct.pack(">I", len(profile)) + bytes(profile[4:])


@pytest.mark.parametrize("length", [700, 65_519, 65_520, 200_000])
def test_profiles_of_several_segments_are_put_together(length):
    profile = long_profile(length)
    parts = [profile[at : at + 65_519] for at in range(0, length, 65_519)]
    head = b"ICC_PROFILE\0"
    segments = [segment(APP2, head + bytes([i + 1, len(parts)]) + part) for i, part in enumerate(parts)]
    plain = saved(picture(90, 70))
    others = [segment(APP2, GAIN_MAP + bytes(4)), segment(APP1, XMP + b"<x/>")]
    # In their order, in another one, and with segments of others between them.
    files = {
        "in order": with_segments(plain, *segments),
        "backwards": with_segments(plain, *segments[::-1]),
        "mixed": with_segments(plain, *(each for part in segments for each in (*others, part))),
        "with pictures behind": with_segments(plain, *segments) + with_segments(plain, *segments),
    }
    assert_equal(files)
    source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    own = Image.open(io.BytesIO(plain))
    expected = np.array(ImageCms.profileToProfile(own, source, ImageCms.createProfile("sRGB"))).astype(int)
    assert abs(expected - np.array(own)).max() > 50
    images, _ = decoded(list(files.values()), types.RGB, jpeg_fancy_upsampling=True, color_management="srgb")
    for name, image in zip(files, images, strict=True):
        assert abs(image.astype(int) - expected).max() <= 2, name
