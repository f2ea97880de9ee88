"""Batches of one sample and of a few, whose structures stay from batch to batch: none sees anything of another."""

import functools
import os
import signal
import threading
import time

import numpy as np
import pytest
from gesso import Pipeline, fn, pipeline_def, types

BAD = np.frombuffer(b"\xff\xd8 no JPEG", np.uint8)


@pipeline_def(batch_size=12, num_threads=2, prefetch_queue_depth=1)
def two_inputs():
    return fn.copy(fn.external_source(name="a")), fn.external_source(name="b") + 0


@pytest.mark.parametrize("ndim", [0, 1, 3])
def test_batches_of_every_size_in_turn(ndim):
    pipeline, rng = two_inputs(), np.random.default_rng(1)
    kept = []
    for count in [1, 9, 1, 8, 2, 12, 1]:
        shapes = rng.integers(1, 5, (count, ndim))
        a = [rng.integers(0, 256, tuple(shape), np.uint8) for shape in shapes]
        b = [rng.random((2, 3)).astype(np.float32) for _ in range(count)]
        kept.append((a, b, pipeline.run(a=a, b=b)))
    # What was returned stays as it was, whatever ran behind it.
    for a, b, outputs in kept:
        for given, output in zip((a, b), outputs):
            assert len(output) == len(given)
            for i, array in enumerate(given):
                np.testing.assert_array_equal(np.asarray(output.at(i)), array)
                assert output.at(i).shape == array.shape


def test_a_sample_without_elements():
    pipeline = two_inputs()
    empty = np.zeros((0, 4), np.uint8)
    for _ in range(2):
        out, _ = pipeline.run(a=[empty], b=[np.ones(1, np.float32)])
        assert out.at(0).shape == (0, 4)
        out, _ = pipeline.run(a=[np.ones((2, 2), np.uint8)], b=[np.ones(1, np.float32)])
        assert out.at(0).tolist() == [[1, 1], [1, 1]]


def test_arrays_of_too_many_dimensions_are_refused():
    pipeline = two_inputs()
    with pytest.raises(RuntimeError, match="17"):
        pipeline.run(a=[np.zeros((1,) * 17, np.uint8)], b=[np.ones(1, np.float32)])


@pytest.mark.parametrize("on_error", ["raise", "mark", "skip"])
def test_the_only_sample_fails(on_error):
    pipeline = Pipeline(1, 1, None, prefetch_queue_depth=1, on_error=on_error)
    with pipeline:
        pipeline.set_outputs(fn.decoders.image(fn.external_source(name="x", dtype=types.UINT8, ndim=1)))
    for _ in range(2):
        if on_error == "raise":
            with pytest.raises(RuntimeError, match="Sample 0 of the batch failed"):
                pipeline.run(x=[BAD])
            continue
        (out,) = pipeline.run(x=[BAD])
        assert list(pipeline.errors) == [0]
        assert len(out) == (0 if on_error == "skip" else 1)


def test_where_the_only_sample_is_from():
    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1)
    def define():
        return fn.copy(fn.external_source(name="x"))

    (out,) = define().run(x=[np.ones(3, np.uint8)])
    assert out[0].source_info() == ""


def test_ctrl_c_waits_for_the_batch_and_its_handler_stays():
    pipeline, batch = two_inputs(), {"a": [np.ones(3, np.uint8)], "b": [np.ones(1, np.float32)]}
    pipeline.run(**batch)
    came = []

    def note(*_):
        came.append(threading.current_thread())

    before = signal.signal(signal.SIGINT, note)
    try:
        pipeline.run(**batch)
        assert signal.getsignal(signal.SIGINT) is note
        os.kill(os.getpid(), signal.SIGINT)
        pipeline.run(**batch)
        assert came == [threading.main_thread()]
        for default in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(signal.SIGINT, default)
            pipeline.run(**batch)
            assert signal.getsignal(signal.SIGINT) is default
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_pipeline_of_the_parent_is_refused_in_a_fork():
    pipeline, batch = two_inputs(), {"a": [np.ones(3, np.uint8)], "b": [np.ones(1, np.float32)]}
    pipeline.run(**batch)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            pipeline.run(**batch)
            os.write(write, b"it ran")
        except RuntimeError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert f"was made in process {os.getpid()} and this is its child {child}" in os.read(read, 1000).decode()
    pipeline.run(**batch)


def test_a_setup_of_a_subclass_or_of_an_object_is_called():
    calls = []

    class Own(Pipeline):
        def iter_setup(self):
            calls.append("subclass")
            self.feed_input("x", [np.ones(1, np.uint8)])

    for make in (Own, Pipeline):
        pipeline = make(1, 1, None, prefetch_queue_depth=1)
        with pipeline:
            pipeline.set_outputs(fn.external_source(name="x") + 0)
        if make is Pipeline:

            def setup(pipeline=pipeline):
                calls.append("object")
                pipeline.feed_input("x", [np.ones(1, np.uint8)])

            pipeline.iter_setup = setup
        pipeline.run()
    assert calls == ["subclass", "object"]


def test_who_begins_to_take_part_in_batches_is_called():
    pipeline, calls = two_inputs(), []
    batch = {"a": [np.ones(5000, np.uint8)], "b": [np.ones(1, np.float32)]}
    for _ in range(3):
        pipeline.run(**batch)
    pipeline.iter_setup = lambda: calls.append("setup")
    pipeline.run(**batch)
    feed = pipeline.feed_input
    pipeline.feed_input = lambda name, data: (calls.append(name), feed(name, data))
    pipeline.run(**batch)
    assert calls == ["setup", "a", "b", "setup"]


