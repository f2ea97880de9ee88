"""What stands in worker processes for outputs of a pipeline that another process will run: `DALIProxy` makes them of
inputs, and a data loader's function that makes batches asks for a run."""

import inspect
import os
import threading

from torch.utils.data._utils.collate import default_collate_fn_map

from ...._tensors.enums import dtype_of
from ...._tensors.feeding import hint_for, to_array

# Bytes that tell a run from others of its process.
_RANDOM = 16


class DALIPipelineRunRef:
    """One batch that a pipeline is to run. `key`: its process, and bytes that no other has."""

    def __init__(self, key):
        self.key = key
        # The samples that are in it, once they are known; what they are made of, until it is asked for.
        self.chosen, self.samples = None, []
        # Whether its outputs were given to somebody.
        self.is_taken = False

    def inputs(self):
        """The batches that the pipeline is fed, by name."""
        return {name: [self.samples[i][name] for i in self.chosen] for name in self.samples[0]}

    def __repr__(self):
        return f"DALIPipelineRunRef(key={self.key})"


class DALIOutputSampleRef:
    """One sample of an output of a run."""

    def __init__(self, proxy, pipe_run_ref, output_idx, sample_idx):
        self.proxy, self.pipe_run_ref = proxy, pipe_run_ref
        self.output_idx, self.sample_idx = output_idx, sample_idx

    def __getstate__(self):
        # In another process it is of no use, and must arrive there to be refused.
        return {**self.__dict__, "proxy": None, "pipe_run_ref": DALIPipelineRunRef(self.pipe_run_ref.key)}

    def __repr__(self):
        return f"DALIOutputSampleRef({self.pipe_run_ref}, output_idx={self.output_idx}, sample_idx={self.sample_idx})"


class DALIOutputBatchRef:
    """One output of a run."""

    def __init__(self, pipe_run_ref, output_idx):
        self.pipe_run_ref, self.output_idx = pipe_run_ref, output_idx

    def __repr__(self):
        return f"DALIOutputBatchRef({self.pipe_run_ref}, output_idx={self.output_idx})"


def _numbers(name, value):
    """A sample as an array. What is no numbers fails here, where it is made: another process may not even get it."""
    array = to_array(value)
    if dtype_of(array) is None:
        raise TypeError(
            f"the input `{name}`: data of the type {array.dtype} cannot be fed, expected numbers or truth values."
            + hint_for(array)
        )
    return array


class DALIProxy:
    """Called with a sample for each input of a pipeline, in any process, gives a reference for each output. It can be
    the `transform` of a data set."""

    def __init__(self, names, num_outputs, queue, deterministic):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if len(names) == 1 else inspect.Parameter.KEYWORD_ONLY
        self.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])
        self._num_outputs, self._queue, self.deterministic = num_outputs, queue, deterministic
        # The run that samples of a process and thread go to.
        self._open = {}

    def __call__(self, *samples, **named):
        try:
            inputs = self.__signature__.bind(*samples, **named).arguments
        except TypeError as error:
            names = ", ".join(self.__signature__.parameters)
            raise ValueError(f"the pipeline has the inputs ({names}): {error}") from None
        place = (os.getpid(), threading.get_ident())
        run = self._open.get(place)
        if run is None or run.chosen is not None:
            run = self._open[place] = DALIPipelineRunRef((place[0], os.urandom(_RANDOM)))
        run.samples.append({name: _numbers(name, value) for name, value in inputs.items()})
        index = len(run.samples) - 1
        outputs = tuple(DALIOutputSampleRef(self, run, i, index) for i in range(self._num_outputs))
        return outputs[0] if len(outputs) == 1 else outputs

    def choose(self, run, indices):
        """Says which samples are in a run, and asks for it, unless that is left to the process that runs it."""
        if run.chosen is None:
            run.chosen = indices
            if not self.deterministic:
                self.ask(run)
        elif run.chosen != indices:
            raise RuntimeError(
                f"the outputs of one run are put together of samples {run.chosen} and of {indices}, expected the same for each output"
            )

    def ask(self, run):
        """Sends a run to the process that has the pipeline."""
        self._queue.put((run.key, run.inputs()))
        run.samples = []

    def __getstate__(self):
        return {**self.__dict__, "_open": {}}


def collate(samples, *, collate_fn_map=None):
    """A batch of references to samples: a reference to a batch. PyTorch's `default_collate` calls it."""
    first = samples[0]
    for sample in samples:
        if sample.pipe_run_ref is not first.pipe_run_ref or sample.output_idx != first.output_idx:
            raise RuntimeError(
                "All samples should belong to the same batch: samples of several outputs, or of several batches, were put together"
            )
    first.proxy.choose(first.pipe_run_ref, [sample.sample_idx for sample in samples])
    return DALIOutputBatchRef(first.pipe_run_ref, first.output_idx)


default_collate_fn_map[DALIOutputSampleRef] = collate
