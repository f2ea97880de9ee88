"""Running: inputs of every kind, epochs, errors, outputs."""

import ctypes
import threading

import numpy as np
import pytest
from gesso import Pipeline, TensorCPU, TensorGPU, TensorListCPU, fn, pipeline_def, types
from gesso._threads import background


def of_source(source, **settings):
    keywords = {
        key: settings.pop(key)
        for key in list(settings)
        if key not in ("prefetch_queue_depth", "py_num_workers", "seed")
    }

    @pipeline_def(batch_size=4, num_threads=2, **settings)
    def define():
        return fn.external_source(source, **keywords)

    return define()


def test_a_callable_gets_the_number_of_the_batch():
    pipeline = of_source(lambda i: np.full((4, 2), i, np.int32))
    assert [int(pipeline.run()[0].as_array()[0, 0]) for _ in range(3)] == [0, 1, 2]


def test_samples_are_asked_for_one_by_one():
    pipeline = of_source(lambda info: np.array([info.idx_in_epoch, info.idx_in_batch]), batch=False)
    pipeline.run()
    np.testing.assert_array_equal(pipeline.run()[0].as_array(), [[4, 0], [5, 1], [6, 2], [7, 3]])


@pytest.mark.parametrize("cycle, counts", [(None, [2, 0]), ("quiet", [5, 5]), ("raise", [2, 2])])
def test_iterables_end_and_begin_again(cycle, counts):
    data = [[np.zeros(1)] * 4, [np.ones(1)] * 4]
    pipeline = of_source(data, cycle=cycle)
    for count in counts:
        found = 0
        with pytest.raises(StopIteration) if cycle != "quiet" else pytest.raises(ZeroDivisionError):
            for _ in range(5):
                pipeline.run()
                found += 1
            raise ZeroDivisionError
        assert found == count
        pipeline.reset()


def test_several_outputs_and_ragged_batches():
    @pipeline_def(batch_size=2, num_threads=1)
    def define():
        return tuple(fn.external_source(lambda: ([np.zeros(2), np.zeros(3)], np.ones((2, 1))), num_outputs=2))

    first, second = define().run()
    assert first.shape() == [(2,), (3,)]
    assert second.as_array().shape == (2, 1)


def test_inputs_by_name():
    pipeline = Pipeline(batch_size=3, num_threads=1, prefetch_queue_depth=1)
    with pipeline:
        pipeline.set_outputs(fn.external_source(name="x", layout="HW") + 1)
    (out,) = pipeline.run(x=np.zeros((2, 4, 5), np.uint8))
    assert out.dtype == types.INT32 and out.layout() == "HW" and len(out) == 2
    with pytest.raises(RuntimeError, match="expected data with 2 dimensions"):
        pipeline.run(x=np.zeros((2, 4, 5, 1), np.uint8))


def test_batches_that_were_not_fed_are_an_error():
    pipeline = Pipeline(batch_size=3, num_threads=1, prefetch_queue_depth=1)
    with pipeline:
        pipeline.set_outputs(fn.external_source(name="x"))
    with pytest.raises(RuntimeError, match="no batch for the input `x`"):
        pipeline.run()


def damaged(on_error):
    @pipeline_def(batch_size=2, num_threads=1, on_error=on_error, prefetch_queue_depth=1)
    def define():
        shapes = fn.external_source(lambda: [np.array([2, 3], np.int32), np.array([2, 4], np.int32)])
        return fn.reshape(fn.external_source(lambda: [np.zeros(6), np.zeros(6)]), shape=shapes)

    return define()


def test_a_failed_sample_stops_or_is_left_out_or_is_empty():
    with pytest.raises(RuntimeError, match=r"test_running.py[\s\S]*Sample 1"):
        damaged("raise").run()
    assert damaged("skip").run()[0].shape() == [(2, 3)]
    pipeline = damaged("mark")
    assert pipeline.run()[0].shape() == [(2, 3), (0, 0)]
    assert list(pipeline.errors) == [1]


