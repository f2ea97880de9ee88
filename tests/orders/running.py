"""Runs a configuration in DALI or in Gesso, as what is written once for both, and says which samples came.

A configuration is a dictionary: `kind` (of data set; `a+b` are two readers in one pipeline), `size`, `options` of the
reader, `settings` of the pipeline, `count` of batches, and `states`: numbers of batches behind which a state is taken,
with which another pipeline goes on. For an iterator also `iterator`: its arguments, and which `shards` its pipelines
read; its `states` are pairs, an epoch and how many of its batches were given."""

import importlib
import warnings

import numpy as np

from .sets import number_of, outputs_of

EPOCHS = 4
META = ("epoch_size", "epoch_size_padded", "number_of_shards", "shard_id", "pad_last_batch", "stick_to_shard")
READERS = {"labels": "readers.file", "video": "experimental.readers.video"}


class Package:
    """`gesso` or `nvidia.dali`, with what configurations need of it."""

    def __init__(self, name):
        self.fn = importlib.import_module(f"{name}.fn")
        self.tfrecord = importlib.import_module(f"{name}.tfrecord")
        self.iterators = importlib.import_module(f"{name}.plugin.base_iterator")
        self.Pipeline = importlib.import_module(name).Pipeline
        self.is_dali = name != "gesso"

    def reader(self, kind, data, options, name):
        function = self.fn
        for part in READERS.get(kind, f"readers.{kind}").split("."):
            function = getattr(function, part)
        if kind == "tfrecord":
            data = {**data, "features": {"a": self.tfrecord.FixedLenFeature((), self.tfrecord.string, "")}}
        return outputs_of(kind, function(**data, **options, name=name))


def build(package, sets, way, mode="plain", shard=None, **state):
    """The pipeline of a configuration. `mode`: how the readers are in it, which decides what runs them in Gesso:
    "plain", alone; "ahead", with one more batch made ahead; "function", in front of a Python function; "fed", beside an
    external source; "loaded", from a file."""
    options = dict(way["options"]) if shard is None else {**way["options"], "shard_id": shard}
    settings = {"num_threads": 1, "device_id": None, **way["settings"]}
    if mode == "ahead":
        settings["prefetch_queue_depth"] += 1
    if way["states"]:
        settings["enable_checkpointing"] = True
    pipeline = package.Pipeline(**settings, **state)
    with pipeline:
        outputs = []
        for i, kind in enumerate(way["kind"].split("+")):
            outputs += package.reader(kind, sets.of(kind, way["size"]), options, f"reader{i}")
        if mode == "function":
            outputs = [package.fn.python_function(output, function=lambda array: array) for output in outputs]
        if mode == "fed":
            outputs.append(
                package.fn.external_source(
                    source=lambda info: [[1.0]] * settings["batch_size"], batch_info=True, batch=True
                )
            )
        pipeline.set_outputs(*outputs)
    if mode == "loaded":
        pipeline = package.Pipeline.deserialize(pipeline.serialize())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.build()
    return pipeline


def brief(metas):
    """What readers say, without the names; once, if all say the same."""
    values = [[int(meta[key]) for key in META] for meta in metas]
    return values[:1] if all(value == values[0] for value in values) else values


def numbers_of(kinds, outputs):
    """The samples of a batch: of each reader its numbers."""
    outputs, parts = list(outputs), []
    for kind in kinds.split("+"):
        own = [outputs.pop(0) for _ in range(2 if kind == "video" else 1)]
        own = [output.as_cpu() for output in own]
        parts.append([number_of(kind, [np.asarray(output.at(i)) for output in own]) for i in range(len(own[0]))])
    return parts


def _text(parts):
    return "/".join(" ".join(map(str, part)) for part in parts)


def batches(package, sets, way, mode="plain", check=None):
    """(metas, batches as texts). `check` is called with every pipeline that was built."""
    kind, found, states = way["kind"], [], [*way["states"]]
    pipeline = build(package, sets, way, mode)
    metas, left = [pipeline.reader_meta(f"reader{i}") for i in range(len(kind.split("+")))], []
    while len(found) < way["count"]:
        if states and states[0] == len(found):
            states.pop(0)
            state = pipeline.checkpoint()
            # Who gave its state goes on, too.
            left.append((len(found), pipeline))
            pipeline = build(package, sets, way, mode, checkpoint=state)
        found.append(_text(numbers_of(kind, pipeline.run())))
        if check:
            check(pipeline)
    for begun, other in left:
        same = [_text(numbers_of(kind, other.run())) for _ in range(way["count"] - begun)]
        assert same == found[begun:], (
            f"behind batch {begun} the pipeline that gave its state goes on otherwise: {same}, not {found[begun:]}"
        )
    return metas, found


