"""Writes a stage as the plain Python of a pipeline. What is printed is what is run: `definition` runs this text and
nothing else."""

import linecache
import re
import zlib
from typing import Any

import numpy as np

from . import description as steps
from . import sizes
from .code import Call, Code, indented, literal
from .source_training import TrainingSteps

_TYPES = {"float32": "types.FLOAT", "float16": "types.FLOAT16"}
# DALI's filters.
_INTERPOLATIONS = {
    "nearest": "INTERP_NN",
    "nearest-exact": "INTERP_NN",
    "linear": "INTERP_LINEAR",
    "cubic": "INTERP_CUBIC",
    "lanczos": "INTERP_LANCZOS3",
}
# What `fn.crop_mirror_normalize` computes in one operator: by scaling, and whether the factor must be 1 / 255.
_NORMALIZATIONS = {
    "divide": "torchvision",
    "multiply": "torchvision-v2",
    "multiply-float64": "torchvision",
    "fused": "transformers-fast",
}
_ONE_255TH = 1 / 255
# Steps that make or take the output; those before them are of images.
_OF_PIXELS = (steps.Floats, steps.PadTo, steps.PadToLargest, steps.ToPatches)


class _Writer(TrainingSteps):
    """Collects the lines of one stage."""

    def __init__(self, stage, is_dali):
        self.stage, self.is_dali = stage, is_dali
        self.body, self.outputs, self.pixels = [], [], "images"
        is_cut = any(isinstance(step, steps.ToPatches) for step in stage.steps)
        self.layout = "HWC" if is_cut else stage.layout

    def call(self, target, function, *inputs, **arguments):
        self.body.append(Call(target, f"fn.{function}", inputs, arguments))
        return target

    def line(self, text):
        self.body.append(text)

    def exact(self, value):
        """An argument that DALI does not have."""
        return None if self.is_dali else value

    # Steps

    def decode(self, step):
        self.call("encoded", "external_source", name=self.stage.input, dtype=Code("types.UINT8"), ndim=1)
        self.decode_images(None if step.is_turned else False, step.arithmetic)

    def decode_images(self, is_turned, arithmetic="pillow"):
        device = None if self.stage.device == "cpu" else self.stage.device
        self.call(
            "images",
            "decoders.image",
            "encoded",
            device=device,
            adjust_orientation=is_turned,
            arithmetic=self.exact(arithmetic),
        )

    def take_frames(self, _):
        self.call("images", "external_source", name=self.stage.input, dtype=Code("types.UINT8"), ndim=4, layout="FHWC")

    def take_pixels(self, _):
        source = {"name": self.stage.input, "dtype": Code("types.UINT8"), "ndim": 3, "layout": "HWC"}
        device = None if self.stage.device == "cpu" else "gpu"
        self.call("images", "external_source", **source, device=device)

    def scale(self, step):
        operation = "/ 255" if step.scaling == "divide" else f"* {step.factor!r}"
        self.line(f"images = fn.cast(images, dtype=types.FLOAT) {operation}")

    def resize(self, step, crop=None):
        """Resizes, and cuts `crop` in the same operator where one is given."""
        if isinstance(step.size, sizes.Exact):
            size = {"size": [step.size.height, step.size.width]}
        elif isinstance(step.size, sizes.Shorter):
            size = {"resize_shorter": step.size.side, "max_size": step.size.longest}
        else:
            first = 1 if self.stage.takes_frames else 0
            self.line("shape = fn.cast(images.shape(), dtype=types.FLOAT64)")
            self.line(f"height, width = shape[{first}], shape[{first + 1}]")
            self.body += step.size.lines()
            # DALI takes sizes as float32.
            self.line("size = fn.stack(checked(new_height), checked(new_width))")
            size = {"size": Code("fn.cast(size, dtype=types.FLOAT)")}
        filters = self.filters(step)
        if crop is None:
            self.call("images", "resize", "images", **size, **filters)
        else:
            rounding = {"even": "even", "truncate": "truncate", "floor": "truncate"}[crop.rounding]
            self.call(
                "images",
                "resize_crop_mirror",
                "images",
                **size,
                crop=[crop.height, crop.width],
                rounding=self.exact(rounding),
                **filters,
            )

    def filters(self, step):
        if not self.is_dali:
            return {"arithmetic": step.arithmetic, "filter": step.filter}
        if step.filter not in _INTERPOLATIONS:
            raise steps.ConversionError(
                f"filter `{step.filter}`: DALI does not have it; expected one of {', '.join(_INTERPOLATIONS)} for `--arithmetic dali`"
            )
        interpolation = Code(f"types.{_INTERPOLATIONS[step.filter]}")
        return {"interp_type": interpolation, "antialias": False if step.arithmetic == "opencv" else None}

    def center_crop(self, step):
        fill = list(step.fill) if any(step.fill) else None
        window = {"crop": [step.height, step.width]}
        if step.rounding == "floor" and not self.is_dali:
            # Downwards also where the image is smaller and the window begins before it: what is too large is cut first.
            self.call("images", "crop", "images", **window, rounding="truncate", out_of_bounds_policy="trim_to_shape")
            self.call(
                "images", "crop", "images", **window, rounding="round", out_of_bounds_policy="pad", fill_values=fill
            )
        else:
            self.call(
                "images",
                "crop",
                "images",
                **window,
                rounding=self.exact(step.rounding),
                out_of_bounds_policy="pad",
                fill_values=fill,
            )

    def border(self, step):
        self.line("shape = images.shape()")
        self.line(f"height, width = shape[0] + {step.top + step.bottom}, shape[1] + {step.left + step.right}")
        fill = list(step.fill) if step.policy == "pad" and any(step.fill) else None
        window = {
            "start": [-step.top, -step.left],
            "shape": Code("fn.cast(fn.stack(height, width), dtype=types.INT32)"),
            "axes": [0, 1],
        }
        self.call("images", "slice", "images", **window, out_of_bounds_policy=step.policy, fill_values=fill)

    def pad_to_multiple(self, step):
        self.line("shape = fn.cast(images.shape(), dtype=types.FLOAT64)")
        for number, (side, target) in enumerate((("height", step.height), ("width", step.width))):
            self.line(f"missing = {target} - shape[{number}]")
            self.line(f"{side} = shape[{number}] + missing - math.floor(missing / {step.multiple}) * {step.multiple}")
        sides = {
            name: Code(f"fn.cast({side}, dtype=types.FLOAT)")
            for name, side in (("crop_h", "height"), ("crop_w", "width"))
        }
        window = {**sides, "rounding": self.exact("truncate")}
        self.call("images", "crop", "images", **window, out_of_bounds_policy="pad", fill_values=list(step.fill))

    def floats(self, step):
        stage = self.stage
        mean, std = step.mean or (0.0,) * steps.CHANNELS, step.std or (1.0,) * steps.CHANNELS
        common: dict[str, Any] = {
            "dtype": Code(_TYPES[stage.dtype]) if stage.dtype != "float32" or self.is_dali else None
        }
        common["output_layout"] = (
            "F" + self.layout if stage.has_frames else None if self.layout == "CHW" else self.layout
        )
        is_usual = step.scaling == "divide" or step.scaling in _NORMALIZATIONS and step.factor == _ONE_255TH
        self.pixels = "pixels"
        if self.is_dali and stage.resizes_floats:
            self.call("pixels", "crop_mirror_normalize", "images", mean=mean, std=std, **common)
        elif self.is_dali:
            scale = 1 if step.scaling == "none" else 255 if step.scaling == "divide" else 1 / step.factor
            self.call(
                "pixels",
                "crop_mirror_normalize",
                "images",
                mean=[scale * each for each in mean],
                std=[scale * each for each in std],
                **common,
            )
        elif is_usual:
            self.call(
                "pixels",
                "crop_mirror_normalize",
                "images",
                mean=mean,
                std=std,
                arithmetic=_NORMALIZATIONS[step.scaling],
                **common,
            )
        else:
            self.unusual_floats(step)

    def unusual_floats(self, step):
        """In single operations of float32, as the libraries do them."""
        mean, std = step.mean, step.std
        if step.scaling == "multiply-float64":
            self.line(f"values = [float(np.float32(value * {step.factor!r})) for value in range(256)]")
            self.looked_up("values")
        elif step.scaling == "bfloat16":
            self.line(f"values = bfloat16(np.arange(256, dtype=np.float32) * np.float32({step.factor!r}))")
            self.line(f"values = bfloat16(values - bfloat16({mean[0]!r}))")
            self.line(f"values = bfloat16(values / bfloat16({std[0]!r}))")
            self.looked_up("values.tolist()")
            mean = None
        else:
            self.call("pixels", "cast", "images", dtype=Code("types.FLOAT"))
        if step.scaling == "multiply":
            self.line(f"pixels = pixels * {step.factor!r}")
        if step.scaling == "fused":
            inverse = np.float32(1.0 / step.factor)
            mean, std = ([float(np.float32(value) * inverse) for value in each] for each in (mean, std))
        if mean is not None:
            self.line(f"mean, std = types.Constant({literal(mean)}), types.Constant({literal(std)})")
            self.line("pixels = (pixels - mean) / std")
        if self.stage.dtype != "float32":
            self.call("pixels", "cast", "pixels", dtype=Code(_TYPES[self.stage.dtype]))
        self.planes()

    def looked_up(self, values):
        """Floats by a table of all bytes."""
        keys = Code("list(range(256))")
        self.call("pixels", "lookup_table", "images", keys=keys, values=Code(values), dtype=Code("types.FLOAT"))

    def planes(self):
        if self.layout == "CHW":
            order = [0, 3, 1, 2] if self.stage.has_frames else [2, 0, 1]
            self.call("pixels", "transpose", self.pixels, perm=order)
        elif self.pixels == "images":
            self.call("pixels", "copy", self.pixels)
        self.pixels = "pixels"

    def pad(self, step):
        axes = [1, 2] if self.stage.layout == "CHW" else [0, 1]
        shape = [step.height, step.width] if isinstance(step, steps.PadTo) else None
        self.call("pixels", "pad", "pixels", axes=axes, shape=shape)
        if "pixel_mask" in self.stage.extras:
            self.call("mask", "pad", "mask", axes=[0, 1], shape=shape)

    def to_patches(self, step):
        side = step.side
        self.line(f"grid = fn.slice(images.shape(), start=[0], shape=[2], axes=[0]) // {side}")
        self.line(f"side = grid[0] * 0 + {side}")
        self.line("parts = fn.cast(fn.stack(grid[0], side, grid[1], side), dtype=types.INT32)")
        self.call("pixels", "reshape", "pixels", shape=Code(f"fn.cat(parts, parts[:1] * 0 + {steps.CHANNELS})"))
        self.call("pixels", "transpose", "pixels", perm=[0, 2, 1, 3, 4])
        self.call("pixels", "reshape", "pixels", shape=[-1, side * side * steps.CHANNELS])
        self.call("pixel_attention_mask", "cast", "pixels[:, 0] * 0 + 1", dtype=Code("types.INT32"))
        self.call("spatial_shapes", "cast", "grid", dtype=Code("types.INT64"))
        for target in ("pixels", "pixel_attention_mask"):
            self.call(target, "pad", target, axes=[0], shape=[step.most])

    # The whole

    @property
    def handlers(self):
        return {
            steps.Decode: self.decode,
            steps.TakeFrames: self.take_frames,
            steps.TakePixels: self.take_pixels,
            steps.Scale: self.scale,
            steps.CenterCrop: self.center_crop,
            steps.Border: self.border,
            steps.PadToMultiple: self.pad_to_multiple,
            steps.Floats: self.floats,
            steps.PadTo: self.pad,
            steps.PadToLargest: self.pad,
            steps.ToPatches: self.to_patches,
        } | self.training_handlers

    def write(self):
        self.write_steps(self.stage.steps)
        if self.pixels == "images":
            self.measure_images()
            self.planes()
        self.outputs = [
            (self.pixels, self.stage.output),
            *(("mask" if name == "pixel_mask" else name, name) for name in self.stage.extras),
        ]

    def write_steps(self, some):
        """Lines of some steps, one after the other."""
        left, handlers = list(some), self.handlers
        while left:
            step = left.pop(0)
            if isinstance(step, _OF_PIXELS) and self.pixels == "images":
                self.measure_images()
                if not isinstance(step, steps.Floats):
                    self.planes()
            if isinstance(step, steps.Resize):
                self.resize(step, left.pop(0) if left and self.is_one(step, left[0]) else None)
            elif hasattr(step, "write"):
                step.write(self)
            else:
                handlers[type(step)](step)
            if step is self.stage.steps[0] and "original_sizes" in self.stage.extras:
                self.measure("original_sizes")

    def is_one(self, resize, crop):
        """Whether one operator does both: where the window never leaves the image."""
        return (
            isinstance(crop, steps.CenterCrop)
            and not self.stage.resizes_floats
            and resize.size.covers(crop.height, crop.width)
        )

    def measure(self, target):
        self.call(target, "slice", "images.shape()", start=[0], shape=[2], axes=[0])

    def measure_images(self):
        """What further outputs say of the images before they become the output."""
        if "reshaped_input_sizes" in self.stage.extras:
            self.measure("reshaped_input_sizes")
        if "pixel_mask" in self.stage.extras:
            self.call("mask", "cast", "images[:, :, 0] * 0 + 1", dtype=Code("types.INT64"))

    def text(self):
        if self.stage.is_training:
            self.outputs = [(self.pixels, None), ("labels", None)]
        for target, name in self.outputs if not self.stage.is_training else ():
            last = [each for each in self.body if isinstance(each, Call) and each.target == target][-1]
            last.arguments["name"] = name
        self.line(f"return {', '.join(target for target, _ in self.outputs)}")
        return "\n".join(indented(self.body))


