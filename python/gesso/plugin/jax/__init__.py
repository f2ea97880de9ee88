"""Iterators that give `jax.Array`s."""

from .iterator import DALIGenericIterator, data_iterator

__all__ = ["DALIGenericIterator", "data_iterator"]
