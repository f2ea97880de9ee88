"""What fuzz.py draws around operators for images, files and sound; `draw.py` says how, and has those for tensors."""

from draw import BATCH, TYPES, draws, optional

COLOUR = dict(
    BrightnessContrast=("brightness", "brightness_shift", "contrast", "contrast_center"),
    Brightness=("brightness", "brightness_shift"),
    Contrast=("contrast", "contrast_center"),
    Hsv=("hue", "saturation", "value"),
    Hue=("hue",),
    Saturation=("saturation",),
    ColorTwist=("hue", "saturation", "contrast", "brightness"),
)
RANGES = dict(hue=(-180, 180), brightness_shift=(-1, 1), contrast_center=(0, 200))


@draws(*COLOUR)
def colour(d, name):
    args = {}
    for argument in COLOUR[name]:
        low, high = RANGES.get(argument, (0, 2))
        if d.chance(0.7):
            args[argument] = d.per_sample("float32", None, low, high) if d.chance(0.3) else d.real(low, high)
    x = d.image("uint8", "uint8", "int16", "float32", channels=3)
    return d.op(
        {"Hsv": "hsv", "BrightnessContrast": "brightness_contrast", "ColorTwist": "color_twist"}.get(
            name, name.lower()
        ),
        x,
        **args,
        dtype=optional(d, 0.3, lambda: TYPES[d.pick("uint8", "int16", "float32")]),
    )


@draws("ColorSpaceConversion", "Equalize", "GaussianBlur", "Filter", "Laplacian")
def filters(d, name):
    if name == "ColorSpaceConversion":
        kind, to = d.whole(0, 3), d.whole(0, 3)
        return d.op(
            "color_space_conversion", d.image("uint8", channels=1 if kind == 2 else 3), image_type=kind, output_type=to
        )
    if name == "Equalize":
        return d.op("equalize", d.image("uint8"))
    if name == "Filter":
        kernel = d.input("float32", [d.ints(2, 1, 5) for _ in range(BATCH)], "", -1, 1)
        return d.op(
            "filter",
            d.image("uint8", "int16", "float32", channels=d.pick(1, 3), low=6),
            kernel,
            border=d.pick(None, "reflect_1001", "clamp", "wrap"),
            mode=d.pick(None, "valid"),
        )
    x = d.image("uint8", "int16", "float32", low=6)
    if name == "Laplacian":
        return d.op("laplacian", x, window_size=2 * d.whole(1, 3) + 1, scale=d.real(0.1, 1), dtype=TYPES["float32"])
    which = d.pick(
        dict(window_size=2 * d.whole(0, 3) + 1),
        dict(sigma=d.real(0.3, 2)),
        dict(window_size=2 * d.whole(1, 3) + 1, sigma=d.real(0.3, 2)),
    )
    return d.op("gaussian_blur", x, **which, dtype=optional(d, 0.3, lambda: TYPES["float32"]))


@draws("Rotate", "WarpAffine", "Paste")
def geometry(d, name):
    if name == "Paste":
        return d.op(
            "paste",
            d.image("uint8", channels=3),
            ratio=d.real(1, 2.5),
            fill_value=d.ints(3, 0, 255),
            paste_x=d.real(0, 1),
            paste_y=d.real(0, 1),
        )
    x = d.image("uint8", "int16", "float32", low=3)
    more = dict(
        interp_type=d.whole(0, 1),
        fill_value=optional(d, 0.7, lambda: d.real(0, 99)),
        size=optional(d, 0.3, lambda: [float(n) for n in d.ints(2, 1, 20)]),
    )
    if name == "Rotate":
        return d.op(
            "rotate", x, angle=d.real(-360, 360), keep_size=True if d.chance(0.3) and not more["size"] else None, **more
        )
    return d.op(
        "warp_affine",
        x,
        matrix=[d.real(-1.5, 1.5), d.real(-1, 1), d.real(-5, 5), d.real(-1, 1), d.real(-1.5, 1.5), d.real(-5, 5)],
        inverse_map=optional(d, 0.4, lambda: False),
        **more,
    )


