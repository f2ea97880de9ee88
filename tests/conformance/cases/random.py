"""Operators with random numbers, by seeds of the pipeline and of their own."""

from cases.pipelines import IMAGES as PHOTOS
from record import case, fn, noise, np, source, types

TYPES = [
    types.UINT8,
    types.INT8,
    types.UINT16,
    types.INT16,
    types.UINT32,
    types.INT32,
    types.UINT64,
    types.INT64,
    types.FLOAT,
    types.FLOAT64,
]
IMAGES = {"X": noise((4, 6, 3), (2, 12, 3), (8, 4, 3))}


@case(seed=42)
def uniform():
    return tuple(fn.random.uniform(range=[2, 100], shape=[5], dtype=t) for t in TYPES) + (
        fn.random.uniform(),
        fn.random.uniform(range=[0.5, 3.7], shape=[9], dtype=types.INT32),
        fn.random.uniform(range=[1e-3, 2e-3], shape=[300]),
    )


@case(seed=3)
def values():
    return tuple(
        fn.random.uniform(values=[1.5, -2.5, 300], shape=[7], dtype=t)
        for t in (types.UINT8, types.INT64, types.FLOAT64, types.INT32)
    ) + (fn.random.uniform(values=[1, 2]), fn.random.uniform(values=[7.0], shape=3))


@case(seed=2**40 + 5)
def seeds():
    # What is computed in between takes no seed.
    a, b = fn.random.uniform(), fn.random.uniform(seed=17, shape=[4])
    return a + 1, b, fn.random.uniform(seed=-1), fn.random.coin_flip(shape=[9]), fn.random.uniform(seed=2**45 + 3)


@case(
    inputs=IMAGES
    | {
        "S": [np.array(v, np.int32) for v in ((2, 3), (1, 4), (0, 5))],
        "R": [np.array(v, np.float32) for v in ((2, 3), (-1, 4), (0, 5))],
        "P": [np.array(v, np.float32) for v in (0, 0.9, 1)],
    },
    seed=5,
)
def per_sample():
    x, s, r, p = (
        source("X", layout="HWC"),
        source("S", types.INT32, 1),
        source("R", types.FLOAT, 1),
        source("P", types.FLOAT, 0),
    )
    return (
        fn.random.uniform(x),
        fn.random.uniform(shape=s, range=r),
        fn.random.coin_flip(probability=p, shape=[20]),
        fn.random.uniform(values=r, shape=[4]),
        fn.random.coin_flip(s),
        fn.random.uniform(shape=s, range=[0, 1]),
    )


@case(seed=6, tol=1e-5)
def normal():
    return tuple(fn.random.normal(mean=10, stddev=20, shape=[20], dtype=t) for t in (types.FLOAT, types.FLOAT64)) + (
        fn.random.normal(),
        fn.random.normal(shape=[2, 2]),
    )


@case(seed=6)
def normal_integers():
    return tuple(fn.random.normal(mean=50, stddev=30, shape=[20], dtype=t) for t in TYPES[:8])


@case(seed=8)
def coin_flip():
    return tuple(
        fn.random.coin_flip(probability=p, shape=[40], dtype=t)
        for p in (0.0, 0.25, 1.0)
        for t in (types.BOOL, types.UINT8, types.INT32)
    ) + (fn.random.coin_flip(),)


@case(
    inputs=IMAGES
    | {
        "P": [np.array(v, np.float32) for v in ((0.2, 0.3, 0.5), (0, 1, 0), (0.5, 0, 0.5))],
        "N": [np.int16(v) for v in (2, 1, 7)],
    },
    seed=9,
)
def choice():
    x, p, n = source("X", layout="HWC"), source("P", types.FLOAT, 1), source("N", types.INT16, 0)
    return (
        fn.random.choice(5, shape=[30]),
        fn.random.choice(5),
        fn.random.choice([3, 5, 7], shape=[2, 3]),
        fn.random.choice(3, p=p, shape=[30]),
        fn.random.choice(x, shape=[3]),
        fn.random.choice(x),
        fn.random.choice(n, shape=[5]),
        fn.random.choice(n, x),
        fn.random.choice(1, p=[1.0], shape=[3]),
    )


