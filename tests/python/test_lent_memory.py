"""Memory that others got a view of, on any host: capsules keep what they are made of, and what comes back is let go
once the GPU was waited for, for which a stand-in is here."""

import ctypes
import gc
import os
import threading
import time
import weakref

import numpy as np
import pytest
from gesso import TensorGPU
from gesso._tensors import device_array, dlpack


class Owner:
    """Stands for what memory belongs to."""


def capsule_of(array, owner, strides=None):
    return dlpack.to_capsule(owner, (1, 0), array.ctypes.data, array.shape, array.dtype, strides)


@pytest.mark.parametrize("kind", ["u1", "i2", "f2", "f4", "i8", "f8", "?"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 4, 5), (2, 0, 3), (1,) * 8])
def test_a_capsule_is_the_array(kind, shape):
    array, owner = np.arange(np.prod(shape)).astype(kind).reshape(shape), Owner()
    there = weakref.ref(owner)
    capsule = capsule_of(array, owner)
    del owner
    taken = dlpack.from_capsule(capsule)
    assert taken.dtype == array.dtype and taken.shape == shape
    np.testing.assert_array_equal(taken, array)
    del capsule
    gc.collect()
    assert there() is not None
    del taken
    gc.collect()
    assert there() is None


def test_a_capsule_with_gaps_and_one_that_nobody_takes():
    array, owner = np.arange(120, dtype=np.float32).reshape(4, 5, 6), Owner()
    there, part = weakref.ref(owner), array[::2, :, 1:3]
    taken = dlpack.from_capsule(capsule_of(part, owner, part.strides))
    np.testing.assert_array_equal(taken, part)
    del taken
    capsule = capsule_of(array, owner)
    del owner
    assert there() is not None and dlpack.is_capsule(capsule)
    del capsule
    gc.collect()
    assert there() is None


class Waits:
    """Stands for CUDA's driver: counts who waits for the GPU, and lets them wait until `done` is set."""

    def __init__(self):
        self.by, self.done = [], threading.Event()

    def run(self, device_id, name):
        self.by.append((device_id, name, threading.current_thread() is threading.main_thread()))
        assert self.done.wait(30)


@pytest.fixture
def waits(monkeypatch):
    found = Waits()
    monkeypatch.setattr(device_array, "driver", lambda: found)
    yield found
    found.done.set()


def given(returns, count, device_id=0):
    owners = [Owner() for _ in range(count)]
    for owner in owners:
        returns.give(owner, device_id)
    return [weakref.ref(owner) for owner in owners]


def until(is_so):
    end = time.monotonic() + 30
    while not is_so() and time.monotonic() < end:
        time.sleep(0.001)
    return is_so()


def test_memory_is_let_go_behind_the_gpu(waits):
    returns = device_array._Returns()
    there = given(returns, 3)
    assert until(lambda: waits.by)
    # What comes while it waits has a wait of its own.
    there += given(returns, 2, device_id=1)
    assert all(one() is not None for one in there)
    waits.done.set()
    assert until(lambda: all(one() is None for one in there))
    assert {device_id for device_id, _, _ in waits.by} == {0, 1}
    assert {(name, is_main) for _, name, is_main in waits.by} == {("cuCtxSynchronize", False)}
    # The thread sleeps, and is woken again.
    (last,) = given(returns, 1)
    assert until(lambda: last() is None)


def test_who_is_far_ahead_waits_himself(waits):
    returns = device_array._Returns()
    there = given(returns, 1)
    assert until(lambda: waits.by)
    there += given(returns, returns.MOST)
    assert len(waits.by) == 1
    threading.Timer(0.05, waits.done.set).start()
    there += given(returns, 1)
    assert waits.by[-1][2] and all(one() is None for one in there[1:])


def test_memory_that_nobody_saw_goes_at_once(waits):
    owner = Owner()
    there, memory = weakref.ref(owner), device_array.Memory(owner, 0)
    array = device_array.DeviceArray(1 << 20, (2, 3), "f4", memory)
    del owner, memory
    assert (array.size, array.nbytes, there() is None) == (6, 24, False)
    del array
    assert there() is None and not waits.by


def test_a_child_has_a_thread_of_its_own(waits):
    waits.done.set()
    assert device_array.Memory(Owner(), 0)._returns.is_here()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            owner = Owner()
            there, memory = weakref.ref(owner), device_array.Memory(owner, 0)
            memory.lent = True
            del owner, memory
            os.write(write, b"gone" if until(lambda: there() is None) else b"there")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 100) == b"gone"


