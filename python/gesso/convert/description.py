"""What a preprocessing does, step by step. It knows no library that defines one, and no operator."""

from dataclasses import dataclass, replace
from typing import Any

IMAGE, FRAMES, SOUND, VIDEO = "IMAGE", "FRAMES", "SOUND", "VIDEO"
CHANNELS = 3


class ConversionError(ValueError):
    """A definition that has no equal stage. The message names the field, its value, and what would be needed."""


@dataclass(frozen=True)
class Decode:
    """Makes RGB of a file."""

    #: Whether it is turned as its EXIF says.
    is_turned: bool
    #: Whose RGB of inks and of 16 bits, as `fn.decoders.image` names it: Pillow's `convert("RGB")`, or DALI's.
    arithmetic: str = "pillow"


@dataclass(frozen=True)
class ReadFolder:
    """Reads the files of a folder with a folder for each class, in random order, and decodes them as `Decode` does: for
    training."""

    path: str


@dataclass(frozen=True)
class TakeFrames:
    """Takes decoded frames of a video in place of a file."""


@dataclass(frozen=True)
class TakePixels:
    """Takes a decoded image, RGB, in place of a file."""


@dataclass(frozen=True)
class Scale:
    """Makes floats of bytes before they are resized."""

    #: "divide" (x / 255) or "multiply" (x * factor).
    scaling: str
    factor: float = 1 / 255


@dataclass(frozen=True)
class Resize:
    """Resizes bytes to bytes, and floats behind `Scale` to floats."""

    #: A rule of `sizes`.
    size: Any
    #: As `fn.resize` names it.
    filter: str
    #: Whose pixels, as `fn.resize` names it.
    arithmetic: str


@dataclass(frozen=True)
class CenterCrop:
    """Cuts a window from the middle, or adds a border where the image is smaller."""

    height: int
    width: int
    #: How half a pixel is rounded: "even" (torchvision), "truncate" (transformers with torch, OpenCV) or "floor"
    #: (transformers with numpy).
    rounding: str = "even"
    fill: tuple = (0,)


@dataclass(frozen=True)
class Border:
    """Adds rows and columns around the image."""

    left: int
    top: int
    right: int
    bottom: int
    fill: tuple = (0,)
    #: As `out_of_bounds_policy` of `fn.slice` names it.
    policy: str = "pad"


@dataclass(frozen=True)
class Grayscale:
    """Makes gray as Pillow's `convert("L")` does, in all three channels; of some images where the probability is not
    1."""

    probability: float = 1.0


@dataclass(frozen=True)
class RandomResizedCrop:
    """Cuts a random window and resizes it."""

    height: int
    width: int
    #: Of the image's area, and of width by height.
    area: tuple
    ratio: tuple
    filter: str
    arithmetic: str


@dataclass(frozen=True)
class RandomCrop:
    """Cuts a window of that size from a random place; every place is as likely as the others."""

    height: int
    width: int


@dataclass(frozen=True)
class RandomFlip:
    """Mirrors some images: left and right, or top and bottom."""

    probability: float
    is_vertical: bool


@dataclass(frozen=True)
class Augment:
    """Changes images at random, as a function of `gesso.exact_augment` does."""

    function: str
    #: What it is given beside the images, and by name.
    given: tuple = ()
    options: tuple = ()


@dataclass(frozen=True)
class Sometimes:
    """Does steps for some images."""

    probability: float
    steps: tuple


@dataclass(frozen=True)
class OneOf:
    """Does the steps of one branch for each image."""

    probabilities: tuple
    branches: tuple


@dataclass(frozen=True)
class Erase:
    """Fills a random rectangle of some images."""

    probability: float
    #: Of the image's area, and of height by width.
    area: tuple
    ratio: tuple
    #: One number, one for each channel, or "random".
    value: object


@dataclass(frozen=True)
class Mix:
    """Mixes each image of a batch, and its label, with another one: by one of several ways for each batch."""

    #: As `gesso.augment` names them: functions, and the parameter of the beta distribution of each.
    ways: tuple
    classes: int


@dataclass(frozen=True)
class PadToMultiple:
    """Adds a border on all sides, so that each side is the target or, below it, by whole multiples shorter."""

    height: int
    width: int
    multiple: int
    fill: tuple


@dataclass(frozen=True)
class Floats:
    """Makes floats of bytes: scales them, then subtracts `mean` and divides by `std`, each step rounded to float32."""

    #: "divide" (x / 255), "multiply" (x * factor), "multiply-float64" (rounded afterwards), "fused" (mean and std are
    #: divided by the factor), "bfloat16" (each step rounded to it, one mean and std for all channels) or "none", also
    #: behind `Scale`.
    scaling: str
    factor: float = 1 / 255
    mean: tuple = None
    std: tuple = None


@dataclass(frozen=True)
class PadTo:
    """Adds zeros below and to the right, up to a size that no image exceeds."""

    height: int
    width: int


@dataclass(frozen=True)
class PadToLargest:
    """Adds zeros below and to the right, up to the largest height and width of the batch."""


