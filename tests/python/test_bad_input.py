"""What users do wrong, and what happens to them: every mistake is an error that names the argument, what was expected
and found, and never a wait."""

import os
import signal
import subprocess
import sys
import threading
import traceback

import numpy as np
import pytest
from gesso import Pipeline, fn, pipeline_def, types


@pipeline_def(batch_size=2, num_threads=1)
def of(build):
    return build()


def image():
    return fn.random.uniform(shape=[4, 4, 3])


@pytest.mark.parametrize(
    "build, error, words",
    [
        (lambda: fn.resize(image(), size="abc"), ValueError, ["`size`", "fn.resize", "a number", "'abc'", "str"]),
        (lambda: fn.resize(image(), size={"a": 1}), TypeError, ["`size`", "{'a': 1}", "dict"]),
        (lambda: fn.rotate(image(), angle=[1, 2]), TypeError, ["`angle`", "expected a number", "[1, 2]"]),
        (lambda: fn.cast(image(), dtype="float"), ValueError, ["`dtype`", "types.DALIDataType", "'float'"]),
        (lambda: fn.cast(image(), dtype=np.complex64), TypeError, ["`dtype`", "no elements", "numpy.complex64"]),
        (lambda: fn.cast(image(), dtype=777), ValueError, ["`dtype`", "777"]),
        (
            lambda: fn.resize(image(), size=[2, 2], interp_type="linear"),
            ValueError,
            ["`interp_type`", "types.DALIInterpType"],
        ),
        (lambda: fn.resize(image(), size=[2, 2], antialias="no"), TypeError, ["`antialias`", "True or False", "'no'"]),
        (lambda: fn.random.uniform(shape=[float("nan")]), ValueError, ["`shape`", "an integer", "nan"]),
        (lambda: fn.random.uniform(shape=[10**30]), ValueError, ["`shape`", "64 bits"]),
        (lambda: fn.reshape(image(), layout=5), TypeError, ["`layout`", "a text", "5"]),
        (lambda: fn.resize(image(), size=[2, 2], name=5), TypeError, ["name", "fn.resize", "5"]),
        (lambda: fn.resize(image(), sizes=[2, 2]), KeyError, ["sizes", "Resize", "Did you mean", "size"]),
        (lambda: fn.resize(image(), size=[2, 2], device="tpu"), ValueError, ["tpu"]),
        (lambda: fn.external_source(name="x", dtype="uint8"), ValueError, ["`dtype`", "fn.external_source", "'uint8'"]),
        (lambda: fn.external_source(name="x", layout=5), TypeError, ["`layout`", "a text"]),
        (lambda: fn.external_source(5), TypeError, ["`source`", "a function"]),
        (lambda: fn.python_function(image(), function=5), TypeError, ["`function`", "callable"]),
        (lambda: image() + "a", TypeError, ["'bool', 'int' or 'float'", "str"]),
        (lambda: image()["a"], TypeError, ["index", "str"]),
        (lambda: fn.resize(None, size=[2, 2]), TypeError, ["fn.resize", "input `0`", "NoneType"]),
    ],
)
def test_a_wrong_argument_is_named_at_the_users_line(build, error, words):
    with pytest.raises(error) as caught:
        of(build)
    for word in words:
        assert word in str(caught.value), caught.value
    assert any(
        frame.filename == __file__ and "fn." in (frame.line or "") or frame.name == "<lambda>"
        for frame in traceback.extract_tb(caught.tb)
    )


@pytest.mark.parametrize(
    "settings, error, words",
    [
        ({"batch_size": "a"}, TypeError, ["`batch_size`", "an integer", "'a'"]),
        ({"batch_size": 2.5}, TypeError, ["`batch_size`", "2.5"]),
        ({"batch_size": 0}, RuntimeError, ["`batch_size`", "at least 1", "0"]),
        ({"num_threads": "x"}, TypeError, ["`num_threads`", "'x'"]),
        ({"device_id": "cuda:0"}, TypeError, ["`device_id`", "'cuda:0'"]),
        ({"seed": "x"}, TypeError, ["`seed`", "'x'"]),
        ({"prefetch_queue_depth": "x"}, TypeError, ["prefetch_queue_depth", "'x'"]),
        ({"prefetch_queue_depth": 0}, ValueError, ["prefetch_queue_depth", "at least 1", "0"]),
        ({"on_error": "ignore"}, ValueError, ["on_error", "skip", "ignore"]),
        ({"gpu_multiprocessors": 0}, ValueError, ["`gpu_multiprocessors`", "at least 1", "0"]),
        ({"gpu_multiprocessors": "all"}, TypeError, ["`gpu_multiprocessors`", "'all'"]),
        ({"batchsize": 2}, TypeError, ["batchsize"]),
    ],
)
def test_a_wrong_setting_of_the_pipeline_is_named(settings, error, words):
    with pytest.raises(error) as caught:
        of(image, **settings).build()
    for word in words:
        assert word in str(caught.value), caught.value