def test_samples_side_by_side_are_one_array():
    memory = device_array.Memory(Owner(), 0)

    def of(addresses, shape=(2, 3)):
        arrays = [device_array.DeviceArray(address, shape, "f4", memory) for address in addresses]
        whole = device_array.side_by_side(arrays)
        return whole and (whole.address, whole.shape, whole.strides)

    assert of([512]) == (512, (1, 2, 3), None)
    assert of([512, 536, 560]) == (512, (3, 2, 3), None)
    assert of([512, 1024, 1536]) == (512, (3, 2, 3), (512, 12, 4))
    assert of([512, 1024, 1537]) is None and of([512, 520]) is None and of([1024, 512]) is None
    assert of([512, 1024], (0, 3)) is None
    others = [device_array.DeviceArray(512, (2, 3), "f4", memory), device_array.DeviceArray(536, (3, 2), "f4", memory)]
    assert device_array.side_by_side(others) is None
    others[1] = device_array.DeviceArray(536, (2, 3), "f4", device_array.Memory(Owner(), 0))
    assert device_array.side_by_side(others) is None


def test_a_copy_of_an_array_on_the_device(monkeypatch):
    class Copies:
        """Stands for the driver where memory of the device is that of the host."""

        def run(self, device_id, name, target, address, size):
            assert name == "cuMemcpyDtoH_v2"
            ctypes.memmove(target, address.value, size.value)

    monkeypatch.setattr(device_array, "driver", Copies)
    memory = device_array.Memory(Owner(), 0)
    for kind, shape in [("f4", (3, 4)), ("u1", (5,)), ("f2", ()), ("?", (2, 2)), ("i8", (0, 3))]:
        array = np.arange(np.prod(shape)).astype(kind).reshape(shape)
        found = device_array.DeviceArray(array.ctypes.data, shape, kind, memory).host()
        assert found.dtype == array.dtype and found.shape == shape
        np.testing.assert_array_equal(found, array)


class HostDriver:
    """Stands for the driver where memory of the device is that of the host."""

    def __init__(self):
        self.memory = {}

    def run(self, device_id, name, *arguments):
        if name == "cuMemAlloc_v2":
            place, size = arguments
            memory = np.zeros(size.value, np.uint8)
            place._obj.value = memory.ctypes.data
            self.memory[memory.ctypes.data] = memory
        elif name == "cuMemFree_v2":
            del self.memory[arguments[0].value]
        elif name in ("cuMemcpy", "cuMemcpyDtoH_v2"):
            target, address, size = arguments
            ctypes.memmove(getattr(target, "value", target), address.value, size.value)
        else:
            assert name in ("cuStreamSynchronize", "cuCtxSynchronize")


def test_an_array_on_the_device_is_given_there_or_as_a_copy(monkeypatch):
    driver = HostDriver()
    monkeypatch.setattr(device_array, "driver", lambda: driver)
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    for expected, strides in ((array, None), (array[::2], (32, 4))):
        owner = Owner()
        there, memory = weakref.ref(owner), device_array.Memory(owner, 1)
        tensor = TensorGPU(device_array.DeviceArray(array.ctypes.data, expected.shape, "f4", memory, strides))
        for named in ({}, {"dl_device": (2, 1)}, {"dl_device": (2, 1), "copy": False}):
            assert dlpack.is_capsule(tensor.__dlpack__(**named))
        assert memory.lent and not driver.memory
        copy = tensor.__dlpack__(copy=True)
        (copied,) = driver.memory.values()
        np.testing.assert_array_equal(copied.view(np.float32).reshape(expected.shape), expected)
        for named in ({}, {"copy": True}):
            host = dlpack.from_capsule(tensor.__dlpack__(dl_device=(1, 0), **named))
            np.testing.assert_array_equal(host, expected)
            assert not np.shares_memory(host, array)
        for named in ({"dl_device": (1, 0), "copy": False}, {"dl_device": (2, 0)}, {"dl_device": (1, 1)}):
            with pytest.raises(BufferError, match=r"it is on the device \(2, 1\)"):
                tensor.__dlpack__(**named)
        # The GPU is waited for before any of it goes.
        del owner, memory, tensor, copy
        assert until(lambda: there() is None and not driver.memory)
