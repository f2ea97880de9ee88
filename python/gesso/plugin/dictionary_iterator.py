"""Iterators whose batches are a list with a dictionary (name > tensor) for each pipeline; the tensors are those of a
framework."""

from .base_iterator import BaseIterator, LastBatchPolicy, _distinct


class DictionaryIterator(BaseIterator):
    """Base of these iterators. Subclasses say in `_make` what becomes of an output, and in `_first` what its first
    samples are."""

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
        """The tensor of output `index`."""
        raise NotImplementedError

    def _first(self, pipe, index, tensor, count):
        """The first samples of the tensor of output `index` of the pipeline `pipe`."""
        return tensor[:count]

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
        cut = [
            {name: self._first(pipe, i, batch[name], count) for i, name in enumerate(self.output_map)}
            for pipe, (batch, count) in enumerate(zip(batches, self._there(counts)))
        ]
        # Without a reader's name, pipelines that have nothing are not there.
        return cut if self._reader_name else [batch for batch, count in zip(cut, counts) if count]


class DataAndLabel(DictionaryIterator):
    """Put in front of another `DictionaryIterator`: its outputs are `data` and `label`."""

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
