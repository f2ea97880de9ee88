"""Arrays that a batch reads where the user has them: whatever he does with them behind the call, results and later
batches are those of the data that he gave."""

import numpy as np
import pytest
from gesso import Pipeline, fn, pipeline_def, types


@pipeline_def(batch_size=4, num_threads=2, prefetch_queue_depth=1)
def copies():
    return fn.copy(fn.external_source(name="x"))


@pipeline_def(batch_size=4, num_threads=2, prefetch_queue_depth=1)
def passes():
    return fn.external_source(name="x")


def given(value, size=4096):
    return [np.full(size, value, np.uint8)]


@pytest.mark.parametrize("define", [copies, passes])
def test_a_result_is_not_the_users_memory(define):
    pipeline = define()
    data = given(1)
    for value in (1, 2, 3):
        data[0][:] = value
        (out,) = pipeline.run(x=data)
        data[0][:] = 99
        assert (np.asarray(out.at(0)) == value).all()
    (out,) = pipeline.run(x=np.stack([data[0], data[0]]))
    data[0][:] = 0
    assert (out.as_array() == 99).all()


def test_what_was_fed_before_is_kept():
    pipeline, first, second = copies(), given(1), given(2)
    pipeline.feed_input("x", first)
    first[0][:] = 99
    # This takes the first one; the second stays for the next run.
    (out,) = pipeline.run(x=second)
    second[0][:] = 99
    assert out.at(0)[0] == 1
    (out,) = pipeline.run()
    assert out.at(0)[0] == 2


@pytest.mark.parametrize("runs", [0, 2])
def test_what_a_failed_run_left_is_kept(runs):
    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1)
    def define():
        return fn.copy(fn.external_source(name="x")), fn.copy(fn.external_source(name="y"))

    pipeline, data = define(), given(2)
    for _ in range(runs):
        pipeline.run(x=given(4), y=given(5))
    # The second of two is not there.
    with pytest.raises(RuntimeError, match="no batch for the input `y`"):
        pipeline.run(x=data)
    data[0][:] = 99
    pipeline.feed_input("y", given(6))
    x, y = pipeline.run()
    assert (x.at(0)[0], y.at(0)[0]) == (2, 6)


def test_a_batch_that_is_repeated_is_kept():
    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1)
    def define():
        return fn.copy(fn.external_source(name="x", repeat_last=True))

    pipeline, data = define(), given(1)
    pipeline.run(x=data)
    data[0][:] = 99
    assert pipeline.run()[0].at(0)[0] == 1


@pytest.mark.parametrize("depth", [1, 2])
def test_a_source_that_gives_the_same_array(depth):
    data, calls = np.zeros((1, 4096), np.uint8), iter(range(1, 100))

    def source():
        data[:] = next(calls)
        return data

    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=depth)
    def define():
        return fn.copy(fn.external_source(source=source))

    pipeline = define()
    kept = [pipeline.run()[0] for _ in range(5)]
    assert [int(out.at(0)[0]) for out in kept] == [1, 2, 3, 4, 5]


def test_what_is_called_before_the_batch_may_change_the_data():
    data = given(1)

    class Own(Pipeline):
        def iter_setup(self):
            data[0][:] = 99

    pipeline = Own(1, 1, None, prefetch_queue_depth=1)
    with pipeline:
        pipeline.set_outputs(fn.copy(fn.external_source(name="x")))
    assert pipeline.run(x=data)[0].at(0)[0] == 1


def test_a_function_gets_a_copy():
    def spoil(array):
        array[:] = 7
        return array

    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1)
    def define():
        return fn.python_function(fn.external_source(name="x"), function=spoil)

    data = given(1)
    assert define().run(x=data)[0].at(0)[0] == 7
    assert (data[0] == 1).all()


@pytest.mark.parametrize("count", [1, 5000])
def test_bytes_and_arrays_of_bytes(count):
    for depth in (1, 2):

        @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=depth)
        def define():
            return fn.cast(fn.external_source(name="x"), dtype=types.INT32)

        pipeline = define()
        for _ in range(depth):
            pipeline.feed_input("x", [b"ab" * count, np.frombuffer(b"cde" * count, np.uint8)])
        (out,) = pipeline.run()
        assert [out.at(i).tolist() for i in range(2)] == [[97, 98] * count, [99, 100, 101] * count]


def test_arrays_that_are_not_dense_or_of_the_other_byte_order():
    pipeline, whole = copies(), np.arange(4096, dtype=np.int32).reshape(64, 64)
    for array in (whole[:, ::2], whole.T, whole.astype(">i4"), whole[::-1]):
        (out,) = pipeline.run(x=[array])
        np.testing.assert_array_equal(np.asarray(out.at(0)), array)
