from record import case, fn, noise, np, source, types

SHAPES = (5, 7, 3), (4, 6, 3), (9, 8, 3)
IMAGES = {"X": noise(*SHAPES)}
SMALL = {"X": noise((5, 5, 1), (4, 6, 1), (1, 2, 1))}
NUMBERS = [-1.5, 0.5, 1.5, 2.7, 254.5, 300, -0.9, 65519]


def floats(*values):
    return [np.array(v, np.float32) for v in values]


def scalar(name):
    return source(name, types.FLOAT, 0)


@case(inputs=IMAGES)
def whole_without_arguments():
    return fn.crop(source("X", layout="HWC"))


@case(inputs=IMAGES)
def centre():
    return fn.crop(source("X", layout="HWC"), crop=(3, 4))


@case(inputs=IMAGES)
def without_a_layout():
    return fn.crop(source("X", ndim=3), crop=(3, 4))


@case(inputs=IMAGES)
def sizes_are_truncated_and_zero_is_all():
    x = source("X", layout="HWC")
    return fn.crop(x, crop=(3.9, 4.9)), fn.crop(x, crop_h=0, crop_w=2), fn.crop(x, crop=(0.5, -2))


@case(inputs=IMAGES | {"W": floats(3, 2, 8), "H": floats(1, 4, 2), "PX": floats(0, 0.3, 1), "PY": floats(1, 0.7, 0.5)})
def arguments_per_sample():
    x = source("X", layout="HWC")
    return fn.crop(x, crop_w=scalar("W"), crop_h=scalar("H"), crop_pos_x=scalar("PX"), crop_pos_y=scalar("PY"))


@case(inputs=IMAGES | {"S": floats([2, 3], [4, 1], [1.9, 8])})
def size_per_sample():
    return fn.crop(source("X", layout="HWC"), crop=source("S", types.FLOAT, 1), crop_pos_x=0.25)


@case(
    inputs={
        "X": [np.arange(n, dtype=np.int32).reshape(1, n, 1) for n in (45, 56, 75)],
        "W": floats(90, 63, 25.2),
        "P": floats(0.8333333, 0.9285714, 0.7),
    }
)
def positions_are_computed_in_double():
    x, width, place = source("X", types.INT32, layout="HWC"), scalar("W"), scalar("P")
    return tuple(
        fn.crop(
            x, crop_h=1, crop_w=width, crop_pos_x=place, rounding=rounding, out_of_bounds_policy="pad", fill_values=-1
        )
        for rounding in ("round", "truncate")
    )


@case(inputs=SMALL)
def half_positions():
    x = source("X", layout="HWC")
    return tuple(
        fn.crop(x, crop=(2, 2), rounding=rounding, out_of_bounds_policy="pad") for rounding in ("round", "truncate")
    )


@case(inputs={"X": noise((3, 5, 7), (2, 4, 6), (1, 3, 3), dtype=np.float32)})
def planes():
    return fn.crop(source("X", types.FLOAT, layout="CHW"), crop=(2, 3), crop_pos_x=0.1)


@case(inputs={"X": noise((4, 5, 6, 2), (3, 4, 4, 2), (2, 2, 3, 2), dtype=np.int16)})
def volumes():
    x = source("X", types.INT16, layout="DHWC")
    return fn.crop(x, crop=(2, 2, 3), crop_pos_z=1), fn.crop(x, crop=(2, 3)), fn.crop(x, crop_d=1, crop_h=2, crop_w=1)


@case(inputs={"X": noise((2, 4, 5, 6), (1, 3, 4, 4))}, batch_size=2)
def planes_of_volumes():
    return fn.crop(source("X", layout="CDHW"), crop=(2, 3, 4), crop_pos_y=0)


@case(inputs={"X": noise((4, 5, 6, 1), (2, 3, 4, 1))}, batch_size=2)
def sequences():
    x = source("X", layout="FHWC")
    return fn.crop(x, crop=(3, 2)), fn.crop(x, crop_d=1, crop_h=3, crop_w=2, crop_pos_z=0.75)


@case(inputs={"X": noise((3, 2, 4, 5), (1, 1, 3, 3))}, batch_size=2)
def sequences_of_planes():
    return fn.crop(source("X", layout="FCHW"), crop=(3, 2))


@case(inputs={"X": noise((3, 2, 4, 5), (1, 2, 3, 3))}, batch_size=2)
def four_dimensions_without_a_layout():
    return fn.crop(source("X", ndim=4), crop=(1, 2, 2))


@case(inputs=SMALL)
def every_policy():
    x = source("X", layout="HWC")
    policies = (
        "trim_to_shape",
        "pad",
        "constant",
        "fill",
        "edge",
        "clamp",
        "reflect",
        "reflect_1001",
        "reflect_101",
        "wrap",
        "PAD",
    )
    return tuple(fn.crop(x, crop=(9, 3), crop_pos_y=0.4, out_of_bounds_policy=policy) for policy in policies)


@case(inputs={"X": noise((2, 2, 3), (1, 3, 3), (3, 1, 3))})
def fill_values_per_channel():
    x = source("X", layout="HWC")
    pad = dict(crop=(3, 3), out_of_bounds_policy="pad")
    return (
        fn.crop(x, fill_values=[1.7, -2.5, 300.4], **pad),
        fn.crop(x, fill_values=9, **pad),
        fn.crop(x, fill_values=[1.7, -2.5, 300.4], dtype=types.FLOAT, **pad),
    )


@case(inputs={"X": noise((3, 2, 2), (3, 1, 3), (3, 3, 1), dtype=np.int32)})
def fill_values_of_planes():
    x = source("X", types.INT32, layout="CHW")
    return fn.crop(x, fill_values=[1.7, -2.5, 3e9], crop=(3, 3), out_of_bounds_policy="pad")


@case(inputs={"X": [np.zeros((0, 3, 1), np.uint8), *noise((2, 2, 1))]}, batch_size=2)
def an_image_without_rows():
    x = source("X", layout="HWC")
    return fn.crop(x, crop=(2, 2), out_of_bounds_policy="pad"), fn.crop(
        x, crop=(2, 2), out_of_bounds_policy="trim_to_shape"
    )


for name, dtype in (
    ("uint8", types.UINT8),
    ("int8", types.INT8),
    ("uint16", types.UINT16),
    ("int16", types.INT16),
    ("uint32", types.UINT32),
    ("int32", types.INT32),
    ("uint64", types.UINT64),
    ("int64", types.INT64),
    ("float16", types.FLOAT16),
    ("float32", types.FLOAT),
    ("float64", types.FLOAT64),
):

    def conversions(dtype=dtype):
        x = source("X", dtype, layout="HWC")
        return tuple(
            fn.crop(x, crop=(2, 3), crop_pos_x=0, **to)
            for to in ({}, {"dtype": types.UINT8}, {"dtype": types.FLOAT}, {"output_dtype": types.FLOAT16})
        )

    with np.errstate(invalid="ignore", over="ignore"):
        sample = np.array(NUMBERS).astype(name).reshape(2, 4, 1)
    conversions.__name__ = f"from_{name}"
    case(inputs={"X": [sample]}, batch_size=1)(conversions)
