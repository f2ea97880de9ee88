from record import case, fn, np, source, types


def boxes(*counts, ndim=2, seed=1):
    rng = np.random.default_rng(seed)
    low = [rng.uniform(0, 0.7, (n, ndim)) for n in counts]
    return [np.concatenate([at, at + rng.uniform(0.05, 0.3, at.shape)], 1).astype(np.float32) for at in low]


BOXES = {"X": boxes(4, 1, 3, 0, 2)}
LABELS = {"L": [np.arange(n, dtype=np.int32) for n in (4, 1, 3, 0, 2)]}
ANY = [0.001, 1000.0]


def x():
    return source("X", types.FLOAT, 2)


@case(inputs=BOXES, seed=7, batch_size=5)
def windows():
    return (
        *fn.random_bbox_crop(x(), scaling=[0.3, 1.0], aspect_ratio=[0.5, 2.0]),
        *fn.random_bbox_crop(x(), scaling=[0.3, 0.9], allow_no_crop=False, num_attempts=20),
        *fn.random_bbox_crop(
            x(), scaling=[0.5, 1.0], aspect_ratio=ANY, bbox_layout="YXyx", allow_no_crop=False, output_bbox_indices=True
        ),
        *fn.random_bbox_crop(x()),
    )


@case(inputs=BOXES | LABELS, seed=8, batch_size=5)
def windows_and_labels():
    labels = source("L", types.INT32, 1)
    return (
        *fn.random_bbox_crop(
            x(),
            labels,
            scaling=[0.3, 1.0],
            aspect_ratio=ANY,
            thresholds=[0.1, 0.3, 0.5],
            total_num_attempts=20,
            threshold_type="overlap",
        ),
        *fn.random_bbox_crop(
            x(),
            labels,
            scaling=[0.3, 1.0],
            aspect_ratio=[0.5, 2.0],
            thresholds=[0.01, 0.05],
            num_attempts=5,
            all_boxes_above_threshold=False,
            bbox_prune_threshold=0.4,
            output_bbox_indices=True,
        ),
        *fn.random_bbox_crop(
            x(),
            labels,
            scaling=[0.2, 0.5],
            aspect_ratio=ANY,
            thresholds=[0.9],
            total_num_attempts=7,
            allow_no_crop=False,
            all_boxes_above_threshold=False,
        ),
    )


@case(inputs=BOXES, seed=11, batch_size=5)
def windows_when_attempts_run_out():
    more = dict(scaling=[0.3, 0.9], allow_no_crop=False, output_bbox_indices=True)
    return tuple(
        out
        for thresholds in ([0.7, 0.0], [0.02, 0.7], [0.0])
        for attempts in (1, 3)
        for total in (4, 9)
        for out in fn.random_bbox_crop(
            x(), aspect_ratio=[0.5, 2.0], thresholds=thresholds, num_attempts=attempts, total_num_attempts=total, **more
        )
    )


@case(
    inputs=BOXES | {"S": [np.array(s, np.int32) for s in ([40, 50], [60, 60], [31, 9], [5, 5], [20, 10])]},
    seed=9,
    batch_size=5,
)
def windows_in_pixels():
    size = source("S", types.INT32, 1)
    return (
        *fn.random_bbox_crop(
            x(),
            crop_shape=[30, 20],
            input_shape=[40, 30],
            allow_no_crop=False,
            num_attempts=5,
            all_boxes_above_threshold=False,
        ),
        *fn.random_bbox_crop(
            x(), crop_shape=size, input_shape=[40, 30], shape_layout="HW", allow_no_crop=False, total_num_attempts=9
        ),
        *fn.random_bbox_crop(
            x(),
            input_shape=[40, 30],
            scaling=[0.3, 0.6],
            aspect_ratio=[0.7, 1.2],
            allow_no_crop=False,
            total_num_attempts=40,
        ),
    )


# Where rounding changes a fixed ratio, the window is not taken: fewer windows are found than are drawn.
@case(inputs={"X": boxes(4, 1, 3, 2, 5, seed=3)}, seed=12, batch_size=5)
def windows_of_fixed_ratios():
    more = dict(allow_no_crop=False, thresholds=[0.0], all_boxes_above_threshold=False)
    return tuple(
        out
        for ratio in (0.7, 0.3, 1.3, 1.7, 2.1, 0.9, 0.55)
        for attempts, total in ((1, 1), (2, 6))
        for out in fn.random_bbox_crop(
            x(),
            scaling=[0.2, 0.9],
            aspect_ratio=[ratio, ratio],
            num_attempts=attempts,
            total_num_attempts=total,
            **more,
        )
    ) + tuple(
        fn.random_bbox_crop(
            x(), scaling=[0.2, 0.6], aspect_ratio=[0.6, 0.6], input_shape=[40, 30], total_num_attempts=9, **more
        )
    )


