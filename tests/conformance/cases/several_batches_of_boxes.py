"""Random numbers of one batch after another: operators on bounding boxes and label maps."""

from record import case, fn, noise, np, source, types

BOXES = [
    np.concatenate([at, at + 0.25], 1).astype(np.float32) for at in np.random.default_rng(5).uniform(0, 0.7, (9, 3, 2))
]
MAPS = [m.astype(np.int32) for m in np.random.default_rng(6).integers(0, 4, (9, 6, 7))]


@case(inputs={"B": BOXES, "M": MAPS}, seed=21, batch_size=4, batches=[4, 2, 3])
def objects_and_boxes():
    maps, boxes = source("M", types.INT32, 2), source("B", types.FLOAT, 2)
    return (
        *fn.random_bbox_crop(boxes, scaling=[0.3, 1.0], aspect_ratio=[0.01, 100.0], num_attempts=2),
        *fn.segmentation.random_object_bbox(maps),
        fn.segmentation.random_mask_pixel(maps, foreground=1),
        fn.roi_random_crop(crop_shape=[10, 3], roi_start=[1, 2], roi_shape=[5, 6]),
    )


@case(
    inputs={"X": noise(*[(30, 40, 3)] * 9), "B": BOXES, "L": [np.arange(3, dtype=np.int32)] * 9},
    batch_size=4,
    batches=[4, 2, 3],
)
def images_cut_with_their_boxes():
    return tuple(
        fn.ssd_random_crop(
            source("X", layout="HWC"), source("B", types.FLOAT, 2), source("L", types.INT32, 1), seed=21, num_attempts=5
        )
    )