# Outputs beside the pixels: their type, and their dimensions but for those of `pixel_mask`, which are the image's. A
# step may have others in `extras`.
EXTRAS = {
    "pixel_mask": ("int64", None),
    "original_sizes": ("int64", (2,)),
    "reshaped_input_sizes": ("int64", (2,)),
    "pixel_attention_mask": ("int32", (-1,)),
    "spatial_shapes": ("int64", (2,)),
    "image_grid_thw": ("int64", (3,)),
    "image_sizes": ("int64", (2,)),
    "num_patches": ("int64", ()),
    "rows": ("int64", (1,)),
    "cols": ("int64", (1,)),
    "aspect_ratios": ("int64", (2,)),
    "target_sizes": ("int32", (-1, 2)),
    "grids": ("int64", (2,)),
    "num_patches_per_image": ("int64", ()),
    "attention_mask": ("int32", (-1,)),
    "video_grid_thw": ("int64", (3,)),
    "timestamps": ("float64", (-1,)),
}


@dataclass(frozen=True)
class ToPatches:
    """Cuts the image into squares, one a row of the output, and adds rows of zeros up to `most`."""

    side: int
    most: int

    def dims(self, layout):
        """What it makes of an image."""
        return (self.most, self.side**2 * CHANNELS)


def static_size(steps, size=None):
    """Height and width behind steps on images of `size`; None where they vary."""
    for step in steps:
        if isinstance(step, Resize):
            size = step.size.static
        elif isinstance(step, (CenterCrop, PadTo, RandomCrop, RandomResizedCrop)):
            size = step.height, step.width
        elif isinstance(step, Border):
            size = size and (size[0] + step.top + step.bottom, size[1] + step.left + step.right)
        elif isinstance(step, (PadToMultiple, PadToLargest)):
            size = None
        elif isinstance(step, Sometimes):
            size = size if static_size(step.steps, size) == size else None
        elif isinstance(step, OneOf):
            found = {static_size(branch, size) for branch in step.branches}
            size = found.pop() if len(found) == 1 else None
    return size


@dataclass(frozen=True)
class Stage:
    """A whole preprocessing."""

    #: What it was made of, in a few words.
    title: str
    #: How the library loads a file, as code.
    loads: str
    steps: tuple
    #: The name of the output.
    output: str
    #: Further outputs, see `EXTRAS`.
    extras: tuple = ()
    dtype: str = "float32"
    layout: str = "CHW"
    #: Where files are decoded, and what follows runs: "cpu", or "mixed", a GPU where there is one.
    device: str = "cpu"
    #: What a reader should know: of files that differ, and of defaults that were taken.
    notes: tuple = ()

    @property
    def input(self):
        """The name of the input."""
        return FRAMES if self.takes_frames else getattr(self.steps[0], "input", IMAGE)

    @property
    def takes_frames(self):
        """Whether the input is decoded frames."""
        return isinstance(self.steps[0], TakeFrames)

    @property
    def takes_sounds(self):
        """Whether the input is files of sounds."""
        return self.input == SOUND

    @property
    def takes_videos(self):
        """Whether the input is files of videos."""
        return self.input == VIDEO

    @property
    def has_frames(self):
        """Whether pixels are sequences of images: of a clip, or of tiles of one image."""
        return self.takes_frames or any(getattr(step, "makes_frames", False) for step in self.steps)

    @property
    def is_training(self):
        """Whether it reads a data set and is random."""
        return isinstance(self.steps[0], ReadFolder)

    @property
    def augments(self):
        """Whether it has steps of `gesso.exact_augment`."""
        todo = list(self.steps)
        while todo:
            step = todo.pop()
            if isinstance(step, Augment):
                return True
            todo += (
                step.steps if isinstance(step, Sometimes) else sum(step.branches, ()) if isinstance(step, OneOf) else ()
            )
        return False

    @property
    def has_floats(self):
        """Whether the output is floats."""
        return any(isinstance(step, Floats) for step in self.steps)

    @property
    def resizes_floats(self):
        """Whether values are scaled before the image is resized."""
        return any(isinstance(step, Scale) for step in self.steps)

    @property
    def type(self):
        """The output's type, as numpy names it."""
        return self.dtype if self.has_floats else getattr(self.steps[-1], "type", "uint8")

    @property
    def makes_images(self):
        """Whether the output is images, no rows of patches and no features."""
        return not hasattr(self.steps[-1], "dims")

    @property
    def shape(self):
        """The output's dimensions, -1 where they vary."""
        for step in self.steps:
            if hasattr(step, "dims"):
                return step.dims(self.layout)
        height, width = static_size(self.steps) or (-1, -1)
        dims = (CHANNELS, height, width) if self.layout == "CHW" else (height, width, CHANNELS)
        return (-1, *dims) if self.takes_frames else dims

    @property
    def outputs(self):
        """The outputs by their names: type and dimensions."""
        mask = self.shape[-2:] if self.layout == "CHW" else self.shape[-3:-1]
        known = EXTRAS | {name: each for step in self.steps for name, each in getattr(step, "extras", {}).items()}
        return {self.output: (self.type, self.shape)} | {
            name: (known[name][0], mask if known[name][1] is None else known[name][1]) for name in self.extras
        }

    def changed(self, **fields):
        """The same with other values."""
        return replace(self, **fields)
