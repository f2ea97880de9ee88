"""Debug mode: operators run when they are called, and give what the pipeline without it gives."""

import numpy as np
import pytest
from gesso import fn, ops, pipeline_def, types
from gesso._debug.node import DataNodeDebug

PICTURES = [np.random.default_rng(i).integers(0, 256, (20 + i, 30, 3), dtype=np.uint8) for i in range(4)]


@pipeline_def(batch_size=4, num_threads=2, prefetch_queue_depth=1, seed=7)
def augment():
    pictures = fn.external_source(name="pictures", layout="HWC")
    turned = fn.flip(pictures, horizontal=fn.random.coin_flip())
    small = fn.random_resized_crop(turned, size=[10, 12])
    return small, small[1:3] * 2 + 1, fn.random.uniform(range=[0, 5]), types.Constant(3.0)


def run(pipeline, count=3, pictures=PICTURES):
    for _ in range(count):
        pipeline.feed_input("pictures", pictures)
        yield [batch.as_array() for batch in pipeline.run()]


def test_it_gives_what_the_pipeline_gives():
    for plain, debugged in zip(run(augment()), run(augment(debug=True))):
        assert all(np.array_equal(one, other) for one, other in zip(plain, debugged, strict=True))


def test_values_are_there(capsys):
    seen = []

    @pipeline_def(batch_size=4, num_threads=1, debug=True)
    def define():
        node = fn.external_source(name="x", layout="HWC")
        seen.append((node.get().as_array(), node.shape(), np.asarray(node + 1).sum()))
        print(node[:1, :1, :1])
        return node

    pipeline = define()
    for value in (3, 4):
        pipeline.feed_input("x", np.full((2, 4, 5, 3), value, np.uint8))
        (batch,) = pipeline.run()
        assert batch.layout() == "HWC" and len(batch) == 2
    assert [shape for _, shape, _ in seen] == [[(4, 5, 3)] * 2] * 2
    assert [array[0, 0, 0, 0] for array, _, _ in seen] == [3, 4] and seen[1][2] == 2 * 60 * 5
    assert "DataNodeDebug(" in capsys.readouterr().out


def test_arrays_of_the_users_are_batches():
    @pipeline_def(batch_size=4, num_threads=1, debug=True)
    def define():
        rows = [np.full(3, i, np.int32) for i in range(4)]
        return fn.cat(rows, fn.copy(rows) + 10), fn.cat([fn.copy(rows)] * 2, [fn.copy(rows)] * 2)[1]

    for _ in range(2):
        first, second = define().run()
        assert first.as_array()[2].tolist() == [2, 2, 2, 12, 12, 12] and second.as_array()[1].tolist() == [1] * 6


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_branches(device):
    def define():
        number = fn.random.uniform(range=[0, 4], seed=3)
        shown = number.gpu() if device == "gpu" else number
        flag = fn.cast(number, dtype=types.INT32) > 1
        if flag:
            made = shown + 10
        else:
            other = fn.random.normal(seed=5)
            made = other.gpu() if device == "gpu" else other
        return flag, made

    settings = {"batch_size": 8, "num_threads": 1, "enable_conditionals": True}
    plain, debugged = pipeline_def(define)(**settings), pipeline_def(define)(**settings, debug=True)
    for _ in range(4):
        for one, other in zip(plain.run(), debugged.run(), strict=True):
            assert np.array_equal(one.as_cpu().as_array(), other.as_cpu().as_array())


def test_branches_that_differ_are_refused():
    @pipeline_def(batch_size=8, num_threads=1, enable_conditionals=True, debug=True)
    def define():
        if fn.random.coin_flip(seed=1, dtype=types.BOOL):
            made = fn.constant(idata=1)
        else:
            made = fn.constant(fdata=1.5)
        return made

    with pytest.raises(RuntimeError, match="one makes int32"):
        define().run()


def test_only_nodes_go_into_branches():
    @pipeline_def(batch_size=2, num_threads=1, enable_conditionals=True, debug=True)
    def define():
        return fn.copy(fn.constant(idata=1).get())

    with pytest.raises(ValueError, match="Expected `DataNodeDebug` as an input"):
        define().run()


def files(tmp_path):
    for i in range(7):
        (tmp_path / f"{i}.bin").write_bytes(bytes([i] * 4))
    return {"files": [str(tmp_path / f"{i}.bin") for i in range(7)]}


