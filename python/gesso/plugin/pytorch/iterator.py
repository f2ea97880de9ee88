"""Iterators whose batches are dictionaries of PyTorch's tensors, one for each pipeline."""

from ..base_iterator import BaseIterator, LastBatchPolicy, _distinct
from . import tensors


class DALIGenericIterator(BaseIterator):
    """Iterates over the batches of one or several pipelines: a list with a dictionary (name > tensor) for each
    pipeline.

    pipelines: a pipeline or a list. output_map: names of the outputs. reader_name: the reader that says how long an
    epoch is; else `size` does, the samples of an epoch over all pipelines (-1: until the source ends).
    last_batch_policy: what becomes of a last batch that is not full. last_batch_padded: whether the data repeats its
    last sample (without a reader's name). auto_reset: whether an epoch's end begins the next. prepare_first_batch:
    whether the first batch is made at once. dynamic_shape: not needed, shapes may always differ from batch to batch.

    The tensors share memory with what the pipeline made; each batch has memory of its own.
    """

    def __init__(
        self,
        pipelines,
        output_map,
        size=-1,
        reader_name=None,
        auto_reset=False,
        fill_last_batch=None,
        dynamic_shape=False,
        last_batch_padded=False,
        last_batch_policy=LastBatchPolicy.FILL,
        prepare_first_batch=True,
    ):
        self.output_map = _distinct(output_map)
        super().__init__(
            pipelines,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch=prepare_first_batch,
        )
        self._take_first_batch()

    def _make(self, index, batch):
        """The tensor of an output."""
        return tensors.dense(batch)

    def _convert(self, outputs):
        for one in outputs:
            if len(one) != len(self.output_map):
                raise RuntimeError(
                    f"The pipeline has {len(one)} outputs, but `output_map` names {len(self.output_map)}: {self.output_map}."
                )
        return [
            {name: self._make(i, batch) for i, (name, batch) in enumerate(zip(self.output_map, one))} for one in outputs
        ]

    def _cut(self, batches):
        """With the policy PARTIAL: without the samples that only fill the last batch."""
        counts = self._counts()
        if counts is None:
            return batches
        cut = [_first(batch, count) for batch, count in zip(batches, self._there(counts))]
        # Without a reader's name, pipelines that have nothing are not there.
        return cut if self._reader_name else [batch for batch, count in zip(cut, counts) if count]


def _first(batch, count):
    return {name: tensor[:count] for name, tensor in batch.items()}


class DALIClassificationIterator(DALIGenericIterator):
    """`DALIGenericIterator` for pipelines with two outputs: `data` and `label`."""

    def __init__(
        self,
        pipelines,
        size=-1,
        reader_name=None,
        auto_reset=False,
        fill_last_batch=None,
        dynamic_shape=False,
        last_batch_padded=False,
        last_batch_policy=LastBatchPolicy.FILL,
        prepare_first_batch=True,
    ):
        super().__init__(
            pipelines,
            ["data", "label"],
            size,
            reader_name=reader_name,
            auto_reset=auto_reset,
            fill_last_batch=fill_last_batch,
            dynamic_shape=dynamic_shape,
            last_batch_padded=last_batch_padded,
            last_batch_policy=last_batch_policy,
            prepare_first_batch=prepare_first_batch,
        )


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
