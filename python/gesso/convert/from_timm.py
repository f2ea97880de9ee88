"""timm's evaluation: a `data_config`, the `pretrained_cfg` of a model, or a model's name."""

import math

from . import description as steps
from . import sizes
from .description import CHANNELS, ConversionError, Stage
from .fields import Fields, is_side

FILTERS = {
    "nearest": "nearest",
    "bilinear": "linear",
    "bicubic": "cubic",
    "box": "box",
    "hamming": "hamming",
    "lanczos": "lanczos",
}
LOADS = 'PIL.Image.open(path).convert("RGB")'
_IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
# What a `pretrained_cfg` has beside them, and what marks one.
_MARKS = ("architecture", "url", "hf_hub_id", "num_classes", "pool_size", "first_conv", "classifier", "tag", "license")
_WITHOUT_EFFECT = (
    *_MARKS,
    *(
        "file",
        "state_dict",
        "hf_hub_filename",
        "source",
        "custom_load",
        "fixed_input_size",
        "min_input_size",
        "test_input_size",
        "test_crop_pct",
    ),
    *(
        "paper_ids",
        "paper_name",
        "notes",
        "origin_url",
        "label_names",
        "label_descriptions",
        "has_weights",
        "sha256",
        "hf_hub",
        "num_features",
    ),
)


def fields_of(name):
    """The configuration of a model's name, as timm has it."""
    try:
        from timm.models import get_pretrained_cfg
    except ImportError as error:
        raise ConversionError(
            f"`{name}` is no file, and as the name of a model it needs the package `timm`: {error}"
        ) from error
    try:
        found = get_pretrained_cfg(name)
    except RuntimeError as error:
        raise ConversionError(f"`{name}` is neither a file nor a model of timm: {error}") from error
    if found is None:
        raise ConversionError(f"timm has no pretrained configuration of `{name}`")
    return found.to_dict()


def resolved(values):
    """The six fields of a `data_config`; those that a `pretrained_cfg` leaves out are timm's defaults."""
    if isinstance(values, dict) and isinstance(values.get("pretrained_cfg"), dict):
        values = values["pretrained_cfg"]
    is_pretrained = isinstance(values, dict) and any(name in values for name in _MARKS)
    defaults = (
        {"input_size": (3, 224, 224), "interpolation": "bicubic", "crop_pct": 0.875, "crop_mode": "center", **_IMAGENET}
        if is_pretrained
        else {}
    )
    fields = Fields(values, "timm's `pretrained_cfg`" if is_pretrained else "timm's `data_config`", defaults)
    if is_pretrained:
        fields.ignore(*_WITHOUT_EFFECT)
    size = fields.take("input_size")
    if not (isinstance(size, (list, tuple)) and len(size) == 3 and size[0] == CHANNELS and all(map(is_side, size))):
        fields.fail("input_size", f"expected {CHANNELS} channels, a height and a width")
    fields.choice("interpolation", FILTERS)
    part = fields.divisor("crop_pct")
    if not all(is_side(math.floor(side / part)) for side in size[1:]):
        fields.fail("crop_pct", f"sides of {size[1]} and {size[2]} divided by it are no sizes from 1 to 16384")
    fields.choice("crop_mode", {mode: mode for mode in ("center", "squash", "border")})
    for name in ("mean", "std"):
        value = fields.get(name)
        if isinstance(value, (list, tuple)) and len(value) == 1:
            fields.values = {**fields.values, name: value[0]}
        fields.statistics(name, is_divisor=name == "std")
    fields.only("crop_border_pixels", 0, needed="expected none; cut the border in the pipeline")
    fields.only("is_training", False, needed="only evaluation has a stage")
    fields.only("normalize", True, needed="expected true")
    fields.finish()
    return {
        "input_size": tuple(size),
        "interpolation": fields.get("interpolation"),
        "mean": fields.statistics("mean"),
        "std": fields.statistics("std"),
        "crop_pct": part,
        "crop_mode": fields.get("crop_mode"),
    }


def stage(values, pillow="pillow", title="timm's evaluation"):
    """The stage of a configuration."""
    config = resolved(values)
    _, height, width = config["input_size"]
    down, across = (math.floor(side / config["crop_pct"]) for side in (height, width))
    method, mode = FILTERS[config["interpolation"]], config["crop_mode"]
    fill = (0,)
    if mode == "squash":
        rule = sizes.Exact(down, across)
    elif mode == "border":
        rule, fill = (
            sizes.KeepRatio(down, across, is_within=True),
            tuple(round(255 * value) for value in config["mean"]),
        )
        if not all(0 <= value <= 255 for value in fill):
            raise ConversionError(
                f"field `mean` of timm's configuration is {config['mean']}: the border has this colour, expected values from 0 to 1"
            )
    else:
        rule = sizes.Shorter(down) if down == across else sizes.KeepRatio(down, across, is_within=False)
    made = (
        steps.Decode(is_turned=False),
        steps.Resize(rule, method, pillow),
        steps.CenterCrop(height, width, "even", fill),
        steps.Floats("divide", mean=config["mean"], std=config["std"]),
    )
    return Stage(title, LOADS, made, "PIXELS")


def reference(values):
    """timm's own answer to a file."""
    from PIL import Image
    from timm.data import create_transform

    transform = create_transform(**resolved(values), is_training=False)

    def answer(path):
        with Image.open(path) as file:
            return [transform(file.convert("RGB")).numpy()]

    return answer
