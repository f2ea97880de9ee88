"""The window of a decoded image, between ends; how ends are rounded is what `slice.py` compares."""

from cases.decoders_image_crop import FILES, SAMPLES, values
from record import case, fn, np, source, types


def image_slice(*inputs, **args):
    return fn.decoders.image_slice(source("IMAGE", ndim=1), *inputs, device="cpu", **args)


@case(inputs=FILES, batch_size=SAMPLES)
def x_stands_before_y():
    return (
        image_slice(start=(1, 2), shape=(3, 2)),
        image_slice(start=(2, 3)),
        image_slice(start=3, end=(9, 14)),
        image_slice(end=(8, 5)),
        image_slice(start=0, rel_end=1.0),
    )


@case(inputs=FILES, batch_size=SAMPLES)
def axes():
    return (
        image_slice(start=(2, 3), shape=(4, 5), axes=[0, 1]),
        image_slice(start=2, shape=4, axes=[0]),
        image_slice(start=2, shape=4, axes=[-1]),
        image_slice(start=2, shape=4, axes=[-2]),
        image_slice(start=(2, 3), shape=(4, 5), axis_names="HW"),
        image_slice(start=2, shape=4, axis_names="W"),
    )


@case(inputs=FILES, batch_size=SAMPLES)
def relative_ends():
    return (
        image_slice(rel_start=(0.15, 0.2), rel_shape=(0.25, 0.5)),
        image_slice(start=(2, 3), rel_end=(0.9, 0.5)),
        image_slice(rel_start=0.3, shape=(4, 6)),
        image_slice(start=1, rel_shape=0.3),
        image_slice(rel_end=0.7),
        # Both ends of the first one are rounded to those of the image.
        image_slice(rel_start=(-0.01, 0), rel_end=(1.01, 1)),
    )


@case(inputs=FILES, batch_size=SAMPLES)
def colours():
    types_ = (types.RGB, types.BGR, types.GRAY, types.YCbCr)
    return tuple(image_slice(output_type=t, start=(3, 5), shape=(9, 8)) for t in types_)


@case(inputs=FILES, batch_size=SAMPLES, tol=1e-6)
def as_stored():
    return (
        image_slice(adjust_orientation=False, start=(5, 1), shape=(12, 13)),
        image_slice(adjust_orientation=False, start=(5, 1), shape=(12, 13), dtype=types.FLOAT),
    )


@case(
    inputs=FILES
    | {
        "A": values([0, 1], [1, 0], [-1, -2], dtype=np.int32),
        "S": values([1, 2], [2, 1], [0, 3], dtype=np.int32),
        "N": values([2, 3], [9, 2], [8, 4], dtype=np.int32),
        "R": values([0.5, 0.6], [0.9, 1.0]),
    },
    batch_size=SAMPLES,
)
def arguments_per_sample():
    axes, start, size = (source(name, types.INT32, 1) for name in "ASN")
    return (
        image_slice(axes=axes, start=start, shape=size),
        image_slice(axes=axes, start=1, rel_end=0.9),
        image_slice(start=start, rel_end=source("R", types.FLOAT, 1)),
    )


FRACTIONS = {"S": values([0.1, 0.2], [0.3, 0], [0.25, 0.5]), "N": values([0.5, 0.25], [0.6, 1], [0.75, 0.5])}


@case(inputs=FILES | FRACTIONS, batch_size=SAMPLES)
def float_inputs_are_relative():
    start, size = source("S", types.FLOAT, 1), source("N", types.FLOAT, 1)
    return image_slice(start, size), image_slice(start, size, axis_names="HW")


@case(
    inputs=FILES
    | {
        "S": values([1, 2.5], [1.4, 1.5], [3, 1]),
        "N": values([0.5, 0.25], [0.6, 0.75], [0.5, 0.5]),
        "P": values([6, 5.5], [7.4, 3]),
    },
    batch_size=SAMPLES,
)
def float_inputs_may_be_absolute():
    start, part, size = (source(name, types.FLOAT, 1) for name in "SNP")
    return (
        image_slice(start, part, normalized_anchor=False),
        image_slice(start, size, normalized_anchor=False, normalized_shape=False),
        image_slice(part, start, normalized_shape=False),
    )


@case(
    inputs=FILES
    | {"S": values([1, 2], [0, 1], [3, 1], dtype=np.int32), "N": values([2, 1], [9, 14], [5, 7], dtype=np.int32)},
    batch_size=SAMPLES,
)
def integer_inputs_are_absolute():
    start, size = source("S", types.INT32, 1), source("N", types.INT32, 1)
    return image_slice(start, size), image_slice(start, size, axis_names="HW", normalized_anchor=False)


@case(inputs=FILES | {"S": values([1], [4], dtype=np.int64), "N": values([7], [3], dtype=np.int64)}, batch_size=SAMPLES)
def long_inputs_along_one_axis():
    return image_slice(source("S", types.INT64, 1), source("N", types.INT64, 1), axes=[-2])


@case(inputs=FILES, batch_size=SAMPLES)
def under_its_old_name():
    return fn.experimental.decoders.image_slice(source("IMAGE", ndim=1), device="cpu", start=(1, 2), shape=(6, 5))


@case(inputs=FILES | FRACTIONS, devices=True, batch_size=SAMPLES)
def on_either_device(device):
    x, start, size = source("IMAGE", ndim=1), source("S", types.FLOAT, 1), source("N", types.FLOAT, 1)
    decoder = dict(device="mixed" if device == "gpu" else "cpu")
    return fn.decoders.image_slice(x, start, size, **decoder), fn.decoders.image_slice(
        x, rel_start=start, rel_shape=size, **decoder
    )
