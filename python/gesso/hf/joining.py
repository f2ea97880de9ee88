"""Outputs of single images become the tensors of a request, as transformers joins them."""

from functools import partial

import numpy as np

from .. import _extras
from .._tensors.device_array import on_host
from ..convert import multimodal

#: Which classes pad what they make of images to the largest of a request, if `do_pad` says so.
PADDING = ("LlavaNextImageProcessor", "PixtralImageProcessor", "Idefics3ImageProcessor", "SmolVLMImageProcessor")
#: Outputs of a class that a stage need not have: one number, the same for each image.
CONSTANTS = {"Gemma3ImageProcessor": {"num_crops": 0}, "GotOcr2ImageProcessor": {"num_patches": 1}}


class _Numpy:
    """Arrays of numpy, in host memory."""

    @staticmethod
    def of(array):
        return on_host(array)

    stack, join = staticmethod(np.stack), staticmethod(np.concatenate)

    @staticmethod
    def zeros(shape, like):
        return np.zeros(shape, like.dtype)

    @staticmethod
    def bfloat16(_):
        raise ValueError("argument `return_tensors` is 'np', and numpy has no bfloat16: expected 'pt'")


class _Torch:
    """Tensors of torch, where the arrays are."""

    def __init__(self):
        self._torch = _extras.needed("torch", "`return_tensors='pt'`", "torch")
        self.stack, self.join = self._torch.stack, self._torch.cat

    def of(self, array):
        return self._torch.from_dlpack(array)

    def zeros(self, shape, like):
        return self._torch.zeros(shape, dtype=like.dtype, device=like.device)

    def bfloat16(self, tensor):
        return tensor.to(self._torch.bfloat16)


def kind_of(return_tensors):
    """What makes tensors, by the argument `return_tensors`."""
    name = getattr(return_tensors, "value", return_tensors)
    if name not in ("np", "pt"):
        raise ValueError(f"argument `return_tensors` is {name!r}: expected 'pt' or 'np'")
    return _Torch() if name == "pt" else _Numpy()


# Each of these makes of an output of all images what transformers does. They are given `kind`, the output's name, an
# array for each image, and how many images each list of the request has.


def _stacked(kind, name, arrays, _, pads):
    """One tensor with a dimension of images."""
    whole = _side_by_side(arrays)
    return _stack(kind, name, [kind.of(array) for array in arrays], pads) if whole is None else kind.of(whole)


def _following(kind, _name, arrays, _):
    """One tensor in which the rows of all images follow one another."""
    whole = _end_to_end(arrays)
    return _join(kind, [kind.of(array) for array in arrays]) if whole is None else kind.of(whole)


def _strip(kind, _name, arrays, _):
    """One strip of all images, as a tensor of one sample."""
    return _join(kind, [kind.of(array) for array in arrays], -1)[None]


def _of_lists(kind, name, arrays, counts, pads):
    """One tensor with a dimension of lists; the rows of a list's images follow one another."""
    each = [kind.of(array) for array in arrays]
    parts = [_join(kind, part) if part else each[0][:0] for part in _parts(each, counts)]
    return _stack(kind, name, parts, pads)


def _numbers(_kind, _name, arrays, _):
    """No tensor: a list with numbers for each image."""
    return [on_host(array).tolist() for array in arrays]


def _numbers_of_lists(_kind, _name, arrays, counts):
    """No tensor: a list for each list, with one number for each image."""
    return _parts([int(on_host(array)[0]) for array in arrays], counts)


# How outputs are joined that are not stacked, by the step that makes them.
_WAYS: dict = {
    multimodal.MergedPatches: {"pixel_values": _following},
    multimodal.RatioTiles: {"pixel_values": _following},
    multimodal.LeastScaledTiles: {"pixel_values": _following},
    multimodal.LongestSideTiles: {
        **dict.fromkeys(("pixel_values", "pixel_attention_mask"), _of_lists),
        **dict.fromkeys(("rows", "cols"), _numbers_of_lists),
    },
    multimodal.SliceStrip: {
        "pixel_values": _strip,
        "target_sizes": _following,
        **dict.fromkeys(("grids", "num_patches_per_image"), _numbers),
    },
}


def ways(stage, pads):
    """What joins each output of a stage; `pads`: what is smaller than the largest of a request is padded with zeros."""
    known = {name: way for step in stage.steps for name, way in _WAYS.get(type(step), {}).items()}
    found = {name: known.get(name, _stacked) for name in (stage.output, *stage.extras)}
    return {name: partial(way, pads=pads) if way in (_stacked, _of_lists) else way for name, way in found.items()}


def _parts(values, counts):
    """Lists of so many values each."""
    ends = np.cumsum(counts)
    return [values[end - count : end] for end, count in zip(ends, counts, strict=True)]


def _join(kind, each, axis=0):
    return each[0] if len(each) == 1 else kind.join(each, axis)


def _stack(kind, name, each, pads):
    shapes = {tuple(one.shape) for one in each}
    if len(shapes) > 1:
        if not pads:
            raise ValueError(
                f"images become `{name}` of different shapes, {' and '.join(map(str, sorted(shapes)[:2]))}: expected one shape, or one image in a call"
            )
        largest = tuple(map(max, zip(*shapes, strict=True)))
        each = [one if tuple(one.shape) == largest else _padded(kind, one, largest) for one in each]
    return each[0][None] if len(each) == 1 else kind.stack(each)


def _padded(kind, value, shape):
    made = kind.zeros(shape, value)
    made[tuple(slice(extent) for extent in value.shape)] = value
    return made


def _side_by_side(arrays):
    """The array that these are the parts of, in their order, if it is dense."""
    base = getattr(arrays[0], "base", None)
    if not isinstance(base, np.ndarray) or base.shape != (len(arrays), *arrays[0].shape):
        return None
    return _whole(base, arrays)


def _end_to_end(arrays):
    """The array whose rows are those of these, in their order, if it is dense."""
    base = getattr(arrays[0], "base", None)
    rows = sum(each.shape[0] for each in arrays)
    if not isinstance(base, np.ndarray) or base.shape != (rows, *arrays[0].shape[1:]):
        return None
    return _whole(base, arrays)


def _whole(base, arrays):
    """`base` if `arrays` are its parts, and each begins where the one before it ends."""
    starts = base.ctypes.data + np.cumsum([0, *(each.nbytes for each in arrays)])
    is_in_order = all(
        each.base is base and each.ctypes.data == start for each, start in zip(arrays, starts, strict=False)
    )
    return base if is_in_order and base.flags.c_contiguous else None
