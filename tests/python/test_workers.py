"""Sources in worker processes: what comes from them, what it costs, and when the processes end."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from gesso import Pipeline, fn
from gesso._workers.shared import Receiver, Sender


def of_source(source, batch_size=4, **settings):
    options = {key: settings.pop(key) for key in ("batch", "cycle", "prefetch_queue_depth") if key in settings}
    made = Pipeline(batch_size, 1, py_num_workers=settings.pop("py_num_workers", 2), **settings)
    with made:
        made.set_outputs(fn.external_source(source, parallel=True, **{"batch": False, **options}))
    return made


def ragged(info):
    return np.full((2, info.idx_in_batch + 1), info.idx_in_epoch, np.int32)


def large(info):
    return np.full((400, 1000), info.idx_in_epoch % 200, np.uint8)


def is_alive(pid):
    return os.path.exists(f"/proc/{pid}")


# --- shared memory


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_batches_that_are_kept_do_not_change(method):
    pipeline = of_source(ragged, py_start_method=method, prefetch_queue_depth=2)
    kept = [pipeline.run()[0] for _ in range(12)]
    for number, batch in enumerate(kept):
        for i, array in enumerate(batch.arrays):
            assert array.shape == (2, i + 1) and (array == 4 * number + i).all()


def test_memory_is_used_again():
    pipeline = of_source(large)
    for number in range(4):
        assert pipeline.run()[0].at(3)[0, 0] == 4 * number + 3
    before = pipeline.external_source_shm_statistics()["capacities"]
    for _ in range(30):
        pipeline.run()
    assert before and pipeline.external_source_shm_statistics()["capacities"] == before


def test_chunks_come_back_when_nobody_reads_them():
    sender, receiver = Sender(), Receiver()

    def passed(value):
        number, capacity, written, handle = sender.write(value)
        if handle is not None:
            receiver.add(number, os.dup(handle), capacity)
        return number, receiver.read(number, capacity, written)

    value = {"a": [np.arange(5), np.zeros((0, 3)), np.array(7.5)], "b": "text", "c": np.arange(6).reshape(2, 3)[:, ::2]}
    first, got = passed(value)
    assert got["b"] == "text" and got["c"].tolist() == [[0, 2], [3, 5]]
    assert [array.tolist() for array in got["a"]] == [[0, 1, 2, 3, 4], [], 7.5] and got["a"][1].shape == (0, 3)
    part = got["a"][0][2:]
    del got
    assert receiver.done() == [] and passed(np.ones(4))[0] != first
    assert part.tolist() == [2, 3, 4]
    del part
    sender.release(receiver.done())
    again, grown = passed(np.full(3 << 20, 9, np.uint8))
    assert again == first and len(receiver.capacities()) == 2 and (grown == 9).all()


def test_values_without_arrays_need_no_memory():
    sender, receiver = Sender(), Receiver()
    number, capacity, written, handle = sender.write({"a": "text"})
    assert number is None and handle is None and receiver.read(number, capacity, written) == {"a": "text"}


# --- epochs


class Epochs:
    """Three batches an epoch."""

    def __iter__(self):
        return (np.full((4, 1), i) for i in range(3))


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_a_source_that_begins_anew_gives_whole_epochs(depth):
    pipeline = of_source(Epochs(), batch=True, cycle="raise", prefetch_queue_depth=depth)
    for _ in range(3):
        assert [out.as_array()[0, 0] for (out,) in pipeline] == [0, 1, 2]


# --- processes


def test_there_are_no_more_processes_than_can_be_busy():
    pipeline = of_source(ragged, batch_size=3, py_num_workers=600)
    pipeline.run()
    assert len(pipeline.runner.sources.workers.pids()) == 3


def test_processes_end_with_their_pipeline():
    gc.disable()
    try:
        first, second = of_source(ragged), of_source(ragged)
        first.run()
        second.run()
        processes = [worker.process for worker in first.runner.sources.workers.workers]
        with pytest.raises(KeyError):
            first.feed_input("nothing", [np.zeros(1)])
        del first
        # By themselves: one that is stopped has the number of a signal.
        assert [process.exitcode for process in processes] == [0] * len(processes)
        assert second.run()[0].at(0)[0, 0] == 4
    finally:
        gc.enable()


def endless(info):
    if info.idx_in_epoch >= 16:
        time.sleep(600)
    return np.zeros(1)


def test_a_worker_that_is_killed_is_an_error():
    pipeline = of_source(endless, py_num_workers=1)
    pipeline.run()
    (pid,) = pipeline.runner.sources.workers.pids()
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
    with pytest.raises(RuntimeError, match="exit code -9"):
        for _ in range(4):
            pipeline.run()
    del pipeline
    assert not is_alive(pid)


# --- under the names of DALI

CHILD = """
import multiprocessing

def in_child(queue):
    import nvidia.dali.fn as fn
    queue.put(fn.__name__)

if __name__ == "__main__":
    import gesso.as_dali
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    child = context.Process(target=in_child, args=(queue,))
    child.start()
    child.join()
    print(child.exitcode, queue.get() if child.exitcode == 0 else "")
"""


def test_the_alias_holds_in_children(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(CHILD)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["0", "gesso.fn"], done.stderr


def echo(incoming, outgoing):
    while (records := incoming.get(None)) is not None:
        outgoing.put(records)


def test_a_queue_between_processes():
    from gesso.as_dali._multiproc.messages import ShmMessageDesc
    from gesso.as_dali._multiproc.shared_queue import ShmQueue

    context = multiprocessing.get_context("fork")
    there, back = ShmQueue(context, 3), ShmQueue(context, 3)
    child = context.Process(target=echo, args=(there, back))
    child.start()
    sent = [ShmMessageDesc(i, -i, 1 << 60, i, 2) for i in range(8)]
    got = []
    for record in sent:
        there.put([record])
        got += back.get()
    assert [record.get_values() for record in got] == [record.get_values() for record in sent]
    there.close()
    child.join(10)
    assert child.exitcode == 0 and there.get() is None and there.put(sent[:1]) is None
    with pytest.raises(RuntimeError, match="holds 1 of at most 3 records, and 3 should be added"):
        back.put(sent[:1])
        back.put(sent[:3])
    with pytest.raises(RuntimeError, match="worker_id=2147483648"):
        back.put([ShmMessageDesc(1 << 31, 0, 0, 0, 0)])