@draws(
    "transforms__Translation",
    "transforms__Scale",
    "transforms__Rotation",
    "transforms__Shear",
    "transforms__Crop",
    "transforms__Combine",
    "CoordTransform",
)
def transforms(d, name):
    pair = lambda low, high: (
        d.per_sample("float32", 2, low, high) if d.chance(0.3) else [d.real(low, high), d.real(low, high)]
    )
    if name == "CoordTransform":
        points = d.input("float32", [[d.whole(1, 6), 2] for _ in range(BATCH)], "", -50, 50)
        return d.op(
            "coord_transform",
            points,
            M=[d.real(-2, 2) for _ in range(4)],
            T=optional(d, 0.7, lambda: [d.real(-9, 9), d.real(-9, 9)]),
        )
    if name == "transforms__Combine":
        matrices = [d.input("float32", [[2, 3]] * BATCH, "", -2, 2) for _ in range(d.whole(2, 4))]
        return d.op("transforms.combine", *matrices, reverse_order=optional(d, 0.4, lambda: True))
    if name == "transforms__Translation":
        return d.op("transforms.translation", offset=pair(-9, 9))
    if name == "transforms__Scale":
        return d.op(
            "transforms.scale", scale=pair(0.1, 3), center=optional(d, 0.5, lambda: [d.real(-9, 9), d.real(-9, 9)])
        )
    if name == "transforms__Rotation":
        return d.op(
            "transforms.rotation",
            angle=d.real(-360, 360),
            center=optional(d, 0.5, lambda: [d.real(-9, 9), d.real(-9, 9)]),
        )
    if name == "transforms__Shear":
        return d.op(
            "transforms.shear",
            **d.pick(dict(shear=[d.real(-2, 2), d.real(-2, 2)]), dict(angles=[d.real(-80, 80), d.real(-80, 80)])),
        )
    return d.op(
        "transforms.crop",
        from_start=[d.real(0, 0.5)] * 2,
        from_end=[d.real(0.6, 2)] * 2,
        to_start=[d.real(-1, 0.5)] * 2,
        to_end=[d.real(0.6, 2)] * 2,
    )


@draws("PerFrame")
def per_frame(d, _):
    frames = d.ints(BATCH, 1, 4)
    size = [2] if d.chance(0.3) else []
    value = d.input("float32", [[n, *size] for n in frames], "", 0.3, 2)
    if size:
        x = d.input(d.pick("uint8", "float32"), [[n, *d.ints(2, 6, 12), d.whole(1, 3)] for n in frames], "FHWC")
        return d.op("gaussian_blur", x, sigma={"value": d.op("per_frame", value)})
    x = d.input("uint8", [[n, *d.ints(2, 6, 12), 3] for n in frames], "FHWC")
    value = d.op("per_frame", value)
    how = d.whole(0, 3)
    if how == 0:
        return d.op(
            "warp_affine",
            x,
            matrix={
                "value": d.op("transforms.scale", d.op("transforms.rotation", angle={"value": value}), scale=[0.7, 1.2])
            },
            fill_value=1.0,
        )
    if how == 1:
        return d.op("color_twist", x, contrast={"value": value}, saturation=d.real(0, 2))
    if how == 2:
        return d.op(
            "rotate",
            x,
            angle={"value": d.op("arithmetic", value, function="mul", constant=70.0)},
            keep_size=optional(d, 0.5, lambda: True),
            fill_value=d.real(0, 9),
        )
    return d.op("brightness_contrast", x, brightness={"value": value}, contrast=d.real(0.5, 1.5))


def mode_of(d, format):
    modes = dict(
        JPEG=("RGB", "RGB", "L", "CMYK"),
        PNG=("RGB", "RGBA", "L", "P", "1", "I;16"),
        BMP=("RGB", "L"),
        PPM=("RGB", "L"),
        TIFF=("RGB", "L"),
        WEBP=("RGB", "RGB", "RGBA"),
    )
    return d.pick(*modes[format])


