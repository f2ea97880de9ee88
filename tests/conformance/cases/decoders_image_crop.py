"""The window of a decoded image; where it is placed is what `crop.py` compares."""

from cases.decoders_image import file
from record import case, fn, np, source, types

# Chroma of half the size, as most cameras write it, would show a window that is upsampled on its own.
FILES = {
    "IMAGE": [
        file("JPEG", quality=90),
        file("JPEG", subsampling=0, size=(31, 20)),
        file("JPEG", "L"),
        file("JPEG", subsampling=1),
        file("JPEG", orientation=6, quality=80),
        file("JPEG", orientation=7, size=(20, 31)),
        file("PNG"),
        file("PNG", "RGBA"),
    ]
}
SAMPLES = len(FILES["IMAGE"])


def image_crop(**args):
    return fn.decoders.image_crop(source("IMAGE", ndim=1), device="cpu", **args)


def values(*samples, dtype=np.float32):
    return [np.array(samples[i % len(samples)], dtype) for i in range(SAMPLES)]


@case(inputs=FILES, batch_size=SAMPLES)
def places():
    return (
        image_crop(),
        image_crop(crop=(5, 7)),
        image_crop(crop=(4.9, 3.9)),
        image_crop(crop=(4, 4), rounding="truncate"),
        image_crop(crop=(0, 7)),
        image_crop(crop=(-3, 4)),
        image_crop(crop=(9, 11), crop_pos_x=0.25, crop_pos_y=1.0),
        image_crop(crop_w=4, crop_h=3, crop_pos_x=0.0),
        image_crop(crop=(17, 17)),
    )


@case(inputs=FILES, batch_size=SAMPLES)
def a_depth_is_not_looked_at():
    return image_crop(crop=(2, 5, 7), crop_pos_z=7.0), image_crop(crop_w=4, crop_h=3, crop_d=2)


@case(inputs=FILES, batch_size=SAMPLES)
def colours():
    types_ = (types.RGB, types.BGR, types.GRAY, types.YCbCr)
    return tuple(image_crop(output_type=t, crop=(8, 9), crop_pos_x=0.7) for t in types_)


@case(inputs=FILES, batch_size=SAMPLES)
def as_stored():
    return (
        image_crop(adjust_orientation=False, crop=(11, 13), crop_pos_x=0.9),
        image_crop(adjust_orientation=False, crop=(11, 13), crop_pos_y=0.9, dtype=types.UINT16),
    )


@case(inputs=FILES, batch_size=SAMPLES, tol=1e-6)
def as_float():
    return image_crop(crop=(6, 5), dtype=types.FLOAT)


@case(
    inputs=FILES
    | {
        "SIZE": values([5, 7], [9, 3], [1, 1]),
        "W": values(4, 6.5, 17),
        "H": values(17, 2, 9.9),
        "X": values(0, 1, 0.3),
        "Y": values(0.6, 0, 1),
    },
    batch_size=SAMPLES,
)
def arguments_per_sample():
    number = {name: source(name, types.FLOAT, 0) for name in "WHXY"}
    return (
        image_crop(crop=source("SIZE", types.FLOAT, 1), crop_pos_x=number["X"]),
        image_crop(crop_w=number["W"], crop_h=number["H"], crop_pos_x=number["X"], crop_pos_y=number["Y"]),
        image_crop(crop_w=number["W"], crop_h=5),
    )


@case(inputs={"IMAGE": [file("BMP"), file("WEBP", lossless=True), file("TIFF")]})
def other_formats():
    return image_crop(crop=(7, 8), crop_pos_x=0.8), image_crop(crop=(7, 8), output_type=types.GRAY)


@case(inputs=FILES, batch_size=SAMPLES)
def under_its_old_name():
    return fn.experimental.decoders.image_crop(source("IMAGE", ndim=1), device="cpu", crop=(6, 5))


@case(inputs=FILES | {"SIZE": values([5, 7], [9, 3], [1, 1])}, devices=True, batch_size=SAMPLES)
def on_either_device(device):
    x, size = source("IMAGE", ndim=1), source("SIZE", types.FLOAT, 1)
    return fn.decoders.image_crop(x, device="mixed" if device == "gpu" else "cpu", crop=size, crop_pos_x=0.3)
