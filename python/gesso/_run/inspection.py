"""The part of `Pipeline` that tells of itself: outputs, readers, state."""

from .._tensors.enums import DALIDataType
from . import checkpoint


class Asking:
    """What a pipeline says of itself when it is built."""

    @property
    def num_outputs(self):
        """How many outputs there are."""
        self.build()
        return len(self._execution.outputs)

    def output_dtype(self):
        """The declared types of the outputs."""
        self.build()
        return [None if dtype in (None, DALIDataType.NO_TYPE) else dtype for _, dtype, _, _ in self._execution.outputs]

    def output_ndim(self):
        """The declared ranks of the outputs."""
        self.build()
        return [ndim for _, _, ndim, _ in self._execution.outputs]

    def reader_meta(self, name=None):
        """What readers say of their data: of one, or of all by name."""
        self.build()
        meta = self._execution.reader_meta()
        if name is None:
            return meta
        if name not in meta:
            raise ValueError(f"There is no reader named `{name}` in the pipeline; it has {sorted(meta)}.")
        return meta[name]

    def epoch_size(self, name=None):
        """Samples of an epoch: of one reader, or of all by name."""
        meta = self.reader_meta(name)
        if name is not None:
            return meta["epoch_size_padded"]
        return {key: value["epoch_size_padded"] for key, value in meta.items()}

    def executor_statistics(self):
        """What DALI counts of memory. Empty."""
        self.build()
        return {}

    def external_source_shm_statistics(self):
        """Shared memory of parallel sources, in bytes."""
        if self._workers is None:
            return {"capacities": [], "per_sample_capacities": []}
        return self._workers.statistics(self._max_batch_size)

    def checkpoint(self, filename=None):
        """The state of the pipeline, to go on from; also written to `filename`."""
        self.build()
        saved = self._get_checkpoint()
        if filename is not None:
            with open(filename, "wb") as file:
                file.write(saved)
        return saved

    def _get_checkpoint(self, iterator_data=""):
        return checkpoint.save(self, iterator_data)

    def output_stream(self):
        """The stream of the outputs: None, they are done."""
        return None
