"""Between Pillow's images, PyTorch's tensors and batches."""

import numpy as np
import torch
from PIL import Image

from .._tensors.enums import dtype_of
from .._tensors.tensor_list import TensorListCPU
from ..plugin.pytorch import tensors
from .picture import Picture

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
# Modes whose elements are no bytes.
_WIDE = {"I": np.int32, "I;16": np.int16, "F": np.float32}


def _pixels(image):
    """The pixels of an image as (height, width, channels)."""
    pixels = np.array(image, dtype=_WIDE.get(image.mode, np.uint8))
    if image.mode == "1":
        pixels = 255 * pixels
    return pixels[..., None] if pixels.ndim == 2 else pixels


def pil_to_tensor(inpt):
    """A Pillow image as a tensor `(channels, height, width)`, its elements as they are."""
    if not isinstance(inpt, Image.Image):
        raise TypeError(f"Expected a Pillow image, got {type(inpt)}")
    return torch.from_numpy(np.ascontiguousarray(_pixels(inpt).transpose(2, 0, 1)))


def to_tensor(inpt):
    """A Pillow image, or an array `(height, width, channels)`, as a tensor `(channels, height, width)`; bytes become
    float32 from 0 to 1."""
    if isinstance(inpt, np.ndarray):
        pixels = inpt[..., None] if inpt.ndim == 2 else inpt
        made = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))
    elif isinstance(inpt, Image.Image):
        made = pil_to_tensor(inpt)
    else:
        raise TypeError(f"Expected a Pillow image or an array of numpy's, got {type(inpt)}")
    return made.to(torch.float32).div(255) if made.dtype == torch.uint8 else made


_TAKEN = (torch.uint8, torch.int8, torch.uint16, torch.int16, torch.float32)


def to_pil_image(inpt, mode=None):
    """A tensor `(channels, height, width)` as a Pillow image. float32 is from 0 to 1."""
    if not isinstance(inpt, torch.Tensor):
        raise TypeError(f"Expected a tensor, got {type(inpt)}")
    if inpt.ndim != 3:
        raise ValueError(f"Expected a tensor of 3 dimensions, got the shape {tuple(inpt.shape)}")
    if inpt.dtype not in _TAKEN:
        raise TypeError(f"Data type {inpt.dtype} is not supported, expected one of {_TAKEN}")
    return _image(inpt.permute(1, 2, 0).cpu().numpy(), mode)


def _image(pixels, mode=None):
    """An image of an array `(height, width, channels)`."""
    channels = pixels.shape[-1]
    if mode is None and channels not in _MODES:
        raise ValueError(f"an image of {channels} channels, expected 1, 3 or 4, or a `mode`")
    mode = mode or _MODES[channels]
    if pixels.dtype.kind == "f" and mode != "F":
        pixels = (pixels * 255).clip(0, 255).astype(np.uint8)
    if channels == 1:
        pixels = pixels[..., 0]
    made = Image.fromarray(np.ascontiguousarray(pixels))
    return made if made.mode == mode else made.convert(mode)


# --- batches


def check(data):
    """Raises unless it is an image, or a tensor of at least three dimensions."""
    if not isinstance(data, (Image.Image, torch.Tensor)):
        raise TypeError(f"expected a Pillow image or a tensor, found a `{type(data).__name__}`")
    if isinstance(data, torch.Tensor) and data.ndim < 3:
        raise TypeError(
            f"a tensor of shape {tuple(data.shape)}, expected (channels, height, width), or more before them"
        )
    if isinstance(data, Image.Image) and data.mode not in _MODES.values():
        raise ValueError(f"an image of mode {data.mode}, expected one of {', '.join(_MODES.values())}")


def batch_of(data):
    """(batch, what its samples are) of an image, or of a tensor, whose dimensions before the last three count
    samples."""
    check(data)
    if isinstance(data, Image.Image):
        pixels = _pixels(data)
        return TensorListCPU([pixels], layout="HWC"), Picture(True, dtype_of(pixels), pixels.shape[-1])
    flat = data.detach().reshape(-1, *data.shape[-3:])
    facts = dtype_of(np.empty(0, _dtype(flat)))
    picture = Picture(False, facts, flat.shape[1])
    if flat.is_cuda:
        return list(flat.contiguous()), picture
    return TensorListCPU(flat.contiguous().numpy(), layout="CHW"), picture


def _dtype(tensor):
    try:
        return str(tensor.dtype).removeprefix("torch.") if tensor.dtype != torch.bool else "bool"
    except AttributeError:
        raise TypeError(f"tensors of {tensor.dtype} cannot be fed") from None


def result_of(batch, data, returns=None):
    """What a pipeline made of `data`: in its form, or as `returns` says, `tensor` or `image`."""
    is_image = isinstance(data, Image.Image)
    if returns == "image" or is_image and returns != "tensor":
        arrays = [np.asarray(array) for array in batch.as_cpu().arrays]
        images = [_image(array if is_image else array.transpose(1, 2, 0)) for array in arrays]
        return images[0] if len(images) == 1 else images
    made = tensors.dense(batch)
    if is_image:
        return made[0].permute(2, 0, 1).contiguous()
    return made.reshape(*data.shape[:-3], *made.shape[1:])
