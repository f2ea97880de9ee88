"""Nodes of `torchdata.nodes`, under DALI's name."""

from .....plugin.pytorch.nodes import DictMapper, Reader, ToTorch  # noqa: F401
