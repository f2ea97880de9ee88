"""Random numbers of one batch after another: every operator that draws some, whole and in a branch of a conditional."""

import numpy as np
from cases.pipelines import IMAGES as PHOTOS
from record import case, fn, noise, source, types

BATCHES = [2, 1, 3]
IMAGES = {"X": noise((4, 6, 3), (2, 12, 3), (8, 4, 3), (5, 5, 3), (3, 7, 3), (6, 2, 3))}
SIZES = {
    "S": [
        np.array(v, np.int64) for v in ((480, 640, 3), (1000, 9, 3), (7, 7, 1), (64, 64, 3), (30, 90, 3), (90, 30, 3))
    ]
}


@case(inputs=IMAGES, batches=BATCHES, batch_size=3, seed=21, tol=1e-5)
def numbers():
    x, r = source("X", layout="HWC"), fn.random
    return (
        r.uniform(shape=[5]),
        r.uniform(range=[2, 100], shape=[3], dtype=types.INT64),
        r.uniform(values=[1, 2, 7], shape=[9]),
        r.coin_flip(shape=[9]),
        r.normal(shape=[5]),
        r.normal(x),
        r.beta(alpha=2.0, beta=3.0, shape=[5]),
        r.choice(5, shape=[9]),
        r.choice(x, shape=[2]),
        r.choice(3, p=[0.2, 0.3, 0.5], shape=[9]),
    )


@case(inputs=IMAGES, batches=BATCHES, batch_size=3, seed=22)
def permutations():
    x, p = source("X", layout="HWC"), fn.batch_permutation
    return (
        fn.permute_batch(x, indices=p()),
        p(allow_repetitions=True),
        p(no_fixed_points=True),
        p(allow_repetitions=True, no_fixed_points=True),
        p(seed=3),
    )


@case(inputs=IMAGES, batches=BATCHES, batch_size=3, seed=23)
def noises():
    x = source("X", layout="HWC")
    return fn.noise.gaussian(x, stddev=20), fn.noise.salt_and_pepper(x, prob=0.4), fn.noise.shot(x, factor=20.0)


@case(inputs=SIZES, batches=BATCHES, batch_size=3, seed=24)
def windows():
    s = source("S", types.INT64, 1)
    return (*fn.random_crop_generator(s), *fn.random_crop_generator(s, seed=4))


@case(
    inputs={"X": noise((40, 60, 3), (20, 120, 3), (80, 44, 3), (50, 50, 3), (33, 77, 3), (64, 20, 3))},
    batches=BATCHES,
    batch_size=3,
    seed=25,
    tol=1,
)
def resized():
    return fn.random_resized_crop(source("X", layout="HWC"), size=[20, 30])


@case(inputs={name: samples * 2 for name, samples in PHOTOS.items()}, batches=BATCHES, batch_size=3, seed=26)
def decoded():
    return fn.decoders.image_random_crop(source("IMAGE", ndim=1), random_area=[0.1, 0.3])


@case(
    inputs=IMAGES | {"P": [np.array(v) for v in (False, True, False, True, True, False)]},
    batches=BATCHES,
    batch_size=3,
    seed=27,
    enable_conditionals=True,
)
def in_a_branch():
    x = source("X", layout="HWC")
    if source("P", types.BOOL, 0):
        # By the samples that went into the branch before, but the one without an input by all of them.
        y = fn.random.coin_flip(x)
        z = fn.random.uniform()
        x = fn.noise.salt_and_pepper(x, prob=0.5)
    else:
        y = fn.random.coin_flip(x, probability=0.1)
        z = fn.random.uniform(range=[5, 6])
    return x, y, z
