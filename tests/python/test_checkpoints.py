"""States of pipelines: which pipelines save one, which go on from it, and what becomes of it after `restart`."""

import numpy as np
import pytest
from gesso import Pipeline, fn
from gesso._run import native_readers

SAMPLES = 11


def made(define, state=None, depth=2, **settings):
    settings = {"enable_checkpointing": True, **settings}
    pipeline = Pipeline(settings.pop("batch_size", 4), 1, prefetch_queue_depth=depth, checkpoint=state, **settings)
    with pipeline:
        pipeline.set_outputs(*define())
    pipeline.build()
    return pipeline


def uniform():
    return [fn.random.uniform(range=(0, 1))]


def test_only_a_pipeline_that_saves_states_has_one(tmp_path):
    silent = made(uniform, enable_checkpointing=False)
    with pytest.raises(RuntimeError, match="cannot save a checkpoint: .* without `enable_checkpointing=True`"):
        silent.checkpoint(str(tmp_path / "state"))
    assert not (tmp_path / "state").exists()
    state = made(uniform).checkpoint()
    with pytest.raises(RuntimeError, match="cannot go on from a checkpoint: .* without `enable_checkpointing=True`"):
        made(uniform, state, enable_checkpointing=False)
    with pytest.raises(RuntimeError, match="cannot go on from a checkpoint"):
        Pipeline.deserialize(silent.serialize(), checkpoint=state).build()
    file = made(uniform).serialize()
    assert values(Pipeline.deserialize(file, checkpoint=state).run()) == values(made(uniform, state).run())


def values(outputs):
    return [batch.as_array().tolist() for batch in outputs]


@pytest.mark.parametrize("name", ["other", None])
def test_a_state_of_another_reader_is_none_of_this_pipeline(files, name):
    state = made(lambda: fn.readers.file(files=files, name="r")).checkpoint()
    with pytest.raises(ValueError, match=r"might be of another pipeline: it has the readers \['r'\]"):
        made(lambda: fn.readers.file(files=files, name=name), state)
    with pytest.raises(ValueError, match=r"might be of another pipeline: .* the pipeline has \[\]"):
        made(uniform, state)


def readers(files, **options):
    return lambda: (fn.readers.file(files=files, name="r", **options)[1], fn.random.uniform(range=(0, 1)))


OPTIONS = [
    {},
    {"random_shuffle": True, "initial_fill": 5},
    {"random_shuffle": True, "pad_last_batch": True, "num_shards": 2, "shard_id": 1},
    {"num_shards": 3, "shard_id": 1},
    {"num_shards": 3, "shard_id": 2, "stick_to_shard": True},
    {"shuffle_after_epoch": True},
    {"sampler": lambda epoch: np.roll(range(SAMPLES), epoch)},
]
# Behind which batches the epoch is left.
ENDS = [(2, 5), (0, 1, 2, 3), (1, 1, 4), (3, 6, 7)]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("batch_size", [2, 4])
def test_a_state_behind_restarts_goes_on_as_the_pipeline(files, options, ends, depth, batch_size):
    define = readers(files, **options)
    whole, states, expected = made(define, depth=depth, seed=3, batch_size=batch_size), [], []
    for number in range(9):
        for _ in range(ends.count(number)):
            whole.restart()
        states.append(whole.checkpoint())
        expected.append(values(whole.run()))
    for number, state in enumerate(states):
        again = made(define, state, depth, batch_size=batch_size)
        assert again.checkpoint() == state
        for later in range(number, 9):
            for _ in range(ends.count(later) if later > number else 0):
                again.restart()
            assert values(again.run()) == expected[later]


@pytest.mark.parametrize("options", OPTIONS[:-1])
@pytest.mark.parametrize("batch_size", [2, 3, 6, 13])
@pytest.mark.parametrize("ends", ENDS)
def test_every_restart_begins_the_next_epoch(files, options, batch_size, ends, monkeypatch):
    define = readers(files, **options)
    of_library = made(define, seed=3, batch_size=batch_size, enable_checkpointing=False)
    with monkeypatch.context() as patch:
        patch.setattr(native_readers, "chosen", lambda *_: [])
        interpreted = made(define, seed=3, batch_size=batch_size, enable_checkpointing=False)
    assert of_library.runner.execution.run.is_read_by_library
    assert not interpreted.runner.execution.run.is_read_by_library
    for number in range(9):
        for _ in range(ends.count(number)):
            of_library.restart()
            interpreted.restart()
        outputs, others = of_library.run(), interpreted.run()
        assert values(outputs) == values(others)
        infos = [[sample.source_info() for sample in each[0]] for each in (outputs, others)]
        assert infos[0] == infos[1]


def test_restarts_come_to_epoch_after_epoch(files):
    define = readers(files, random_shuffle=True)
    whole, left = made(define, seed=3, batch_size=SAMPLES), made(define, seed=3, batch_size=3)
    for _ in range(5):
        order = whole.run()[0].as_array().ravel().tolist()
        assert left.run()[0].as_array().ravel().tolist() == order[:3]
        left.restart()


def test_readers_of_the_library_whose_epochs_differ(files):
    def define():
        return fn.readers.file(files=files, name="a")[1], fn.readers.file(files=files[:5], name="b")[1]

    pipeline = made(define, seed=3, batch_size=1)
    pipeline.run()
    pipeline.restart()
    assert values(pipeline.run()) == [[[0]], [[0]]]
    # The library cannot be told of two ends of epochs of several lengths.
    with pytest.raises(RuntimeError, match="`a`, `b`, whose epochs differ, were restarted before"):
        pipeline.restart()
    again = made(define, pipeline.checkpoint(), batch_size=1)
    assert values(again.run()) == values(pipeline.run()) == [[[1]], [[1]]]
    alone = made(define, seed=3, batch_size=1, depth=1)
    for each in (again, alone):
        for _ in range(3):
            each.run()
            each.restart()
            assert values(each.run()) == [[[0]], [[0]]]


def test_an_epoch_of_a_restarted_pipeline_ends_where_it_did(files):
    define = readers(files)
    first = made(define, seed=3)
    first.run()
    first.restart()
    first.run()
    again = made(define, first.checkpoint())
    assert [values(each) for each in again] == [values(each) for each in first]


def test_fewer_shards_go_on_behind_a_restart(files):
    def define(shard, shards):
        return readers(files, num_shards=shards, shard_id=shard, random_shuffle=True, pad_last_batch=True)

    before = [made(define(shard, 3), seed=3, batch_size=2) for shard in range(3)]
    for pipeline in before:
        pipeline.run()
        pipeline.restart()
    seen = [label for pipeline in before for label in pipeline.run()[0].as_array().ravel().tolist()]
    after = [made(define(shard, 2), before[0].checkpoint(), batch_size=1) for shard in range(2)]
    for _ in range(3):
        seen += [label for pipeline in after for label in pipeline.run()[0].as_array().ravel().tolist()]
    assert sorted(set(seen)) == list(range(SAMPLES)) and len(seen) == SAMPLES + 1
