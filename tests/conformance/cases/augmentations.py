"""Augmentations of training: masks, displacements, tiles, sensors' patterns, canvases, projections."""

from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((40, 50, 3), (31, 17, 3), (1, 1, 3))}
GRAY = {"X": noise((37, 53, 1), (32, 48, 1), (5, 3, 1))}
BOXES = {"B": [np.random.default_rng(n).random((n, 4), np.float32) for n in (1, 5, 0)]}


def per_sample(*values, dtype=np.float32):
    return [np.array(v, dtype) for v in values]


@case(inputs=IMAGES | {"A": per_sample(0.3, 1.0, -2.0), "T": per_sample(7, 13, 2, dtype=np.int32)})
def grid_mask():
    x, a, t = source("X", layout="HWC"), source("A", types.FLOAT, 0), source("T", types.INT32, 0)
    return (
        fn.grid_mask(x),
        fn.grid_mask(x, tile=10, ratio=0.3, angle=0.4),
        fn.grid_mask(x, tile=t, angle=a, shift_x=3.0, shift_y=-1.5),
        fn.grid_mask(fn.cast(x, dtype=types.FLOAT), tile=9, ratio=a),
        fn.grid_mask(fn.cast(x, dtype=types.INT16), tile=5),
        fn.grid_mask(fn.cast(x, dtype=types.INT32), tile=1),
        fn.grid_mask(x, tile=10, ratio=1.0),
    )


@case(inputs=BOXES | {"R": per_sample(1.0, 2.5, 1.3), "P": per_sample(0.0, 0.2, 1.0)})
def bbox_paste():
    b, r, p = source("B", types.FLOAT, 2), source("R", types.FLOAT, 0), source("P", types.FLOAT, 0)
    return (
        fn.bbox_paste(b, ratio=1.7),
        fn.bbox_paste(b, ratio=r, paste_x=p, ltrb=True),
        fn.bbox_paste(b, ratio=r, paste_y=p, paste_x=0.1),
    )


@case(tol=1, mean=0.01, inputs=IMAGES | {"M": per_sample(1, 0, 1, dtype=np.int32)})
def sphere():
    x, m = source("X", layout="HWC"), source("M", types.INT32, 0)
    return (
        fn.sphere(x),
        fn.sphere(x, interp_type=types.INTERP_LINEAR, fill_value=7.6),
        fn.sphere(x, mask=m, fill_value=300.0),
    )


@case(tol=2e-3, inputs={"X": noise((40, 50, 2), (31, 17, 2), (2, 3, 2), dtype=np.float32)})
def sphere_of_floats():
    x = source("X", types.FLOAT)
    return fn.sphere(x, interp_type=types.INTERP_LINEAR), fn.water(x, fill_value=-3.5, interp_type=types.INTERP_LINEAR)


@case(tol=1, mean=0.01, inputs=IMAGES | {"M": per_sample(1, 0, 1, dtype=np.int32)})
def water():
    x, m = source("X", layout="HWC"), source("M", types.INT32, 0)
    return fn.water(x, mask=m), fn.water(
        x,
        ampl_x=3.0,
        ampl_y=5.0,
        freq_x=0.3,
        freq_y=0.2,
        phase_x=0.5,
        phase_y=0.1,
        interp_type=types.INTERP_LINEAR,
        fill_value=9,
    )


@case(inputs=GRAY)
def clahe_gray():
    x = source("X", layout="HWC")
    return (
        fn.clahe(x, tiles_x=4, tiles_y=4, clip_limit=2.0),
        fn.clahe(x, tiles_x=1, tiles_y=1, clip_limit=1.5),
        fn.clahe(x, tiles_x=3, tiles_y=5, clip_limit=0.5),
        fn.clahe(x, tiles_x=53, tiles_y=37, clip_limit=2.0),
        fn.clahe(x, tiles_x=8, tiles_y=2, clip_limit=0.0),
        fn.clahe(x, tiles_x=4, tiles_y=4, clip_limit=2.0, bins=64),
    )


