"""How many tokens stand for an image in a prompt, by the classes of transformers that write prompts. Each rule is a
function of the image's extents that makes operators: heights and widths are all that it takes."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from .. import fn, math, types
from ..convert import description as steps
from ..convert import from_hf, from_hf_multimodal, multimodal
from ..convert.description import ConversionError
from ..convert.fields import Fields, shown

_LARGEST_PATCH, _MOST_TOKENS = 256, 1 << 16
# transformers rounds to seven digits before it cuts, so that what is a whole number but for a rounding error counts.
_HALF_OF_THE_SEVENTH_DIGIT = 5e-8
# Tokens around those of InternVL's tiles: where the image begins and ends.
_MARKS = 2


class Rule(NamedTuple):
    """A processor's class, and what makes its number of tokens of an edge with height, width and channels."""

    processor: str
    tokens: Callable


def of(config):
    """The rule of a configuration: a folder or a file, the fields of one, or a processor of transformers."""
    around, values = _read(config)
    named = around.get("processor_class") or values.get("processor_class")
    name = named or _OF_IMAGE_PROCESSORS.get(from_hf_multimodal.class_of(values))
    if name not in _RULES:
        raise ConversionError(f"field `processor_class` is {shown(name)}: expected one of {', '.join(sorted(_RULES))}")
    return Rule(name, _RULES[name](Fields(around, name, _DEFAULTS.get(name)), values))


def _read(config):
    """The fields of a processor of text and images, and those of its image processor."""
    if isinstance(config, dict):
        return (config, config["image_processor"]) if config.get("image_processor") else ({}, config)
    values, _, _ = from_hf.given(config)
    return from_hf.around(config, _FIELDS), values


def _step(values, kind):
    """The step of the image processor's stage that decides the sizes."""
    found = [step for step in from_hf_multimodal.stage(values).steps if isinstance(step, kind)]
    if not found:
        raise ConversionError(
            f"field `image_processor_type` is {shown(values.get('image_processor_type'))}: it does not fit the processor"
        )
    return found[0]


def _whole(fields, name, most):
    value = fields.take(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        fields.fail(name, f"expected a whole number from 0 to {most}")
    return value


def _patch(fields):
    value = _whole(fields, "patch_size", _LARGEST_PATCH)
    return value if value else fields.fail("patch_size", f"expected 1 to {_LARGEST_PATCH}")


# Qwen2-VL, Qwen2.5-VL, Qwen3-VL


def _qwen2_vl(_, values):
    return partial(_merged_patches, _step(values, multimodal.SmartResize), _step(values, multimodal.MergedPatches))


def _merged_patches(resize, patches, shape):
    bounds = {"min_pixels": resize.min_pixels, "max_pixels": resize.max_pixels}
    size = fn.gesso.smart_resize(shape, factor=resize.factor, **bounds)
    grid = fn.gesso.patch_grid(size, patch_size=patches.side, temporal_patch_size=patches.depth)
    return grid[0] * grid[1] * grid[2] // patches.merge**2


# LLaVA-NeXT


def _llava_next(fields, values):
    tiles, patch = _step(values, multimodal.CanvasTiles), _patch(fields)
    beside = _whole(fields, "num_additional_image_tokens", _MOST_TOKENS)
    strategy = fields.choice("vision_feature_select_strategy", {"default": 1, "full": 0})
    return partial(_unpadded_patches, tiles, tiles.side // patch, beside - strategy)


def _unpadded_patches(tiles, per_side, beside, shape):
    """The whole image, and of the canvas the rows and columns of patches that the image covers, each row with a mark at
    its end."""
    sides = [side for canvas in tiles.canvases for side in canvas]
    _, _, grid = fn.gesso.tile_grid(shape, rule="llava-next", tile_size=tiles.side, canvases=sides)
    height, width = _sides(shape)
    rows, columns = (fn.cast(grid[axis], dtype=types.FLOAT64) * per_side for axis in range(2))
    is_wide = width / height > columns / rows
    covered_rows = math.floor(height * (columns / width) + _HALF_OF_THE_SEVENTH_DIGIT)
    covered_columns = math.floor(width * (rows / height) + _HALF_OF_THE_SEVENTH_DIGIT)
    rows = rows - is_wide * math.floor((rows - covered_rows) / 2) * 2
    columns = columns - (is_wide == 0) * math.floor((columns - covered_columns) / 2) * 2
    return rows * columns + rows + (per_side**2 + beside)


# InternVL


def _internvl(fields, values):
    # The processor asks for tiles, whatever the image processor's configuration says.
    tiles = _step(values | {"crop_to_patches": True}, multimodal.RatioTiles)
    return partial(_tokens_of_tiles, tiles, _whole(fields, "image_seq_length", _MOST_TOKENS))


def _tokens_of_tiles(tiles, each, shape):
    bounds = {"min_tiles": tiles.min_tiles, "max_tiles": tiles.max_tiles}
    _, _, grid = fn.gesso.tile_grid(shape, rule="internvl", tile_size=tiles.side, **bounds)
    count = grid[0] * grid[1]
    return (count + (count > 1)) * each + _MARKS


# Pixtral, Mistral 3


def _pixtral(fields, values):
    side = _patch(fields) * _whole(fields, "spatial_merge_size", _LARGEST_PATCH)
    resize = _step(values | {"patch_size": side}, steps.Resize)
    return partial(_rows_with_marks, resize.size, side)


def _rows_with_marks(rule, side, shape):
    # In patches of a pixel: a side without any fails, as the resize to it does.
    grid = fn.gesso.patch_grid(fn.stack(*_computed(rule, *_sides(shape))), patch_size=1)
    rows, columns = (grid[axis] // side for axis in (1, 2))
    return rows * (columns + 1)


# Gemma 3


def _gemma3(fields, values):
    _step(values, steps.Resize)
    return partial(_always, _whole(fields, "image_seq_length", _MOST_TOKENS))


def _always(count, shape):
    return shape[0] * 0 + count


def _computed(rule, height, width):
    """Height and width by a rule of `convert.sizes`, whose lines are those of a pipeline."""
    names = {"height": height, "width": width, "math": math}
    exec("\n".join(rule.lines()), names)
    return names["new_height"], names["new_width"]


def _sides(shape):
    """Height and width as float64."""
    extents = fn.cast(shape, dtype=types.FLOAT64)
    return extents[0], extents[1]


_RULES = {
    "Qwen2VLProcessor": _qwen2_vl,
    "Qwen2_5_VLProcessor": _qwen2_vl,
    "Qwen3VLProcessor": _qwen2_vl,
    "LlavaNextProcessor": _llava_next,
    "InternVLProcessor": _internvl,
    "PixtralProcessor": _pixtral,
    "Gemma3Processor": _gemma3,
}
# Which processor it is where a configuration does not say; InternVL shares its image processor with another model.
_OF_IMAGE_PROCESSORS = {
    "Qwen2VLImageProcessor": "Qwen2VLProcessor",
    "LlavaNextImageProcessor": "LlavaNextProcessor",
    "PixtralImageProcessor": "PixtralProcessor",
    "Gemma3ImageProcessor": "Gemma3Processor",
}
_DEFAULTS = {
    "LlavaNextProcessor": {"num_additional_image_tokens": 0},
    "InternVLProcessor": {"image_seq_length": 256},
    "PixtralProcessor": {"patch_size": 16, "spatial_merge_size": 1},
    "Gemma3Processor": {"image_seq_length": 256},
}
_FIELDS = (
    *("patch_size", "spatial_merge_size", "image_seq_length"),
    *("num_additional_image_tokens", "vision_feature_select_strategy"),
)
