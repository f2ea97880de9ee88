"""`Picture`: what is known of pictures before they come; `Transform`, the base of all transforms."""

from typing import Any, NamedTuple

from .. import fn
from .._tensors.enums import DALIDataType
from ..data_node import DataNode
from .checks import device_of


class Picture(NamedTuple):
    """Whether they are Pillow's images (`HWC`) or PyTorch's tensors (`CHW`), the type of their elements, and how many
    channels they have: None where a random transform decides."""

    is_image: bool
    dtype: DALIDataType
    channels: int | None

    @property
    def layout(self):
        """A letter for each dimension."""
        return "HWC" if self.is_image else "CHW"

    @property
    def axes(self):
        """Which dimensions are height and width."""
        return [0, 1] if self.is_image else [1, 2]

    def is_exact(self, device):
        """Whether operators take them that have the library's pixels: colours of 8 bits, on a CPU."""
        return self.dtype == DALIDataType.UINT8 and self.channels == 3 and device == "cpu"

    def interleaved(self, node):
        """The channels of each pixel side by side."""
        return node if self.is_image else fn.transpose(node, perm=[1, 2, 0])

    def restored(self, node):
        """What `interleaved` gave, in their own order again."""
        return node if self.is_image else fn.transpose(node, perm=[2, 0, 1])

    def sides(self, node):
        """The height and the width of each sample."""
        shape = fn.shapes(node)
        return tuple(fn.cast(shape[axis], dtype=DALIDataType.INT32) for axis in self.axes)


class Transform:
    """Base of the transforms. They are equal if they are of one kind and have the same arguments."""

    def __init__(self, device="cpu"):
        self.device = device_of(device)

    def apply(self, node: DataNode, picture: Picture) -> tuple[Any, Picture]:
        """The node behind the transform, and what it has."""
        return self._run(node.gpu() if self.device == "gpu" else node, picture)

    def _run(self, node, picture):
        raise NotImplementedError

    def __call__(self, data):
        raise RuntimeError(
            f"`{type(self).__name__}` is not directly callable: put it into a `Compose`, or call a function of `functional`"
        )

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self):
        return hash((type(self), tuple(sorted(vars(self).items()))))

    def __repr__(self):
        arguments = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({arguments})"
