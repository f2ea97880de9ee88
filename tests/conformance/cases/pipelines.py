"""Whole pipelines as they stand in front of vision models. The server tests use them too."""

import io

from PIL import Image
from record import case, fn, np, source, types

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]


def photo(width, height, seed, **options):
    """A JPEG of gradients, blobs and a little noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    planes = []
    for _ in range(3):
        a, b, c = rng.uniform(0.02, 0.12, 3)
        planes.append(128 + 60 * np.sin(a * x + b * y) + 50 * np.cos(c * (x - y)) + rng.normal(0, 6, (height, width)))
    pixels = np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", **options)
    return np.frombuffer(out.getvalue(), np.uint8)


IMAGES = {
    "IMAGE": [
        photo(160, 120, 1, quality=85),
        photo(121, 183, 2, quality=75, subsampling=0),
        photo(98, 97, 3, quality=90, subsampling=1, progressive=True),
    ]
}


def decode(device, **options):
    return fn.decoders.image(source("IMAGE", ndim=1), device="mixed" if device == "gpu" else "cpu", **options)


def normalize(image, **options):
    return fn.crop_mirror_normalize(
        image, **(dict(dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD) | options)
    )


@case(inputs=IMAGES, devices=True, tol=0.02)
def classify(device):
    return normalize(fn.resize(decode(device), resize_x=64, resize_y=64), crop=(64, 64), name="PIXELS")


@case(inputs=IMAGES, devices=True, tol=0.02)
def evaluate(device):
    image = fn.resize(decode(device), resize_shorter=72.0)
    return normalize(image, crop=(64, 64), dtype=types.FLOAT16, name="PIXELS")


@case(inputs=IMAGES, devices=True, tol=0.005)
def letterbox(device):
    image = fn.resize(decode(device), size=[80, 80], mode="not_larger")
    image = fn.crop(image, crop=(80, 80), out_of_bounds_policy="pad", fill_values=[114.0, 114.0, 114.0])
    return normalize(image, mean=[0.0], std=[255.0], name="PIXELS")


@case(
    inputs=IMAGES
    | {
        "ANCHOR": [np.array(a, np.float32) for a in ((0.1, 0.2), (0.15, 0.2), (0.2, 0.2))],
        "SHAPE": [np.array(s, np.float32) for s in ((0.5, 0.4), (0.5, 0.45), (0.5, 0.5))],
    },
    devices=True,
    tol=0.02,
)
def region(device):
    anchor, shape = source("ANCHOR", types.FLOAT, 1), source("SHAPE", types.FLOAT, 1)
    image = fn.slice(decode(device), anchor, shape, axis_names="HW")
    return normalize(fn.resize(image, size=[48, 48]), name="PIXELS")


@case(inputs=IMAGES, devices=True, tol=3)
def colors(device):
    image = fn.resize(decode(device), size=[40, 40])
    image = fn.hsv(fn.brightness_contrast(image, brightness=1.2, contrast=0.8), hue=20.0, saturation=1.3, value=0.9)
    return fn.color_twist(image, hue=-10.0, saturation=0.7, brightness=1.1, contrast=1.2, name="IMAGE_OUT")


@case(inputs=IMAGES, devices=True, tol=3)
def geometry(device):
    image = fn.rotate(fn.resize(decode(device), size=[40, 50]), angle=15.0, fill_value=0, keep_size=True)
    image = fn.warp_affine(image, matrix=[0.9, 0.1, 5.0, -0.05, 1.1, 3.0], fill_value=0)
    return fn.flip(fn.gaussian_blur(image, window_size=5), horizontal=1, vertical=0, name="IMAGE_OUT")


@case(inputs=IMAGES, devices=True)
def decode_only(device):
    return decode(device)


@case(inputs=IMAGES, devices=True, tol=1e-4)
def gray(device):
    image = fn.resize(decode(device, output_type=types.GRAY), size=[40, 40])
    return fn.normalize(fn.cast(image, dtype=types.FLOAT), axes=[0, 1], name="PIXELS")


@case(inputs=IMAGES, devices=True, tol=1)
def two_outputs(device):
    image = fn.resize(decode(device), size=[48, 56], name="IMAGE_OUT")
    return image, normalize(image, name="PIXELS")


@case(inputs=IMAGES, devices=True, tol=1)
def half_of_its_size(device):
    shape = fn.slice(fn.peek_image_shape(source("IMAGE", ndim=1)), start=[0], end=[2], axes=[0])
    return fn.resize(decode(device), size=shape / 2, name="HALF")


@case(inputs={"X": [np.full((3,), i, np.float32) for i in range(3)]})
def passed_through():
    x = source("X", types.FLOAT, 1)
    return x, x
