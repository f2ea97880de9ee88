from record import case, fn, noise, np, source, types

MEAN, STD = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]
IMAGES = {"X": noise((5, 7, 3), (4, 6, 3), (9, 8, 3))}
PLANES = {"X": noise((3, 5, 7), (3, 4, 6), (3, 2, 3))}
SMALL = {"X": noise((2, 2, 3), (1, 3, 3), (3, 1, 3))}


def floats(*values):
    return [np.array(v, np.float32) for v in values]


def cmn(x, **options):
    return fn.crop_mirror_normalize(x, **options)


@case(inputs=IMAGES)
def defaults():
    return cmn(source("X", layout="HWC"))


@case(inputs=IMAGES)
def without_a_layout():
    return cmn(source("X", ndim=3), crop=(3, 4), mean=MEAN, std=STD)


@case(inputs=IMAGES, devices=True)
def as_before_a_classifier(device):
    x = source("X", layout="HWC")
    x = x.gpu() if device == "gpu" else x
    return cmn(x, device=device, crop=(3, 4), mean=MEAN, std=STD, mirror=1, output_layout="CHW", dtype=types.FLOAT)


@case(inputs=IMAGES)
def every_output_type():
    x = source("X", layout="HWC")
    return tuple(
        cmn(x, mean=[100, 120, 140], std=[2, 0.75, 3], scale=1.7, shift=0.3, output_layout=layout, **to)
        for layout in ("CHW", "HWC")
        for to in (
            {"dtype": types.FLOAT},
            {"dtype": types.FLOAT16},
            {"dtype": types.UINT8},
            {"output_dtype": types.INT8},
        )
    )


@case(inputs=PLANES)
def planes():
    x = source("X", layout="CHW")
    return (
        cmn(x, mean=MEAN, std=STD, crop=(2, 3), mirror=1),
        cmn(x, mean=1, output_layout="HWC"),
        cmn(x, std=MEAN, output_layout=""),
    )


@case(inputs={"X": noise((3, 4, 1), (2, 2, 1))}, batch_size=2)
def one_channel():
    x = source("X", layout="HWC")
    return cmn(x, mean=[5], std=[2]), cmn(x, mean=5, pad_output=True), cmn(x, mirror=1, output_layout="HWC")


@case(inputs={"X": noise((3, 4, 5), (2, 2, 5))}, batch_size=2)
def five_channels():
    x = source("X", layout="HWC")
    return (
        cmn(x, mean=[1, 2, 3, 4, 5], std=[5, 4, 3, 2, 1]),
        cmn(x, mean=1, pad_output=True, mirror=1),
        cmn(x, pad_output=True, output_layout="HWC", dtype=types.UINT8),
    )


@case(
    inputs=IMAGES
    | {
        "M": floats([1, 2, 3], [4, 5, 6], [7, 8, 9]),
        "S": floats([2], [3], [4]),
        "F": [np.array(v, np.int32) for v in (1, 0, -3)],
        "W": floats(3, 2, 8),
        "P": floats(0, 0.3, 1),
    }
)
def arguments_per_sample():
    x = source("X", layout="HWC")
    return cmn(
        x,
        mean=source("M", types.FLOAT, 1),
        std=source("S", types.FLOAT, 1),
        mirror=source("F", types.INT32, 0),
        crop_h=2,
        crop_w=source("W", types.FLOAT, 0),
        crop_pos_x=source("P", types.FLOAT, 0),
        crop_pos_y=1,
    )


@case(inputs=SMALL | {"M": floats(1, 2, 3)})
def one_mean_per_sample():
    x = source("X", layout="HWC")
    return cmn(x, mean=source("M", types.FLOAT, 0), std=[1, 2, 4]), cmn(x, mean=[1, 2, 3], std=4)


@case(inputs=SMALL)
def windows_that_leave_the_image():
    x, pad = source("X", layout="HWC"), dict(crop=(3, 4), mean=[1, 2, 3], out_of_bounds_policy="pad")
    return (
        cmn(x, fill_values=[7, 8, 9], **pad),
        cmn(x, fill_values=9, mirror=1, **pad),
        cmn(x, fill_values=[7, 8, 9], output_layout="HWC", mirror=1, rounding="truncate", **pad),
        cmn(x, fill_values=[7, 8, 9], pad_output=True, output_layout="HWC", **pad),
        cmn(x, **pad),
        cmn(x, crop=(2, 2), out_of_bounds_policy="trim_to_shape", mirror=1, mean=3),
    )


@case(inputs={"X": noise((3, 2, 2), (3, 1, 3))}, batch_size=2)
def windows_that_leave_the_planes():
    x, pad = source("X", layout="CHW"), dict(crop=(3, 4), mean=[1, 2, 3], out_of_bounds_policy="PAD")
    return cmn(x, fill_values=[7, 8, 9], mirror=1, **pad), cmn(x, fill_values=9, output_layout="HWC", **pad)


# Where windows may leave the image, a GPU's surplus channels are 0.
@case(inputs=SMALL)
def more_channels_where_windows_may_leave_on_the_host():
    x, options = source("X", layout="HWC"), dict(pad_output=True, out_of_bounds_policy="pad")
    return (
        cmn(x, crop=(3, 4), mean=[1, 2, 3], fill_values=[7, 8, 9, 10], crop_pos_x=0, **options),
        cmn(x, fill_values=9, **options),
        cmn(x, crop=(3, 4), mean=[1, 2, 3], fill_values=9, output_layout="HWC", **options),
    )


