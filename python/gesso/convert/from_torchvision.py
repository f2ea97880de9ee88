"""torchvision's transforms: those of a model's weights, or a `Compose` of version 1 or 2."""

import importlib
import os
import runpy
import sys

from .._comparison.words import of_user
from . import description as steps
from . import sizes
from .description import CHANNELS, ConversionError, Stage
from .fields import Fields, is_side, shown
from .from_timm import LOADS
from .from_torchvision_training import RANDOM, WITHOUT_EQUAL, TrainingTransforms

_FILTERS = {"nearest": "nearest", "nearest-exact": "nearest-exact", "bilinear": "linear", "bicubic": "cubic"}
_FLOAT_FILTERS = {"bilinear": "linear", "bicubic": "cubic"}
_OF_PILLOW = {**_FILTERS, "box": "box", "hamming": "hamming", "lanczos": "lanczos"}
_POLICIES = {"constant": "pad", "edge": "edge", "reflect": "reflect_101", "symmetric": "reflect"}
_LARGEST_BORDER = 4096
_HOME = "torchvision.transforms."
# In them nothing happens to an image that is RGB already.
_NOTHING = ("Identity", "RGB", "ToPureTensor")


def named(word):
    """The transforms that a word names: `ResNet50_Weights.IMAGENET1K_V2`, or `file.py:name`."""
    path, colon, name = word.rpartition(":")
    if colon and path.endswith(".py"):
        # What the program imports from beside it.
        folder = os.path.dirname(os.path.abspath(path))
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            with open(path, "rb"):
                pass
        except OSError as error:
            raise ConversionError(f"cannot read `{path}`: {error.strerror}") from error
        with of_user(path):
            names = runpy.run_path(path, run_name="__gesso__")
        if name not in names:
            raise ConversionError(f"`{path}` has no `{name}`")
        return names[name]
    models = _library("torchvision.models")
    try:
        return models.get_weight(word.removeprefix("weights.")).transforms()
    except (ValueError, AttributeError, KeyError, ImportError) as error:
        raise ConversionError(
            f"`{word}` is neither `file.py:name` nor the name of weights, such as `ResNet50_Weights.IMAGENET1K_V2`: {error}"
        ) from error