@case(inputs=IMAGES, seed=10)
def salt_and_pepper():
    x = source("X", layout="HWC")
    y = fn.reshape(x, shape=[-1, 3], layout="")
    return (
        fn.noise.salt_and_pepper(x, prob=0.4),
        fn.noise.salt_and_pepper(x, prob=0.4, per_channel=True, salt_vs_pepper=0.8),
        fn.noise.salt_and_pepper(fn.cast(y, dtype=types.FLOAT), prob=0.3),
        fn.noise.salt_and_pepper(y, prob=0.9, salt_val=300.7, pepper_val=-2.6),
        fn.noise.salt_and_pepper(fn.cast(fn.transpose(x, perm=[2, 0, 1]), dtype=types.INT16), prob=0.5),
        fn.noise.salt_and_pepper(x),
    )


@case(inputs=IMAGES, seed=11)
def gaussian_noise():
    x = source("X", layout="HWC")
    return (
        fn.noise.gaussian(x, stddev=20),
        fn.noise.gaussian(fn.cast(x, dtype=types.INT32), stddev=20, mean=-5),
        fn.noise.gaussian(fn.cast(x, dtype=types.INT16), stddev=900),
    )


@case(inputs=IMAGES, seed=12, tol=1e-4)
def gaussian_noise_of_floats():
    return fn.noise.gaussian(fn.cast(source("X"), dtype=types.FLOAT), stddev=20)


@case(inputs={"S": [np.array(v, np.int64) for v in ((480, 640, 3), (1000, 9, 3), (7, 7, 1))]}, seed=13)
def crop_windows():
    s = source("S", types.INT64, 1)
    return (
        *fn.random_crop_generator(s),
        *fn.random_crop_generator(s, random_area=[0.9, 1.0], random_aspect_ratio=[0.1, 0.2], num_attempts=2),
        *fn.random_crop_generator(s, random_area=[0.4, 0.4], random_aspect_ratio=[1.0, 1.0], seed=4),
        *fn.random_crop_generator(s, random_aspect_ratio=[3.0, 5.0]),
    )


@case(inputs={"X": noise((40, 60, 3), (20, 120, 3), (80, 44, 3))}, seed=14, tol=1, devices=True)
def random_resized_crop(device):
    x = source("X", layout="HWC")
    x = x.gpu() if device == "gpu" else x
    return fn.random_resized_crop(x, size=[20, 30]), fn.random_resized_crop(
        x, size=[20, 30], random_area=[0.1, 0.2], interp_type=types.INTERP_CUBIC, antialias=False
    )


@case(inputs={"X": noise((40, 60, 3), (20, 120, 3), (80, 44, 3))}, seed=14, tol=1e-3)
def random_resized_crop_of_floats():
    return fn.random_resized_crop(source("X", layout="HWC"), size=[20, 30], dtype=types.FLOAT)


@case(inputs=PHOTOS, seed=15, devices=True)
def image_random_crop(device):
    x = source("IMAGE", ndim=1)
    device = "mixed" if device == "gpu" else "cpu"
    return fn.decoders.image_random_crop(x, device=device, random_area=[0.1, 0.3]), fn.decoders.image_random_crop(
        x, device=device, seed=3
    )


@case(inputs=IMAGES | {"P": [np.array(v) for v in (False, True, True)]}, seed=16, enable_conditionals=True)
def in_a_branch():
    x = source("X", layout="HWC")
    if source("P", types.BOOL, 0):
        # By their place in the branch, but the one without an input by that in the batch.
        y = fn.random.coin_flip(x)
        z = fn.random.uniform()
        x = fn.noise.salt_and_pepper(x, prob=0.5)
    else:
        y = fn.random.coin_flip(x, probability=0.1)
        z = fn.random.uniform(range=[5, 6])
    return x, y, z