def encoded(d, damaged):
    """A format and its options. Colours of CMYK images that DALI has to turn are up to two levels off: those are not
    drawn."""
    format = d.pick("JPEG", "JPEG", "JPEG", "PNG", "BMP", "PPM", "TIFF", "WEBP")
    options = dict(format=format, mode=mode_of(d, format))
    if format == "JPEG":
        options |= dict(
            quality=d.whole(20, 100),
            subsampling=d.whole(0, 2),
            progressive=d.chance(0.3),
            orientation=d.whole(1, 8) if d.chance(0.3) and options["mode"] != "CMYK" else 1,
            restart=d.whole(0, 4),
        )
    if format == "TIFF":
        options |= dict(compression=d.pick("raw", "tiff_lzw", "tiff_adobe_deflate"))
    if format == "WEBP":
        options |= dict(lossless=d.chance(0.5), quality=d.whole(20, 100))
    if damaged and d.chance(0.12):
        # Where, as a part of the file, a byte is changed or the file ends.
        options |= {d.pick("changed", "cut"): d.real(0, 1)}
    return options


@draws("decoders__Image", "decoders__ImageCrop", "decoders__ImageSlice", "decoders__ImageRandomCrop", "PeekImageShape")
def decoders(d, name):
    # DALI reads no more than the header or the rows that it needs, Gesso refuses what is damaged behind them.
    files = [encoded(d, name == "decoders__Image") for _ in range(BATCH)]
    # What is in a colour file decides what GRAY is; a gray or CMYK one as it is takes DALI down.
    kinds = (0, 0, 1, 2, 3) if all(f["mode"] in ("L", "CMYK") or f["format"] == "JPEG" for f in files) else (0, 0, 1)
    x = d.files(files, [[*d.ints(2, 8, 90), 3] for _ in range(BATCH)])
    if name == "PeekImageShape":
        return d.op("peek_image_shape", x, dtype=optional(d, 0.5, lambda: TYPES[d.pick("int32", "float32", "uint64")]))
    colour = dict(
        output_type=optional(d, 0.6, lambda: d.pick(*kinds)),
        dtype=optional(d, 0.3, lambda: TYPES[d.pick("float32", "uint16", "int16", "uint8")]),
        adjust_orientation=optional(d, 0.2, lambda: False),
    )
    if name == "decoders__Image":
        return d.op("decoders.image", x, **colour)
    if name == "decoders__ImageCrop":
        return d.op(
            "decoders.image_crop",
            x,
            crop=[float(n) for n in d.ints(2, 1, 8)],
            crop_pos_x=d.real(0, 1),
            crop_pos_y=d.real(0, 1),
            **colour,
        )
    if name == "decoders__ImageSlice":
        return d.op(
            "decoders.image_slice",
            x,
            rel_start=[d.real(0, 0.5), d.real(0, 0.5)],
            rel_shape=[d.real(0.2, 0.5), d.real(0.2, 0.5)],
            axis_names=d.pick("HW", "WH"),
            **colour,
        )
    return d.op("decoders.image_random_crop", x, random_area=[0.1, 0.9], seed=d.whole(0, 2**40), **colour)


@draws("decoders__Numpy")
def numpy_files(d, _):
    dtype, ndim = d.dtype("float16", "float64", "bool"), d.whole(0, 4)
    x = d.files([dict(format="numpy", dtype=dtype)] * BATCH, d.shapes(ndim, 0))
    return d.op("decoders.numpy", x, dtype=optional(d, 0.5, lambda: TYPES[d.dtype("float16", "float64", "bool")]))