def test_deprecated_names_are_told_at_the_users_line():
    with pytest.warns(DeprecationWarning, match="equalize") as told:
        of(lambda: fn.experimental.equalize(fn.cast(image(), dtype=types.UINT8)))
    assert [warning.filename for warning in told] == [__file__]


def test_automatic_augmentations_warn_of_nothing(recwarn):
    from gesso.auto_aug import trivial_augment

    @pipeline_def(batch_size=2, num_threads=1, enable_conditionals=True)
    def define():
        return trivial_augment.trivial_augment_wide(
            fn.constant(idata=[0] * 48, shape=[4, 4, 3], dtype=types.UINT8, layout="HWC")
        )

    define().serialize()
    assert not recwarn.list


def test_errors_inside_of_branches_name_the_users_line():
    @pipeline_def(batch_size=2, num_threads=1, enable_conditionals=True)
    def define():
        x = image()
        if fn.random.coin_flip():
            x = fn.resize(x, size="abc")
        return x

    with pytest.raises(ValueError, match="`size`") as caught:
        define()
    lines = [frame.line for frame in traceback.extract_tb(caught.tb) if frame.filename == __file__]
    assert any('fn.resize(x, size="abc")' in line for line in lines), lines


def test_errors_while_running_name_the_line_of_the_if():
    @pipeline_def(batch_size=2, num_threads=1, enable_conditionals=True)
    def define():
        x = image()
        if fn.random.coin_flip():
            y = fn.reshape(x, shape=[7])
        else:
            y = fn.reshape(x, shape=[48])
        return y

    with pytest.raises(
        RuntimeError, match=r"in define\n +if fn.random.coin_flip[\s\S]*y = fn.reshape\(x, shape=\[7\]\)"
    ):
        for _ in range(10):
            define(seed=1).run()


def test_a_cycle_is_told_with_its_operators():
    pipeline = Pipeline(batch_size=2, num_threads=1)
    with pipeline:
        first = fn.cast(image(), dtype=types.FLOAT, name="first")
        second = fn.cast(first, dtype=types.INT32, name="second")
        first.source.inputs[0] = second
        pipeline.set_outputs(second)
    with pytest.raises(RuntimeError, match=r'cycle[\s\S]*"second" of .*test_bad_input.py[\s\S]*"first"'):
        pipeline.build()


def test_operators_of_another_pipeline_are_refused():
    one, other = Pipeline(batch_size=2, num_threads=1), Pipeline(batch_size=2, num_threads=1)
    with one:
        theirs = fn.random.uniform(name="theirs")
    with other:
        other.set_outputs(theirs + 1)
    with pytest.raises(RuntimeError, match=r'another pipeline[\s\S]*"theirs" of .*test_bad_input.py'):
        other.build()


class Mine(Exception):
    pass


def raises(_info):
    raise Mine("of the user")


def test_a_callback_that_raises():
    with pytest.raises(Mine, match="of the user") as caught:
        of(lambda: fn.external_source(raises)).run()
    assert any(frame.name == "raises" for frame in traceback.extract_tb(caught.tb))
    with pytest.raises(RuntimeError, match=r"python_function[\s\S]*test_bad_input.py[\s\S]*Mine: of the user"):
        of(lambda: fn.python_function(image(), function=raises)).run()
    with pytest.raises(RuntimeError, match="Mine: of the user"):
        of(lambda: fn.external_source(raises, batch=False, parallel=True), py_num_workers=1).run()


@pytest.mark.parametrize(
    "given, error, words",
    [
        (lambda: {"a": 1}, RuntimeError, ["a list of tensors"]),
        (lambda: [np.array("a"), np.array("b")], TypeError, ["<U1", "numbers"]),
        (lambda: [np.zeros(2), np.zeros((2, 2))], RuntimeError, ["number of dimensions"]),
        (lambda: [np.zeros(2), np.zeros(2, np.float32)], RuntimeError, ["same type", "sample 1"]),
        (lambda: [np.zeros(2)] * 3, RuntimeError, ["a batch of 3", "at most"]),
        (lambda: None, RuntimeError, ["a list of tensors"]),
    ],
)
def test_a_callback_that_gives_what_it_should_not(given, error, words):
    with pytest.raises(error) as caught:
        of(lambda: fn.external_source(given)).run()
    for word in words:
        assert word in str(caught.value), caught.value


