"""Automatic augmentation: hundreds of small operators that choose by seeded random numbers."""

from cases.pipelines import IMAGES as PHOTOS
from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment
from record import case, fn, noise, source

IMAGES = {"X": noise((30, 40, 3), (24, 33, 3), (51, 20, 3))}
AUGMENTED = dict(inputs=IMAGES, seed=42, enable_conditionals=True, tol=1)


@case(**AUGMENTED)
def rand():
    return rand_augment.rand_augment(source("X", layout="HWC"), n=2, m=15)


@case(**(AUGMENTED | dict(seed=7)))
def rand_with_shape():
    x = source("X", layout="HWC")
    return rand_augment.rand_augment(x, n=3, m=20, shape=x.shape(), fill_value=0, monotonic_mag=False)


@case(**AUGMENTED)
def auto():
    return auto_augment.auto_augment(source("X", layout="HWC"), "image_net")


@case(**(AUGMENTED | dict(seed=5)))
def auto_of_other_policies():
    x = source("X", layout="HWC")
    return auto_augment.auto_augment(x, "reduced_image_net"), auto_augment.auto_augment(x, "svhn")


@case(**AUGMENTED)
def trivial():
    return trivial_augment.trivial_augment_wide(source("X", layout="HWC"))


@case(inputs=PHOTOS, seed=42, enable_conditionals=True, tol=2, devices=True)
def of_photos(device):
    encoded = source("IMAGE", ndim=1)
    image = fn.decoders.image(encoded, device="mixed" if device == "gpu" else "cpu")
    image = rand_augment.rand_augment(image, n=3, m=15, shape=fn.peek_image_shape(encoded), fill_value=128)
    return fn.resize(image, size=[64, 64])