@case(inputs=SMALL)
def fill_values_are_cast():
    x, pad = source("X", layout="HWC"), dict(crop=(4, 4), out_of_bounds_policy="pad")
    return tuple(
        cmn(x, fill_values=[1.7, -2.5, 300.4], mean=[1, 1, 1], dtype=dtype, **pad)
        for dtype in (types.UINT8, types.INT8, types.FLOAT16, types.FLOAT)
    )


@case(inputs=SMALL)
def more_channels():
    x = source("X", layout="HWC")
    return (
        cmn(x, pad_output=True),
        cmn(x, pad_output=True, fill_values=9),
        cmn(x, pad_output=True, mean=[1, 2, 3, 4], std=[1, 2, 4, 8], output_layout="HWC"),
    )


@case(inputs=SMALL)
def infinities():
    x = source("X", layout="HWC")
    return (
        cmn(x, std=0),
        cmn(x, std=0, mean=1),
        cmn(x, scale=0, shift=3),
        cmn(x, std=float("inf"), shift=3),
        cmn(x, mean=float("nan"), dtype=types.UINT8),
        cmn(x, std=-2, dtype=types.INT8),
    )


@case(inputs={"X": noise((3, 4, 5, 3), (2, 3, 3, 3))}, batch_size=2)
def sequences():
    x = source("X", layout="FHWC")
    return (
        cmn(x, output_layout="FCHW", mean=MEAN, std=STD, crop=(2, 3), mirror=1),
        cmn(x, output_layout="", mean=1),
        cmn(
            x,
            output_layout="FCHW",
            crop_d=4,
            crop_h=2,
            crop_w=7,
            crop_pos_z=1,
            out_of_bounds_policy="pad",
            fill_values=9,
            mean=1,
        ),
        cmn(x, output_layout="CFHW", mean=[1, 2, 3], crop=(2, 2, 4), out_of_bounds_policy="trim_to_shape", mirror=1),
    )


@case(inputs={"X": noise((3, 4, 5, 2), (2, 3, 3, 2), dtype=np.int16)}, batch_size=2)
def volumes():
    x = source("X", types.INT16, layout="DHWC")
    return (
        cmn(x, output_layout="CDHW", mean=[1, 2], std=[300, 400], crop=(2, 2, 3), mirror=1),
        cmn(x, output_layout="DCHW", std=500),
        cmn(
            x,
            output_layout="CDHW",
            crop=(4, 2, 6),
            pad_output=True,
            std=[500, 400],
            out_of_bounds_policy="pad",
            fill_values=[7, 8],
            mirror=1,
        ),
        cmn(x, output_layout="WCHD", std=500, crop=(1, 2, 2)),
    )


@case(inputs={"X": noise((2, 3, 4, 5), (3, 2, 3, 3))}, batch_size=2)
def planes_of_volumes():
    x = source("X", layout="CDHW")
    return (
        cmn(x, output_layout="CDHW", mean=5, crop=(2, 2, 3), mirror=1),
        cmn(x, output_layout="DHWC", pad_output=True),
        cmn(x, output_layout="DWHC", dtype=types.UINT8, crop=(3, 1, 3), out_of_bounds_policy="pad", fill_values=9),
    )


@case(inputs={"X": noise((2, 2, 3, 4, 3), (1, 1, 2, 2, 3))}, batch_size=2)
def sequences_of_volumes():
    x = source("X", layout="FDHWC")
    return cmn(x, output_layout="FDCHW", mean=MEAN, crop=(1, 2, 2)), cmn(x, output_layout="FCDHW", std=STD)


@case(inputs=IMAGES)
def rows_and_columns_change_places():
    return cmn(source("X", layout="HWC"), output_layout="WHC", crop=(3, 4), mirror=1, mean=[1, 2, 3])


@case(inputs={"X": [np.zeros((0, 3, 3), np.uint8), *noise((2, 2, 3))]}, batch_size=2)
def an_image_without_rows():
    x = source("X", layout="HWC")
    return cmn(x), cmn(x, crop=(2, 2), fill_values=5, out_of_bounds_policy="pad")


NUMBERS = [-1.5, 0.5, 1.5, 2.7, 254.5, 300, -0.9, 65519, 2**24 + 1, -70000, 1.0 + 2**-11, 2.5]

for name, dtype in (
    ("uint16", types.UINT16),
    ("int16", types.INT16),
    ("int32", types.INT32),
    ("float16", types.FLOAT16),
    ("float32", types.FLOAT),
):

    def conversions(dtype=dtype):
        x = source("X", dtype, layout="HWC")
        return tuple(
            cmn(x, dtype=to, **options)
            for to in (types.FLOAT, types.FLOAT16, types.UINT8, types.INT8)
            for options in ({}, {"mean": [1.5, 0.5, 2], "std": [3, 0.7, 1]})
        )

    with np.errstate(invalid="ignore", over="ignore"):
        sample = np.array(NUMBERS).astype(name).reshape(2, 2, 3)
    conversions.__name__ = f"from_{name}"
    case(inputs={"X": [sample]}, batch_size=1)(conversions)