@case(inputs={"X": noise((140, 150, 3), (31, 17, 3), (16, 16, 3))})
def clahe_colour():
    x = source("X", layout="HWC")
    return fn.clahe(x, tiles_x=4, tiles_y=4, clip_limit=2.0), fn.clahe(
        x, tiles_x=2, tiles_y=3, clip_limit=3.0, luma_only=False
    )


@case(inputs={"X": noise((8, 12), (4, 4), (2, 6)), "P": per_sample([0, 0], [1, 0], [1, 1], dtype=np.int32)})
def debayer():
    x, p = source("X", layout="HW"), source("P", types.INT32, 1)
    positions = tuple(fn.debayer(x, blue_position=[y, x_]) for y in (0, 1) for x_ in (0, 1))
    return (
        *positions,
        fn.debayer(x, blue_position=p),
        fn.experimental.debayer(fn.expand_dims(x, axes=[2], new_axis_names="C"), blue_position=[0, 1]),
    )


@case(inputs={"X": noise((6, 8), (4, 10), (8, 4)), "W": noise((6, 8), (4, 4), (8, 6), dtype=np.uint16)})
def debayer_algorithms():
    x, w = source("X", layout="HW"), source("W", types.UINT16, layout="HW")
    return tuple(
        fn.debayer(image, blue_position=[y, x_], algorithm=name)
        for image in (x, w)
        for name in ("edgeaware_ocv", "gray_ocv")
        for y in (0, 1)
        for x_ in (0, 1)
    )


@case(inputs={"X": noise((24, 30), (8, 10), (6, 20))})
def debayer_by_gradients():
    x = source("X", layout="HW")
    return tuple(fn.debayer(x, blue_position=[y, x_], algorithm="vng_ocv") for y in (0, 1) for x_ in (0, 1))


@case(
    inputs={
        "X": noise((3, 8, 12), (1, 4, 4), (2, 2, 6), dtype=np.uint16),
        "P": [np.random.default_rng(1).integers(0, 2, (n, 2)).astype(np.int32) for n in (3, 1, 2)],
    }
)
def debayer_sequence():
    x = source("X", types.UINT16, layout="FHW")
    return fn.debayer(x, blue_position=[0, 1], algorithm="bilinear_ocv"), fn.debayer(
        x, blue_position=fn.per_frame(source("P", types.INT32, 2))
    )


REGIONS = {
    "X": noise((6, 8, 3), (6, 8, 3), (6, 8, 3)),
    "I": per_sample([0, 2], [1], [2, 1, 0], dtype=np.int32),
    "A": per_sample([[0, 1], [2, 3]], [[1, 1]], [[0, 0], [3, 3], [1, 4]], dtype=np.int32),
    "S": per_sample([[2, 3], [3, 4]], [[5, 7]], [[6, 8], [3, 5], [1, 1]], dtype=np.int32),
    "R": per_sample([[0.3, 0.5], [0.125, 0]], [[0.5, 0.7]], [[0, 0.9], [0.3, 0.3], [0.9, 0.1]]),
}


@case(inputs=REGIONS)
def multi_paste():
    x, i, a, s, r = (
        source(n, t, d)
        for n, t, d in (
            ("X", types.UINT8, 3),
            ("I", types.INT32, 1),
            ("A", types.INT32, 2),
            ("S", types.INT32, 2),
            ("R", types.FLOAT, 2),
        )
    )
    return (
        fn.multi_paste(x, in_ids=i),
        fn.multi_paste(x, in_ids=i, in_anchors=a, output_size=(9, 9)),
        fn.multi_paste(x, in_ids=i, shapes=s, out_anchors=a, output_size=(20, 30)),
        fn.multi_paste(x, in_ids=i, in_anchors_rel=r, output_size=(9, 9)),
        fn.multi_paste(x, in_ids=i, shapes_rel=r),
        fn.multi_paste(x, in_ids=i, out_anchors_rel=r, output_size=(100, 90)),
        fn.multi_paste(fn.cast(x, dtype=types.FLOAT) * 1.7, in_ids=i, dtype=types.UINT8),
        fn.multi_paste(x, in_ids=i, dtype=types.FLOAT),
    )


