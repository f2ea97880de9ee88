from record import case, fn, np, source, types


def maps(*shapes, labels=4, dtype=np.int32):
    rng = np.random.default_rng(3)
    made = [rng.integers(0, labels + 1, shape) for shape in shapes]
    return [np.where(rng.random(m.shape) < 0.3, 0, m).astype(dtype) for m in made]


SHAPES = [(7, 8), (9, 5), (6, 6), (1, 8), (3, 3)]
OBJECTS = {"X": maps(*SHAPES)}


def x():
    return source("X", types.INT32, 2)


def objects(**arguments):
    found = fn.segmentation.random_object_bbox(x(), **arguments)
    return tuple(found) if isinstance(found, (list, tuple)) else (found,)


@case(inputs=OBJECTS, seed=1, batch_size=5)
def any_object():
    return (
        *objects(),
        *objects(output_class=True, format="start_end", foreground_prob=0.5),
        *objects(format="box", ignore_class=True),
        *objects(format="box", ignore_class=True, k_largest=2, threshold=2),
        *objects(k_largest=3),
        *objects(threshold=[2, 3], output_class=True),
    )


@case(
    inputs=OBJECTS | {"C": [np.array(c, np.int32) for c in ([1], [2, 4], [3, 0], [9], [1, 2, 3])]}, seed=2, batch_size=5
)
def objects_of_classes():
    classes = source("C", types.INT32, 1)
    return (
        *objects(classes=classes, output_class=True),
        *objects(classes=[3, 9, 1], class_weights=[1, 2, 3], output_class=True),
        *objects(class_weights=[1, 2, 3, 4, 5, 6], output_class=True),
        *objects(class_weights=[1, 2, 3], background=2, output_class=True),
        *objects(background=1, output_class=True),
        *objects(class_weights=[0, 0], output_class=True),
    )


@case(inputs={"X": maps((3, 4, 5), (2, 3, 4), (6, 2, 2), dtype=np.uint8)}, seed=3)
def objects_of_volumes():
    volumes = source("X", types.UINT8, 3)
    return tuple(fn.segmentation.random_object_bbox(volumes, output_class=True, threshold=2, k_largest=2))


@case(
    inputs={
        "X": [m.astype(np.float32) / 2 for m in maps((7, 8), (9, 5), (2, 2))],
        "F": [np.array(f, np.int32) for f in (1, 0, 1)],
    },
    seed=4,
)
def pixels():
    masks = source("X", types.FLOAT, 2)
    pixel = fn.segmentation.random_mask_pixel
    return (
        pixel(masks),
        pixel(masks, foreground=1),
        pixel(masks, foreground=source("F", types.INT32, 0), threshold=1.2),
        pixel(masks, foreground=1, value=1),
        pixel(masks, foreground=1, threshold=1000),
    )


@case(
    inputs={
        "I": [np.array(i, np.int32) for i in ([1], [2, 0], [])],
        "P": [
            np.array(p, np.int32)
            for p in ([[0, 0, 3], [1, 3, 7], [2, 7, 10]], [[2, 4, 7], [0, 0, 4], [2, 7, 9]], [[5, 0, 3]])
        ],
        "V": [np.arange(2 * n, dtype=np.float32).reshape(n, 2) for n in (10, 9, 3)],
    }
)
def polygons():
    inputs = source("I", types.INT32, 1), source("P", types.INT32, 2), source("V", types.FLOAT, 2)
    return (*fn.segmentation.select_masks(*inputs), *fn.segmentation.select_masks(*inputs, reindex_masks=True))
