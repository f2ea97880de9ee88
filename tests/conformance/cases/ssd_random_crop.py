from record import case, fn, noise, np, source, types


def some_boxes(*counts, seed=5):
    corners = [
        np.sort(np.random.default_rng(seed + i).uniform(0, 1, (count, 2, 2)), 1) for i, count in enumerate(counts)
    ]
    return [corner.reshape(-1, 4).astype(np.float32) for corner in corners]


COUNTS = [1, 2, 3, 4, 1, 2, 5, 2, 3, 1, 4, 2]
INPUTS = {
    "X": noise(*[(20 + 7 * i, 40 - 3 * i, 1 + 2 * (i % 2)) for i in range(12)]),
    "B": some_boxes(*COUNTS),
    "L": [np.arange(count, dtype=np.int32) + 10 for count in COUNTS],
}


# Of what it calls by its name, DALI says that it is deprecated.
def cropped(**options):
    return fn.ssd_random_crop(
        source("X", layout="HWC"), source("B", types.FLOAT, 2), source("L", types.INT32, 1), **options
    )


@case(inputs=INPUTS, batch_size=12)
def one_attempt():
    return tuple(cropped(seed=7))


@case(inputs=INPUTS, batch_size=12)
def many_attempts():
    return tuple(cropped(seed=8, num_attempts=30))
