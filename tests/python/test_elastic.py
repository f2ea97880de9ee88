"""Going on with another number of processes: what some began, others end; every sample once an epoch."""

import collections

import pytest
from gesso import Pipeline, fn
from gesso.plugin.base_iterator import BaseIterator, LastBatchPolicy

SAMPLES = 43


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for i in range(SAMPLES):
        (folder / f"{i:02}").write_bytes(bytes([i]))
    return [str(folder / f"{i:02}") for i in range(SAMPLES)]


class Labels(BaseIterator):
    """A shard's labels, without padding."""

    def __init__(self, files, shard, shards, batch_size, state=None, policy="PARTIAL", **options):
        pipeline = Pipeline(batch_size, 1, seed=3, enable_checkpointing=True, checkpoint=state)
        with pipeline:
            data, labels = fn.readers.file(files=files, name="files", shards=(shard, shards), **options)
            pipeline.set_outputs(labels)
        super().__init__(pipeline, reader_name="files", auto_reset=True, last_batch_policy=LastBatchPolicy[policy])
        self._take_first_batch()

    def _convert(self, outputs):
        return outputs[0][0].as_array().ravel().tolist()

    def _cut(self, batch):
        has_padding, counts = self._remove_padded()
        return batch[: max(int(counts[0]), 0)] if has_padding is not False and has_padding.any() else batch


def begin(files, shards, batch_size, state=None, **options):
    return [Labels(files, shard, shards, batch_size, state, **options) for shard in range(shards)]


def take(iterators, count):
    return [label for iterator in iterators for _ in range(count) for label in next(iterator)]


def epoch(iterators):
    """All labels of an epoch, of every shard; the shards have equally many batches."""
    batches = [list(iterator) for iterator in iterators]
    assert len({len(own) for own in batches}) == 1
    return [label for own in batches for batch in own for label in batch]


OPTIONS = [
    {"pad_last_batch": True},
    {"pad_last_batch": True, "random_shuffle": True, "initial_fill": 7},
    {"pad_last_batch": True, "random_shuffle": True, "stick_to_shard": True},
    {"pad_last_batch": True, "shuffle_after_epoch": True},
    {"pad_last_batch": True, "sampler": lambda number: [(i * 5 + number) % SAMPLES for i in range(SAMPLES)]},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(
    "before, after", [((4, 3), (2, 5)), ((2, 4), (5, 2)), ((1, 8), (3, 8)), ((3, 2), (1, 3)), ((2, 3), (2, 4))]
)
@pytest.mark.parametrize("epochs", [0, 2])
def test_the_epoch_ends_with_every_sample_once(files, options, before, after, epochs):
    first = begin(files, *before, **options)
    for _ in range(epochs):
        assert sorted(epoch(first)) == list(range(SAMPLES))
    seen = take(first, 2)
    second = begin(files, *after, first[-1].checkpoints()[0], **options)
    assert sorted(seen + epoch(second)) == list(range(SAMPLES))
    for _ in range(3):
        assert sorted(epoch(second)) == list(range(SAMPLES))


@pytest.mark.parametrize("options", OPTIONS[:2])
def test_again_and_again(files, options):
    state, seen = None, []
    for shards, batch_size in ((3, 2), (2, 3), (5, 1), (1, 4)):
        iterators = begin(files, shards, batch_size, state, **options)
        seen += take(iterators, 2)
        state = iterators[0].checkpoints()[0]
        same = begin(files, shards, batch_size, state, **options)
        assert take(same, 1) == take(iterators, 1)
    state = begin(files, 1, 4, state, **options)
    assert sorted(seen + epoch(state)) == list(range(SAMPLES))
    assert sorted(epoch(state)) == list(range(SAMPLES))


def test_the_whole_epochs_behind_are_those_of_a_run_that_began_so(files):
    options = OPTIONS[1]
    first = begin(files, 4, 3, **options)
    take(first, 2)
    second, other = begin(files, 2, 5, first[0].checkpoints()[0], **options), begin(files, 2, 5, **options)
    epoch(second), epoch(other)
    assert epoch(second) == epoch(other)


@pytest.mark.parametrize("random_shuffle", [False, True])
@pytest.mark.parametrize("taken", [2, 4, 5, 6])
def test_batches_that_are_filled_from_the_next_epoch(files, random_shuffle, taken):
    options = {"random_shuffle": random_shuffle, "policy": "FILL"}
    first = begin(files, 3, 4, **options)
    seen = []
    for _ in range(taken):
        for iterator in first:
            try:
                seen += next(iterator)
            except StopIteration:
                seen += next(iterator)
    second = begin(files, 2, 3, first[0].checkpoints()[0], **options)
    for _ in range(12):
        for iterator in second:
            for batch in iterator:
                seen += batch
    # However far: no sample is more than an epoch ahead of another, but for those that fill a batch.
    counts = collections.Counter(seen)
    assert len(counts) == SAMPLES and max(counts.values()) - min(counts.values()) <= 1


def test_a_pipeline_without_an_iterator(files):
    def make(shard, shards, state=None):
        pipeline = Pipeline(2, 1, seed=3, enable_checkpointing=True, checkpoint=state)
        with pipeline:
            pipeline.set_outputs(fn.readers.file(files=files[:12], shards=(shard, shards))[1])
        return pipeline

    first = [make(shard, 2) for shard in range(2)]
    seen = [label for pipeline in first for label in pipeline.run()[0].as_array().ravel().tolist()]
    assert seen == [0, 1, 6, 7]
    second = [make(shard, 4, first[0].checkpoint()) for shard in range(4)]
    assert sorted(label for pipeline in second for label in pipeline.run()[0].as_array().ravel().tolist()) == [
        2,
        3,
        4,
        5,
        8,
        9,
        10,
        11,
    ]
