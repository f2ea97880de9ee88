"""open_clip's evaluation: `open_clip_config.json`, or its `preprocess_cfg`."""

from . import description as steps
from . import sizes
from .description import Stage
from .fields import Fields
from .from_timm import LOADS

_FILTERS = {"bicubic": "cubic", "bilinear": "linear", "random": "cubic"}
_MODES = {mode: mode for mode in ("shortest", "longest", "squash")}
_DEFAULTS = {
    "mean": (0.48145466, 0.4578275, 0.40821073),
    "std": (0.26862954, 0.26130258, 0.27577711),
    "interpolation": "bicubic",
    "resize_mode": "shortest",
    "fill_color": 0,
    "mode": "RGB",
}


def resolved(values):
    """The fields of open_clip's `PreprocessCfg`."""
    fields = Fields(values, "open_clip's configuration")
    if fields.has("model_cfg") or fields.has("preprocess_cfg"):
        model = Fields(fields.take("model_cfg", {}), "open_clip's `model_cfg`")
        vision = Fields(model.take("vision_cfg", {}), "open_clip's `vision_cfg`")
        values = dict(Fields(fields.take("preprocess_cfg", {}), "open_clip's `preprocess_cfg`").values)
        fields.finish()
        if vision.has("image_size"):
            values.setdefault("size", vision.take("image_size"))
    fields = Fields(values, "open_clip's `preprocess_cfg`", _DEFAULTS)
    height, width = fields.sides("size")
    fields.choice("interpolation", _FILTERS)
    fields.choice("resize_mode", _MODES)
    fields.only("mode", "RGB", needed="only RGB is known")
    fill = fields.take("fill_color")
    if not isinstance(fill, int) or isinstance(fill, bool) or not 0 <= fill <= 255:
        fields.fail("fill_color", "expected a whole number from 0 to 255")
    mean, std = fields.statistics("mean"), fields.statistics("std", is_divisor=True)
    fields.finish()
    named = {name: fields.get(name) for name in ("interpolation", "resize_mode", "fill_color")}
    return {"size": (height, width), "mean": mean, "std": std, **named}


def stage(values, pillow="pillow"):
    """The stage of a configuration."""
    config = resolved(values)
    (height, width), method = config["size"], _FILTERS[config["interpolation"]]
    crop = steps.CenterCrop(height, width)
    if config["resize_mode"] == "squash":
        resize, crops = steps.Resize(sizes.Exact(height, width), method, pillow), ()
    elif config["resize_mode"] == "longest":
        resize = steps.Resize(sizes.KeepRatio(height, width, is_within=True), method, pillow)
        crops = (steps.CenterCrop(height, width, fill=(config["fill_color"],) * 3),)
    elif height == width:
        resize, crops = steps.Resize(sizes.Shorter(height), method, pillow), (crop,)
    else:
        # open_clip gives its own `ResizeKeepRatio` no interpolation there.
        resize, crops = steps.Resize(sizes.KeepRatio(height, width, is_within=False), "cubic", pillow), (crop,)
    floats = steps.Floats("divide", mean=config["mean"], std=config["std"])
    return Stage("open_clip's evaluation", LOADS, (steps.Decode(is_turned=False), resize, *crops, floats), "IMAGES")


def reference(values):
    """open_clip's own answer to a file."""
    from open_clip.transform import PreprocessCfg, image_transform_v2
    from PIL import Image

    config = resolved(values)
    size = config["size"][0] if config["size"][0] == config["size"][1] else config["size"]
    transform = image_transform_v2(PreprocessCfg(**{**config, "size": size}), is_train=False)

    def answer(path):
        with Image.open(path) as file:
            return [transform(file.convert("RGB")).numpy()]

    return answer
