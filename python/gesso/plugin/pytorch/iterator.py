"""Iterators whose batches are dictionaries of PyTorch's tensors, one for each pipeline."""

from ..base_iterator import LastBatchPolicy
from ..dictionary_iterator import DataAndLabel, DictionaryIterator
from . import tensors


class DALIGenericIterator(DictionaryIterator):
    """Iterates over the batches of one or several pipelines: a list with a dictionary (name > tensor) for each
    pipeline.

    pipelines: a pipeline or a list. output_map: names of the outputs. reader_name: the reader that says how long an
    epoch is; else `size` does, the samples of an epoch over all pipelines (-1: until the source ends).
    last_batch_policy: what becomes of a last batch that is not full. last_batch_padded: whether the data repeats its
    last sample (without a reader's name). auto_reset: whether an epoch's end begins the next. prepare_first_batch:
    whether the first batch is made at once. dynamic_shape: not needed, shapes may always differ from batch to batch.

    The tensors share memory with what the pipeline made; each batch has memory of its own.
    """

    def _make(self, index, batch):
        return tensors.dense(batch)


class DALIClassificationIterator(DataAndLabel, DALIGenericIterator):
    """`DALIGenericIterator` for pipelines with two outputs: `data` and `label`."""


class DALIRaggedIterator(DALIGenericIterator):
    """`DALIGenericIterator` for samples of different shapes. `output_types` says for each output what is made of a
    batch:

    DENSE_TAG: one tensor (all samples have one shape); SPARSE_LIST_TAG: a list with a tensor for each sample;
    SPARSE_COO_TAG: a sparse tensor.
    """

    DENSE_TAG = "dense"
    SPARSE_LIST_TAG = "sparse_list"
    SPARSE_COO_TAG = "sparse_coo"
    _MAKERS = {DENSE_TAG: tensors.dense, SPARSE_LIST_TAG: tensors.samples, SPARSE_COO_TAG: tensors.sparse}

    def __init__(
        self,
        pipelines,
        output_map,
        size=-1,
        reader_name=None,
        output_types=None,
        auto_reset=False,
        fill_last_batch=None,
        dynamic_shape=False,
        last_batch_padded=False,
        last_batch_policy=LastBatchPolicy.FILL,
        prepare_first_batch=True,
    ):
        assert output_types is None or set(output_types) <= set(self._MAKERS), (
            f"`output_types` should be some of {sorted(self._MAKERS)}, got {output_types}"
        )
        assert output_types is None or len(output_types) == len(output_map), (
            "`output_types` needs a type for each of `output_map`"
        )
        self._output_types = output_types or [self.DENSE_TAG] * len(output_map)
        super().__init__(
            pipelines,
            output_map,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )

    def _make(self, index, batch):
        return self._MAKERS[self._output_types[index]](batch)
