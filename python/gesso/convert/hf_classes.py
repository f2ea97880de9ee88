"""Image processors that are known: how each works, and what its fields are where a configuration does not say.
`tests/python/test_convert_libraries.py` compares this with the classes of the installed transformers."""

STANDARD = {"image_mean": (0.5, 0.5, 0.5), "image_std": (0.5, 0.5, 0.5)}
_IMAGENET = {"image_mean": (0.485, 0.456, 0.406), "image_std": (0.229, 0.224, 0.225)}
CLIP = {"image_mean": (0.48145466, 0.4578275, 0.40821073), "image_std": (0.26862954, 0.26130258, 0.27577711)}
ON = {"do_resize": True, "do_rescale": True, "do_normalize": True}
LINEAR, CUBIC = {"resample": 2}, {"resample": 3}


def _square(side, name="size"):
    return {name: {"height": side, "width": side}}


_CROPPED_CLIP = {
    **ON,
    **CLIP,
    **CUBIC,
    "size": {"shortest_edge": 224},
    "default_to_square": False,
    **_square(224, "crop_size"),
    "do_center_crop": True,
    "do_convert_rgb": True,
}
_EDGES = {**ON, **_IMAGENET, **LINEAR, "size": {"shortest_edge": 800, "longest_edge": 1333}, "default_to_square": False}
_DETR = {**_EDGES, "do_pad": True}

# (how it works, what it has by default)
CLASSES = {
    "ViTImageProcessor": ("plain", {**ON, **STANDARD, **LINEAR, **_square(224)}),
    "DeiTImageProcessor": (
        "plain",
        {**ON, **STANDARD, **CUBIC, **_square(256), **_square(224, "crop_size"), "do_center_crop": True},
    ),
    "BeitImageProcessor": (
        "beit",
        {**ON, **STANDARD, **CUBIC, **_square(224), **_square(224, "crop_size"), "do_center_crop": False},
    ),
    "ConvNextImageProcessor": (
        "convnext",
        {**ON, **STANDARD, **CUBIC, "size": {"shortest_edge": 384}, "default_to_square": False, "crop_pct": 224 / 256},
    ),
    "CLIPImageProcessor": ("plain", _CROPPED_CLIP),
    "ChineseCLIPImageProcessor": ("plain", _CROPPED_CLIP),
    # DINOv2 has this class.
    "BitImageProcessor": ("plain", _CROPPED_CLIP),
    "SiglipImageProcessor": (
        "plain",
        {**ON, **STANDARD, **CUBIC, **_square(224), "default_to_square": False, "do_convert_rgb": True},
    ),
    "Siglip2ImageProcessor": ("patches", {**ON, **STANDARD, **LINEAR, "patch_size": 16, "max_num_patches": 256}),
    "BlipImageProcessor": ("plain", {**ON, **CLIP, **CUBIC, **_square(384), "do_convert_rgb": True}),
    "PvtImageProcessor": ("plain", {**ON, **_IMAGENET, **CUBIC, **_square(224)}),
    "OwlViTImageProcessor": (
        "plain",
        {
            **ON,
            **CLIP,
            **CUBIC,
            **_square(768),
            **_square(768, "crop_size"),
            "do_center_crop": False,
            "do_convert_rgb": True,
        },
    ),
    "DINOv3ViTImageProcessor": ("rescales-first", {**ON, **_IMAGENET, **LINEAR, **_square(224)}),
    "SegformerImageProcessor": ("segmentation", {**ON, **_IMAGENET, **LINEAR, **_square(512)}),
    "DetrImageProcessor": ("detr", _DETR),
    "ConditionalDetrImageProcessor": ("detr", _DETR),
    "DeformableDetrImageProcessor": ("detr", _DETR),
    "RTDetrImageProcessor": ("rt-detr", {**_DETR, **_square(640), "do_normalize": False, "do_pad": False}),
    "YolosImageProcessor": ("yolos", _DETR),
    "Mask2FormerImageProcessor": ("mask2former", {**_EDGES, "size_divisor": 32}),
    "MaskFormerImageProcessor": ("mask2former", {**_EDGES, "size_divisor": 32}),
    "SamImageProcessor": (
        "sam",
        {
            **ON,
            **_IMAGENET,
            **LINEAR,
            "size": {"longest_edge": 1024},
            "do_convert_rgb": True,
            "do_pad": True,
            **_square(1024, "pad_size"),
        },
    ),
    "VideoMAEImageProcessor": (
        "frames",
        {
            **ON,
            **STANDARD,
            **LINEAR,
            "size": {"shortest_edge": 224},
            "default_to_square": False,
            **_square(224, "crop_size"),
            "do_center_crop": True,
        },
    ),
}

# Known, and why there is no stage for them.
NOT_CONVERTED = {
    "EfficientNetImageProcessor": "it resizes without a reducing gap and moves values by an offset, which is not known yet",
    "LayoutLMv2ImageProcessor": "it reads text by another program",
    "LayoutLMv3ImageProcessor": "it reads text by another program",
    "Owlv2ImageProcessor": "it resizes floats by another library (scikit-image), which no arithmetic equals",
}