@draws("GridMask", "Sphere", "Water", "Clahe", "Debayer", "MultiPaste", "BBoxPaste", "experimental__WarpPerspective")
def augmentations(d, name):
    if name == "GridMask":
        shift = d.per_sample("float32", None, -20, 20) if d.chance(0.4) else d.real(-20, 20)
        return d.op(
            "grid_mask",
            d.image("uint8", "int16", "int32", "float32", high=40),
            tile=d.whole(1, 30),
            ratio=d.real(0, 1),
            angle=optional(d, 0.6, lambda: d.real(-4, 4)),
            shift_x=shift,
            shift_y=optional(d, 0.5, lambda: d.real(-9, 9)),
        )
    if name == "BBoxPaste":
        x = d.input("float32", [[d.whole(0, 6), 4] for _ in range(BATCH)], "", 0, 1)
        return d.op(
            "bbox_paste",
            x,
            ratio=d.real(1, 3),
            paste_x=optional(d, 0.6, lambda: d.real(0, 1)),
            paste_y=optional(d, 0.6, lambda: d.real(0, 1)),
            ltrb=optional(d, 0.5, lambda: True),
        )
    if name in ("Sphere", "Water"):
        mask = optional(d, 0.3, lambda: d.per_sample("int32", None, 0, 1))
        waves = (
            {k: optional(d, 0.5, lambda: d.real(-6, 6)) for k in ("ampl_x", "ampl_y", "phase_x", "phase_y")}
            if name == "Water"
            else {}
        )
        return d.op(
            name.lower(),
            d.image("uint8", "float32", high=30),
            mask=mask,
            interp_type=d.whole(0, 1),
            fill_value=optional(d, 0.5, lambda: d.real(-9, 300)),
            **waves,
        )
    if name == "Clahe":
        return d.op(
            "clahe",
            d.image("uint8", high=40, channels=d.pick(1, 3)),
            tiles_x=d.whole(1, 9),
            tiles_y=d.whole(1, 9),
            clip_limit=d.real(0, 5),
            luma_only=d.pick(None, False),
        )
    if name == "Debayer":
        shapes = [[2 * n for n in d.ints(2, 1, 10)] for _ in range(BATCH)]
        position = d.per_sample("int32", 2, 0, 1) if d.chance(0.5) else d.ints(2, 0, 1)
        algorithm = d.pick(None, "bilinear_ocv", "edgeaware_ocv", "gray_ocv", "vng_ocv")
        return d.op(
            "debayer",
            d.input("uint8" if algorithm == "vng_ocv" else d.pick("uint8", "uint16"), shapes, "HW"),
            blue_position=position,
            algorithm=algorithm,
        )
    if name == "MultiPaste":
        count, dtypes = d.whole(1, 4), ("uint8", "int16", "int32", "float32")
        dtype = optional(d, 0.4, lambda: TYPES[d.pick(*dtypes)])
        if d.chance(0.5):
            one, channels = d.pick(*dtypes), d.whole(1, 4)
            images = [d.input(one, [[*d.ints(2, 1, 9), channels] for _ in range(BATCH)], "HWC") for _ in range(count)]
            return d.op("multi_paste", *images, output_size=d.ints(2, 9, 14), dtype=dtype)
        to, size = d.per_sample("int32", 2 * count, 0, 5), d.per_sample("int32", 2 * count, 0, 4)
        start = optional(d, 0.5, lambda: d.per_sample("float32", 2 * count, 0, 0.5))
        x = d.input(d.pick(*dtypes), [[*d.ints(2, 8, 12), 3] for _ in range(BATCH)], "HWC")
        pairs = lambda value: value and {"value": d.op("reshape", value["value"], shape=[count, 2])}
        return d.op(
            "multi_paste",
            x,
            in_ids=d.ints(count, 0, BATCH - 1),
            out_anchors=pairs(to),
            shapes=pairs(size),
            in_anchors_rel=pairs(start),
            output_size=d.ints(2, 9, 14),
            dtype=dtype,
        )
    x = d.image("uint8", "uint16", "int16", "float32", low=2, high=24)
    matrix = [
        d.real(0.5, 1.5),
        d.real(-0.3, 0.3),
        d.real(-4, 4),
        d.real(-0.3, 0.3),
        d.real(0.5, 1.5),
        d.real(-4, 4),
        d.real(-0.004, 0.004),
        d.real(-0.004, 0.004),
        1.0,
    ]
    return d.op(
        "experimental.warp_perspective",
        x,
        matrix=matrix,
        interp_type=d.pick(None, None, 0, 2),
        pixel_origin=d.pick(None, "center"),
        inverse_map=optional(d, 0.3, lambda: False),
        border_mode=d.pick(None, "replicate", "reflect", "reflect_101", "wrap"),
        fill_value=optional(d, 0.4, lambda: [d.real(0, 200)]),
        size=optional(d, 0.3, lambda: [float(n) for n in d.ints(2, 1, 20)]),
    )


