"""What a call of `run` gives is given as a whole: a call that is refused leaves nothing, and one that misses an input
what it had, so that later batches are not made of the data of different calls."""

import numpy as np
import pytest
from gesso import Pipeline, fn, pipeline_def, types

# Large arrays are read where they are, small ones are copied.
SIZES = [3, 5000]


def data(value, size, dtype=np.float32):
    return [np.full(size, value, dtype)]


def two(make=Pipeline, **settings):
    pipeline = make(4, 1, None, **{"prefetch_queue_depth": 1, **settings})
    with pipeline:
        pipeline.set_outputs(fn.external_source(name="image") + 0, fn.external_source(name="label") + 0)
    return pipeline


def values(outputs):
    return [float(output.at(0)[0]) for output in outputs]


class Ten(Pipeline):
    """Changes what it is fed."""

    def feed_input(self, data_node, data, *arguments, **named):
        super().feed_input(data_node, [array * 10 for array in data], *arguments, **named)


class Refuses(Pipeline):
    """Has a check of its own."""

    def feed_input(self, data_node, data, *arguments, **named):
        if len(data) > 2:
            raise StopIteration
        super().feed_input(data_node, data, *arguments, **named)


# What is refused always, and what behind other batches.
REFUSED = {"no batch": 5, "empty": [], "texts": [np.array(["text"])], "too many": data(1, 3) * 5}
DIFFERENT = {"another type": data(1, 3, np.float64), "another rank": [np.ones((3, 3), np.float32)]}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("bad", ["image", "label"])
@pytest.mark.parametrize("what, runs", [*((what, 0) for what in REFUSED), *((what, 2) for what in REFUSED | DIFFERENT)])
def test_of_a_refused_call_nothing_is_left(what, runs, bad, size):
    pipeline = two()
    for _ in range(runs):
        pipeline.run(image=data(0, size), label=data(0, size))
    with pytest.raises((RuntimeError, TypeError)):
        pipeline.run(**{"image": data(1, size), "label": data(1, size), bad: (REFUSED | DIFFERENT)[what]})
    for i in (2, 3):
        assert values(pipeline.run(image=data(i, size), label=data(i, size))) == [i, i]


@pytest.mark.parametrize("size", SIZES)
def test_an_input_that_the_pipeline_has_not_refuses_the_others(size):
    pipeline = two()
    for i in (1, 2):
        with pytest.raises(KeyError, match="another"):
            pipeline.run(image=data(9, size), label=data(9, size), another=data(9, size))
        assert values(pipeline.run(image=data(i, size), label=data(i, size))) == [i, i]


@pytest.mark.parametrize("size", SIZES)
def test_a_refused_call_does_not_say_what_later_ones_are(size):
    pipeline = two()
    with pytest.raises(RuntimeError):
        pipeline.run(image=[np.ones((size, 1), np.uint8)], label=5)
    assert values(pipeline.run(image=data(2, size), label=data(2, size))) == [2, 2]


@pytest.mark.parametrize("make, times, error", [(Ten, 10, RuntimeError), (Refuses, 1, StopIteration)])
def test_of_a_refused_call_nothing_is_left_by_a_subclass(make, times, error):
    pipeline = two(make)
    pipeline.run(image=data(0, 3), label=data(0, 3))
    with pytest.raises(error):
        pipeline.run(image=data(1, 3), label=data(1, 3) * 5)
    for i in (2, 3):
        assert values(pipeline.run(image=data(i, 3), label=data(i, 3))) == [times * i, times * i]


def test_what_was_fed_before_a_refused_call_stays():
    pipeline = two()
    pipeline.feed_input("label", data(1, 3))
    with pytest.raises(RuntimeError):
        pipeline.run(image=data(9, 3), label=[])
    assert values(pipeline.run(image=data(2, 3))) == [2, 1]


def test_a_video_of_a_refused_call_is_not_read():
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def define():
        video = fn.experimental.inputs.video(name="video", sequence_length=1)
        return video, fn.external_source(name="beside", dtype=types.UINT8)

    pipeline = define()
    pipeline.build()
    with pytest.raises(RuntimeError, match="without samples"):
        pipeline.run(video=data(1, 100, np.uint8), beside=[])
    with pytest.raises(RuntimeError, match="No data was provided to the input `video`"):
        pipeline.run(beside=data(1, 3, np.uint8))


@pytest.mark.parametrize("size", SIZES)
def test_what_a_call_without_an_input_had_waits_for_that_input(size):
    pipeline, image = two(), data(1, size)
    with pytest.raises(RuntimeError, match="no batch for the input `label`"):
        pipeline.run(image=image)
    image[0][:] = 99
    assert values(pipeline.run(label=data(2, size))) == [1, 2]
    with pytest.raises(RuntimeError, match="no batch for the input `image`"):
        pipeline.run(label=data(4, size))
    assert values(pipeline.run(image=data(3, size))) == [3, 4]
    assert values(pipeline.run(image=data(5, size), label=data(6, size))) == [5, 6]


def test_what_was_fed_waits_for_a_batch_that_has_all():
    pipeline = two(prefetch_queue_depth=2)
    for i in (1, 2):
        pipeline.feed_input("image", data(i, 3))
    pipeline.schedule_run()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no batch for the input `label`"):
            pipeline.outputs()
    for i in (1, 2):
        pipeline.feed_input("label", data(i, 3))
        pipeline.schedule_run()
        assert values(pipeline.outputs()) == [i, i]