def _library(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConversionError(f"this needs the package `{name.split('.')[0]}`: {error}") from error


def flat(transform):
    """The single transforms, each with its place; those of a `Compose` in their order."""
    found, todo = [], [(transform, "")]
    while todo:
        each, place = todo.pop(0)
        kind = type(each)
        if kind.__name__ == "Compose" and kind.__module__.startswith(_HOME):
            todo = [(inner, f"{place}[{number}]") for number, inner in enumerate(each.transforms)] + todo
        elif kind.__name__ in ("Sequential", "ModuleList"):
            todo = [(inner, f"{place}[{number}]") for number, inner in enumerate(each)] + todo
        elif isinstance(each, (list, tuple)):
            todo = [(inner, f"{place}[{number}]") for number, inner in enumerate(each)] + todo
        else:
            found.append((each, place))
    return found


def stage(transform, pillow="pillow", takes="pil", train=None):
    """The stage of transforms. `takes` says what they are given: "pil", an image of Pillow, or "tensor", bytes in a
    tensor. `train` is the folder of a data set: then transforms may be random."""
    if takes not in ("pil", "tensor"):
        raise ConversionError(f"`takes` is {takes!r}: expected pil or tensor")
    reader = _Reader(pillow, takes, train is not None)
    for each, place in flat(transform):
        reader.read(each, place)
    loads = LOADS if takes == "pil" else f"torchvision.transforms.functional.pil_to_tensor({LOADS})"
    first = steps.Decode(is_turned=False) if train is None else steps.ReadFolder(str(train))
    made = (first, *reader.finish())
    return Stage("torchvision's transforms", loads, made, "PIXELS", notes=tuple(reader.notes))


class _Reader(TrainingTransforms):
    """Reads transforms in their order; knows what the image is before each."""

    flat = staticmethod(flat)

    def __init__(self, pillow, takes, is_training):
        self.pillow, self.is_tensor, self.is_training = pillow, takes == "tensor", is_training
        self.made, self.notes, self.at = [], [], ""
        #: How bytes become floats, where they are by now: scaling, mean, std.
        self.floats = None
        #: What comes behind the floats: rectangles that are erased, with whether they come behind `Normalize`; and
        #: mixtures of a batch's images.
        self.erased, self.mixes, self.classes = [], [], None
        #: Of images before `made`, in transforms that are done for some images only.
        self.size_before = None

    def fail(self, each, field, value, expected):
        raise ConversionError(f"field `{field}` of {type(each).__name__} is {shown(value)}: {expected}")

    def read(self, each, place):
        """One transform."""
        name, module = type(each).__name__, type(each).__module__
        where = f"transform {place or 'itself'} is `{name}`"
        if name == "Lambda":
            raise ConversionError(
                f"{where}: a function of yours has no stage; write what it does in the pipeline that `--print` shows"
            )
        if not module.startswith(_HOME):
            raise ConversionError(f"{where} of `{module}`: only transforms of torchvision are known")
        if name in _NOTHING:
            return
        self.at = place
        handler, is_random = getattr(self, f"_{name}", None), name.startswith("Random") or name in RANDOM
        if is_random and not self.is_training:
            self.unknown(where, "it is random, and a server answers the same each time")
        if handler is None:
            self.unknown(where, WITHOUT_EQUAL.get(name, "it is not known"))
        if self.mixes:
            raise ConversionError(f"{where}: it comes behind what mixes images; expected `MixUp` or `CutMix` last")
        if self.erased and name not in ("Normalize", "RandomErasing", "MixUp", "CutMix", "RandomChoice"):
            raise ConversionError(f"{where}: it comes behind `RandomErasing`; put it before")
        try:
            handler(each, ".v2." in module)
        except (TypeError, AttributeError, IndexError, KeyError) as error:
            raise ConversionError(f"{where}: a field is of no known kind: {error}") from error

    def unknown(self, where, why):
        raise ConversionError(f"{where}: {why}; leave it out, or write it in the pipeline that `--print` shows")

    def place(self, each):
        """Before a transform that moves pixels: where they are floats already, they are scaled here."""
        if self.floats is None:
            return
        if self.floats[1] is not None or self.floats[0] == "none":
            raise ConversionError(
                f"transform `{type(each).__name__}` comes behind normalized floats: put it before `Normalize`"
            )
        if self.floats[0] != "scaled":
            self.made.append(steps.Scale(self.floats[0]))
            self.floats = ("scaled", None, None)

    def sides(self, each, value):
        pair = (
            [value] * 2
            if is_side(value)
            else list(value) * 2
            if isinstance(value, (list, tuple)) and len(value) == 1
            else value
        )
        if not (isinstance(pair, (list, tuple)) and len(pair) == 2 and all(map(is_side, pair))):
            self.fail(each, "size", value, "expected one or two whole numbers from 1 to 16384")
        return tuple(pair)

    def _Resize(self, each, is_v2):
        self.place(each)
        size, longest = each.size, getattr(each, "max_size", None)
        if size is None:
            self.fail(each, "size", size, "expected the shorter side, or height and width")
        one = size if is_side(size) else size[0] if isinstance(size, (list, tuple)) and len(size) == 1 else None
        if longest is not None and (one is None or not is_side(longest) or longest <= one):
            self.fail(each, "max_size", longest, "expected a size that is larger than the shorter side")
        rule = sizes.Exact(*self.sides(each, size)) if one is None else sizes.Shorter(self.sides(each, one)[0], longest)
        self.made.append(steps.Resize(rule, *self.resampling(each, is_v2)))

    def resampling(self, each, is_v2):
        """Filter and arithmetic of a transform that resizes."""
        word, antialias = getattr(each.interpolation, "value", each.interpolation), getattr(each, "antialias", True)
        has_floats = self.floats is not None
        known = (
            _FLOAT_FILTERS
            if has_floats
            else _FILTERS
            if self.is_tensor
            else {key: value for key, value in _OF_PILLOW.items() if key != "nearest-exact"}
        )
        # torchvision's own words.
        also = " (unsupported with Tensor input)" if self.is_tensor and word in ("box", "hamming", "lanczos") else ""
        if not isinstance(word, str) or word not in known:
            self.fail(
                each,
                "interpolation",
                word,
                f"expected one of {', '.join(known)} for {'tensors' if self.is_tensor else 'images of Pillow'}{also}",
            )
        if self.is_tensor and antialias is not True and word in ("bilinear", "bicubic"):
            self.fail(
                each, "antialias", antialias, "expected true for tensors: without it torch's weights have no equal"
            )
        arithmetic = (
            ("torchvision" if is_v2 and not has_floats else "torchvision-float") if self.is_tensor else self.pillow
        )
        if arithmetic == "torchvision-float" and word not in ("bilinear", "bicubic"):
            arithmetic = "torchvision"
        return known[word], arithmetic

    def _CenterCrop(self, each, _):
        self.place(each)
        self.made.append(steps.CenterCrop(*self.sides(each, each.size)))

    def _Pad(self, each, _):
        self.place(each)
        padding = each.padding
        sides = (
            [padding] * 4
            if isinstance(padding, int)
            else []
            if not isinstance(padding, (list, tuple))
            else {1: list(padding) * 4, 2: list(padding) * 2, 4: list(padding)}.get(len(padding), [])
        )
        if len(sides) != 4 or not all(
            isinstance(side, int) and not isinstance(side, bool) and 0 <= side <= _LARGEST_BORDER for side in sides
        ):
            self.fail(each, "padding", padding, f"expected one, two or four whole numbers from 0 to {_LARGEST_BORDER}")
        fill = each.fill
        if isinstance(fill, dict):
            fill = next(iter(fill.values())) if len(fill) == 1 else fill
        colours = (
            [fill]
            if isinstance(fill, int)
            else list(fill)
            if isinstance(fill, (list, tuple))
            else [0]
            if fill is None
            else fill
        )
        if (
            not isinstance(colours, list)
            or len(colours) not in (1, CHANNELS)
            or not all(type(value) is int and 0 <= value <= 255 for value in colours)
        ):
            self.fail(each, "fill", each.fill, f"expected one or {CHANNELS} whole numbers from 0 to 255")
        if each.padding_mode not in _POLICIES:
            self.fail(each, "padding_mode", each.padding_mode, f"expected one of {', '.join(_POLICIES)}")
        if self.floats is not None and any(colours):
            self.fail(each, "fill", each.fill, "behind floats expected 0; put it first")
        left, top, right, bottom = sides
        self.made.append(steps.Border(left, top, right, bottom, tuple(colours), _POLICIES[each.padding_mode]))

    def gray(self, each, probability):
        if self.is_tensor:
            raise ConversionError(
                f"transform `{type(each).__name__}` is given a tensor: expected an image of Pillow; put it first"
            )
        self.made.append(steps.Grayscale(probability))

    def _Grayscale(self, each, _):
        if each.num_output_channels != CHANNELS:
            self.fail(each, "num_output_channels", each.num_output_channels, f"expected {CHANNELS}")
        self.gray(each, 1.0)

    def _ToTensor(self, each, _):
        if self.is_tensor:
            raise ConversionError("transform `ToTensor` is given a tensor: expected an image of Pillow")
        self.is_tensor, self.floats = True, ("divide", None, None)

    def _PILToTensor(self, each, _):
        if self.is_tensor:
            raise ConversionError(f"transform `{type(each).__name__}` is given a tensor: expected an image of Pillow")
        self.is_tensor = True

    def _ToImage(self, each, _):
        self.is_tensor = True

    def scale(self, each, dtype, is_scaled, scaling):
        if self.floats is not None:
            if str(dtype) == "torch.float32":
                return
            self.fail(each, "dtype", dtype, "the image has floats already: expected torch.float32")
        if not self.is_tensor:
            raise ConversionError(
                f"transform `{type(each).__name__}` is given an image of Pillow: expected a tensor; put `ToImage` or `PILToTensor` first"
            )
        if str(dtype) == "torch.uint8":
            return
        if str(dtype) != "torch.float32":
            self.fail(
                each, "dtype", dtype, "expected torch.float32 or torch.uint8; `--dtype float16` rounds afterwards"
            )
        self.floats = (scaling if is_scaled else "none", None, None)

    def _ConvertImageDtype(self, each, is_v2):
        self.scale(each, each.dtype, True, "multiply" if is_v2 else "divide")

    def _ToDtype(self, each, _):
        self.scale(each, each.dtype, bool(each.scale), "multiply")

    def _Normalize(self, each, _):
        if self.floats is None:
            raise ConversionError(
                "transform `Normalize` is given bytes: expected floats; put `ToTensor` or `ToDtype(torch.float32, scale=True)` first"
            )
        if self.floats[1] is not None:
            raise ConversionError("transform `Normalize` comes twice: expected it once")
        fields = Fields({name: _plain(getattr(each, name)) for name in ("mean", "std")}, type(each).__name__)
        self.floats = (self.floats[0], fields.statistics("mean"), fields.statistics("std", is_divisor=True))

    # Of weights

    def preset(self, each, crop):
        self.made.append(steps.Resize(sizes.Shorter(*each.resize_size), *self.resampling(each, False)))
        if crop:
            self.made.append(steps.CenterCrop(*self.sides(each, each.crop_size)))
        self.is_tensor, self.floats = True, ("divide", None, None)
        self._Normalize(each, False)

    def _ImageClassification(self, each, _):
        self.preset(each, True)

    def _SemanticSegmentation(self, each, _):
        self.preset(each, False)

    def _ObjectDetection(self, each, _):
        self.is_tensor, self.floats = True, ("divide", None, None)

    def finish(self):
        if not self.is_tensor:
            raise ConversionError(
                "the transforms end with an image of Pillow: expected a tensor; add `ToTensor` or `PILToTensor`"
            )
        if self.floats is None:
            return self.made
        scaling, mean, std = self.floats
        erased = self.erasing(mean, std)
        mixed = [steps.Mix(tuple(self.mixes), self.classes)] if self.mixes else []
        scaling = "none" if scaling == "scaled" else scaling
        return [*self.made, steps.Floats(scaling, mean=mean, std=std), *erased, *mixed]


def _plain(value):
    """A list of a tensor; of one number for all channels that number."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value


def reference(transform, takes="pil"):
    """torchvision's own answer to a file."""
    import torch
    from PIL import Image
    from torchvision.transforms.functional import pil_to_tensor

    def answer(path):
        with Image.open(path) as file:
            image = file.convert("RGB")
        with torch.inference_mode():
            return [transform(image if takes == "pil" else pil_to_tensor(image)).numpy()]

    return answer
