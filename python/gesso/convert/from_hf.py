"""Image processors of Hugging Face transformers: `preprocessor_config.json`, or the processor itself."""

import json
from dataclasses import replace
from pathlib import Path

from . import configuration, hf_processors, sizes
from . import description as steps
from .description import ConversionError, Stage
from .fields import Fields, is_side, shown
from .hf_classes import CLASSES, NOT_CONVERTED

# Kinds that took `max_size` beside `size` before there was `longest_edge`.
_EDGES = ("detr", "yolos", "mask2former")
BACKENDS = ("torchvision", "pil")
_LARGEST_PATCH = 256
# Filters by Pillow's numbers.
_PILLOW = {0: "nearest", 4: "box", 2: "linear", 5: "hamming", 3: "cubic", 1: "lanczos"}
_TENSOR = {0: "nearest-exact", 1: "lanczos", 2: "linear", 3: "cubic"}
# They say where a definition is from, or speak of labels and boxes.
WITHOUT_EFFECT = (
    *(
        "image_processor_type",
        "feature_extractor_type",
        "processor_class",
        "_valid_processor_keys",
        "_valid_kwargs_names",
        "disable_grouping",
        "device",
    ),
    *(
        "do_reduce_labels",
        "reduce_labels",
        "do_convert_annotations",
        "format",
        "ignore_index",
        "num_labels",
        "image_seq_length",
    ),
    *("mask_size", "mask_pad_size", "input_data_format", "return_tensors"),
)
LOADS = "transformers.image_utils.load_image(path)"


def name_and_backend(values, backend=None, classes=CLASSES):
    """The name, one of `classes`, without an ending, and which of its two forms is meant."""
    if not isinstance(values, dict):
        raise ConversionError(f"the configuration is {shown(values)}, expected fields with names")
    field = "image_processor_type" if values.get("image_processor_type") is not None else "feature_extractor_type"
    name = values.get(field)
    if not isinstance(name, str):
        raise ConversionError(
            f"field `image_processor_type` is {shown(name)}: expected the name of a class, such as `ViTImageProcessor`"
        )
    if values.get("auto_map") is not None:
        raise ConversionError(
            f"field `auto_map` is {shown(values['auto_map'])}: the class is code beside the model; only classes of transformers are known"
        )
    plain, said = name.replace("FeatureExtractor", "ImageProcessor"), None
    for ending, means in (("Fast", "torchvision"), ("Pil", "pil")):
        if plain.endswith(ending):
            plain, said = plain.removesuffix(ending), means
    if backend not in (None, *BACKENDS):
        raise ConversionError(f"backend `{backend}`: expected {' or '.join(BACKENDS)}")
    if plain in NOT_CONVERTED:
        raise ConversionError(f"field `{field}` is {name!r}: {NOT_CONVERTED[plain]}")
    if plain not in classes:
        raise ConversionError(
            f"field `{field}` is {shown(name)}: this class is not known; expected one of {', '.join(sorted(classes))}"
        )
    # Without an ending it is what transformers 5 makes of the name.
    return plain, backend or said or "torchvision"


def stage(values, backend=None, pillow="pillow"):
    """The stage of a configuration's fields."""
    name, backend = name_and_backend(values, backend)
    kind, defaults = CLASSES[name]
    if kind == "rescales-first" and backend == "pil":
        raise ConversionError(f"backend `pil`: transformers has `{name}` by torchvision alone")
    fields = Fields(values, name, {"rescale_factor": 1 / 255, **defaults}, null_is_default=False)
    fields.ignore(*WITHOUT_EFFECT)
    processor = Processor(fields, kind, backend, pillow)
    made = processor.stage(
        f"{name} of transformers, by {'torchvision' if backend == 'torchvision' else 'Pillow and numpy'}"
    )
    fields.finish()
    return made


