"""A Ctrl-C that comes while something of the package goes away: all of it goes, and the next call of the library raises
what Python lets out of no destructor."""

import ctypes
import gc
import signal
import threading
import types

import numpy as np
import pytest
from gesso import Pipeline, fn
from gesso._native import library, store
from gesso._native.dataset import Dataset
from gesso._native.engine import Engine
from gesso._native.result import Result
from gesso._native.stream import StreamEngine, _Opened
from gesso._run.python_nodes import stop
from gesso._tensors import device_array, dlpack
from gesso._threads import background
from gesso._threads.interrupts import uninterrupted


def press():
    """Ctrl-C, now."""
    signal.raise_signal(signal.SIGINT)


class Here:
    """Stands for the process that something was made in; while it is asked first, Ctrl-C comes."""

    def __init__(self):
        self.was_asked = False

    def is_here(self):
        if not self.was_asked:
            self.was_asked = True
            press()
        return True


def notes(name, handles, called, patch):
    """Puts something in place of a function of the library: for these handles it notes that it was called, and Ctrl-C
    comes."""
    function = getattr(library.library(), name)

    def call(handle):
        # Threads of other tests may free something now.
        if handle not in handles:
            return function(handle)
        called.append((name, handle))
        press()

    patch.setattr(library.library(), name, call)


@pytest.fixture(autouse=True)
def as_in_a_program():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def told():
    """Whether the next call of the library raises what was kept; once."""
    try:
        library.operators_json()
    except KeyboardInterrupt:
        library.operators_json()
        return True
    return False


def made(kind, **fields):
    one = kind.__new__(kind)
    for name, value in fields.items():
        setattr(one, name, value)
    return one


def engine():
    one = made(Engine, _process=Here(), _instance=1, _pipeline=2)
    return one, [("gesso_instance_free", 1), ("gesso_pipeline_free", 2)]


def dataset():
    return made(Dataset, _process=Here(), _handle=1), [("gesso_dataset_free", 1)]


def result():
    return Result(1, Here()), [("gesso_result_free", 1)]


def stream():
    opened = made(_Opened, process=Here(), datasets=[], lock=threading.Lock(), stream=1, pipeline=2)
    return made(StreamEngine, _opened=opened), [("gesso_stream_free", 1), ("gesso_pipeline_free", 2)]


@pytest.mark.parametrize("make", [engine, dataset, result, stream])
def test_all_of_what_the_library_has_is_freed(make, monkeypatch):
    called, (one, expected) = [], make()
    with monkeypatch.context() as patch:
        for name, _ in expected:
            notes(name, (1, 2), called, patch)
        del one
    assert called == expected
    assert told() and not told()


def test_memory_of_a_gpu_is_given_back():
    given = []
    returns = types.SimpleNamespace(is_here=Here().is_here, give=lambda *one: (given.append(one), press()))
    memory = made(device_array.Memory, owner="owner", device_id=1, lent=True, _returns=returns)
    del memory
    assert given == [("owner", 1)]
    assert told() and not told()


def test_an_allocation_is_freed(monkeypatch):
    frees = []
    driver = types.SimpleNamespace(run=lambda *called: (press(), frees.append(called[1])))
    allocation = made(device_array._Allocation, _device_id=0, _process=Here(), address=512)
    with monkeypatch.context() as patch:
        patch.setattr(device_array, "driver", lambda: driver)
        del allocation
    assert frees == ["cuMemFree_v2"]
    assert told() and not told()


class Owner:
    """What a capsule keeps; Ctrl-C comes when it goes."""

    @uninterrupted
    def __del__(self):
        press()


@pytest.mark.parametrize("is_taken", [False, True])
def test_what_a_capsule_keeps_goes(is_taken):
    array, count = np.arange(3.0), len(dlpack._kept)
    one = dlpack.to_capsule((array, Owner()), (1, 0), array.ctypes.data, array.shape, array.dtype)
    if is_taken:
        one = dlpack.from_capsule(one)
    del one
    gc.collect()
    assert len(dlpack._kept) == count
    assert told() and not told()


def test_all_readers_are_stopped():
    stopped = []
    operator = types.SimpleNamespace(stop=lambda node: (press(), stopped.append(node)))
    nodes = [types.SimpleNamespace(operator=operator) for _ in range(3)]
    stop(nodes)
    assert stopped == nodes
    assert told() and not told()


def test_a_thread_ends_with_its_owner():
    class Calls:
        """Stands for the thread's queue."""

        def __init__(self):
            self.put_in = []

        def empty(self):
            press()
            return True

        def put(self, call):
            self.put_in.append(call)

    calls = Calls()
    background._drop(calls)
    assert calls.put_in == [None]
    assert told() and not told()


def test_ctrl_c_while_a_store_is_read_is_raised_by_the_call(monkeypatch):
    def size(path, found):
        press()

    call, text = store._guarded(store._SIZE, size), ctypes.create_string_buffer(10)
    message = store._Message(ctypes.sizeof(store._Message), ctypes.addressof(text), len(text))
    failing = types.SimpleNamespace(reads=lambda: call(None, b"s3://a/b", None, ctypes.byref(message)))
    monkeypatch.setattr(library, "_loaded", failing)
    with pytest.raises(KeyboardInterrupt):
        library.call("reads")


def test_a_pipeline_that_goes_is_told_by_the_next():
    def make():
        pipeline = Pipeline(1, 1, None, prefetch_queue_depth=1)
        with pipeline:
            pipeline.set_outputs(fn.external_source(name="x") + 0)
        pipeline.run(x=[np.ones(3)])
        return pipeline

    second, others = make(), {id(one) for one in gc.get_objects() if type(one) is Engine}
    first = make()
    (engine,) = [one for one in gc.get_objects() if type(one) is Engine and id(one) not in others]
    engine._process = Here()
    del first, engine
    gc.collect()
    with pytest.raises(KeyboardInterrupt):
        second.run(x=[np.ones(3)])
    assert second.run(x=[np.ones(3)])[0].at(0).tolist() == [1, 1, 1]
