"""JPEG 2000, decoded by another library than DALI's."""

from cases.decoders_image import file
from record import case, fn, source, types

JPEG_2000 = [file("JPEG2000"), file("JPEG2000", "L", (40, 31)), file("JPEG2000", "RGB", (64, 50), no_jp2=True)]


@case(inputs={"IMAGE": JPEG_2000})
def jpeg_2000():
    x = source("IMAGE", ndim=1)
    colours = tuple(
        fn.decoders.image(x, device="cpu", output_type=t) for t in (types.RGB, types.BGR, types.GRAY, types.YCbCr)
    )
    return (
        *colours,
        fn.decoders.image(x, device="cpu", dtype=types.UINT16),
        fn.decoders.image_crop(x, device="cpu", crop=(10, 12)),
        fn.peek_image_shape(x),
    )


@case(
    inputs={
        "IMAGE": [
            file("JPEG2000", "RGB", (90, 70 + i), irreversible=True, quality_mode="rates", quality_layers=[10])
            for i in range(3)
        ]
    },
    tol=1,
    mean=0.1,
)
def lossy_jpeg_2000():
    return fn.decoders.image(source("IMAGE", ndim=1), device="cpu")


@case(inputs={"IMAGE": [file("JPEG2000", mode) for mode in ("RGBA", "RGB", "RGBA")]})
def jpeg_2000_with_alpha():
    return fn.decoders.image(source("IMAGE", ndim=1), device="cpu")