class Processor:
    """Reads one processor's fields into steps."""

    def __init__(self, fields, kind, backend, pillow):
        self.fields, self.kind, self.is_torch = fields, kind, backend == "torchvision"
        self.pillow, self.extras, self.notes = pillow, [], []

    def stage(self, title):
        fields, kind = self.fields, self.kind
        fields.only(
            "data_format",
            "channels_first",
            needed="only `channels_first` is known; `layout` of the stage says which order is served",
        )
        self.rgb()
        first = steps.TakeFrames() if kind == "frames" else steps.Decode(is_turned=True)
        resizes = fields.flag("do_resize", True)
        if kind == "patches":
            size = self.patches(resizes)
        else:
            size = self.resize() if resizes else self.unused_size()
        crop = self.crop()
        floats = self.floats()
        if kind == "rescales-first" and floats and floats.scaling == "none":
            fields.fail(
                "do_rescale",
                "this class normalizes floats only, so transformers fails: set `do_normalize` to false, too",
            )
        if kind == "rescales-first" and resizes and floats:
            if size[0].filter not in ("linear", "cubic"):
                fields.fail("resample", "this class resizes floats: expected 2 (linear) or 3 (cubic)")
            size = [steps.Scale("multiply", floats.factor), replace(size[0], arithmetic="torchvision-float")]
            floats = steps.Floats("none", 1.0, floats.mean, floats.std)
        padding = self.padding(size, crop)
        if kind == "sam":
            self.extras = ["original_sizes", "reshaped_input_sizes"]
        elif kind == "patches":
            self.extras = ["pixel_attention_mask", "spatial_shapes"]
            padding = [steps.ToPatches(size[0].size.side, size[0].size.most)]
        made = [first, *size, *crop, *([floats] if floats else []), *padding]
        notes = (*self.notes, *_NOTES.get(kind, ()))
        loads = "frames" if kind == "frames" else LOADS
        return Stage(title, loads, tuple(made), "pixel_values", tuple(self.extras), notes=notes)

    def rgb(self):
        if self.fields.flag("do_convert_rgb", False):
            self.notes.append(
                "`do_convert_rgb` makes pixels white that a file calls transparent by their colour (PNGs with a `tRNS` chunk, GIFs); "
                "the stage leaves them as they are."
            )

    # Sizes

    def sizes(self, name):
        """The members of a size, in any spelling: a number, a pair, or names."""
        fields, value = self.fields, self.fields.take(name, None)
        has_longest = name == "size" and self.kind in _EDGES
        longest = fields.side("max_size", None) if has_longest else None
        if value is None:
            fields.fail(name, "expected a size")
        is_square = name != "size" or not has_longest and fields.flag("default_to_square", True)
        if is_side(value):
            if is_square:
                return {"height": value, "width": value}
            if longest is None and self.kind in ("detr", "yolos"):
                longest = 1333
            return {"shortest_edge": value} | ({"longest_edge": longest} if longest else {})
        if isinstance(value, (list, tuple)) and len(value) == 2 and all(map(is_side, value)):
            return {"height": value[0], "width": value[1]}
        known = [
            set(pair)
            for pair in (
                ("height", "width"),
                ("shortest_edge",),
                ("shortest_edge", "longest_edge"),
                ("longest_edge",),
                ("max_height", "max_width"),
            )
        ]
        if not isinstance(value, dict) or set(value) not in known or not all(is_side(side) for side in value.values()):
            expected = "a whole number, a pair, or `height` and `width`, `shortest_edge`, `longest_edge` or both, `max_height` and `max_width`"
            fields.fail(name, f"expected {expected}, each from 1 to 16384")
        if longest is not None and "longest_edge" in value and value["longest_edge"] != longest:
            fields.fail("max_size", f"`size` says {value['longest_edge']}: expected one of both")
        return value

    def filter(self):
        number = self.fields.take("resample", None)
        known = _TENSOR if self.is_torch else _PILLOW
        if not isinstance(number, int) or isinstance(number, bool) or number not in known:
            also = (
                "; the class that ends in `Pil` (`--backend pil`) has the others"
                if self.is_torch and number in list(_PILLOW)
                else ""
            )
            self.fields.fail(
                "resample",
                f"expected one of {', '.join(f'{key} ({name})' for key, name in sorted(known.items()))}{also}",
            )
        return known[number]

    def unused_size(self):
        self.fields.ignore(
            *(("crop_pct",) if self.kind == "convnext" else ()),
            *(("max_size", "size_divisor") if self.kind in _EDGES else ()),
        )
        self.fields.ignore("size", "resample", "default_to_square")
        return []

    def resize(self):
        fields, size, method = self.fields, self.sizes("size"), self.filter()
        fields.ignore("default_to_square")
        arithmetic = "torchvision" if self.is_torch else self.pillow
        members = set(size)

        def refuse(expected):
            fields.fail("size", f"{fields.where} takes {expected}")

        if self.kind == "convnext":
            if members != {"shortest_edge"}:
                refuse("`shortest_edge` alone")
            side, part = size["shortest_edge"], fields.divisor("crop_pct")
            if side >= 384:
                return [steps.Resize(sizes.Exact(side, side), method, arithmetic)]
            larger = int(side / part)
            if not is_side(larger):
                fields.fail("crop_pct", f"a side of {side} would become {larger} pixels")
            return [
                steps.Resize(sizes.Shorter(larger), method, arithmetic),
                steps.CenterCrop(side, side, self.rounding),
            ]
        if self.kind == "sam":
            if members != {"longest_edge"}:
                refuse("`longest_edge` alone")
            rule = sizes.Longest(size["longest_edge"])
        elif members == {"height", "width"}:
            rule = sizes.Exact(size["height"], size["width"])
        elif members == {"max_height", "max_width"}:
            rule = sizes.Within(size["max_height"], size["max_width"], "floor")
        elif members == {"shortest_edge", "longest_edge"}:
            rule = sizes.Bounded(size["shortest_edge"], size["longest_edge"])
        elif members == {"shortest_edge"} and self.kind in ("plain", "frames", "segmentation", "rescales-first"):
            rule = sizes.Shorter(size["shortest_edge"])
        else:
            also = "`shortest_edge`, " if self.kind in ("plain", "frames") else ""
            refuse(f"`height` and `width`, {also}`shortest_edge` and `longest_edge`, or `max_height` and `max_width`")
        return [steps.Resize(self.multiples(rule), method, arithmetic)]

    def patches(self, resizes):
        fields = self.fields
        if not resizes:
            fields.fail("do_resize", "an image has no whole number of patches then: expected true")
        side, most = fields.side("patch_size"), fields.side("max_num_patches")
        if side > _LARGEST_PATCH:
            fields.fail("patch_size", f"expected at most {_LARGEST_PATCH}")
        return [steps.Resize(sizes.Patches(side, most), self.filter(), "torchvision" if self.is_torch else self.pillow)]

    def multiples(self, rule):
        """YOLOS cuts sides to multiples of 16; Mask2Former extends them to those of `size_divisor`."""
        if self.kind == "yolos" and isinstance(rule, sizes.Bounded):
            return sizes.Bounded(rule.shortest, rule.longest, 16, "down", keeps_upright=False)
        if self.kind != "mask2former":
            return rule
        divisor = self.fields.take("size_divisor", 0)
        if divisor != 0 and not is_side(divisor):
            self.fields.fail("size_divisor", "expected a whole number, 0 for none")
        if isinstance(rule, sizes.Exact) and divisor:
            return sizes.Exact(*(-(-side // divisor) * divisor for side in (rule.height, rule.width)))
        if isinstance(rule, sizes.Bounded) and divisor:
            return sizes.Bounded(rule.shortest, rule.longest, divisor, "up")
        if divisor:
            self.fields.fail("size_divisor", "with `max_height` and `max_width` expected 0")
        return rule

    @property
    def rounding(self):
        return "truncate" if self.is_torch else "floor"

    def crop(self):
        fields = self.fields
        is_cropped = fields.flag("do_center_crop", False)
        if not is_cropped:
            if fields.has("crop_size"):
                self.sizes("crop_size")
            return []
        if self.kind not in ("plain", "frames", "convnext", "rescales-first", "sam", "beit"):
            fields.fail("do_center_crop", f"{fields.where} does not crop: expected false")
        size = self.sizes("crop_size")
        if set(size) != {"height", "width"}:
            fields.fail("crop_size", "expected `height` and `width`")
        return [steps.CenterCrop(size["height"], size["width"], self.rounding)]

    # Values

    def floats(self):
        fields = self.fields
        is_scaled, is_normalized = fields.flag("do_rescale", True), fields.flag("do_normalize", True)
        fields.ignore("rescale_factor", "image_mean", "image_std")
        factor = fields.divisor("rescale_factor") if is_scaled or fields.has("rescale_factor") else 1 / 255
        mean = std = None
        for name in ("image_mean", "image_std"):
            if not (is_normalized or fields.has(name)):
                continue
            value = fields.statistics(name, is_divisor=name == "image_std")
            if is_normalized:
                mean, std = (value, std) if name == "image_mean" else (mean, value)
        if not is_scaled and not is_normalized:
            return None
        if not is_scaled:
            return steps.Floats("none", 1.0, mean, std)
        if not self.is_torch:
            scaling = "multiply-float64"
        else:
            scaling = "fused" if is_normalized and self.kind != "rescales-first" else "multiply"
        return steps.Floats(scaling, float(factor), mean, std)

    # Padding

    def padding(self, size, crop):
        fields, kind = self.fields, self.kind
        if kind == "mask2former":
            is_padded = fields.flag("do_pad", True)
            if not is_padded:
                fields.fail("do_pad", f"{fields.where} always pads to the largest image: expected true")
        else:
            old = (
                fields.flag("pad_and_return_pixel_mask", None)
                if fields.has("pad_and_return_pixel_mask") and kind in ("detr", "yolos")
                else None
            )
            is_padded = fields.flag("do_pad", False if old is None else old)
        if not is_padded:
            if fields.has("pad_size"):
                self.sizes("pad_size")
            return []
        if kind in ("convnext", "segmentation", "beit", "frames", "rescales-first", "patches"):
            fields.fail("do_pad", f"{fields.where} does not pad: expected false")
        if kind in (*_EDGES, "rt-detr"):
            self.extras.append("pixel_mask")
        if fields.get("pad_size") is None:
            fields.take("pad_size", None)
            if kind == "sam":
                fields.fail("pad_size", "expected `height` and `width`")
            self.notes.append("Images are padded to the largest of their request: one image alone is not padded.")
            return [steps.PadToLargest()]
        target = self.sizes("pad_size")
        if set(target) != {"height", "width"}:
            fields.fail("pad_size", "expected `height` and `width`")
        height, width = target["height"], target["width"]
        bound = (crop[0].height, crop[0].width) if crop else size[-1].size.bound if size else None
        if bound is None or bound[0] > height or bound[1] > width:
            found = "may have any size" if bound is None else f"may have {bound[0]} x {bound[1]} pixels"
            fields.fail(
                "pad_size",
                f"images {found} before they are padded, and a larger one than `pad_size` is an error of transformers",
            )
        return [steps.PadTo(height, width)]


_NOTES = {
    "frames": ("The input is a clip's frames, decoded (frames, height, width, RGB); the stage does not read videos.",)
}


def reference(values, backend=None, folder=None):
    """transformers' own answer to a file: the class's output of each name. `folder` is where the values were read, if
    it is one."""
    import transformers
    from transformers.image_utils import load_image

    name, backend = name_and_backend(values, backend)
    processor, made = hf_processors.loaded(name, values, backend, folder), stage(values, backend)
    # Those of version 4 by torch return nothing else.
    kind = "np" if hf_processors.is_version_5(transformers) or backend == "pil" else "pt"

    def answer(image):
        outputs = processor(image if made.takes_frames else load_image(str(image)), return_tensors=kind)
        return [outputs[key][0] for key in (made.output, *made.extras)]

    return answer


def given(processor, backend=None):
    """The fields of what a user gives: a processor, a path or fields; the backend; and the folder, if it is one."""
    processor = getattr(processor, "image_processor", getattr(processor, "feature_extractor", processor))
    if isinstance(processor, (str, Path)):
        return configuration.read(processor), backend, str(processor) if Path(processor).is_dir() else None
    if isinstance(processor, dict):
        return processor, backend, None
    kind = type(processor)
    if not kind.__module__.startswith("transformers.") or not hasattr(processor, "to_dict"):
        raise ConversionError(
            f"a `{kind.__module__}.{kind.__name__}` is given: expected an image processor of transformers, a path or the fields of a configuration"
        )
    # `to_dict` leaves the ending out that tells the two forms of a class apart.
    is_video = kind.__name__.endswith("VideoProcessor")
    field = "video_processor_type" if is_video else "image_processor_type"
    values = json.loads(json.dumps(processor.to_dict(), default=str)) | {field: kind.__name__}
    usual = "torchvision" if is_video or kind.__name__.endswith("Fast") else "pil"
    return values, backend or getattr(processor, "backend", None) or usual, None


def around(processor, names):
    """What a processor of text and images says beside its image processor: `processor_class`, and those of the fields
    `names` that it has. Empty of what is no such processor."""
    if isinstance(processor, (str, Path)):
        values = configuration.read_around(processor)
    elif hasattr(processor, "image_processor"):
        values = {name: getattr(processor, name) for name in names if hasattr(processor, name)}
        values |= {"processor_class": type(processor).__name__}
    else:
        values = {}
    return {name: value for name, value in values.items() if name in ("processor_class", *names)}
