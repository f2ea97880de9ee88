"""What a pipeline is compared with: the usual preprocessing by Pillow, torchvision or OpenCV, or a function of the
user's."""

import importlib
import importlib.util
import inspect
import os
import sys
from dataclasses import dataclass

import numpy as np

from .words import of_user

_FILTERS = ("nearest", "linear", "cubic", "lanczos", "box", "hamming", "area")


@dataclass(frozen=True)
class Recipe:
    """What is done with an image, in this order: resize, cut a window from the middle, normalize. What is `None` is
    left out."""

    #: The shorter side, or height and width.
    resize: object = None
    filter: str = "linear"
    #: Height and width of the window, or one number for both.
    crop: object = None
    #: Of values from 0 to 1.
    mean: object = None
    std: object = None

    def __post_init__(self):
        if self.filter not in _FILTERS:
            raise ValueError(f"argument `filter` is {self.filter!r}, expected one of {', '.join(_FILTERS)}")
        for name in ("resize", "crop"):
            value = getattr(self, name)
            if value is not None and (len(_numbers(value)) not in (1, 2) or min(_numbers(value)) < 1):
                raise ValueError(f"argument `{name}` is {value!r}, expected one size or two, of 1 or more")
        if (self.mean is None) != (self.std is None):
            raise ValueError("expected both `mean` and `std`, or neither")

    def size(self, height, width, other):
        """Height and width of the resized image; `other` makes a whole number of the longer side."""
        if self.resize is None:
            return height, width
        sides = _numbers(self.resize)
        if len(sides) == 2:
            return sides
        (side,), shorter = sides, min(height, width)
        return (side, other(side * width / shorter)) if height <= width else (other(side * height / shorter), side)

    def window(self, height, width, place):
        """Rows and columns of the window in the middle; `place` makes a whole number of where it begins."""
        if self.crop is None:
            return slice(None), slice(None)
        sizes = (_numbers(self.crop) * 2)[:2]
        if sizes[0] > height or sizes[1] > width:
            raise ValueError(
                f"the window of {sizes[0]} x {sizes[1]} pixels is larger than the image of {height} x {width}"
            )
        starts = [place((extent - size) / 2) for extent, size in zip((height, width), sizes, strict=True)]
        return tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))

    def normalized(self, image):
        """Float32 in planes, as torchvision normalizes; bytes as they are without `mean` and `std`."""
        if self.mean is None:
            return image
        scaled = np.ascontiguousarray(image.transpose(2, 0, 1)).astype(np.float32) / np.float32(255)
        mean, std = (np.asarray(values, np.float32).reshape(-1, 1, 1) for values in (self.mean, self.std))
        return (scaled - mean) / std


def _numbers(value):
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _library(name, package):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RuntimeError(f"the reference needs `{package}`, which cannot be imported: {error}") from error


def _pillow(recipe):
    image_module = _library("PIL.Image", "pillow")
    names = {"linear": "BILINEAR", "cubic": "BICUBIC"}
    method = getattr(image_module.Resampling, names.get(recipe.filter, recipe.filter.upper()), None)
    if method is None:
        raise ValueError(f"Pillow has no filter `{recipe.filter}`")

    def reference(path):
        with image_module.open(path) as file:
            image = file.convert("RGB")
        height, width = recipe.size(image.height, image.width, int)
        if (width, height) != image.size:
            image = image.resize((width, height), method)
        rows, columns = recipe.window(height, width, round)
        return recipe.normalized(np.asarray(image)[rows, columns])

    return reference


def _torchvision(recipe):
    functional = _library("torchvision.transforms.v2.functional", "torchvision")
    modes = _library("torchvision.transforms", "torchvision").InterpolationMode
    torch, image_module = _library("torch", "torch"), _library("PIL.Image", "pillow")
    names = {"linear": "BILINEAR", "cubic": "BICUBIC", "nearest": "NEAREST"}
    if recipe.filter not in names:
        raise ValueError(f"torchvision has no filter `{recipe.filter}` for tensors")
    mode = getattr(modes, names[recipe.filter])

    def reference(path):
        with image_module.open(path) as file:
            tensor = functional.pil_to_tensor(file.convert("RGB"))
        if recipe.resize is not None:
            tensor = functional.resize(tensor, list(_numbers(recipe.resize)), mode, antialias=True)
        rows, columns = recipe.window(*tensor.shape[-2:], round)
        tensor = tensor[:, rows, columns]
        if recipe.mean is None:
            return tensor.permute(1, 2, 0).numpy()
        scaled = tensor.to(torch.float32) / 255
        return functional.normalize(scaled, list(recipe.mean), list(recipe.std)).numpy()

    return reference


def _opencv(recipe):
    cv2 = _library("cv2", "opencv-python-headless")
    names = {"lanczos": "LANCZOS4"}
    method = getattr(cv2, "INTER_" + names.get(recipe.filter, recipe.filter.upper()), None)
    if method is None:
        raise ValueError(f"OpenCV has no filter `{recipe.filter}`")

    def reference(path):
        image = cv2.imread(str(path), cv2.IMREAD_COLOR)
        if image is None:
            raise ValueError("OpenCV cannot read it")
        image = image[..., ::-1]
        height, width = recipe.size(*image.shape[:2], round)
        if (height, width) != image.shape[:2]:
            image = cv2.resize(image, (width, height), interpolation=method)
        rows, columns = recipe.window(height, width, int)
        return recipe.normalized(np.ascontiguousarray(image[rows, columns]))

    return reference


_LIBRARIES = {"pillow": _pillow, "torchvision": _torchvision, "opencv": _opencv}


def named(reference, recipe):
    """A function of a path, and its name: of a library with what `recipe` says, of `module:function`, or a function
    itself."""
    given = [name for name, value in recipe.items() if value is not None]
    if isinstance(reference, str) and reference in _LIBRARIES:
        return _LIBRARIES[reference](Recipe(**{name: recipe[name] for name in given})), reference
    if given:
        raise ValueError(
            f"argument `{given[0]}` is for the references {', '.join(_LIBRARIES)}: a function says itself what it does"
        )
    if callable(reference):
        return _told(reference), getattr(reference, "__name__", str(reference))
    module, colon, function = str(reference).partition(":")
    if not (module and colon and function):
        raise ValueError(f"the reference is {reference!r}, expected {', '.join(_LIBRARIES)} or `module:function`")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError) as error:
        raise RuntimeError(f"cannot import `{module}` of the reference `{reference}`: {error}") from error
    if spec is None:
        raise RuntimeError(f"cannot import `{module}` of the reference `{reference}`: there is no such module")
    with of_user(spec.origin or module):
        found = importlib.import_module(module)
    if not callable(getattr(found, function, None)):
        raise RuntimeError(f"module `{module}` has no function `{function}`")
    return _told(getattr(found, function)), reference


def _told(function):
    """The function of a user, whose errors name its file and line."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return function

    def reference(path):
        with of_user(code.co_filename):
            return function(path)

    return reference
