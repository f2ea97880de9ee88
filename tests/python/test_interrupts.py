"""Ctrl-C at any moment, threads that share a pipeline, a function that runs its own pipeline: no batch is lost or comes
twice, nobody waits for ever."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from gesso import Pipeline, fn

HEAD = """
import os, random, signal, threading, time
import numpy as np
from gesso import Pipeline, fn

def source(info):
    return np.full(3, info.idx_in_epoch, np.int64)

def define(**settings):
    parallel = "py_num_workers" in settings
    made = Pipeline(4, 2, **settings)
    with made:
        made.set_outputs(fn.copy(fn.external_source(source, batch=False, parallel=parallel)))
    return made

# Who starts the tests in the background of a script has Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
seen, numbers, over = [], random.Random(1), threading.Event()

def interrupt():
    for _ in range(COUNT):
        time.sleep(numbers.random() * 0.02)
        os.kill(os.getpid(), signal.SIGINT)
    over.set()
"""
LOOP = """
running = threading.Thread(target=interrupt)
started = False
while not over.is_set():
    try:
        if not started:
            started = True
            running.start()
        while not over.is_set():
            seen.append(int(np.asarray(pipeline.run()[0][0])[0]) // 4)
    except KeyboardInterrupt:
        pass
running.join()
# One that came in a destructor is told by the next call.
while True:
    try:
        seen.append(int(np.asarray(pipeline.run()[0][0])[0]) // 4)
        break
    except KeyboardInterrupt:
        pass
print(len(seen), [b - a for a, b in zip(seen, seen[1:]) if b - a != 1])
"""


def interrupted(settings, count):
    """How often batches did not follow one another."""
    script = HEAD.replace("COUNT", str(count)) + f"pipeline = define({settings})\npipeline.run()\n" + LOOP
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    count, _, steps = done.stdout.strip().partition(" ")
    assert int(count) > 1
    return steps.count(",") + 1 if steps != "[]" else 0


@pytest.mark.parametrize(
    "settings",
    ["", "prefetch_queue_depth=1", "py_num_workers=2, py_start_method='fork'"],
    ids=["ahead", "at once", "in workers"],
)
def test_ctrl_c_loses_no_batch_and_the_next_run_goes_on(settings):
    # One that comes between the end of `run` and the next line is lost for the caller, not here: one in fifty, and more
    # where others use the cores.
    assert interrupted(settings, 40) <= 4


def numbered(info):
    return np.full(3, info.idx_in_epoch, np.int32)


@pytest.mark.parametrize("depth", [1, 2])
def test_threads_share_a_pipeline(depth):
    pipeline = Pipeline(4, 2, prefetch_queue_depth=depth)
    with pipeline:
        pipeline.set_outputs(fn.copy(fn.external_source(numbered, batch=False)))
    found, interval = [], sys.getswitchinterval()

    def work():
        for _ in range(40):
            found.append([int(array[0]) for array in pipeline.run()[0].arrays])

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert sorted(found) == [[4 * i + k for k in range(4)] for i in range(160)]


@pytest.mark.parametrize("depth", [1, 2])
def test_a_function_cannot_run_its_own_pipeline(depth):
    pipeline = Pipeline(1, 1, prefetch_queue_depth=depth)

    def again(array):
        pipeline.run()
        return array

    with pipeline:
        pipeline.set_outputs(
            fn.python_function(fn.external_source(lambda info: np.zeros(3), batch=False), function=again)
        )
    with pytest.raises(RuntimeError, match="run by a function that it calls itself"):
        pipeline.run()


def test_an_interrupt_is_told_once_and_by_the_handler_that_was_there():
    from gesso._threads.interrupts import held, let

    told = []
    before = signal.signal(signal.SIGINT, lambda *_: told.append(1))
    try:
        with held():
            with held():
                os.kill(os.getpid(), signal.SIGINT)
            assert told == []
            with let():
                assert told == [1]
                os.kill(os.getpid(), signal.SIGINT)
                assert told == [1, 1]
            os.kill(os.getpid(), signal.SIGINT)
            assert told == [1, 1]
        assert told == [1, 1, 1]
    finally:
        signal.signal(signal.SIGINT, before)


class Stopped(Exception):
    """What a handler of the user's raises."""


def told_by(handler, function):
    """What `function` raises while Ctrl-C goes to `handler`."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        function()
    except BaseException as error:
        return error
    finally:
        signal.signal(signal.SIGINT, before)
    return None


def stop(*_):
    raise Stopped


def leave(*_):
    sys.exit(3)


@pytest.mark.parametrize("handler, error", [(stop, Stopped), (leave, SystemExit)])
@pytest.mark.parametrize("depth, runs", [(1, 0), (1, 2), (2, 0)])
def test_what_a_handler_of_the_users_raises_loses_no_batch(depth, runs, handler, error, monkeypatch):
    pipeline = Pipeline(4, 2, None, prefetch_queue_depth=depth)
    with pipeline:
        pipeline.set_outputs(fn.external_source(name="x") + 0)
    pipeline.build()
    for i in range(runs):
        pipeline.run(x=[np.full(3, i)])
    given = {"x": [np.full(3, 7)]}
    if depth > 1:
        for value in (7, 8):
            pipeline.feed_input("x", [np.full(3, value)])
        given = {}
    make, came = pipeline.runner.execution.make, []

    def interrupted(fed, taken):
        made = make(fed, taken)
        if not came:
            came.append(os.kill(os.getpid(), signal.SIGINT))
        return made

    monkeypatch.setattr(pipeline.runner.execution, "make", interrupted)
    assert type(told_by(handler, lambda: pipeline.run(**given))) is error
    assert pipeline.runner.epochs.consumed == runs
    assert pipeline.run()[0].at(0)[0] == 7
    assert pipeline.runner.epochs.consumed == runs + 1
    if depth > 1:
        pipeline.feed_input("x", [np.full(3, 9)])
        assert pipeline.run()[0].at(0)[0] == 8


def test_an_error_of_a_batch_is_no_interrupt():
    pipeline = Pipeline(1, 1, None, prefetch_queue_depth=1)

    def fails(array):
        if array[0] == 1:
            raise Stopped
        return array

    with pipeline:
        pipeline.set_outputs(fn.python_function(fn.external_source(name="x"), function=fails))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="Stopped"):
            pipeline.run(x=[np.ones(3)])
        assert pipeline.empty()
        assert pipeline.run(x=[np.zeros(3)])[0].at(0)[0] == 0
