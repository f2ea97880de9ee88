"""Pipelines where `torch.utils.data` wants a data set, a transform or a function that makes a batch."""

import inspect
import os

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from ... import fn
from ..._pipeline_def import pipeline_def
from ..base_iterator import LastBatchPolicy
from . import tensors
from .iterator import DALIRaggedIterator


class PipelineDataset(IterableDataset):
    """A data set whose items are whole batches of a pipeline with a reader: `DataLoader(dataset, batch_size=None)`.

    define: a function with the decorator `pipeline_def`; it takes `shard_id` and `num_shards` and gives them to its
    reader, and each worker process of a loader reads a shard of its own. output_map, reader_name, output_types,
    last_batch_policy: as in `DALIRaggedIterator`. settings: arguments of `define`, such as `batch_size`. A worker
    process is not needed: the pipeline has threads of its own and prepares batches ahead."""

    def __init__(
        self,
        define,
        output_map,
        reader_name,
        *,
        output_types=None,
        last_batch_policy=LastBatchPolicy.PARTIAL,
        **settings,
    ):
        self._define, self._settings = define, settings
        self._options = {
            "output_map": output_map,
            "reader_name": reader_name,
            "output_types": output_types,
            "last_batch_policy": last_batch_policy,
            "auto_reset": True,
        }
        self._iterator = None

    def __iter__(self):
        if self._iterator is None:
            self._iterator = DALIRaggedIterator([self._define(**self._own())], **self._options)
        for batches in self._iterator:
            yield batches[0]

    def __getstate__(self):
        return {**self.__dict__, "_iterator": None}

    def _own(self):
        """The settings, with the shard of this worker process."""
        worker = get_worker_info()
        settings = dict(self._settings)
        if worker is not None and worker.num_workers > 1:
            shard, shards = settings.get("shard_id", 0), settings.get("num_shards", 1)
            settings["shard_id"] = shard * worker.num_workers + worker.id
            settings["num_shards"] = shards * worker.num_workers
        return settings


class _Applied:
    """A function of operators, applied to data that a loader brings. Its pipeline is made in the process where it is
    used."""

    def __init__(self, function, batch_size, num_threads, seed):
        self._function, self._batch_size, self._num_threads, self._seed = function, batch_size, num_threads, seed
        self._names = list(inspect.signature(function).parameters)
        self._pipeline = self._process = None

    def __getstate__(self):
        return {**self.__dict__, "_pipeline": None}

    def _built(self):
        # A process that a loader forks off makes its own, whatever this one has.
        if self._pipeline is None or self._process != os.getpid():
            self._process = os.getpid()

            def define():
                outputs = self._function(*(fn.external_source(name=name) for name in self._names))
                return tuple(outputs) if isinstance(outputs, (list, tuple)) else outputs

            seed = torch.initial_seed() % (1 << 31) if self._seed is None else self._seed
            self._pipeline = pipeline_def(define)(
                batch_size=self._batch_size,
                num_threads=self._num_threads,
                seed=seed,
                prefetch_queue_depth=1,
                exec_async=False,
                exec_pipelined=False,
                exec_dynamic=False,
            )
        return self._pipeline

    def _run(self, columns):
        if len(columns) != len(self._names):
            raise TypeError(f"The function takes {self._names}, but there are {len(columns)} values.")
        pipeline = self._built()
        for name, column in zip(self._names, columns):
            pipeline.feed_input(name, [_array(value) for value in column])
        return pipeline.run()


def _array(value):
    return np.frombuffer(value, np.uint8) if isinstance(value, (bytes, bytearray)) else np.asarray(value)


class Transform(_Applied):
    """Applies operators to one sample, where a map-style data set has a `transform`:

        def augment(encoded):
            image = fn.decoders.image_random_crop(encoded)
            return fn.crop_mirror_normalize(fn.resize(image, size=224), mirror=fn.random.coin_flip(), dtype=types.FLOAT)

        dataset = ImageFolder(root, loader=lambda path: open(path, "rb").read(), transform=Transform(augment))

    Each parameter of the function takes one value: an array, or the bytes of a file. `Collate` does the same for a
    whole batch, which is faster."""

    def __init__(self, function, num_threads=1, seed=None):
        super().__init__(function, 1, num_threads, seed)

    def __call__(self, *values):
        outputs = [tensors.of_array(batch.at(0)) for batch in self._run([[value] for value in values])]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


class Collate(_Applied):
    """Makes a batch of samples that a map-style data set gave:
    `DataLoader(dataset, batch_size, collate_fn=Collate(function, batch_size))`.

    The samples are tuples with a value for each parameter of the function; values behind them, such as labels, become
    tensors as they are."""

    def __init__(self, function, batch_size, num_threads=1, seed=None):
        super().__init__(function, batch_size, num_threads, seed)

    def __call__(self, samples):
        rows = [sample if isinstance(sample, (list, tuple)) else (sample,) for sample in samples]
        columns = list(zip(*rows))
        count = len(self._names)
        outputs = [tensors.dense(batch) for batch in self._run(columns[:count])]
        outputs += [torch.utils.data.default_collate(list(column)) for column in columns[count:]]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)
