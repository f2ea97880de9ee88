"""Fields of the image processors of transformers that cut images into tiles by rules of their own: Idefics 3 and
SmolVLM, Llama 4, MiniCPM-V. Each function takes the fields and their reader, and returns what `from_hf_multimodal`
makes a stage of: steps before and behind the floats, further outputs, and notes."""

from dataclasses import replace

from . import multimodal
from .fields import LARGEST_SIDE, is_side
from .hf_classes import CUBIC, LINEAR, ON, STANDARD

_IMAGENET_STANDARD = STANDARD
_MOST_TILES = 512
_LARGEST_PATCH = 256
_SPLIT = {
    **ON,
    **_IMAGENET_STANDARD,
    "resample": 1,
    "size": {"longest_edge": 4 * 364},
    "max_image_size": {"longest_edge": 364},
    "do_convert_rgb": True,
    "do_image_splitting": True,
    "do_pad": True,
    "return_row_col_info": False,
}

#: (how it works, what it has by default)
CLASSES = {
    "Idefics3ImageProcessor": ("idefics3", _SPLIT),
    "SmolVLMImageProcessor": ("idefics3", _SPLIT),
    "Llama4ImageProcessor": (
        "llama4",
        {
            **ON,
            **STANDARD,
            **LINEAR,
            "size": {"height": 336, "width": 336},
            "do_convert_rgb": True,
            "max_patches": 16,
            "resize_to_max_canvas": False,
        },
    ),
    "MiniCPMV4_6ImageProcessor": (
        "minicpm-v",
        {
            **ON,
            **_IMAGENET_STANDARD,
            **CUBIC,
            "do_convert_rgb": True,
            "max_slice_nums": 9,
            "scale_resolution": 448,
            "patch_size": 14,
            "slice_mode": True,
            "downsample_mode": "16x",
        },
    ),
}
#: Kinds that transformers has by torchvision alone.
OF_TORCH_ALONE = ("llama4",)
_MERGED = {"4x": 2, "16x": 4}


def _longest_edge(fields, name):
    value = fields.take(name)
    if not isinstance(value, dict) or set(value) != {"longest_edge"} or not is_side(value["longest_edge"]):
        fields.fail(name, f"expected `longest_edge` alone, from 1 to {LARGEST_SIDE}")
    return value["longest_edge"]


def _at_most(fields, name, most):
    value = fields.take(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        fields.fail(name, f"expected a whole number from 1 to {most}")
    return value


def idefics3(fields, reader, arithmetic):
    """Idefics 3 and SmolVLM."""
    longest, side = _longest_edge(fields, "size"), _longest_edge(fields, "max_image_size")
    is_cut = fields.flag("do_image_splitting", True)
    has_mask, has_grid = fields.flag("do_pad", True), fields.flag("return_row_col_info", False)
    tiles = multimodal.LongestSideTiles(side, longest, is_cut, has_mask, has_grid, **arithmetic)
    extras = (*(["pixel_attention_mask"] if has_mask else []), *(["rows", "cols"] if has_grid else []))
    notes = ("Images of a request are not padded to the largest number of tiles.",)
    return [tiles], [], extras, notes


def llama4(fields, reader, arithmetic):
    """Llama 4."""
    size = fields.take("size")
    sides = set(size.values()) if isinstance(size, dict) and set(size) == {"height", "width"} else set()
    if len(sides) != 1 or not all(map(is_side, sides)):
        fields.fail("size", f"expected `height` and `width` of a square, from 1 to {LARGEST_SIDE}")
    most = _at_most(fields, "max_patches", _MOST_TILES)
    tiles = multimodal.LeastScaledTiles(sides.pop(), most, fields.flag("resize_to_max_canvas", False), **arithmetic)
    notes = ("transformers gives bfloat16; the stage gives the same numbers as float32.",)
    return [tiles], [], ("aspect_ratios",), notes


def floats_of_llama4(fields, floats):
    """Its floats, each step rounded to bfloat16."""
    if floats.mean is None:
        return replace(floats, scaling="multiply")
    if floats.scaling == "none":
        fields.fail("do_rescale", "transformers normalizes floats alone: expected true, or `do_normalize` false")
    for name, values in (("image_mean", floats.mean), ("image_std", floats.std)):
        if len(set(values)) != 1:
            fields.fail(name, "expected the same number for all channels")
    return replace(floats, scaling="bfloat16")


def minicpm_v(fields, reader, arithmetic):
    """MiniCPM-V 4.6."""
    patch, side = _at_most(fields, "patch_size", _LARGEST_PATCH), fields.side("scale_resolution")
    merged = _MERGED[fields.choice("downsample_mode", {name: name for name in _MERGED})]
    most = _at_most(fields, "max_slice_nums", _MOST_TILES)
    fields.ignore("use_image_id")
    most = most if fields.flag("slice_mode", True) else 1
    strip = multimodal.SliceStrip(side, patch, patch * merged, most, **arithmetic)
    notes = ("Patches of the images of a request do not follow one another in one strip.",)
    return [strip], [], ("target_sizes", "grids", "num_patches_per_image"), notes


READERS = {"idefics3": idefics3, "llama4": llama4, "minicpm-v": minicpm_v}
