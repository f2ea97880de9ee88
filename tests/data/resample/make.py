"""Records what NVIDIA DALI's CPU operators answer: resize.npz and normalize.npz, read by tests/resample.rs and
tests/normalize.rs. Run with a Python that has nvidia-dali and numpy: python make.py

Every case is a row of numbers; outputs of one element type lie one after the other in one flat array, in the order of the
rows. Inputs are arrays named in<i>.
"""

import itertools
import pathlib

import numpy as np
from nvidia.dali import fn, pipeline_def, types

HERE = pathlib.Path(__file__).parent
DTYPES = {
    np.dtype(np.uint8): types.UINT8,
    np.dtype(np.uint16): types.UINT16,
    np.dtype(np.int16): types.INT16,
    np.dtype(np.float32): types.FLOAT,
    np.dtype(np.float16): types.FLOAT16,
    np.dtype(np.int8): types.INT8,
}
INTERP = [
    types.INTERP_NN,
    types.INTERP_LINEAR,
    types.INTERP_CUBIC,
    types.INTERP_LANCZOS3,
    types.INTERP_TRIANGULAR,
    types.INTERP_GAUSSIAN,
]
NN, LINEAR, CUBIC, LANCZOS3, TRIANGULAR, GAUSSIAN = range(6)


def run(op, image, layout):
    """The answer of `op` to one sample."""

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipeline():
        return op(fn.external_source(name="image", layout=layout))

    p = pipeline()
    p.build()
    p.feed_input("image", [image], layout=layout)
    return np.array(p.run()[0].at(0))


def resize(image, size, roi, minify, magnify, antialias, dtype, layout="HWC"):
    (y0, y1), (x0, x1) = roi
    return run(
        lambda x: fn.resize(
            x,
            size=[float(s) for s in size],
            roi_start=[float(y0), float(x0)],
            roi_end=[float(y1), float(x1)],
            min_filter=INTERP[minify],
            mag_filter=INTERP[magnify],
            antialias=bool(antialias),
            dtype=DTYPES[np.dtype(dtype)],
        ),
        image,
        layout,
    )


def resize_cases():
    """(input, size, roi, min, mag, antialias, float output)"""
    whole = ((0, 13), (0, 17))
    geometries = [
        ((19, 26), whole),
        ((5, 6), whole),
        ((5, 29), whole),
        ((23, 7), whole),
        ((4, 5), ((2.25, 11.5), (3.5, 12.75))),
        ((9, 4), ((-3.5, 9), (8.25, 21))),
        ((6, 5), ((13, 0), (17, 0))),
        ((15, 20), ((11.3, 1.2), (2.1, 14.9))),
        ((3, 21), ((12.5, 3), (16.25, -2.5))),
    ]
    for kind, antialias, (size, roi) in itertools.product(range(6), (True, False), geometries):
        # DALI 2.4 reads outside of the row when nearest neighbour leaves the image on the right: nothing to compare.
        if kind != NN or max(roi[1]) <= 17:
            yield 0, size, roi, kind, kind, antialias, True
    # Each filter in one direction only, on other element types.
    for (a, b), image in itertools.product(((NN, CUBIC), (TRIANGULAR, NN), (GAUSSIAN, LINEAR)), (1, 2, 3)):
        for size, roi in geometries[2:4]:
            yield image, size, roi, a, b, True, True
    # Other channel counts, and planes of a CHW image (input 6).
    for image, kind in itertools.product((4, 5, 6), (NN, TRIANGULAR, CUBIC)):
        for size, roi in geometries[1:4] + geometries[7:8]:
            yield image, size, roi, kind, kind, True, True
    # Stored as the input's type: halves and quarters tie, so both of DALI's roundings show.
    for image, (h, w) in ((7, (48, 36)), (8, (48, 36)), (9, (24, 36)), (10, (24, 36))):
        for roi in (((0, h), (0, w)), ((h, 0), (w, 0)), ((0, h), (w, 0))):
            yield image, (h // 2, w // 2), roi, LINEAR, LINEAR, True, False
            yield image, (h // 2, w // 2), roi, LINEAR, LINEAR, False, False
        yield image, (h // 4, w), ((0, h), (0, w)), LINEAR, LINEAR, True, False
        yield image, (h // 2, w), ((0, h), (0, w)), CUBIC, CUBIC, True, False
        yield image, (h, w // 2), ((0, h), (0, w)), LINEAR, LINEAR, True, False
        yield image, (h + 7, w // 4), ((0, h), (0, w)), TRIANGULAR, LINEAR, True, False
        yield image, (7, w // 2), ((0, h), (-3, w + 5)), TRIANGULAR, LINEAR, True, False
    for kind in range(6):
        yield 7, (17, 13), ((0, 48), (0, 36)), kind, kind, True, False
        yield 7, (20, 41), ((0, 48), (0, 36)), kind, kind, True, False


def record_resize():
    rng = np.random.default_rng(7)

    def integers(dtype, *shape):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)

    inputs = [
        integers(np.uint8, 13, 17, 3),
        integers(np.int16, 13, 17, 1),
        integers(np.uint16, 13, 17, 2),
        rng.normal(0, 100, (13, 17, 4)).astype(np.float32),
        integers(np.uint8, 13, 17, 5),
        rng.normal(0, 1, (13, 17, 3)).astype(np.float32),
        integers(np.uint8, 2, 13, 17),
        integers(np.uint8, 48, 36, 3),
        integers(np.uint8, 48, 36, 1),
        integers(np.int16, 24, 36, 4),
        integers(np.uint16, 24, 36, 2),
    ]
    rows, floats, others = [], [], {np.uint8: [], np.uint16: [], np.int16: []}
    for image, size, roi, minify, magnify, antialias, to_float in resize_cases():
        array = inputs[image]
        planes = image == 6
        out = np.float32 if to_float else array.dtype
        answer = resize(array, size, roi, minify, magnify, antialias, out, "CHW" if planes else "HWC")
        assert answer.shape[int(planes) :][:2] == size, (answer.shape, size)
        (floats if to_float else others[array.dtype.type]).append(answer.ravel())
        rows.append([image, *size, *roi[0], *roi[1], minify, magnify, antialias, to_float, planes])
    np.savez_compressed(
        HERE / "resize.npz",
        cases=np.array(rows, np.float64),
        float32=np.concatenate(floats),
        uint8=np.concatenate(others[np.uint8]),
        uint16=np.concatenate(others[np.uint16]),
        int16=np.concatenate(others[np.int16]),
        **{f"in{i}": array for i, array in enumerate(inputs)},
    )


if __name__ == "__main__":
    record_resize()