def test_readers_and_epochs(tmp_path):
    def define():
        return tuple(fn.readers.file(name="reader", random_shuffle=True, seed=9, **files(tmp_path)))

    plain, debugged = (pipeline_def(define)(batch_size=3, num_threads=1, **mode) for mode in ({}, {"debug": True}))
    assert debugged.epoch_size("reader") == 7
    for _ in range(2):
        epochs = [[batch[1].as_array().tolist() for batch in pipeline] for pipeline in (plain, debugged)]
        assert epochs[0] == epochs[1] and epochs[0]


def test_a_source_ends_and_begins_anew():
    @pipeline_def(batch_size=2, num_threads=1, debug=True)
    def define():
        return fn.external_source([np.zeros((2, 1)), np.ones((1, 1))], cycle="raise"), fn.random.coin_flip()

    pipeline = define()
    for _ in range(2):
        assert [(len(one), len(other)) for one, other in pipeline] == [(2, 2), (1, 1)]


def changing(case):
    """A definition whose second run differs from its first."""
    runs = iter(range(9))

    @pipeline_def(batch_size=2, num_threads=1, debug=True)
    def define():
        again = next(runs) > 0
        row = [np.zeros(2, np.float32)] * 2
        if case == "order":
            return fn.copy(row) if again else fn.cat(row)
        if case == "inputs":
            return fn.cat(row, row) if again else fn.cat(row)
        if case == "keywords":
            return fn.cat(row) if again else fn.cat(row, axis=0)
        if case == "constant":
            return fn.constant(fdata=float(again), shape=[])
        if case == "kind":
            return fn.random.uniform(range=row if again else [0, 1])
        if case == "size":
            return fn.copy(row), fn.copy(row[:1] if again else row)
        return fn.copy(row) + (3 if again else 2)

    return define()


@pytest.mark.parametrize(
    "case, message",
    [
        ("order", "changing the order of operators"),
        ("inputs", "different number of inputs"),
        ("keywords", "different number of keyword arguments"),
        ("constant", "unexpectedly changed value from '0.0' to '1.0'"),
        ("kind", "is a batch but was a constant"),
        ("size", "Batch size must be uniform"),
        ("arithmetic", "unexpectedly changed value from '2' to '3'"),
    ],
)
def test_runs_that_differ_are_refused(case, message):
    pipeline = changing(case)
    pipeline.run()
    with pytest.raises(RuntimeError, match=message):
        pipeline.run()


def test_an_error_names_the_line():
    @pipeline_def(batch_size=1, num_threads=1, debug=True)
    def define():
        return fn.crop(fn.external_source(name="x"), crop=[9, 9])  # this line

    pipeline = define()
    pipeline.feed_input("x", np.zeros((1, 4, 4, 3), np.uint8))
    with pytest.raises(RuntimeError, match="# this line"):
        pipeline.run()
    # The definition is not stuck: the next batch runs.
    pipeline.feed_input("x", np.zeros((1, 9, 9, 3), np.uint8))
    assert pipeline.run()[0].shape() == [(9, 9, 3)]


def test_what_has_no_graph():
    pipeline = augment(debug=True)
    for call in (pipeline.serialize, pipeline.checkpoint, pipeline.show):
        with pytest.raises(RuntimeError, match="debug mode"):
            call()
    with pytest.raises(RuntimeError, match="cannot be entered"), pipeline:
        pass

    @pipeline_def(batch_size=1, num_threads=1, debug=True)
    def classes():
        return ops.Copy()(fn.constant(idata=1))

    with pytest.raises(RuntimeError, match="not classes of `ops`|functions of `fn`"):
        classes().run()


def test_functions_of_the_users():
    @pipeline_def(batch_size=3, num_threads=1, debug=True)
    def define():
        node = fn.external_source(name="x")
        assert isinstance(node, DataNodeDebug)
        return fn.python_function(node, function=lambda x: x * 2), fn.shapes(node)

    pipeline = define()
    for _ in range(2):
        pipeline.feed_input("x", np.ones((3, 2), np.int32))
        assert [batch.as_array().tolist() for batch in pipeline.run()] == [[[2, 2]] * 3, [[2]] * 3]
    with pytest.raises(KeyError, match="no such|Could not find"):
        pipeline.feed_input("y", np.ones((3, 2), np.int32))
