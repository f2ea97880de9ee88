"""What all conversions share: options, the program, the function with `pipeline_def`."""

import numpy as np

from . import source
from .description import ConversionError, Decode

_CHOICES = {
    "pillow": ("pillow", "pillow13"),
    "dtype": ("float32", "float16"),
    "layout": ("CHW", "HWC"),
    "device": ("cpu", "mixed"),
    "arithmetic": ("exact", "dali"),
}
_LARGEST_BATCH = 4096
# Files that Pillow reads otherwise: by whether a stage turns files.
_NOTES = {
    True: (
        "Files are turned as their first EXIF block or their TIFF tag says.",
        "Pillow also reads XMP, a PNG's text `Raw profile type exif` and a second EXIF block; the stage does not.",
        "TIFFs of LAB become other colours than with Pillow.",
    ),
    False: (
        "TIFFs with an orientation tag stay as they are; Pillow turns them when it loads them.",
        "TIFFs of LAB become other colours than with Pillow.",
    ),
}


def installed_pillow():
    """The rules of the Pillow that is installed, those before version 13 where none is."""
    try:
        from PIL import __version__
    except ImportError:
        return "pillow"
    return "pillow13" if int(__version__.split(".")[0]) >= 13 else "pillow"


def make(
    stage, reference, *, pillow=None, dtype="float32", layout="CHW", device="cpu", arithmetic="exact", batch_size=64
):
    """The function with `pipeline_def`. `stage` makes a stage by the rules of a Pillow; `reference` makes the library's
    own function of a file."""
    given = {
        "pillow": pillow or installed_pillow(),
        "dtype": dtype,
        "layout": layout,
        "device": device,
        "arithmetic": arithmetic,
    }
    for name, value in given.items():
        if value not in _CHOICES[name]:
            raise ConversionError(f"option `{name}` is {value!r}: expected {' or '.join(_CHOICES[name])}")
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or not 1 <= batch_size <= _LARGEST_BATCH:
        raise ConversionError(
            f"option `batch_size` is {batch_size!r}: expected a whole number from 1 to {_LARGEST_BATCH}"
        )
    described = stage(given["pillow"]).changed(dtype=dtype, layout=layout, device=device)
    first = described.steps[0]
    if isinstance(first, Decode) and first.arithmetic == "pillow":
        described = described.changed(notes=(*described.notes, *_NOTES[first.is_turned]))
    if device != "cpu" and described.takes_frames:
        raise ConversionError(
            f"option `device` is {device!r}: this stage takes frames, which are where the client puts them; expected cpu"
        )
    if device != "cpu" and described.resizes_floats and arithmetic != "dali":
        raise ConversionError(
            f"option `device` is {device!r}: this stage resizes floats, which is exact on a CPU alone; expected cpu"
        )
    if device != "cpu" and described.augments:
        raise ConversionError(
            f"option `device` is {device!r}: `gesso.exact_augment`, which this definition needs, runs on a CPU alone; expected cpu"
        )
    if dtype != "float32" and not described.has_floats:
        raise ConversionError(
            f"option `dtype` is {dtype!r}: this stage makes bytes; expected float32, or a definition that scales or normalizes"
        )
    if layout != "CHW" and not described.makes_images:
        raise ConversionError(f"option `layout` is {layout!r}: this stage makes rows of patches; expected CHW")
    if arithmetic == "dali" and any(hasattr(step, "write") for step in described.steps):
        raise ConversionError(
            f"option `arithmetic` is {arithmetic!r}: DALI has no operators for this stage; expected exact"
        )
    if device != "cpu" and described.takes_sounds:
        raise ConversionError(f"option `device` is {device!r}: sounds are decoded on a CPU; expected cpu")
    made = source.definition(source.write(described, arithmetic == "dali", batch_size))
    made.stage, made.arithmetic = described, arithmetic
    made.reference = lambda: _as_stage(reference(), described)
    return made


def _as_stage(function, stage):
    """The library's answers in the stage's type and order of dimensions."""

    def answer(given):
        pixels, *extras = (np.asarray(output) for output in function(given))
        if stage.layout == "HWC":
            pixels = np.moveaxis(pixels, -3, -1)
        return [pixels.astype(stage.type, copy=False), *extras]

    return answer