def test_a_loaded_file_takes_what_no_file_says():
    @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
    def define():
        return fn.reshape(fn.external_source(name="x"), shape=fn.external_source(name="shape"))

    written = define().serialize()
    given = {"x": [np.zeros(6), np.zeros(6)], "shape": [np.array([2, 3], np.int32), np.array([2, 4], np.int32)]}
    loaded = Pipeline.deserialize(written, on_error="skip", gpu_multiprocessors=8)
    assert loaded.run(**given)[0].shape() == [(2, 3)] and loaded.gpu_multiprocessors == 8
    with pytest.raises(RuntimeError, match="Sample 1 of the batch failed"):
        Pipeline.deserialize(written).run(**given)
    with pytest.warns(UserWarning, match="`batchsize`"):
        Pipeline.deserialize(written, batchsize=2)


def test_a_batch_of_which_no_sample_is_left():
    def define(on_error):
        @pipeline_def(batch_size=2, num_threads=1, on_error=on_error, prefetch_queue_depth=1)
        def pipeline():
            return fn.reshape(
                fn.external_source(lambda: [np.zeros(6)] * 2),
                shape=fn.external_source(lambda: [np.array([5], np.int32)] * 2),
            )

        return pipeline()

    with pytest.raises(RuntimeError, match=r"Sample 0 of the batch failed[\s\S]*does not fit the shape"):
        define("raise").run()
    pipeline = define("skip")
    assert len(pipeline.run()[0]) == 0 and list(pipeline.errors) == [0, 1]
    assert define("mark").run()[0].shape() == [(0,), (0,)]
    from gesso import dynamic

    with pytest.raises(RuntimeError, match="does not fit the shape"):
        dynamic.reshape(np.zeros(6, np.float32), shape=[5])


@pytest.mark.parametrize("on_error, shapes", [("skip", [(2, 3), (2, 3)]), ("mark", [(2, 3), (0, 0), (2, 3)])])
def test_failed_samples_pass_python_functions_by(on_error, shapes):
    @pipeline_def(batch_size=3, num_threads=1, on_error=on_error, prefetch_queue_depth=1)
    def define():
        shape = fn.external_source(lambda info: np.array([2, 3 + info.idx_in_batch % 2], np.int32), batch=False)
        x = fn.reshape(fn.external_source(lambda: [np.zeros(6)] * 3), shape=shape)
        return fn.python_function(x, function=lambda a: a + 1) + 1

    pipeline = define()
    (out,) = pipeline.run()
    assert out.shape() == shapes and list(pipeline.errors) == [1]
    assert out.at(0).tolist() == [[2.0] * 3] * 2


def test_python_functions_by_sample_and_by_batch():
    @pipeline_def(batch_size=3, num_threads=1, seed=1)
    def define():
        x = fn.random.uniform(range=[0, 1], shape=[2])
        y = fn.python_function(x, function=lambda a: a * 2) + 1
        z, w = fn.python_function(
            y, function=lambda batch: (batch, [a - 1 for a in batch]), num_outputs=2, batch_processing=True
        )
        return x, z, w

    x, z, w = (out.as_array() for out in define().run())
    np.testing.assert_allclose(z, x * 2 + 1, rtol=1e-6)
    np.testing.assert_allclose(w, x * 2, rtol=1e-5)


def test_random_numbers_stay_when_a_function_cuts_the_graph():
    def numbers(cut):
        @pipeline_def(batch_size=3, num_threads=1, seed=5)
        def define():
            first = fn.random.uniform()
            if cut:
                first = fn.python_function(first, function=lambda a: a)
            return first, fn.random.normal(first)

        return [out.as_array() for out in define().run()]

    for with_cut, without in zip(numbers(True), numbers(False)):
        np.testing.assert_array_equal(with_cut, without)


def _in_worker(info):
    if info.iteration == 3:
        raise StopIteration
    return np.full((2,), info.idx_in_epoch)


def test_sources_in_processes_keep_their_order():
    pipeline = of_source(_in_worker, batch=False, parallel=True, py_num_workers=2)
    for _ in range(2):
        batches = [out.as_array()[:, 0].tolist() for (out,) in pipeline]
        assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def _dies(info):
    import os

    os._exit(3)


def test_a_dead_worker_is_an_error():
    pipeline = of_source(_dies, batch=False, parallel=True, py_num_workers=1)
    with pytest.raises(RuntimeError, match="exit code 3"):
        pipeline.run()