def write(stage, is_dali=False, batch_size=64):
    """The program of a stage: by `is_dali` one with DALI's arithmetic, whose file DALI runs, too."""
    writer = _Writer(stage, is_dali)
    writer.write()
    body = writer.text()
    if is_dali:
        body = body.replace("checked(new_height)", "new_height").replace("checked(new_width)", "new_width")
    helpers = [text for name, text in sizes.HELPERS.items() if f"{name}(" in body]
    imports = ["import numpy as np", ""] if "np." in body + "".join(helpers) else []
    text = body + "".join(helpers)
    used = [name for name in ("augment", "exact_augment", "math") if re.search(rf"\b{name}\.", text)]
    names = sorted(["fn", "pipeline_def", "types", *used])
    head = [
        f'"""{stage.title}, made by `gesso from`."""',
        "",
        *imports,
        f"from gesso import {', '.join(names)}",
        "",
        "",
    ]
    functions = [line for text in helpers for line in [*text.splitlines(), "", ""]]
    # Batches ahead are for training; a server has its own requests.
    depth = "" if stage.is_training else ", prefetch_queue_depth=1"
    conditionals = ", enable_conditionals=True" if writer.has_conditions else ""
    settings = f"batch_size={batch_size}, num_threads=4{depth}{conditionals}"
    definition = [f"@pipeline_def({settings})", "def preprocess():", body, ""]
    return "\n".join([*head, *functions, *definition])


def definition(text):
    """The function with `pipeline_def` of a program."""
    # Conditionals are rewritten by the text that `inspect` finds.
    place = f"<gesso from {zlib.crc32(text.encode()):08x}>"
    linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)
    names: dict[str, Any] = {"__name__": "__gesso__"}
    exec(compile(text, place, "exec"), names)
    made = names["preprocess"]
    made.source = text
    return made
