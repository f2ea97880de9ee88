"""Records what NVIDIA DALI's CPU operators answer: resize.npz and normalize.npz, read by tests/cpu/resample.rs and
tests/cpu/normalize.rs. Run with a Python that has nvidia-dali and numpy: python make.py

Every case is a row of numbers; outputs of one element type lie one after the other in one flat array, in the order of
the rows. Inputs are arrays named in<i>.
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


def normalize_cases():
    """(input, planar input, planar output, output type, crop window (h, w, pos y, pos x), mirror, pad channels, mean,
    std)"""
    whole, inside, outside = (6, 7, 0.5, 0.5), (4, 3, 0.3, 0.9), (9, 11, 0.4, 0.7)
    outputs = (np.float32, np.float16, np.uint8, np.int8)
    for image, out in itertools.product(range(7), outputs):
        for window, mirror in itertools.product((whole, inside, outside), (False, True)):
            layouts = itertools.product((False, True), (False, True)) if image == 0 else ((False, True),)
            for planar_input, planar_output in layouts:
                yield image, planar_input, planar_output, out, window, mirror, image in (0, 6)
    for image in (3, 7, 8):
        yield image, False, False, np.float32, outside, True, False
        yield image, False, True, np.float32, outside, False, image == 7


def record_normalize():
    rng = np.random.default_rng(8)
    shape = (6, 7, 3)
    inputs = [
        rng.integers(0, 255, shape, np.uint8, endpoint=True),
        rng.integers(-300, 300, shape, np.int16),
        rng.integers(0, 65535, shape, np.uint16, endpoint=True),
        rng.integers(-(2**31), 2**31 - 1, shape, np.int32),
        rng.normal(0, 60, shape).astype(np.float32),
        rng.normal(0, 60, shape).astype(np.float16),
        rng.integers(0, 255, shape, np.uint8, endpoint=True),
        rng.integers(0, 255, (6, 7, 5), np.uint8, endpoint=True),
        rng.integers(0, 255, (6, 7, 1), np.uint8, endpoint=True),
    ]
    scale, shift = 1.7, 0.3
    rows, arguments, answers = [], [], {np.float32: [], np.float16: [], np.uint8: [], np.int8: []}
    for image, planar_input, planar_output, out, window, mirror, pad in normalize_cases():
        array = inputs[image]
        channels = array.shape[2]
        mean = rng.uniform(0, 120, channels).astype(np.float32)
        std = rng.uniform(0.5, 60, channels).astype(np.float32)
        fill = rng.uniform(-300, 400, 1 << (channels - 1).bit_length() if pad else channels).astype(np.float32)
        height, width, y, x = window
        answer = run(
            lambda image: fn.crop_mirror_normalize(
                image,
                crop=[float(height), float(width)],
                crop_pos_y=y,
                crop_pos_x=x,
                mirror=int(mirror),
                mean=mean.tolist(),
                std=std.tolist(),
                scale=scale,
                shift=shift,
                dtype=DTYPES[np.dtype(out)],
                output_layout="CHW" if planar_output else "HWC",
                pad_output=pad,
                fill_values=fill.tolist(),
                out_of_bounds_policy="pad",
            ),
            np.ascontiguousarray(array.transpose(2, 0, 1)) if planar_input else array,
            "CHW" if planar_input else "HWC",
        )
        answers[out].append(answer.ravel())
        away = lambda v: int(np.floor(abs(v) + 0.5) * np.sign(v))
        anchor = [away(y * (6 - height)), away(x * (7 - width))]
        kind = list(answers).index(out)
        rows.append([image, planar_input, planar_output, kind, height, width, *anchor, mirror, len(fill)])
        arguments += [mean, std, fill]
    np.savez_compressed(
        HERE / "normalize.npz",
        cases=np.array(rows, np.float64),
        arguments=np.concatenate(arguments),
        float32=np.concatenate(answers[np.float32]),
        float16=np.concatenate(answers[np.float16]).view(np.uint16),
        uint8=np.concatenate(answers[np.uint8]),
        int8=np.concatenate(answers[np.int8]),
        **{f"in{i}": a.view(np.uint16) if a.dtype == np.float16 else a for i, a in enumerate(inputs)},
    )


if __name__ == "__main__":
    record_resize()
    record_normalize()
