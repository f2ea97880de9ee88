"""Functions of Python as operators of the library's plan: what they get, what they may keep and raise."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from gesso import Pipeline, fn, pipeline_def, types

SIZE = 4


def of(define, **settings):
    return pipeline_def(define, **{"batch_size": SIZE, "num_threads": 2, "seed": 7, **settings})()


def numbers(info):
    return np.full(3, info.idx_in_epoch, np.int64)


def source():
    return fn.external_source(numbers, batch=False)


def lists(outputs):
    return [[array.tolist() for array in output.arrays] for output in outputs]


def test_arrays_may_be_kept():
    seen = []

    def keep(array):
        seen.append(array)
        return array

    def define():
        given = source()
        return fn.python_function(given, function=keep), fn.python_function(given + 1, function=keep)

    pipeline = of(define)
    for _ in range(3):
        pipeline.run()
    del pipeline
    kept = sorted(int(array[0]) for array in seen[: 6 * SIZE])
    assert kept == sorted([*range(3 * SIZE), *range(1, 3 * SIZE + 1)])


def test_results_may_be_views_and_memory_that_is_used_again():
    memory = np.zeros(8, np.int64)

    def view(array):
        return array[::-2]

    def again(arrays):
        memory[:] = arrays[0][0]
        return [memory] * len(arrays)

    def define():
        given = source()
        return fn.python_function(given, function=view), fn.python_function(
            given, function=again, batch_processing=True
        )

    pipeline = of(define)
    runs = [lists(pipeline.run()) for _ in range(2)]
    assert runs[0] == [[[i, i] for i in range(SIZE)], [[0] * 8] * SIZE]
    assert runs[1] == [[[i, i] for i in range(SIZE, 2 * SIZE)], [[SIZE] * 8] * SIZE]


@pytest.mark.parametrize("depth", [1, 2])
def test_what_a_function_raises_is_the_cause_and_the_next_batch_runs(depth):
    calls = []

    def fails(arrays):
        calls.append(len(arrays))
        if len(calls) == 1:
            raise KeyError("first")
        return arrays

    pipeline = of(
        lambda: fn.python_function(source() * 2, function=fails, batch_processing=True), prefetch_queue_depth=depth
    )
    with pytest.raises(RuntimeError, match="(?s)python_function.*test_callbacks.py.*KeyError: 'first'") as caught:
        pipeline.run()
    assert isinstance(caught.value.__cause__, KeyError)
    assert lists(pipeline.run()) == [[[2 * i] * 3 for i in range(SIZE, 2 * SIZE)]]


def test_results_that_are_no_batch_are_refused():
    for function, words in (
        (lambda arrays: arrays[:-1], "3 samples, expected 4"),
        (lambda arrays: [arrays[0].astype(np.uint8), *arrays[1:]], "same type"),
        (lambda arrays: [arrays[0][0], *arrays[1:]], "number of dimensions"),
        (lambda arrays: [np.array(["text"])] * len(arrays), "numbers or truth values"),
    ):
        pipeline = of(
            lambda function=function: fn.python_function(source(), function=function, batch_processing=True) + 1
        )
        with pytest.raises(RuntimeError, match=words):
            pipeline.run()


def test_functions_without_outputs_or_inputs():
    seen = []

    def define():
        fn.python_function(source(), function=lambda array: seen.append(int(array[0])), num_outputs=0)
        return fn.python_function(function=lambda: np.float32(len(seen)))

    assert lists(of(define, prefetch_queue_depth=1).run()) == [[4.0] * SIZE] or seen == list(range(SIZE))
    assert seen == list(range(SIZE))


def test_functions_run_in_order_in_a_thread_of_python(tmp_path):
    for i in range(8):
        (tmp_path / f"{i}.bin").write_bytes(bytes([i]))
    threads, order = set(), []

    def note(array):
        threads.add(threading.current_thread().name)
        order.append(int(array[0]))
        return array

    def define():
        data, _ = fn.readers.file(files=[str(tmp_path / f"{i}.bin") for i in range(8)])
        return fn.python_function(data, function=note)

    pipeline = of(define)
    for _ in range(4):
        pipeline.run()
    assert order[:16] == [*range(8), *range(8)] and not any("Dummy" in name for name in threads)
    assert pipeline.runner.execution.run.is_read_by_library


def test_functions_are_not_called_for_batches_before_a_checkpoint():
    calls = []

    def note(array):
        calls.append(1)
        return array

    def define():
        drawn = fn.random.uniform(range=[0, 1])
        return drawn, fn.python_function(drawn, function=note)

    settings = {"enable_checkpointing": True, "prefetch_queue_depth": 1}
    first = of(define, **settings)
    expected = [lists(first.run()) for _ in range(5)]
    again = of(define, **settings)
    for _ in range(3):
        again.run()
    state = again.checkpoint()
    calls.clear()
    restored = of(define, **settings, checkpoint=state)
    assert [lists(restored.run()) for _ in range(2)] == expected[3:] and len(calls) == 2 * SIZE


def test_errors_of_samples_before_a_function():
    def define():
        data = fn.external_source(lambda: [b"none"] * 2 + [picture()] * 2, layout="")
        return fn.python_function(fn.decoders.image(data), function=lambda array: array[:1])

    outputs = of(define, on_error="mark").run()
    assert [array.shape for array in outputs[0].arrays][2:] == [(1, 5, 3)] * 2
    with pytest.raises(RuntimeError, match="(?s)decoders.image.*Sample 0 of the batch failed"):
        of(define).run()


def picture():
    return b"P6 5 4 255\n" + bytes(range(60))


ENDLESS = """
import threading, time
import numpy as np
from gesso import fn, pipeline_def

begun = threading.Event()

def endless(array):
    begun.set()
    while True:
        array = array + 1

@pipeline_def(batch_size=1, num_threads=1)
def define():
    return fn.python_function(fn.constant(idata=1), function=endless)

pipeline = define()
pipeline.schedule_run()
begun.wait()
print("over")
"""


def test_a_function_that_never_ends_does_not_keep_the_program():
    done = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "over\n"), done.stderr


def test_pipelines_with_functions_go_when_nobody_has_them():
    import gc
    import weakref

    pipeline = of(lambda: fn.python_function(source(), function=lambda array: array))
    pipeline.run()
    left = weakref.ref(pipeline)
    del pipeline
    gc.collect()
    assert left() is None


def test_layouts_that_functions_give():
    def define():
        image = fn.constant(idata=[1] * 12, shape=[2, 2, 3], dtype=types.UINT8)
        return fn.resize(fn.python_function(image, function=lambda array: array, output_layouts="HWC"), size=[4, 4])

    assert [batch.layout() for batch in of(define).run()] == ["HWC"]
    pipeline = Pipeline(SIZE, 1)
    with pipeline:
        pipeline.set_outputs(fn.python_function(source(), function=lambda array: array, output_layouts="HW"))
    with pytest.raises(RuntimeError, match="HW.*cannot describe 1-dimensional"):
        pipeline.run()