@case(seed=17, tol=1e-5, devices=True)
def on_a_device(device):
    def drawn(distribution, **options):
        return distribution(device=device, **options)

    u, n, c = fn.random.uniform, fn.random.normal, fn.random.coin_flip
    return (
        drawn(u, shape=[70]),
        drawn(u),
        drawn(u, range=[2, 100], shape=[3, 5], dtype=types.UINT8),
        drawn(u, range=[-9, 9], shape=[9], dtype=types.INT64),
        drawn(u, range=[-9, 9], shape=[9], dtype=types.FLOAT64),
        drawn(u, values=[1.5, -2.5, 300], shape=[40]),
        drawn(c, shape=[40]),
        drawn(c, probability=0.2, shape=[40], dtype=types.BOOL),
        drawn(n, mean=10, stddev=20, shape=[70]),
        drawn(n, shape=[9], dtype=types.FLOAT64),
        drawn(n, mean=50, stddev=30, shape=[40], dtype=types.INT16),
    )


@case(inputs=IMAGES, seed=18, tol=1e-4, devices=True)
def noise_on_a_device(device):
    x = source("X", layout="HWC")
    x = x.gpu() if device == "gpu" else x
    f, planar = fn.cast(x, dtype=types.FLOAT), fn.transpose(x, perm=[2, 0, 1])
    return (
        fn.noise.gaussian(x, stddev=20),
        fn.noise.gaussian(f, stddev=20, mean=3),
        fn.noise.salt_and_pepper(x, prob=0.4),
        fn.noise.salt_and_pepper(f, prob=0.3),
        fn.noise.salt_and_pepper(x, prob=0.4, per_channel=True, salt_vs_pepper=0.8),
        fn.noise.salt_and_pepper(planar, prob=0.5, salt_val=200, pepper_val=7),
    )


@case(tol=1e-6, inputs={"A": [np.float32(v) for v in (2, 0.5, 7)], "B": [np.float32(v) for v in (1, 3, 40)]}, seed=11)
def beta():
    a, b = source("A", types.FLOAT, 0), source("B", types.FLOAT, 0)
    r = fn.random.beta
    return (
        r(shape=[40]),
        r(alpha=2.0, beta=3.0, shape=[5, 7]),
        r(alpha=a, beta=b, shape=[30]),
        r(alpha=3.0, beta=0.2, shape=[30], dtype=types.FLOAT64),
        r(a, alpha=2.0, beta=2.0),
        r(alpha=9.0),
    )


@case(
    tol=1e-6,
    inputs={"A": [np.float32(v) for v in (0.5, 0.03, 0.99)], "B": [np.float32(v) for v in (0.9, 0.2, 1e-6)]},
    seed=14,
)
def beta_of_small_parameters():
    a, b = source("A", types.FLOAT, 0), source("B", types.FLOAT, 0)
    r = fn.random.beta
    return (
        r(alpha=0.5, beta=0.5, shape=[40]),
        r(alpha=a, beta=b, shape=[50]),
        r(alpha=b, beta=a, shape=[7, 5], dtype=types.FLOAT64),
        r(alpha=0.999, beta=0.001, shape=[30]),
        r(alpha=1e-30, beta=1e-38, shape=[20]),
        r(alpha=0.7, beta=0.7),
    )


@case(inputs={"X": noise((9, 7, 3), (4, 4, 3), (1, 5, 3)), "F": [np.float32(v) for v in (0, 3, 100)]}, seed=12)
def shot_noise():
    x, f = source("X", layout="HWC"), source("F", types.FLOAT, 0)
    return (
        fn.noise.shot(x),
        fn.noise.shot(x, factor=f),
        fn.noise.shot(x, factor=0.25),
        fn.noise.shot(fn.cast(x, dtype=types.INT32) - 100, factor=2.0),
        fn.noise.shot(fn.cast(x, dtype=types.FLOAT) / 7, factor=0.1),
    )


@case(seed=13, batch_size=3)
def batch_permutations():
    p = fn.batch_permutation
    return (
        p(),
        p(allow_repetitions=True),
        p(no_fixed_points=True),
        p(allow_repetitions=True, no_fixed_points=True),
        p(seed=4),
    )


@case(seed=14, batch_size=8, inputs={"X": [np.uint8([n]) for n in range(8)]})
def a_shuffled_batch():
    return (
        fn.permute_batch(source("X"), indices=fn.batch_permutation()),
        fn.batch_permutation(no_fixed_points=True),
        fn.batch_permutation(allow_repetitions=True),
    )
