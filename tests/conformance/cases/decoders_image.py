"""The operator's arguments; the pixels of every format and option are compared in tests/cpu/decode.rs."""

import io
import struct

from PIL import Image
from record import case, fn, np, source, types

EXIF_ORIENTATION = 0x112


def file(format, mode="RGB", size=(23, 17), orientation=None, **options):
    rng = np.random.default_rng(len(format) + size[0])
    pixels = rng.integers(0, 255, (size[1] // 4 + 1, size[0] // 4 + 1, 3), dtype=np.uint8)
    image = Image.fromarray(pixels).resize(size, Image.BILINEAR).convert(mode)
    if orientation:
        options["exif"] = Image.Exif()
        options["exif"][EXIF_ORIENTATION] = orientation
    out = io.BytesIO()
    image.save(out, format, **options)
    return np.frombuffer(out.getvalue(), np.uint8)


FILES = {"IMAGE": [file("JPEG", quality=90), file("PNG", "RGBA"), file("JPEG", orientation=6, quality=80)]}


@case(inputs=FILES)
def colours():
    x = source("IMAGE", ndim=1)
    return tuple(
        fn.decoders.image(x, device="cpu", output_type=t) for t in (types.RGB, types.BGR, types.GRAY, types.YCbCr)
    )


@case(inputs={"IMAGE": [file("BMP"), file("WEBP", lossless=True), file("TIFF")]})
def formats():
    return fn.decoders.image(
        source("IMAGE", ndim=1), device="cpu", adjust_orientation=False, jpeg_fancy_upsampling=True
    )


def animation(place, canvas, alpha, mode="RGB", **options):
    """A WebP whose only frame is smaller than its picture, of another colour around it."""

    def chunk(name, *parts):
        body = b"".join(parts)
        return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)

    def three(*numbers):
        return b"".join(struct.pack("<I", n)[:3] for n in numbers)

    still, frame, at = file("WEBP", mode, **options).tobytes(), b"", 12
    while at < len(still):
        end = at + 8 + struct.unpack("<I", still[at + 4 : at + 8])[0]
        if still[at : at + 4] in (b"VP8 ", b"VP8L", b"ALPH"):
            frame += still[at : end + end % 2]
        at = end + end % 2
    size = three(22, 16)
    body = (
        b"WEBP"
        + chunk(b"VP8X", bytes([0x12 if alpha else 2, 0, 0, 0]), three(*(side - 1 for side in canvas)))
        + chunk(b"ANIM", b"\x10\x80\xf0\xff\0\0")
        + chunk(b"ANMF", three(*(side // 2 for side in place)), size, three(100), b"\0", frame)
    )
    return np.frombuffer(b"RIFF" + struct.pack("<I", len(body)) + body, np.uint8)


@case(
    inputs={
        "IMAGE": [
            animation((4, 6), (40, 30), False, quality=80),
            animation((0, 0), (23, 20), True, "RGBA", lossless=True),
            animation((10, 2), (33, 19), True, lossless=True),
        ]
    }
)
def first_frames():
    x = source("IMAGE", ndim=1)
    return fn.decoders.image(x, device="cpu"), fn.decoders.image(x, device="cpu", output_type=types.ANY_DATA)


@case(inputs=FILES, tol=1e-6)
def as_float():
    return fn.decoders.image(source("IMAGE", ndim=1), device="cpu", dtype=types.FLOAT)


@case(inputs=FILES)
def under_its_old_name():
    return fn.experimental.decoders.image(source("IMAGE", ndim=1), device="cpu", adjust_orientation=False)
