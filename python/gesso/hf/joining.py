"""Outputs of single images become the tensors of a request, as transformers joins them."""

import numpy as np

from .. import _extras
from .._tensors.device_array import on_host

#: Of which classes the rows of all images follow one another, in place of a dimension of images.
FOLLOWING = ("Qwen2VLImageProcessor", "GotOcr2ImageProcessor")
#: Which classes pad what they make of images to the largest of a request, if `do_pad` says so.
PADDING = ("LlavaNextImageProcessor", "PixtralImageProcessor")
#: Those in front of vision-language models of which it is known how answers of several images are joined.
MULTIMODAL = (*FOLLOWING, *PADDING, "Gemma3ImageProcessor")
#: Outputs that a class has and a stage does not: zeros, one for each image.
ZEROS = {"Gemma3ImageProcessor": ("num_crops",)}


class _Numpy:
    """Arrays of numpy, in host memory."""

    @staticmethod
    def of(array):
        return on_host(array)

    stack, join = staticmethod(np.stack), staticmethod(np.concatenate)

    @staticmethod
    def zeros(shape, like):
        return np.zeros(shape, like.dtype)


class _Torch:
    """Tensors of torch, where the arrays are."""

    def __init__(self):
        self._torch = _extras.needed("torch", "`return_tensors='pt'`", "torch")
        self.stack, self.join = self._torch.stack, self._torch.cat

    def of(self, array):
        return self._torch.from_dlpack(array)

    def zeros(self, shape, like):
        return self._torch.zeros(shape, dtype=like.dtype, device=like.device)


def kind_of(return_tensors):
    """What makes tensors, by the argument `return_tensors`."""
    name = getattr(return_tensors, "value", return_tensors)
    if name not in ("np", "pt"):
        raise ValueError(f"argument `return_tensors` is {name!r}: expected 'pt' or 'np'")
    return _Torch() if name == "pt" else _Numpy()


def join(kind, name, arrays, follows, pads):
    """One tensor of an output of all images."""
    whole = _end_to_end(arrays) if follows else _side_by_side(arrays)
    if whole is not None:
        return kind.of(whole)
    each = [kind.of(array) for array in arrays]
    if follows:
        return each[0] if len(each) == 1 else kind.join(each)
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
    rows = sum(len(each) for each in arrays)
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
