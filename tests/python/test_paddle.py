"""Batches of pipelines as PaddlePaddle's tensors."""

import importlib

import gesso
import numpy as np
import pytest
from gesso import fn, types
from gesso.plugin.base_iterator import LastBatchPolicy

paddle = pytest.importorskip("paddle")
plugin = importlib.import_module("gesso.plugin.paddle")
DALIGenericIterator = plugin.DALIGenericIterator


def counted(count=5, kinds=(types.FLOAT,)):
    """Batches of four samples with the numbers from 0."""

    def source(iteration):
        if iteration >= count:
            raise StopIteration
        return [np.full((2, 3), iteration * 4 + i, np.float32) for i in range(4)]

    @gesso.pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def define():
        values = fn.external_source(source=source)
        return tuple(fn.cast(values, dtype=kind) for kind in kinds)

    return define()


def files(folder, count=10, **reading):
    for i in range(count):
        (folder / f"{i}.bin").write_bytes(bytes([i] * 3))
    (folder / "list").write_text("".join(f"{i}.bin {i}\n" for i in range(count)))

    @gesso.pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def define():
        return tuple(fn.readers.file(file_root=str(folder), file_list=str(folder / "list"), name="reader", **reading))

    return define()


def test_batches():
    iterator = DALIGenericIterator([counted()], ["values"])
    found = [np.array(batch[0]["values"])[:, 0, 0].tolist() for batch in iterator]
    assert found == [[i * 4.0 + k for k in range(4)] for i in range(5)]


def test_tensors_keep_their_memory():
    batches = [paddle.Tensor(batch[0]["values"]) for batch in DALIGenericIterator(counted(), ["values"])]
    assert [float(batch.sum()) for batch in batches] == [6.0 * (6 + 16 * i) for i in range(5)]
    assert batches[0].shape == [4, 2, 3] and batches[0].dtype == paddle.float32


def test_types():
    kinds = (types.UINT8, types.INT8, types.INT16, types.INT32, types.INT64, types.FLOAT16, types.FLOAT64, types.BOOL)
    names = [kind.name for kind in kinds]
    batch = next(DALIGenericIterator(counted(kinds=kinds), names))[0]
    for name in names:
        assert np.array(batch[name]).shape == (4, 2, 3)
        assert paddle.Tensor(batch[name]).dtype == getattr(paddle, name.lower())
    with pytest.raises(TypeError, match="UINT16"):
        DALIGenericIterator(counted(kinds=(types.UINT16,)), ["values"])


@pytest.mark.parametrize(
    ("policy", "sizes"),
    [(LastBatchPolicy.FILL, [4, 4, 4]), (LastBatchPolicy.PARTIAL, [4, 4, 2]), (LastBatchPolicy.DROP, [4, 4])],
)
def test_last_batches(tmp_path, policy, sizes):
    iterator = plugin.DALIClassificationIterator(files(tmp_path), reader_name="reader", last_batch_policy=policy)
    batches = [batch[0] for batch in iterator]
    assert [np.array(batch["label"]).shape[0] for batch in batches] == sizes
    iterator.reset()
    assert len(np.array(next(iterator)[0]["label"])) == 4
    assert np.array(batches[0]["data"]).shape[1:] == (3,)


def test_samples_of_several_shapes():
    @gesso.pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def define():
        return fn.external_source(source=lambda _: [np.full((i + 1, 2), i, np.int32) for i in range(3)])

    batch = next(DALIGenericIterator(define(), [("rows", 1)]))[0]["rows"]
    assert np.array(batch)[:, 0].tolist() == [0, 1, 1, 2, 2, 2]
    assert batch.lod() == [[0, 1, 3, 6]]
    two = next(DALIGenericIterator(define(), [("rows", 2)]))[0]["rows"]
    assert np.array(two).shape == (12,) and two.lod() == [[0, 1, 3, 6], [0, 2, 4, 6, 8, 10, 12]]
    with pytest.raises(AssertionError, match="several shapes"):
        DALIGenericIterator(define(), ["rows"])


def test_a_tensor_is_copied():
    source = gesso.TensorCPU(np.arange(6, dtype=np.float32).reshape(2, 3))
    target = paddle.framework.core.DenseTensor()
    target._set_dims([2, 3])
    address = target._mutable_data(paddle.CPUPlace(), plugin.to_paddle_type(source))
    assert plugin.feed_ndarray(source, address) == address
    assert np.array_equal(np.array(target), source)


def test_wrong_names():
    with pytest.raises(RuntimeError, match="1 outputs"):
        DALIGenericIterator(counted(), ["one", "two"])
    with pytest.raises(AssertionError, match="distinct"):
        DALIGenericIterator(counted(), ["one", "one"])


@pytest.mark.parametrize("entry", [("values", -1), ("values", "1"), ("values", 1.0), ("values", 1, 2), 3])
def test_wrong_levels(entry):
    with pytest.raises(ValueError, match="expected names, or pairs of a name and a number of levels"):
        DALIGenericIterator(counted(), [entry])


@pytest.mark.parametrize("levels", [1, 3])
def test_samples_that_do_not_fit_their_levels(levels):
    @gesso.pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def define():
        return fn.external_source(source=lambda _: [np.zeros((i + 1, i + 1), np.int32) for i in range(3)])

    with pytest.raises(ValueError, match=f"`rows` has {levels} levels"):
        DALIGenericIterator(define(), [("rows", levels)])


def test_wrong_pipelines():
    with pytest.raises(AssertionError, match="list of pipelines is empty"):
        DALIGenericIterator([], ["values"])
    with pytest.raises(TypeError, match="expected a `Pipeline`, or a list of them, found a `str`"):
        DALIGenericIterator(["pipeline"], ["values"])


def test_wrong_addresses():
    source = gesso.TensorCPU(np.zeros(3, np.float32))
    for wrong in (0, -8, 1 << 64):
        with pytest.raises(ValueError, match="an address: expected a number above 0"):
            plugin.feed_ndarray(source, wrong)
    with pytest.raises(TypeError, match="found a `str`"):
        plugin.feed_ndarray(source, "memory")
    nothing = gesso.TensorCPU(np.zeros((0, 3), np.float32))
    assert plugin.feed_ndarray(nothing, 0) == 0


def test_a_source_that_fails():
    @gesso.pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def define(source):
        return fn.external_source(source=source)

    def gives(last):
        return lambda i: [np.float32([i])] if i < 3 else last()

    def fails():
        raise KeyError("the fourth")

    for last, kind, words in (
        (fails, KeyError, "the fourth"),
        (list, RuntimeError, "without samples"),
        (lambda: "text", RuntimeError, "Expected a batch"),
        (lambda: [np.int64([1])], RuntimeError, "has changed"),
    ):
        with pytest.raises(kind, match=words):
            list(DALIGenericIterator(define(gives(last)), ["values"]))
