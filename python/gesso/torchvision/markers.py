"""Transforms that change no pixels: what `Compose` returns, and whether others are applied."""

from .. import fn
from .._conditionals.runtime import if_expression
from .._tensors.enums import DALIDataType
from .checks import probability
from .picture import Transform


class _Marker(Transform):
    def _run(self, node, picture):
        return node, picture


class ToPureTensor(_Marker):
    """`Compose` returns tensors: `(channels, height, width)`, their elements as they are."""

    returns = "tensor"


class PILToTensor(_Marker):
    """As `ToPureTensor`."""

    returns = "tensor"


class ToPILImage(_Marker):
    """`Compose` returns Pillow's images."""

    returns = "image"


class RandomApply(Transform):
    """Applies other transforms one behind the other, all or none, with probability `p` for each picture."""

    def __init__(self, op_list, p=0.5, device="cpu"):
        super().__init__(device)
        self.p, self.op_list = probability(p), tuple(op_list)

    def _run(self, node, picture):
        after = picture

        def applied():
            nonlocal after
            inner = node
            for transform in self.op_list:
                inner, after = transform.apply(inner, after)
            return inner

        is_applied = fn.random.coin_flip(probability=self.p, dtype=DALIDataType.BOOL)
        node = if_expression(is_applied, applied, lambda: node)
        channels = picture.channels if after.channels == picture.channels else None
        return node, after._replace(channels=channels)