def _iterator_of_dali(package):
    """What DALI's iterators of frameworks do, for numbers: its base class counts, and says how much of a batch is
    left."""
    base, policies = package.iterators._DaliBaseIterator, package.iterators.LastBatchPolicy

    class Numbers(base):
        def __init__(self, kind, pipelines, **arguments):
            super().__init__(pipelines, **arguments)
            self._kind, self._first_batch = kind, None
            if self._prepare_first_batch:
                try:
                    self._first_batch = self.__next__()
                    self._ever_consumed = False
                except StopIteration:
                    self._report_no_data_in_pipeline()

        def __next__(self):
            self._ever_consumed = True
            if self._first_batch is not None:
                batch, self._first_batch = self._first_batch, None
                return batch
            parts = [numbers_of(self._kind, outputs)[0] for outputs in self._get_outputs()]
            self._schedule_runs()
            self._advance_and_check_drop_last()
            if self._reader_name:
                is_partial, left = self._remove_padded()
                return [part[:count] for part, count in zip(parts, left)] if np.any(is_partial) else parts
            if self._last_batch_policy == policies.PARTIAL and 0 < self._size < self._counter:
                left = self._num_gpus * self.batch_size - (self._counter - self._size)
                sizes = [min(max(left - i * self.batch_size, 0), self.batch_size) for i in range(self._num_gpus)]
                return [part[:count] for part, count in zip(parts, sizes) if count]
            return parts

    return Numbers


def _iterator_of_gesso(package):
    class Numbers(package.iterators.BaseIterator):
        def __init__(self, kind, pipelines, **arguments):
            super().__init__(pipelines, **arguments)
            self._kind = kind
            self._take_first_batch()

        def _convert(self, outputs):
            return [numbers_of(self._kind, one)[0] for one in outputs]

        def _cut(self, batch):
            counts = self._counts()
            if counts is None:
                return batch
            cut = [part[:count] for part, count in zip(batch, self._there(counts))]
            return cut if self._reader_name else [part for part, count in zip(cut, counts) if count]

    return Numbers


def epochs(package, sets, way, mode="plain", check=None):
    """(metas, for each epoch: its length as the iterator says it, and its batches as texts) of an iterator."""
    arguments = dict(way["iterator"])
    shards = arguments.pop("shards")
    arguments["last_batch_policy"] = package.iterators.LastBatchPolicy[arguments.pop("policy")]
    kind = _iterator_of_dali(package) if package.is_dali else _iterator_of_gesso(package)

    def begin(checkpoints=None):
        states = [{"checkpoint": state} for state in checkpoints] if checkpoints else [{}] * len(shards)
        pipelines = [build(package, sets, way, mode, shard, **state) for shard, state in zip(shards, states)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            iterator = kind(way["kind"], pipelines, **arguments)
        for pipeline in pipelines if check else []:
            check(pipeline)
        return iterator, pipelines

    iterator, pipelines = begin()
    metas = [pipeline.reader_meta("reader0") for pipeline in pipelines]
    found, states = [], [list(state) for state in way["states"]]
    for epoch in range(EPOCHS):
        length, given = len(iterator), []
        going = iter(iterator)
        while True:
            if states and states[0] == [epoch, len(given)]:
                states.pop(0)
                iterator, pipelines = begin(iterator.checkpoints())
                going = iter(iterator)
            try:
                given.append(_text(next(going)))
            except StopIteration:
                break
        found.append([length, *given])
        if not arguments.get("auto_reset"):
            iterator.reset()
    assert not states, f"no epoch has so many batches: {states}"
    return metas, found


def run(package, sets, way, mode="plain", check=None):
    """(metas, batches or epochs) of a configuration."""
    return (epochs if "iterator" in way else batches)(package, sets, way, mode, check)
