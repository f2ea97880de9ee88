"""Iterators for training: what an epoch is, and that tensors of frameworks share memory with what the pipeline made."""

import os
import signal

import numpy as np
import pytest
from gesso import Pipeline, fn, pipeline_def, types
from gesso.plugin.base_iterator import BaseIterator, LastBatchPolicy

SAMPLES = 10


@pytest.fixture
def files(tmp_path):
    for i in range(SAMPLES):
        (tmp_path / f"{i:02}").write_bytes(bytes([i, i, i]))
    return [str(tmp_path / f"{i:02}") for i in range(SAMPLES)]


def made(files, batch_size=4, **options):
    pipeline = Pipeline(batch_size, 1, seed=1)
    with pipeline:
        pipeline.set_outputs(*fn.readers.file(files=files, name="files", **options))
    return pipeline


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.mark.parametrize("policy, lengths", [("FILL", [4, 4, 4]), ("DROP", [4, 4]), ("PARTIAL", [4, 4, 2])])
def test_the_last_batch(torch, files, policy, lengths):
    from gesso.plugin.pytorch import DALIClassificationIterator

    iterator = DALIClassificationIterator(
        made(files, pad_last_batch=True),
        reader_name="files",
        last_batch_policy=LastBatchPolicy[policy],
        auto_reset=True,
    )
    assert len(iterator) == len(lengths)
    for _ in range(3):
        labels = [batches[0]["label"].ravel().tolist() for batches in iterator]
        assert [len(batch) for batch in labels] == lengths
        assert sum(labels, [])[: sum(lengths)][:8] == list(range(8))


def test_tensors_share_memory(torch):
    from gesso.plugin.pytorch import tensors

    @pipeline_def(batch_size=3, num_threads=1)
    def define():
        return fn.random.uniform(range=[0, 1], shape=[4, 16], dtype=types.FLOAT)

    batch = define().run()[0]
    tensor = tensors.dense(batch)
    assert tensor.data_ptr() == batch.data_ptr() and tensor.shape == (3, 4, 16)
    expected = batch.as_array().copy()
    del batch
    assert np.array_equal(tensor.numpy(), expected)


def test_samples_of_different_shapes(torch):
    from gesso.plugin.pytorch import DALIRaggedIterator as Ragged

    batches = [[np.arange(i + 1, dtype=np.int32) + 1 for i in range(2)]]
    pipeline = Pipeline(2, 1)
    with pipeline:
        data = fn.external_source(lambda: batches[0])
        pipeline.set_outputs(data, data)
    batch = next(Ragged(pipeline, ["list", "coo"], output_types=[Ragged.SPARSE_LIST_TAG, Ragged.SPARSE_COO_TAG]))[0]
    assert [tensor.tolist() for tensor in batch["list"]] == [[1], [1, 2]]
    assert batch["coo"].to_dense().tolist() == [[1, 0], [1, 2]]


def test_a_forked_process_reads_after_its_parent_did(files):
    """Threads that share reading stay behind; the child makes its own."""
    made(files).run()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os.write(write, bytes(made(files).run()[1].as_array().ravel().astype(np.uint8)))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0 and list(os.read(read, 100)) == [0, 1, 2, 3]


def test_a_data_set_for_a_loader(torch, files):
    from gesso.plugin.pytorch import PipelineDataset

    def define(batch_size, shard_id=0, num_shards=1):
        return made(files, batch_size, shard_id=shard_id, num_shards=num_shards, stick_to_shard=True)

    for workers in (0, 2):
        dataset = PipelineDataset(define, ["data", "label"], "files", batch_size=4)
        loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers)
        for _ in range(2):
            assert sorted(sum((batch["label"].ravel().tolist() for batch in loader), [])) == list(range(SAMPLES))


def test_transforms_of_an_existing_loader(torch):
    from gesso.plugin.pytorch import Collate, Transform

    def double(values):
        return fn.cast(values, dtype=types.INT32) * 2

    assert Transform(double)(np.uint8([1, 200])).tolist() == [2, 400]
    samples = [(np.uint8([i, i]), i % 3) for i in range(5)]
    loader = torch.utils.data.DataLoader(samples, 2, collate_fn=Collate(double, 2))
    values, labels = zip(*loader)
    assert torch.cat(values).tolist() == [[2 * i, 2 * i] for i in range(5)] and torch.cat(labels).tolist() == [
        0,
        1,
        2,
        0,
        1,
    ]