WAITING = """
import os, signal, threading, time
from gesso import fn, pipeline_def

def forever(_info):
    while True:
        time.sleep(0.05)

@pipeline_def(batch_size=2, num_threads=1, py_num_workers=1)
def define():
    return {}

# Who starts the tests in the background of a script has Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
pipeline = define()
pipeline.build()
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    pipeline.run()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize(
    "what",
    [
        "fn.external_source(forever)",
        "fn.external_source(forever, batch=False, parallel=True)",
        "fn.python_function(fn.random.uniform(), function=forever)",
    ],
)
def test_a_callback_that_never_returns_is_interrupted_and_the_program_ends(what, tmp_path):
    script = tmp_path / "waiting.py"
    script.write_text(WAITING.format(what))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.returncode) == ("interrupted\n", 0), done.stderr


def in_child(work):
    """What `work` returns in a child of this process; a child that hangs is ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            text = str(work())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return text


def test_a_fork_after_use():
    def define():
        return of(lambda: fn.resize(fn.external_source(lambda: [np.ones((8, 8, 1), np.uint8)] * 2), size=[4, 4]))

    pipeline = define()
    pipeline.run()
    told = in_child(pipeline.run)
    assert told.startswith("RuntimeError: The pipeline was made in process") and "fork" in told
    assert in_child(lambda: define().run()[0].as_array().sum()) == "32"
    from gesso import dynamic

    assert dynamic.resize(np.ones((8, 8, 1), np.uint8), size=[4, 4]).sum() == 16
    assert in_child(lambda: dynamic.resize(np.ones((8, 8, 1), np.uint8), size=[4, 4]).sum()) == "16"
    assert len(pipeline.run()) == 1, "the parent goes on"


def test_threads_share_a_pipeline():
    pipeline = of(lambda: fn.external_source(lambda i: np.full((2, 8), i, np.int32)))
    pipeline.build()
    found, failed = [], []

    def work():
        try:
            for _ in range(100):
                found.append(int(pipeline.run()[0].as_array()[0, 0]))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed and sorted(found) == list(range(400))


def test_threads_that_begin_together_all_get_their_batches():
    for _ in range(20):
        pipeline = of(lambda: fn.random.uniform(range=[0, 1]))
        pipeline.build()
        start, found = threading.Barrier(4), []

        def work(pipeline=pipeline, start=start, found=found):
            start.wait()
            found.append(len(pipeline.run()))

        threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert found == [1] * 4


def test_threads_define_pipelines_of_their_own():
    sums = []

    def work(number):
        for _ in range(10):
            pipeline = of(lambda: fn.constant(idata=number, shape=[]) + fn.constant(idata=1, shape=[]))
            sums.append((number, int(pipeline.run()[0].as_array()[0])))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(sums) == 40 and all(found == number + 1 for number, found in sums)


def _ends_later(info):
    if info.iteration == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.array([info.idx_in_epoch])


def test_a_worker_that_is_killed_is_an_error():
    pipeline = of(
        lambda: fn.external_source(_ends_later, batch=False, parallel=True), py_num_workers=1, prefetch_queue_depth=1
    )
    assert pipeline.run()[0].as_array().ravel().tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="exit code -9"):
        for _ in range(4):
            pipeline.run()


@pytest.mark.parametrize("depth", [1, 2])
def test_a_reader_that_was_made_outside_of_its_pipeline(tmp_path, depth):
    np.save(tmp_path / "a.npy", np.zeros(3, np.complex64))
    np.save(tmp_path / "b.npy", np.arange(3))
    arrays = {name: fn.readers.numpy(files=[str(tmp_path / name)]) for name in ("a.npy", "b.npy")}
    for name in ("b.npy", "a.npy"):
        pipe = Pipeline(2, 1, None, prefetch_queue_depth=depth)
        pipe.set_outputs(arrays[name])
        if name == "a.npy":
            with pytest.raises(RuntimeError, match="Unknown Numpy type string"):
                pipe.run()
        else:
            assert pipe.run()[0].as_array().tolist() == [[0, 1, 2]] * 2
