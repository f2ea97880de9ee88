"""timm's evaluation, made by `gesso from`."""

from gesso import fn, pipeline_def, types


@pipeline_def(batch_size=64, num_threads=4, prefetch_queue_depth=1)
def preprocess():
    encoded = fn.external_source(name="IMAGE", dtype=types.UINT8, ndim=1)
    images = fn.decoders.image(encoded, device="mixed", adjust_orientation=False, arithmetic="pillow")
    images = fn.resize_crop_mirror(
        images, resize_shorter=256, crop=[224, 224], rounding="even", arithmetic="pillow", filter="cubic"
    )
    pixels = fn.crop_mirror_normalize(
        images,
        mean=[0.4980392156862745, 0.4980392156862745, 0.4980392156862745],
        std=[0.5019607843137255, 0.5019607843137255, 0.5019607843137255],
        arithmetic="torchvision",
        name="PIXELS",
    )
    return pixels
