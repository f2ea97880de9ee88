"""What fuzz.py draws around operators for boxes, masks, sound and video; `draw.py` says how, and has those for
tensors."""

from draw import BATCH, TYPES, draws, optional

CLIPS = ("vp9.webm", "vp9.mp4", "vp9.ivf")

# Operators that nothing is drawn for, and why.
NOT_DRAWN = {
    "Boom": "fails on purpose, for tests",
    "DumpImage": "writes files; drawn pipelines are compared by what they answer",
    "ExternalSource": "every pipeline has it",
    "Jitter": "DALI has it on a GPU only",
    "OpticalFlow": "runs on a GPU only",
    "gesso__Augment": "DALI does not have it",
    "gesso__Blur": "DALI does not have it",
    "decoders__Inflate": "DALI has it on a GPU only",
    "experimental__Dilate": "DALI has it on a GPU only",
    "experimental__Erode": "DALI has it on a GPU only",
    "experimental__MedianBlur": "DALI has it on a GPU only",
    "experimental__Remap": "DALI has it on a GPU only",
    "experimental__inputs__Video": "takes a video for many batches; drawn pipelines run one",
    "gesso__DecodeAnimation": "DALI does not have it",
    "gesso__EncodeJpeg": "DALI does not have it",
    "gesso__EncodePng": "DALI does not have it",
    "gesso__EncodeWebp": "DALI does not have it",
    "gesso__LogMel": "DALI does not have it",
    "gesso__PadToBatch": "DALI does not have it",
    "gesso__PatchGrid": "DALI does not have it",
    "gesso__Patchify": "DALI does not have it",
    "gesso__PeekVideo": "DALI does not have it",
    "gesso__SampleFrames": "DALI does not have it",
    "gesso__SeamlessFeatures": "DALI does not have it",
    "gesso__SmartResize": "DALI does not have it",
    "gesso__Tile": "DALI does not have it",
    "gesso__TileGrid": "DALI does not have it",
    "gesso__UnitVariance": "DALI does not have it",
}


def boxes(d, ndim=2, low=0):
    return d.boxes([[d.whole(low, 5), 2 * ndim] for _ in range(BATCH)])


@draws("BBoxRotate", "BoxEncoder")
def of_boxes(d, name):
    if name == "BoxEncoder":
        x = boxes(d, low=1)
        labels = d.input("int32", [[s[0]] for s in d.inputs[0]["shapes"]], "", 0, 9)
        anchors = [[d.real(0, 0.5), d.real(0, 0.5), d.real(0.5, 1), d.real(0.5, 1)] for _ in range(d.whole(1, 5))]
        more = (
            dict(
                offset=True,
                scale=d.real(1, 300),
                means=[d.real(-1, 1) for _ in range(4)],
                stds=[d.real(0.1, 2) for _ in range(4)],
            )
            if d.chance(0.4)
            else {}
        )
        return d.op(
            "box_encoder",
            x,
            labels,
            anchors=sum(anchors, []),
            criteria=optional(d, 0.6, lambda: d.real(0.1, 0.9)),
            outputs=2,
            **more,
        )
    angle = d.per_sample("float32", None, -180, 180) if d.chance(0.4) else d.real(-180, 180)
    return d.op(
        "bbox_rotate",
        boxes(d, low=1),
        angle=angle,
        input_shape=d.ints(2, 10, 90),
        keep_size=optional(d, 0.3, lambda: True),
        mode=d.pick(None, "expand", "halfway", "fixed"),
        bbox_layout=d.pick(None, "xyXY"),
        shape_layout=d.pick(None, "HW", "WH"),
        remove_threshold=optional(d, 0.4, lambda: d.real(0, 0.9)),
    )


@draws("RandomBBoxCrop", "SSDRandomCrop", "ROIRandomCrop")
def crops(d, name):
    seed = d.whole(0, 2**40)
    if name == "ROIRandomCrop":
        start = d.per_sample("int32", 2, 0, 10) if d.chance(0.5) else d.ints(2, 0, 10)
        inside = optional(d, 0.5, lambda: d.ints(2, 30, 50))
        how = dict(roi_shape=d.ints(2, 1, 10)) if d.chance(0.5) else dict(roi_end=d.ints(2, 11, 30))
        return d.op("roi_random_crop", crop_shape=d.ints(2, 1, 25), roi_start=start, in_shape=inside, seed=seed, **how)
    if name == "SSDRandomCrop":
        image = d.image("uint8", low=8, high=40, channels=d.pick(1, 3))
        x = d.boxes([[d.whole(1, 4), 4] for _ in range(BATCH)])
        labels = d.input("int32", [[s[0]] for s in d.inputs[1]["shapes"]], "", 0, 9)
        return d.op(
            "ssd_random_crop",
            image,
            x,
            labels,
            num_attempts=optional(d, 0.5, lambda: d.whole(1, 30)),
            seed=seed,
            outputs=3,
        )
    x, labels = boxes(d), []
    if d.chance(0.2):
        shape = d.pick([50, 80], [100, 40], [50, 100], [100, 100])
        return d.op(
            "random_bbox_crop",
            x,
            crop_shape=shape,
            input_shape=[100, 100],
            num_attempts=d.whole(1, 20),
            total_num_attempts=d.whole(20, 60),
            allow_no_crop=False,
            seed=seed,
            outputs=3,
        )
    if d.chance(0.5):
        labels = [d.input("int32", [[s[0]] for s in d.inputs[0]["shapes"]], "", 0, 9)]
    allowed, all_above, indices = (d.chance(0.6) for _ in range(3))
    ratio = (
        [0.001, 1000.0]
        if d.chance(0.4)
        else [d.real(0.3, 0.9), d.real(1.1, 3)]
        if d.chance(0.7)
        else [d.real(0.3, 3)] * 2
    )
    return d.op(
        "random_bbox_crop",
        x,
        *labels,
        scaling=[d.real(0.2, 0.5), d.real(0.6, 1)],
        aspect_ratio=ratio,
        thresholds=optional(d, 0.6, lambda: [d.real(0, 0.6) for _ in range(d.whole(1, 3))]),
        threshold_type=d.pick(None, "iou", "overlap"),
        allow_no_crop=allowed,
        num_attempts=d.whole(1, 20),
        total_num_attempts=None if allowed else d.whole(20, 60),
        all_boxes_above_threshold=all_above,
        bbox_prune_threshold=None if all_above else optional(d, 0.5, lambda: d.real(0, 0.6)),
        output_bbox_indices=indices or None,
        bbox_layout=d.pick(None, "xyXY", "yxYX"),
        seed=seed,
        outputs=3 + len(labels) + indices,
    )


