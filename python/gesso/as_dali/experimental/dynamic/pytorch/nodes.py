"""Nodes of `torchdata.nodes`, under DALI's name."""

from ....._dynamic.nodes import DictMapper, Reader, ToTorch  # noqa: F401