def test_ways_to_run_are_not_mixed_and_what_was_fed_goes_first():
    pipeline, other = two_inputs(), two_inputs()
    batches = [{"a": [np.full(5000, i, np.uint8)], "b": [np.full(1, i, np.float32)]} for i in range(4)]
    for batch in batches[:2]:
        pipeline.run(**batch)
    with pytest.raises(RuntimeError, match="Mixing pipeline API type"):
        pipeline.schedule_run()
    pipeline.feed_input("b", batches[2]["b"])
    a, b = pipeline.run(**batches[3])
    assert (a.at(0)[0], b.at(0)[0]) == (3, 2)
    (a, b) = pipeline.run(a=batches[1]["a"])
    assert (a.at(0)[0], b.at(0)[0]) == (1, 3)
    with pytest.raises(KeyError, match="another"):
        pipeline.run(another=[np.ones(1, np.uint8)])
    for name, data in batches[0].items():
        other.feed_input(name, data)
    other.schedule_run()
    other.outputs()
    with pytest.raises(RuntimeError, match="Mixing pipeline API type"):
        other.run(**batches[1])
    # What was fed for that run is there.
    other.schedule_run()
    assert [out.at(0)[0] for out in other.outputs()] == [1, 1]


def test_a_batch_differs_from_those_before():
    pipeline = two_inputs()
    good = {"a": [np.ones(5000, np.uint8)], "b": [np.ones(1, np.float32)]}
    for _ in range(2):
        pipeline.run(**good)
    for name, data, message in [
        ("a", [np.ones(5000, np.int32)], "Type of the data fed"),
        ("a", [np.ones((50, 100), np.uint8)], "Number of dimensions of the data fed"),
        ("a", [np.ones(5000, np.uint8)] * 2, "the same number of samples"),
        ("a", [np.ones(5000, np.uint8)] * 13, "at most 12"),
        ("a", [], "without samples"),
        ("a", [np.ones(5000, np.uint8), np.ones(5000, np.int8)], "must have the same type"),
        ("a", [np.ones(5000, np.uint8), np.ones((50, 100), np.uint8)], "differ in their number of dimensions"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            pipeline.run(**{**good, name: data})
    # The second input is refused: nothing was fed.
    with pytest.raises(RuntimeError, match="Type of the data fed"):
        pipeline.run(a=[np.full(5000, 9, np.uint8)], b=[np.ones(1, np.int32)])
    a, _ = pipeline.run(**good)
    assert a.at(0)[0] == 1


@pytest.mark.parametrize("size", [1, 5000])
def test_threads_run_a_pipeline_with_their_own_inputs(size):
    pipeline, wrong = two_inputs(), []

    def work(number):
        for i in range(50):
            value = (number * 50 + i) % 256
            a, b = pipeline.run(a=[np.full(size, value, np.uint8)], b=[np.full(1, value, np.float32)])
            if (a.at(0) != value).any() or b.at(0)[0] != value:
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_who_waits_for_data_gets_it_before_who_brings_it():
    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1)
    def define():
        return fn.copy(fn.external_source(name="x", blocking=True))

    pipeline, found = define(), {}
    data = [[np.full(5000, i, np.uint8)] for i in range(4)]
    assert pipeline.run(x=data[0])[0].at(0)[0] == 0

    def run(name, inputs):
        found[name] = pipeline.run(**inputs)[0].at(0)[0]

    first = threading.Thread(target=run, args=("first", {}))
    first.start()
    while not pipeline.runner.feeds.waiting:
        time.sleep(0.001)
    second = threading.Thread(target=run, args=("second", {"x": data[1]}))
    second.start()
    first.join(30)
    pipeline.feed_input("x", data[2])
    second.join(30)
    assert found == {"first": 1, "second": 2}


def test_a_decorated_feed_input_is_called_for_every_batch():
    calls = []

    class Doubled(Pipeline):
        @functools.wraps(Pipeline.feed_input)
        def feed_input(self, name, data, *args, **kwargs):
            calls.append(name)
            return super().feed_input(name, [2 * array for array in data], *args, **kwargs)

    pipeline = Doubled(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipeline:
        pipeline.set_outputs(fn.external_source(name="x") + 0)
    for i in range(1, 4):
        (out,) = pipeline.run(x=[np.full(2, i, np.int32)])
        assert out.at(0).tolist() == [2 * i, 2 * i]
    assert calls == ["x"] * 3


@pytest.mark.parametrize("runs_before", [0, 3])
def test_ctrl_c_in_a_run_keeps_its_batch(runs_before):
    pipeline = Pipeline(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipeline:
        pipeline.set_outputs(fn.gaussian_blur(fn.external_source(name="x"), window_size=31))
    image = np.full((900, 900, 3), 7, np.uint8)
    pipeline.build()
    for _ in range(runs_before):
        pipeline.run(x=[np.zeros((9, 9, 3), np.uint8)])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        # In the middle of the blur, which takes longer than that on any machine.
        timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            for _ in range(100):
                pipeline.run(x=[image])
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    (out,) = pipeline.run()
    np.testing.assert_array_equal(out.at(0), image)
    # The next batch is another one.
    (out,) = pipeline.run(x=[np.full((9, 9, 3), 5, np.uint8)])
    assert out.at(0).shape == (9, 9, 3) and (out.at(0) == 5).all()
