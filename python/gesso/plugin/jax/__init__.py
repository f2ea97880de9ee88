"""Iterators that give `jax.Array`s; functions of such arrays as operators."""

from ... import _extras

_extras.needed("jax", "`gesso.plugin.jax`", "jax")

from . import fn
from .iterator import DALIGenericIterator, data_iterator

__all__ = ["DALIGenericIterator", "data_iterator", "fn"]
