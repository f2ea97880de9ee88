"""Pipelines for TensorFlow: `DALIDataset` is a `tf.data.Dataset`, `DALIIterator` gives tensors of a graph; both in
Python alone, for any TensorFlow 2."""

from ... import _extras

_extras.needed("tensorflow", "`gesso.plugin.tf`", "tf")

from . import experimental
from .dataset import DALIDataset
from .iterator import DALIIterator, DALIIteratorWrapper, DALIRawIterator

Dataset = DALIDataset


def dataset_compatible_tensorflow():
    """Whether this TensorFlow can have a `DALIDataset`: each that can be imported here."""
    return True


def dataset_inputs_compatible_tensorflow():
    """Whether it can have a `DALIDatasetWithInputs`."""
    return True


def dataset_distributed_compatible_tensorflow():
    """Whether it can be distributed by `tf.distribute`."""
    return True


__all__ = [
    "DALIDataset",
    "DALIIterator",
    "DALIIteratorWrapper",
    "DALIRawIterator",
    "Dataset",
    "dataset_compatible_tensorflow",
    "dataset_distributed_compatible_tensorflow",
    "dataset_inputs_compatible_tensorflow",
    "experimental",
]
