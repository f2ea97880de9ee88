"""What a call of `run` gives is given as a whole: a call that is refused leaves nothing, and one that misses an input
what it had, so that later batches are not made of the data of different calls."""

import numpy as np
import pytest
from gesso import Pipeline, fn

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