@case(
    inputs={
        "X": noise((6, 8, 3), (4, 4, 3), (1, 2, 3)),
        "Y": noise((3, 5, 3), (2, 7, 3), (4, 4, 3), seed=2),
        "Z": per_sample([9, 12], [20, 20], [4, 5], dtype=np.int32),
    }
)
def multi_paste_of_inputs():
    x, y, z = source("X"), source("Y"), source("Z", types.INT32, 1)
    return fn.multi_paste(x, y, output_size=z), fn.multi_paste(
        x, y, output_size=(30, 30), out_anchors=np.array([[0, 0], [10, 12]], np.int32)
    )


# DALI 2.4 fails on sequences of several frames here.
@case(
    inputs={
        "X": noise((1, 6, 8, 3), (1, 6, 8, 3), (1, 6, 8, 3)),
        "Y": noise((1, 3, 5, 3), (1, 2, 7, 3), (1, 4, 4, 3), seed=2),
        "I": per_sample([0, 2], [1], [2, 1, 0], dtype=np.int32),
        "A": [np.array([[[i, 2]]], np.int32) for i in range(3)],
        "R": [np.array([[[0.1 * i, 0.4]]], np.float32) for i in range(3)],
    }
)
def multi_paste_of_sequences():
    x, y = source("X", layout="FHWC"), source("Y", layout="FHWC")
    a, r = fn.per_frame(source("A", types.INT32, 3)), fn.per_frame(source("R", types.FLOAT, 3))
    return (
        fn.multi_paste(x, y, output_size=(9, 12)),
        fn.multi_paste(x, in_ids=source("I", types.INT32, 1), output_size=(9, 9)),
        fn.multi_paste(x, out_anchors=a, output_size=(12, 14)),
        fn.multi_paste(x, in_anchors_rel=r, output_size=(12, 14)),
        fn.multi_paste(x),
    )


MATRIX = [1.1, 0.2, -3.0, -0.1, 0.9, 2.0, 0.001, -0.002, 1.0]
MATRICES = [
    m.reshape(3, 3) for m in per_sample(MATRIX, [0, 1, 0, 1, 0, 3, 0, 0, 1], [0.5, 0, 0, 0, 0.25, 0, 0.01, 0.02, 1.0])
]


def projections(x, **more):
    warp = fn.experimental.warp_perspective
    return (
        warp(x, matrix=MATRIX, **more),
        warp(x, matrix=source("M", types.FLOAT, 2), pixel_origin="center", inverse_map=False, **more),
        warp(x, matrix=MATRIX, size=[20.0, 15.5], **more),
    )


def images(channels, dtype=np.uint8):
    return {"X": noise((21, 33, channels), (1, 1, channels), (8, 5, channels), dtype=dtype), "M": MATRICES}


@case(tol=1, mean=0.02, inputs=images(3))
def warp_perspective():
    x = source("X", layout="HWC")
    return (
        *projections(x, fill_value=[300.0, 1.0, 2.6]),
        *projections(x, border_mode="replicate"),
        *projections(x, border_mode="reflect"),
        *projections(x, border_mode="reflect_101"),
        *projections(x, border_mode="wrap"),
        fn.experimental.warp_perspective(x, source("M", types.FLOAT, 2), fill_value=9.0),
    )


@case(tol=1, mean=0.02, inputs=images(2, np.int16))
def warp_perspective_coarse():
    x = source("X", types.INT16, layout="HWC")
    return (
        *projections(x, fill_value=100.0),
        *projections(fn.cast(x, dtype=types.UINT8)),
        *projections(x, border_mode="wrap"),
    )


