"""`gesso.plugin.pytorch.experimental.proxy`: a pipeline behind the worker processes of a `DataLoader`."""

import collections
import threading

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from gesso import fn, pipeline_def
from gesso.plugin.pytorch.experimental import proxy as p
from torch.utils import data
from torch.utils.data import default_collate

COUNT = 12


@pipeline_def(batch_size=4, num_threads=2)
def doubled():
    return fn.external_source(name="x") * 2


@pipeline_def(batch_size=4, num_threads=2)
def two():
    a, b = (fn.external_source(name=name) for name in "ab")
    return a + b, b - a


class Rows(data.Dataset):
    def __init__(self, transform):
        self.transform = transform

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return self.transform(np.full(3, index, np.float32)), index


class Pairs(Rows):
    def __getitem__(self, index):
        total, difference = self.transform(b=np.full(2, 10 * index), a=np.full(2, index))
        return difference, {"total": total, "index": index}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("deterministic", [False, True])
def test_a_loader(workers, deterministic):
    server = p.DALIServer(doubled(prefetch_queue_depth=4), deterministic=deterministic)
    loader = p.DataLoader(server, Rows(server.proxy), batch_size=4, num_workers=workers)
    for _ in range(2):
        for rows, index in loader:
            assert torch.equal(rows, (2 * index)[:, None].float().expand(-1, 3))
    server.stop_thread()


def test_several_outputs_in_any_form():
    with p.DALIServer(two(prefetch_queue_depth=1)) as server:
        loader = p.DataLoader(server, Pairs(server.proxy), batch_size=5 - 1, num_workers=2, shuffle=True)
        for difference, rest in loader:
            assert torch.equal(difference[:, 0], 9 * rest["index"])
            assert torch.equal(rest["total"][:, 1], 11 * rest["index"])


def test_a_loop_that_is_left_leaves_nothing():
    server = p.DALIServer(doubled())
    loader = p.DataLoader(server, Rows(server.proxy), batch_size=2, num_workers=2)
    for _ in range(5):
        for rows, _ in loader:
            assert rows[1, 0] == 2
            break
    for _ in range(3):
        assert [int(index[0]) for _, index in loader] == list(range(0, COUNT, 2))
    # What was asked for is run, and thrown away.
    with server._change:
        server._change.wait_for(lambda: not server._given and not server._under_way, timeout=10)
    assert not server._given
    server.stop_thread()


def test_pytorchs_own_loader_and_loop():
    with p.DALIServer(doubled()) as server:
        loader = data.DataLoader(Rows(server.proxy), batch_size=3, num_workers=1)
        for batch in loader:
            rows, index = server.produce_data(batch)
            assert torch.equal(rows[:, 0], 2.0 * index)
        outputs = default_collate([(server.proxy(np.float32([i])), i) for i in range(4)])
        assert server.produce_data(outputs)[0].tolist() == [[0], [2], [4], [6]]


Named = collections.namedtuple("Named", "rows number")


class Holder:
    def __init__(self, value):
        self.value, self.self = value, self


def test_references_are_found_wherever_they_are():
    with p.DALIServer(doubled()) as server:
        rows = p.references.collate([server.proxy(np.float32([i])) for i in range(2)])
        made = server.produce_data({"a": [Named(rows, 1), (2, rows)], "b": Holder(rows)})
        want = [[0], [2]]
        assert made["a"][0].rows.tolist() == made["a"][1][1].tolist() == made["b"].value.tolist() == want
        assert made["a"][0].number == 1 and made["b"].self is made["b"]


def test_errors_are_those_of_their_batch():
    with p.DALIServer(doubled(prefetch_queue_depth=2)) as server:
        batch = lambda *rows: p.references.collate([server.proxy(row) for row in rows])
        good, bad = batch(np.float32([1])), batch(np.float32([1]), np.float32([[1]]))
        late = batch(np.float32([3]))
        with pytest.raises(RuntimeError, match="dimensions"):
            server.produce_data(bad)
        assert server.produce_data(good).tolist() == [[2]] and server.produce_data(late).tolist() == [[6]]


def test_mistakes():
    with pytest.raises(TypeError, match="Expected a `Pipeline`"):
        p.DALIServer(3)
    with pytest.raises(RuntimeError, match="no inputs"):
        p.DALIServer(pipeline_def(lambda: fn.constant(idata=1))(batch_size=1, num_threads=1))
    server = p.DALIServer(two())
    with pytest.raises(ValueError, match="too many positional"):
        server.proxy(np.zeros(1), np.zeros(1))
    with pytest.raises(ValueError, match="missing a required"):
        server.proxy(a=np.zeros(1))
    first, second = (server.proxy(a=np.zeros(1), b=np.zeros(1)) for _ in range(2))
    with pytest.raises(RuntimeError, match="same batch"):
        p.references.collate([first[0], second[1]])
    p.references.collate([first[0], second[0]])
    with pytest.raises(RuntimeError, match="the same for each output"):
        p.references.collate([first[1]])
    with pytest.raises(RuntimeError, match="does not run"):
        server.produce_data(p.references.collate([server.proxy(a=np.zeros(1), b=np.zeros(1))[0]]))


class Wrong(Rows):
    def __getitem__(self, index):
        return self.transform(len if index > 5 else np.float32([index])), index


@pytest.mark.parametrize("workers", [0, 1])
def test_what_cannot_be_sent_or_replaced(workers):
    with p.DALIServer(doubled()) as server:
        with pytest.raises(TypeError, match="input `x`: data of the type object cannot be fed"):
            list(p.DataLoader(server, Wrong(server.proxy), batch_size=4, num_workers=workers))
        for settings in ({"batch_size": None}, {"batch_size": 4, "collate_fn": list}):
            with pytest.raises(TypeError, match="a reference to one sample of an output"):
                list(p.DataLoader(server, Rows(server.proxy), num_workers=workers, **settings))


def test_a_batch_is_given_once():
    with p.DALIServer(doubled()) as server:
        batch = p.references.collate([server.proxy(np.float32([1]))])
        assert server.produce_data(batch).tolist() == [[2]]
        with pytest.raises(RuntimeError, match="taken before"):
            server.produce_data(batch)


def test_a_server_that_is_dropped_ends_its_thread():
    server = p.DALIServer(doubled())
    server.start_thread()
    thread = server._thread
    assert thread in threading.enumerate()
    del server
    thread.join(timeout=10)
    assert not thread.is_alive()