@draws("BbFlip", "CoordFlip", "TensorResize", "JpegCompressionDistortion")
def boxes_and_more(d, name):
    if name == "BbFlip":
        x = d.input("float32", [[d.whole(0, 6), 4] for _ in range(BATCH)], "", 0, 1)
        return d.op(
            "bb_flip",
            x,
            horizontal=optional(d, 0.6, lambda: d.whole(0, 1)),
            vertical=optional(d, 0.6, lambda: d.whole(0, 1)),
            ltrb=optional(d, 0.5, lambda: True),
        )
    if name == "CoordFlip":
        x = d.input("float32", [[d.whole(1, 6), 2] for _ in range(BATCH)], "", -9, 9)
        return d.op(
            "coord_flip",
            x,
            flip_x=optional(d, 0.6, lambda: d.whole(0, 1)),
            flip_y=optional(d, 0.6, lambda: d.whole(0, 1)),
            center_x=optional(d, 0.5, lambda: d.real(-2, 2)),
            layout=d.pick(None, "yx"),
        )
    if name == "JpegCompressionDistortion":
        return d.op(
            "jpeg_compression_distortion",
            d.image("uint8", low=1, high=40, channels=3),
            quality=optional(d, 0.8, lambda: d.whole(1, 100)),
        )
    x = d.input(d.pick("uint8", "int16", "uint16", "float32"), d.shapes(3, 2, 15), "ABC")
    axis = d.whole(0, 1)
    return d.op(
        "tensor_resize",
        x,
        sizes=[float(n) for n in d.ints(2, 1, 15)],
        axes=[axis, axis + 1],
        interp_type=optional(d, 0.7, lambda: d.whole(0, 5)),
        antialias=optional(d, 0.3, lambda: False),
    )


@draws(
    "Spectrogram",
    "PowerSpectrum",
    "MelFilterBank",
    "MFCC",
    "ToDecibels",
    "PreemphasisFilter",
    "AudioResample",
    "NonsilentRegion",
)
def audio(d, name):
    if name in ("MelFilterBank", "MFCC", "ToDecibels"):
        bins = d.whole(20, 60)
        x = d.input("float32", [[bins, d.whole(1, 12)] for _ in range(BATCH)], "ft", 0, 9)
        if name == "ToDecibels":
            return d.op(
                "to_decibels",
                x,
                multiplier=optional(d, 0.5, lambda: d.real(1, 20)),
                reference=optional(d, 0.5, lambda: d.real(0.1, 9)),
                cutoff_db=optional(d, 0.5, lambda: d.real(-90, -5)),
            )
        if name == "MFCC":
            return d.op(
                "mfcc",
                x,
                n_mfcc=d.whole(1, 20),
                dct_type=d.pick(None, 1, 2, 3, 4),
                lifter=optional(d, 0.4, lambda: d.real(0, 20)),
            )
        return d.op(
            "mel_filter_bank",
            x,
            nfilter=d.whole(1, 12),
            sample_rate=d.pick(None, 16000.0),
            mel_formula=d.pick(None, "htk", "slaney"),
            normalize=optional(d, 0.3, lambda: False),
        )
    x = d.input("float32", [[d.whole(64, 400)] for _ in range(BATCH)], "", -1, 1)
    if name == "PowerSpectrum":
        return d.op("power_spectrum", x, nfft=d.pick(None, 64, 37, 500), power=d.pick(None, 1))
    if name == "Spectrogram":
        length = d.whole(4, 64)
        return d.op(
            "spectrogram",
            x,
            window_length=length,
            window_step=d.whole(1, 40),
            nfft=d.pick(None, length, 64, 77),
            power=d.pick(None, 1),
            center_windows=optional(d, 0.4, lambda: False),
            reflect_padding=optional(d, 0.4, lambda: False),
            layout=d.pick(None, "tf"),
        )
    if name == "PreemphasisFilter":
        return d.op(
            "preemphasis_filter",
            x,
            preemph_coeff=optional(d, 0.7, lambda: d.real(0, 1)),
            border=d.pick(None, "zero", "clamp", "reflect"),
        )
    if name == "AudioResample":
        return d.op(
            "audio_resample",
            x,
            **d.pick(
                dict(scale=d.real(0.2, 3)),
                dict(in_rate=44100.0, out_rate=d.real(8000, 90000)),
                dict(out_length=d.whole(1, 900)),
            ),
            quality=optional(d, 0.5, lambda: d.real(0, 100)),
        )
    return d.op(
        "nonsilent_region", x, outputs=2, cutoff_db=d.real(-60, -1), window_length=d.whole(1, 60), reset_interval=-1
    )
