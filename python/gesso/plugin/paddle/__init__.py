"""Iterators that give PaddlePaddle's tensors."""

from ... import _extras

_extras.needed("paddle", "`gesso.plugin.paddle`", "paddle")

from ..base_iterator import LastBatchPolicy
from .iterator import (
    ClassificationIterator,
    DALIClassificationIterator,
    DALIGenericIterator,
    Iterator,
    feed_ndarray,
    to_paddle_type,
)

__all__ = [
    "ClassificationIterator",
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "Iterator",
    "LastBatchPolicy",
    "feed_ndarray",
    "to_paddle_type",
]