@draws("segmentation__RandomMaskPixel", "segmentation__RandomObjectBBox", "segmentation__SelectMasks")
def masks(d, name):
    seed = d.whole(0, 2**40)
    if name == "segmentation__SelectMasks":
        # Each polygon has two vertices of its own: its rows are numbered in order.
        count = d.whole(1, 4)
        ids = d.ints(d.whole(1, count), 0, count - 1)
        ids = sorted(set(ids))
        rows = [[i, 2 * i, 2 * i + 2] for i in range(count)]
        vertices = d.input("float32", [[2 * count, d.whole(1, 3)]] * BATCH, "")
        chosen = d.op("constant", idata=ids, shape=[len(ids)], dtype=TYPES["int32"])
        polygons = d.op("constant", idata=sum(rows, []), shape=[count, 3], dtype=TYPES["int32"])
        return d.op(
            "segmentation.select_masks",
            chosen,
            polygons,
            vertices,
            reindex_masks=optional(d, 0.5, lambda: True),
            outputs=3,
        )
    ndim = d.pick(2, 2, 3)
    if name == "segmentation__RandomMaskPixel":
        foreground = d.per_sample("int32", None, 0, 1) if d.chance(0.4) else d.whole(0, 1)
        x = d.input(d.pick("uint8", "int32", "float32"), d.shapes(ndim, 1, 9), "", 0, 3)
        return d.op(
            "segmentation.random_mask_pixel",
            x,
            foreground=foreground,
            threshold=optional(d, 0.5, lambda: d.real(0, 3)),
            seed=seed,
        )
    # In a map of one element DALI 2.4 finds a box without any.
    x = d.input(d.pick("uint8", "int32"), d.shapes(ndim, 2, 9), "", 0, d.whole(1, 4))
    form, classes = d.pick(None, "anchor_shape", "start_end", "box"), d.chance(0.5)
    more = (
        dict(ignore_class=True)
        if not classes and d.chance(0.4)
        else dict(background=optional(d, 0.3, lambda: d.whole(0, 2)))
    )
    outputs = (1 if form == "box" else 2) + classes
    return d.op(
        "segmentation.random_object_bbox",
        x,
        format=form,
        output_class=classes or None,
        foreground_prob=d.pick(None, d.real(0, 1)),
        k_largest=optional(d, 0.4, lambda: d.whole(1, 3)),
        threshold=optional(d, 0.4, lambda: d.ints(ndim, 1, 3)),
        seed=seed,
        outputs=outputs,
        **more,
    )


@draws("decoders__Audio", "decoders__Video")
def recordings(d, name):
    if name == "decoders__Video":
        x = d.files([dict(format="clip", name=d.pick(*CLIPS)) for _ in range(BATCH)], [[1]] * BATCH)
        if d.chance(0.3):
            return d.op("decoders.video", x, frames=d.ints(d.whole(1, 4), 0, 11))
        return d.op(
            "decoders.video",
            x,
            start_frame=d.whole(0, 9),
            stride=d.pick(None, 1, 2, 3),
            sequence_length=d.whole(1, 5),
            pad_mode=d.pick("none", "edge", "repeat", "reflect_1001", "reflect_101"),
        )
    files = [dict(format="WAV", rate=d.pick(8000, 16000, 44100), bits=d.pick(8, 16, 32)) for _ in range(BATCH)]
    channels = d.whole(1, 2)
    x = d.files(files, [[d.whole(50, 400), channels] for _ in range(BATCH)])
    dtype = d.pick(None, None, "int16", "int32")
    resampled = (
        dict(sample_rate=d.pick(8000.0, 11025.0, 22050.0), quality=optional(d, 0.5, lambda: d.real(0, 100)))
        if d.chance(0.3) and dtype is None
        else {}
    )
    return d.op(
        "decoders.audio",
        x,
        downmix=optional(d, 0.4, lambda: True) if dtype is None else None,
        dtype=dtype and TYPES[dtype],
        outputs=2,
        **resampled,
    )