def test_tensors_share_memory_with_numpy():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = TensorCPU(array, "HW")
    assert tensor.data_ptr() == array.ctypes.data
    assert np.from_dlpack(tensor).tolist() == array.tolist()
    batch = TensorListCPU([tensor, TensorCPU(array[:1].copy(), "HW")])
    assert batch.shape() == [(2, 3), (1, 3)] and batch.layout() == "HW"
    with pytest.raises(RuntimeError, match="same shape"):
        batch.as_array()
    assert "shape=[(2, 3), (1, 3)]" in str(batch)


@pytest.mark.parametrize("make", [TensorCPU, TensorGPU])
def test_a_tensor_is_given_on_its_own_device_alone(make):
    array = np.arange(6, dtype=np.float32)
    tensor = make(array)
    for device in (None, (1, 0), tensor.__dlpack_device__()):
        capsule = TensorCPU(tensor.__dlpack__(dl_device=device))
        assert capsule.data_ptr() == array.ctypes.data
    for device in ((2, 0), (1, 1), (3, 0), (-1, 0), (), (1,), [2, 0], 1, "cpu"):
        with pytest.raises(BufferError, match=r"it is on the device \(1, 0\), and was asked for on"):
            tensor.__dlpack__(dl_device=device)
    assert TensorCPU(tensor.__dlpack__(copy=True)).data_ptr() != array.ctypes.data
    array.flags.writeable = False
    assert TensorCPU(tensor.__dlpack__()).data_ptr() != array.ctypes.data
    with pytest.raises(BufferError):
        tensor.__dlpack__(copy=False)


# --- functions that feed


@pytest.mark.parametrize("ahead, settings", [(1, {}), (3, {}), (1, {"exec_pipelined": False, "exec_async": False})])
def test_sources_are_called_by_who_runs_the_pipeline_once_a_batch(ahead, settings):
    """As DALI 2.4 does: programs see when they are called, by whom, and where what they raise comes out."""
    calls, others = [], []

    def source():
        calls.append(threading.get_ident())
        if len(calls) == 6:
            raise ValueError("none")
        return [np.int32([len(calls) - 1])] * 2

    class Sources(Pipeline):
        def iter_setup(self):
            others.append("setup")

    made = Sources(2, 1, None, prefetch_queue_depth=2 if settings else ahead, **settings)
    with made:
        made.set_outputs(fn.external_source(source), fn.external_source(lambda: others.append("other") or [0, 0]))
    made.build()
    assert calls == []
    counts, found = [], []
    for _ in range(6):
        try:
            found.append(made.run()[0].at(0).item())
        except ValueError:
            found.append("none")
        counts.append(len(calls))
    assert set(calls) == {threading.get_ident()}
    assert counts[:3] == [ahead, ahead + 1, ahead + 2] and others[:2] == ["other", "setup"]
    fails_at = 6 - ahead
    assert found == [*range(fails_at), "none", *range(fails_at, 5)][:6]


def test_calls_behind_the_end_fail():
    """At the end of a program threads of others may still ask: they get an error and do not wait."""
    ahead = background.Ahead()
    assert ahead.submit(int, "3").result(timeout=10) == 3
    ahead._calls.put(None)
    with pytest.raises(RuntimeError, match="the program ends"):
        for _ in range(1000):
            ahead.submit(int, "3").result(timeout=10)


class Stream:
    """A stream as a framework has it."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


@pytest.mark.parametrize("given", [[np.ones(3)], np.ones(3), "0", 1.5, {"x": 1}, object()])
def test_only_a_stream_has_no_name(given):
    pipeline = Pipeline(4, 1, None, prefetch_queue_depth=1)
    with pipeline:
        pipeline.set_outputs(fn.external_source(name="x") + 0)
    pipeline.feed_input("x", [np.zeros(3)])
    for run in (pipeline.run, pipeline.outputs, pipeline.share_outputs):
        with pytest.raises(TypeError, match=f"expected a CUDA stream: .*; found a `{type(given).__name__}`"):
            run(given)
    for stream in (0, ctypes.c_void_p(0), Stream(cuda_stream=5), Stream(__cuda_stream__=lambda: (0, 5)), Stream(ptr=5)):
        pipeline.feed_input("x", [np.ones(3)])
        assert len(pipeline.run(stream)[0]) == 1
    # Nothing was taken by the calls that were refused.
    assert pipeline.run()[0].at(0).tolist() == [1, 1, 1]
