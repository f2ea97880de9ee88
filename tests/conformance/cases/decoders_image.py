"""The operator's arguments; the pixels of every format and option are compared in tests/cpu/decode.rs."""
import io

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
    return tuple(fn.decoders.image(x, device="cpu", output_type=t) for t in (types.RGB, types.BGR, types.GRAY, types.YCbCr))


@case(inputs={"IMAGE": [file("BMP"), file("WEBP", lossless=True), file("TIFF")]})
def formats():
    return fn.decoders.image(source("IMAGE", ndim=1), device="cpu", adjust_orientation=False, jpeg_fancy_upsampling=True)


@case(inputs=FILES, tol=1e-6)
def as_float():
    return fn.decoders.image(source("IMAGE", ndim=1), device="cpu", dtype=types.FLOAT)


@case(inputs=FILES)
def under_its_old_name():
    return fn.experimental.decoders.image(source("IMAGE", ndim=1), device="cpu", adjust_orientation=False)