@case(inputs={"V": boxes(3, 1, 2, ndim=3, seed=4)}, seed=13)
def windows_of_fixed_ratios_in_volumes():
    v = source("V", types.FLOAT, 2)
    more = dict(
        scaling=[0.3, 0.9],
        allow_no_crop=False,
        thresholds=[0.0],
        num_attempts=7,
        total_num_attempts=14,
        all_boxes_above_threshold=False,
    )
    return tuple(
        out
        for ratio in (
            [1.5, 1.5],
            [0.8, 0.8, 0.5, 2.0, 0.4, 2.5],
            [0.5, 2.0, 1.25, 1.25, 0.4, 2.5],
            [0.5, 0.5, 2.0, 2.0, 4.0, 4.0],
        )
        for out in fn.random_bbox_crop(v, aspect_ratio=ratio, **more)
    )


@case(inputs={"V": boxes(3, 1, 2, ndim=3)}, seed=10)
def windows_of_volumes():
    v = source("V", types.FLOAT, 2)
    return (
        *fn.random_bbox_crop(
            v, scaling=[0.5, 1.0], aspect_ratio=[0.5, 2.0, 0.6, 2.1, 0.4, 1.9], allow_no_crop=False, num_attempts=5
        ),
        *fn.random_bbox_crop(
            v,
            crop_shape=[30, 40, 9],
            input_shape=[40, 50, 8],
            shape_layout="WHD",
            allow_no_crop=False,
            num_attempts=5,
            all_boxes_above_threshold=False,
        ),
    )


@case(
    inputs={
        "X": [b * 40 for b in boxes(4, 1, 3)],
        "S": [np.array(s, np.int64) for s in ([40, 50, 3], [61, 60, 3], [31, 39, 3])],
        "A": [np.array(a, np.float32) for a in (30, 100, -45)],
    },
    tol=2e-5,
)
def rotated():
    size, angle = source("S", types.INT64, 1), source("A", types.FLOAT, 0)
    return (
        fn.bbox_rotate(x(), angle=angle, input_shape=size, bbox_normalized=False),
        fn.bbox_rotate(
            x(),
            angle=angle,
            input_shape=size,
            bbox_normalized=False,
            keep_size=True,
            bbox_layout="xyWH",
            remove_threshold=0.0,
        ),
        fn.bbox_rotate(
            x(), angle=20, input_shape=[50, 60], shape_layout="WH", bbox_normalized=False, size=[30, 40], mode="fixed"
        ),
        fn.bbox_rotate(x(), angle=80, input_shape=[50, 60], bbox_normalized=False, mode="halfway"),
    )


@case(inputs={"X": boxes(9, 5, 7), "L": [np.arange(n, dtype=np.int32).reshape(n, 1) for n in (9, 5, 7)]}, tol=1e-6)
def rotated_with_labels():
    return tuple(
        fn.bbox_rotate(
            x(), source("L", types.INT32, 2), angle=45, input_shape=[50, 60], keep_size=True, remove_threshold=0.9
        )
    )


@case(inputs={"S": [np.array(s, np.int32) for s in ([4, 5], [0, 0], [9, 2])]}, seed=12)
def regions():
    start = source("S", types.INT32, 1)
    return (
        fn.roi_random_crop(crop_shape=[10, 3], roi_start=start, roi_shape=[5, 6]),
        fn.roi_random_crop(crop_shape=[10, 3], roi_start=start, roi_end=[20, 30], in_shape=[25, 30]),
        fn.roi_random_crop(crop_shape=[1, 30], roi_start=start, roi_shape=[3, 4], in_shape=[12, 40], seed=5),
    )


ANCHORS = boxes(12, seed=4)[0]


@case(inputs={"X": boxes(3, 1, 5), "L": [np.arange(n, dtype=np.int32) + 1 for n in (3, 1, 5)]}, tol=1e-5)
def anchors():
    labels, numbers = source("L", types.INT32, 1), ANCHORS.ravel().tolist()
    return (
        *fn.box_encoder(x(), labels, anchors=numbers),
        *fn.box_encoder(x(), labels, anchors=numbers, criteria=0.2),
        *fn.box_encoder(
            x(),
            labels,
            anchors=numbers,
            criteria=0.3,
            offset=True,
            means=[0.1, 0.2, 0.3, 0.4],
            stds=[0.5, 0.6, 0.7, 0.8],
            scale=300.0,
        ),
    )