def test_an_iterator_may_begin_the_next_epoch(torch, files):
    from gesso.plugin.pytorch import DALIClassificationIterator

    iterator = DALIClassificationIterator(made(files, 5, random_shuffle=True), reader_name="files", auto_reset=True)
    next(iterator)
    iterator.restart()
    assert sorted(sum((batches[0]["label"].ravel().tolist() for batches in iterator), [])) == list(range(SAMPLES))


def test_state_in_the_middle_of_an_epoch(torch, files):
    from gesso.plugin.pytorch import DALIClassificationIterator

    def begin(checkpoint=None):
        pipeline = Pipeline(3, 1, seed=4, enable_checkpointing=True, checkpoint=checkpoint)
        with pipeline:
            pipeline.set_outputs(*fn.readers.file(files=files, name="files", random_shuffle=True))
        return DALIClassificationIterator(pipeline, reader_name="files", auto_reset=True)

    def labels(iterator, count):
        return [next(iterator)[0]["label"].ravel().tolist() for _ in range(count)]

    first = begin()
    labels(first, 2)
    state = first.checkpoints()[0]
    assert labels(begin(state), 2) == labels(first, 2)


def test_state_of_a_loaded_pipeline(torch, files):
    from gesso.plugin.pytorch import DALIClassificationIterator

    pipeline = Pipeline(3, 1, seed=4, enable_checkpointing=True)
    with pipeline:
        pipeline.set_outputs(*fn.readers.file(files=files, name="files", random_shuffle=True))
    serialized = pipeline.serialize()
    silent = made(files, 3).serialize()

    def begin(bytes_of_file, **settings):
        return DALIClassificationIterator(
            Pipeline.deserialize(bytes_of_file, **settings), reader_name="files", auto_reset=True
        )

    def labels(iterator, count):
        return [next(iterator)[0]["label"].ravel().tolist() for _ in range(count)]

    for bytes_of_file, settings in ((serialized, {}), (silent, {"enable_checkpointing": True})):
        first = begin(bytes_of_file, **settings)
        labels(first, 2)
        state = first.checkpoints()[0]
        assert labels(begin(bytes_of_file, checkpoint=state, **settings), 2) == labels(first, 2)
    with pytest.raises(ValueError, match="checkpointing disabled"):
        begin(silent).checkpoints()


def test_an_iterator_of_ones_own(files):
    class Labels(BaseIterator):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self._take_first_batch()

        def _convert(self, outputs):
            return outputs[0][1].as_array().ravel().tolist()

    for prepared in (True, False):
        iterator = Labels(made(files, 5), reader_name="files", auto_reset=True, prepare_first_batch=prepared)
        for _ in range(2):
            assert list(iterator) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
        next(iterator)
        iterator.restart()
        assert next(iterator) == [0, 1, 2, 3, 4]


def test_jax_peeks(files):
    pytest.importorskip("jax")
    from gesso.plugin.jax.clu import DALIGenericPeekableIterator

    iterator = DALIGenericPeekableIterator([made(files)], ["data", "label"], reader_name="files")
    assert iterator.element_spec["label"].shape == (4, 1)
    peeked = iterator.peek_async().result()
    assert (next(iterator)["label"] == peeked["label"]).all() and next(iterator)["label"].ravel().tolist() == [
        4,
        5,
        6,
        7,
    ]


def test_a_worker_of_a_loader_that_is_killed_is_an_error(torch, files):
    from gesso.plugin.pytorch import PipelineDataset

    def define(batch_size, shard_id=0, num_shards=1):
        return made(files, batch_size, shard_id=shard_id, num_shards=num_shards, stick_to_shard=True)

    def begin():
        dataset = PipelineDataset(define, ["data", "label"], "files", batch_size=1)
        return iter(torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1, prefetch_factor=1))

    batches = begin()
    next(batches)
    (worker,) = batches._workers
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=f"DataLoader worker .*{worker.pid}"):
        for _ in range(SAMPLES):
            next(batches)
    del batches
    assert len(list(begin())) == SAMPLES
