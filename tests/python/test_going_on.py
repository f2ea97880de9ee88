"""A pipeline that goes on from a checkpoint gives what the one would have given that was not interrupted."""

import json
import pathlib

import numpy as np
import pytest
from gesso import Pipeline, fn, pipeline_def, types

SIZE = 4
CLIPS = pathlib.Path(__file__).parents[1] / "data/video"


def samples(outputs):
    return [[np.array(sample).tolist() for sample in output] for output in outputs]


def goes_on(define, run, batches=6, **settings):
    """Holds pipelines that go on behind each batch to one that is not interrupted. `run(pipeline, number)`: a batch."""
    settings = {"batch_size": SIZE, "num_threads": 2, "seed": 3, "enable_checkpointing": True, **settings}
    whole, states, expected = define(**settings), [], []
    for number in range(batches):
        states.append(whole.checkpoint())
        expected.append(run(whole, number))
    assert any(batch != expected[0] for batch in expected[1:])
    for begun, state in enumerate(states):
        again = define(**settings, checkpoint=state)
        assert [run(again, number) for number in range(begun, batches)] == expected[begun:], begun
        assert again.checkpoint() == whole.checkpoint()


@pytest.mark.parametrize("is_named", [True, False])
def test_a_checkpoint_behind_short_batches_goes_on_with_the_same_numbers(is_named):
    """A sample of each batch cannot be sliced and is left out."""

    def make(checkpoint=None):
        settings = {"seed": 3, "enable_checkpointing": True, "checkpoint": checkpoint, "on_error": "skip"}
        pipeline = Pipeline(batch_size=4, num_threads=1, prefetch_queue_depth=1, **settings)
        with pipeline:
            data = fn.external_source(name="data", ndim=1, dtype=types.FLOAT)
            pipeline.set_outputs(fn.random.uniform(data), fn.slice(data, 0, 3, axes=[0]))
        return pipeline

    def run(pipeline, size):
        data = [np.zeros(3, np.float32)] * (size - 1) + [np.zeros(2, np.float32)]
        if not is_named:
            pipeline.feed_input("data", data)
        drawn, _ = pipeline.run(**({"data": data} if is_named else {}))
        assert len(drawn) == size - 1
        return [np.array(sample).tolist() for sample in drawn]

    whole, first = make(), make()
    expected = [run(whole, size) for size in (4, 1, 3, 2, 4)]
    assert [run(first, size) for size in (4, 1, 3)] == expected[:3]
    restored = make(first.checkpoint())
    assert [run(restored, size) for size in (2, 4)] == expected[3:]
    assert restored.checkpoint() == whole.checkpoint()


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("of_data", [False, True])
def test_branches_behind_a_reader(files, depth, of_data):
    @pipeline_def(enable_conditionals=True, prefetch_queue_depth=depth)
    def define():
        data, _ = fn.readers.file(files=files, random_shuffle=True)
        data = fn.cast(data, dtype=types.FLOAT)
        is_noisy = data[0] < 4 if of_data else fn.random.coin_flip(dtype=types.BOOL)
        if is_noisy:
            data = fn.noise.gaussian(data)
        else:
            data = fn.noise.shot(data)
        return data

    goes_on(define, lambda pipeline, _: samples(pipeline.run()))


@pytest.mark.parametrize("calls", [False, True])
def test_branches_behind_what_is_fed_in_short_batches(calls):
    @pipeline_def(enable_conditionals=True, prefetch_queue_depth=1)
    def define():
        data = fn.external_source(name="data", ndim=1, dtype=types.FLOAT)
        if calls:
            data = fn.python_function(data, function=lambda array: array + 1)
        if data[0] > 2:
            data = fn.noise.gaussian(data)
        else:
            data = fn.noise.shot(data)
        return data

    def run(pipeline, number):
        size = (4, 1, 3, 2, 4, 1)[number]
        return samples(pipeline.run(data=[np.full(3, (7 * number + i) % 4, np.float32) for i in range(size)]))

    goes_on(define, run)


def test_readers_beside_short_batches_have_no_checkpoint(files):
    @pipeline_def(batch_size=SIZE, num_threads=1, prefetch_queue_depth=1, enable_checkpointing=True)
    def define():
        return fn.external_source(name="data"), fn.readers.file(files=files, name="files")[0]

    pipeline = define()
    pipeline.run(data=[np.zeros(1)] * SIZE)
    assert json.loads(pipeline.checkpoint())["readers"] == {"files": [[1, SIZE, 1]]}
    pipeline.run(data=[np.zeros(1)] * (SIZE - 1))
    with pytest.raises(RuntimeError, match="`batch_size`, 4, where readers .`files`."):
        pipeline.checkpoint()


def test_a_batch_that_failed_is_one(files):
    @pipeline_def(prefetch_queue_depth=1)
    def define():
        data, _ = fn.readers.file(files=files)
        return data, fn.random.uniform(range=[0, 1]), fn.slice(data, 0, fn.cast(data[0], dtype=types.INT32), axes=[0])

    def run(pipeline, number):
        """Files from number 5 on cannot be sliced."""
        try:
            return samples(pipeline.run())
        except RuntimeError as error:
            assert "out-of-bounds" in str(error) or "slice" in str(error).lower(), error
            return "failed"

    goes_on(define, run, batch_size=1, batches=13)


def test_a_video_goes_on_behind_one():
    video = np.fromfile(CLIPS / "vp9.webm", np.uint8)

    @pipeline_def(prefetch_queue_depth=1)
    def define():
        frames = fn.experimental.inputs.video(name="video", sequence_length=3)
        return fn.reductions.sum(frames, dtype=types.UINT64), fn.random.uniform(range=[0, 1])

    def run(pipeline, _):
        pipeline.feed_input("video", video[None])
        batches = []
        while True:
            try:
                batches.append(samples(pipeline.run()))
            except RuntimeError as error:
                assert "No data was provided" in str(error)
                return batches

    goes_on(define, run, batches=3)


@pytest.mark.parametrize("branches", [1, [1.5], [-1], [1 << 63], [True], [0, 1]])
def test_samples_of_branches_that_were_edited_are_an_error(branches):
    @pipeline_def(batch_size=SIZE, num_threads=1, enable_checkpointing=True, enable_conditionals=True)
    def define():
        like = fn.random.uniform(range=[0, 1])
        if fn.random.coin_flip(dtype=types.BOOL):
            like = fn.random.uniform(like, range=[0, 1])
        return like

    first = define()
    first.run()
    state = {**json.loads(first.checkpoint()), "branch_samples": branches}
    with pytest.raises((ValueError, RuntimeError), match="branch"):
        define(checkpoint=json.dumps(state).encode()).run()


@pytest.mark.parametrize("depth", [1, 3])
def test_samples_of_branches_are_an_error_where_there_are_none(files, depth):
    @pipeline_def(batch_size=SIZE, num_threads=2, prefetch_queue_depth=depth, enable_checkpointing=True)
    def define():
        return fn.readers.file(files=files)[0], fn.random.uniform(range=[0, 1])

    first = define()
    first.run()
    state = {**json.loads(first.checkpoint()), "branch_samples": [0, 4]}
    with pytest.raises(RuntimeError, match="samples of 2 branches, expected those of 0"):
        define(checkpoint=json.dumps(state).encode()).run()