@case(tol=2e-2, inputs=images(4, np.float32))
def warp_perspective_of_floats():
    x = source("X", types.FLOAT, layout="HWC")
    return projections(x, fill_value=-9.0)


@case(tol=1, mean=0.02, inputs={"X": noise((3, 21, 33), (3, 7, 9), (3, 8, 5)), "M": MATRICES})
def warp_perspective_of_planes():
    return projections(source("X", layout="CHW"), fill_value=9.0)


# DALI 2.4 does not return from an image of one pixel.
@case(tol=1, mean=0.02, inputs=images(3) | {"X": noise((21, 33, 3), (6, 4, 3), (8, 5, 3))})
def warp_perspective_cubic():
    x, more = source("X", layout="HWC"), {"interp_type": types.INTERP_CUBIC}
    return (
        *projections(x, fill_value=[300.0, 1.0, 2.6], **more),
        *projections(x, border_mode="replicate", **more),
        *projections(x, border_mode="reflect_101", **more),
        *projections(fn.cast(x, dtype=types.INT16), fill_value=7.0, **more),
    )


@case(tol=2e-2, inputs=images(4, np.float32) | {"X": noise((21, 33, 4), (6, 4, 4), (8, 5, 4), dtype=np.float32)})
def warp_perspective_cubic_of_floats():
    return projections(source("X", types.FLOAT, layout="HWC"), fill_value=-9.0, interp_type=types.INTERP_CUBIC)


@case(inputs={"X": noise((21, 33, 3), (9, 7, 3), (8, 5, 3))})
def warp_perspective_nearest():
    x, matrix = source("X", layout="HWC"), [0.9, 0.21, -1.13, 0.07, 1.17, 0.3, 0.0013, 0.0021, 1.0]
    warp = fn.experimental.warp_perspective
    return tuple(
        warp(x, matrix=matrix, interp_type=types.INTERP_NN, border_mode=mode)
        for mode in ("constant", "replicate", "wrap")
    )


FAR = [
    m.reshape(3, 3)
    for m in per_sample(
        [1, 0.3, -30, 0.2, 1.1, -25, 0.001, 0.002, 1],
        [0.9, 0.1, 40, -0.1, 1.2, 30, 0, 0.003, 1],
        [2, 0, 11, 0, 3, 17, 0.002, 0, 1],
    )
]


# A border that repeats goes on for so many pixels, in front of the image and behind it.
@case(tol=1, mean=0.02, inputs={"X": noise((21, 33, 3), (6, 4, 3), (15, 17, 3)), "M": FAR})
def warp_perspective_cubic_far_outside():
    x, matrix = source("X", layout="HWC"), source("M", types.FLOAT, 2)
    more = dict(interp_type=types.INTERP_CUBIC, size=[25.0, 40.0])
    return tuple(
        fn.experimental.warp_perspective(x, matrix, border_mode=mode, inverse_map=way, **more)
        for mode in ("wrap", "reflect", "reflect_101")
        for way in (True, False)
    )


# With tolerance 0: which of two pixels is next to a place between them, and which of 32 steps, hangs on the last bit.
@case(inputs={"X": noise((37, 90, 3), (40, 31, 3), (60, 9, 3)), "M": MATRICES})
def warp_perspective_to_the_last_bit():
    x, matrix = source("X", layout="HWC"), source("M", types.FLOAT, 2)
    more = dict(interp_type=types.INTERP_NN, border_mode="replicate")
    return tuple(
        fn.experimental.warp_perspective(fn.cast(x, dtype=dtype), matrix, pixel_origin=origin, inverse_map=way, **more)
        for dtype in (types.UINT8, types.INT16)
        for origin in ("corner", "center")
        for way in (True, False)
    )
