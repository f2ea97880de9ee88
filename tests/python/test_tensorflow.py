"""Pipelines as data sets and tensors of TensorFlow, beside the same pipelines run by themselves."""

import gc
import importlib
import subprocess
import sys
import warnings

import gesso
import numpy as np
import pytest
from gesso import fn, types
from gesso._native.engine import has_gpu

tf = pytest.importorskip("tensorflow")
plugin = importlib.import_module("gesso.plugin.tf")

SIZE = 4
PLACE = {"batch_size": SIZE, "num_threads": 1, "device_id": None}


def made(define, **settings):
    return gesso.pipeline_def(**{**PLACE, **settings})(define)()


def numbers():
    drawn = fn.random.uniform(range=[0.0, 9.0], shape=[2, 3], seed=4)
    return drawn, fn.cast(drawn, dtype=types.INT32)


def test_batches_are_those_of_the_pipeline():
    dataset = plugin.DALIDataset(made(numbers), (tf.float32, tf.int32), ((SIZE, 2, 3), None), **PLACE)
    assert isinstance(dataset, tf.data.Dataset)
    assert dataset.element_spec[0] == tf.TensorSpec((SIZE, 2, 3), tf.float32)
    for _ in range(2):  # each iterator begins anew
        pipeline = made(numbers)
        for batch in dataset.take(3):
            assert isinstance(batch, tuple)
            for mine, its in zip(batch, pipeline.run(), strict=True):
                assert np.array_equal(mine, its.as_array())


def test_two_iterators_do_not_share():
    dataset = plugin.DALIDataset(made(numbers), (tf.float32, tf.int32), **PLACE)
    one, two = iter(dataset), iter(dataset)
    first = [next(one) for _ in range(3)]
    assert all(np.array_equal(mine[0], next(two)[0]) for mine in first)


def test_functions_of_tensorflow():
    dataset = plugin.DALIDataset(made(numbers), (tf.float32, tf.int32), ((SIZE, 2, 3), (SIZE, 2, 3)), **PLACE)

    def difference(drawn, whole):
        return tf.reduce_sum(tf.cast(tf.round(drawn), tf.int32) - whole)

    added = dataset.map(difference).prefetch(2)

    @tf.function
    def total(batches):
        found = tf.constant(0)
        for batch in batches:
            found += batch
        return found

    assert int(total(added.take(5))) == 0
    assert next(iter(dataset.unbatch()))[0].shape == (2, 3)


def test_a_graph():
    with tf.Graph().as_default():
        dataset = plugin.DALIDataset(made(numbers), (tf.float32, tf.int32), **PLACE)
        iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
        asked = iterator.get_next()
        with tf.compat.v1.Session() as session:
            session.run(iterator.initializer)
            found = [session.run(asked) for _ in range(3)]
    pipeline = made(numbers)
    for batch in found:
        for mine, its in zip(batch, pipeline.run()):
            assert np.array_equal(mine, its.as_array())


@pytest.mark.parametrize(
    ("shape", "becomes"),
    [
        (None, (SIZE, 1, 3, 1)),
        ((None, None, 3), (SIZE, 1, 3)),
        ((SIZE, 3), (SIZE, 3)),
        ((SIZE, None, 3, None), (SIZE, 1, 3, 1)),
        ((SIZE + 1, None, None, None), None),
        ((SIZE, 3, 1, 1), None),
        ((SIZE, 1, 3, 1, 1), None),
    ],
)
def test_shapes(shape, becomes):
    pipeline = made(lambda: fn.constant(idata=[1, 2, 3], shape=[1, 3, 1], dtype=types.INT32))
    dataset = plugin.DALIDataset(pipeline, tf.int32, shape, **PLACE)
    if becomes is None:
        with pytest.raises(tf.errors.InvalidArgumentError, match="output `0` of the pipeline has the shape"):
            next(iter(dataset))
    else:
        (found,) = next(iter(dataset))
        assert found.shape == becomes


@pytest.mark.parametrize("name", ["uint8", "uint16", "int8", "int16", "int32", "int64", "bool", "float16", "float32"])
def test_types(name):
    kind = {"bool": types.BOOL, "float32": types.FLOAT}.get(name) or getattr(types, name.upper())
    pipeline = made(lambda: fn.constant(idata=[1, 0], dtype=kind))
    (found,) = next(iter(plugin.DALIDataset(pipeline, getattr(tf, name), **PLACE)))
    assert found.dtype == getattr(tf, name) and found.shape == (SIZE, 2)


def test_wrong_types():
    with pytest.raises(tf.errors.InvalidArgumentError, match="is int32, and float32 was promised"):
        next(iter(plugin.DALIDataset(made(numbers), (tf.float32, tf.float32), **PLACE)))
    with pytest.raises(TypeError, match="expected a `tf.DType`"):
        plugin.DALIDataset(made(numbers), "float32", **PLACE)
    with pytest.raises(ValueError, match="is for 1 outputs"):
        plugin.DALIDataset(made(numbers), (tf.float32, tf.int32), ((2,),), **PLACE)
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 outputs, and 1 types"):
        next(iter(plugin.DALIDataset(made(numbers), tf.float32, **PLACE)))


def test_what_is_no_pipeline_and_no_number():
    for wrong in (None, "pipeline", b"pipeline"):
        with pytest.raises(TypeError, match="`pipeline`: expected a `Pipeline`, found a"):
            plugin.DALIDataset(wrong, tf.float32, **PLACE)
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="`prefetch_queue_depth`: expected a number of at least 1"):
            plugin.DALIDataset(made(numbers), tf.float32, prefetch_queue_depth=wrong, **PLACE)
    for name, wrong, error in (
        ("batch_size", 0, ValueError),
        ("batch_size", "4", TypeError),
        ("num_threads", 0, ValueError),
    ):
        with pytest.raises(error, match=f"`{name}`"):
            plugin.DALIDataset(made(numbers), tf.float32, **{**PLACE, name: wrong})


def test_samples_of_several_shapes():
    pipeline = made(lambda: fn.random.uniform(shape=fn.cast(fn.random.uniform(range=[1, 9]), dtype=types.INT32)))
    with pytest.raises(tf.errors.OpError, match="several shapes"):
        for _ in plugin.DALIDataset(pipeline, tf.float32, **PLACE).take(9):
            pass


def test_old_names_of_arguments():
    with pytest.warns(Warning, match="old name"):
        dataset = plugin.DALIDataset(made(numbers), dtypes=[tf.float32, tf.int32], **PLACE)
    assert len(next(iter(dataset))) == 2
    with pytest.raises(ValueError, match="both were given"):
        plugin.DALIDataset(made(numbers), tf.float32, dtypes=tf.float32, **PLACE)


def test_another_device():
    """What is meant for a GPU: on a host without one it runs on the CPU, and fits."""
    pipeline = made(lambda: fn.copy(fn.constant(idata=[1]), device="gpu"), device_id=0)
    place = {"batch_size": SIZE, "device_id": 0}
    with tf.device("/cpu:0"):
        if has_gpu():
            with pytest.raises(tf.errors.InternalError, match="is on the GPU, and TensorFlow's device is the CPU"):
                plugin.DALIDataset(pipeline, tf.int32, **place)
        with warnings.catch_warnings(record=True) as told:
            dataset = plugin.DALIDataset(pipeline, tf.int32, None, False, **place)
        assert not has_gpu() or any("it is copied" in str(one.message) for one in told)
    assert np.array_equal(next(iter(dataset))[0], [[1]] * SIZE)


def test_operators_in_python():
    pipeline = made(lambda: fn.python_function(function=lambda: np.zeros(3)))
    with pytest.raises(RuntimeError, match="operators of Python"):
        plugin.DALIDataset(pipeline, tf.float64, **PLACE)


def padded():
    values = fn.external_source(name="values")
    return fn.pad(values), values.shape(dtype=types.INT32)


def growing(count):
    return tf.data.Dataset.range(count).map(lambda i: tf.fill((i + 1, 2), tf.cast(i, tf.float32)))


def fed(dataset, **more):
    types_of = {"output_dtypes": (tf.float32, tf.int32), **more}
    return plugin.experimental.DALIDatasetWithInputs(
        made(padded), input_datasets={"values": dataset}, **types_of, **PLACE
    )


def test_samples_of_another_data_set():
    dataset = fed(growing(10))
    for _ in range(2):
        batches = list(dataset)
        # The two that make no whole batch are left out.
        assert [shapes.numpy().tolist() for _, shapes in batches] == [
            [[i + 1, 2] for i in range(0, 4)],
            [[i + 1, 2] for i in range(4, 8)],
        ]
        assert batches[1][0].shape == (4, 8, 2) and batches[1][0].numpy()[2, :7].tolist() == [[6.0, 6.0]] * 7


def test_batches_of_another_data_set():
    whole = tf.data.Dataset.range(6).map(lambda i: tf.fill((SIZE, 3), tf.cast(i, tf.float32)))
    found = list(fed(plugin.experimental.Input(whole, batch=True)))
    assert [int(values.numpy()[0, 0]) for values, _ in found] == list(range(6))


def test_inputs_in_a_graph_and_several():
    def define():
        one, two = fn.external_source(name="one"), fn.external_source(name="two", layout="AB")
        return one + 1, two * 2

    with tf.Graph().as_default():
        inputs = {
            "one": tf.data.Dataset.range(9),
            "two": plugin.experimental.Input(growing(9).map(lambda x: x[:1]), layout="AB"),
        }
        dataset = plugin.experimental.DALIDatasetWithInputs(
            made(define), (tf.int64, tf.float32), ((SIZE,), (SIZE, 1, 2)), input_datasets=inputs, **PLACE
        )
        asked = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
        with tf.compat.v1.Session() as session:
            found = [session.run(asked) for _ in range(2)]
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(asked)
    assert [one.tolist() for one, _ in found] == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert found[1][1].tolist() == [[[2.0 * i] * 2] for i in range(4, 8)]


def test_sources_of_the_pipeline():
    def define():
        source = lambda info: next(iter([])) if info.idx_in_epoch >= 10 else np.float32([info.idx_in_epoch])
        return fn.external_source(source=source, batch=False)

    dataset = plugin.experimental.DALIDatasetWithInputs(made(define), tf.float32, **PLACE)
    for _ in range(2):
        assert [batch.numpy().ravel().tolist() for (batch,) in dataset] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_wrong_inputs():
    one = tf.data.Dataset.range(3)
    for wrong in ("values", [one], {"values": 3}, {7: one}):
        with pytest.raises(TypeError, match="expected a dictionary"):
            plugin.experimental.DALIDatasetWithInputs(made(padded), tf.float32, input_datasets=wrong, **PLACE)
    for wrong, words in (({"other": one}, "is called `other`"), ({}, "nothing for the external sources")):
        with pytest.raises(ValueError, match=words):
            plugin.experimental.DALIDatasetWithInputs(made(padded), tf.float32, input_datasets=wrong, **PLACE)
    with pytest.raises(ValueError, match="has no `name`"):
        plugin.experimental.DALIDatasetWithInputs(made(lambda: fn.external_source()), tf.float32, **PLACE)
    with pytest.raises(ValueError, match="DALIDatasetWithInputs"):
        plugin.DALIDataset(made(padded), tf.float32, **PLACE)
    with pytest.raises(TypeError, match="DALIDatasetWithInputs"):
        plugin.DALIDataset(made(padded), tf.float32, input_datasets={}, **PLACE)
    with pytest.raises(TypeError, match=r"tf\.data\.Dataset"):
        plugin.experimental.Input([1])


def test_inputs_that_are_not_one_tensor_each():
    one = tf.constant([1.0])
    for wrong in ({"a": one}, (one, one), tf.ragged.constant([[1.0], [2.0, 3.0]]), tf.sparse.eye(3)):
        for batch in (False, True):
            with pytest.raises(TypeError, match="one tensor each"):
                plugin.experimental.Input(tf.data.Dataset.from_tensors(wrong), batch=batch)
    whole = tf.data.Dataset.from_tensors(one)
    with pytest.raises(TypeError, match="`layout` of an input"):
        plugin.experimental.Input(whole, layout=3)
    with pytest.raises(TypeError, match="`batch` of an input"):
        plugin.experimental.Input(whole, batch="yes")
    assert len(list(fed(tf.data.Dataset.from_tensors((one,)).repeat(SIZE)))) == 1


def test_inputs_that_are_no_batches():
    for wrong, words in ((1.0, "found a scalar"), (tf.zeros((0, 2)), "without samples"), (tf.zeros((9, 2)), "at most")):
        dataset = fed(plugin.experimental.Input(tf.data.Dataset.from_tensors(wrong), batch=True))
        with pytest.raises(tf.errors.OpError, match=words):
            next(iter(dataset))


def test_generators_that_fail():
    def generate():
        yield from np.ones((6, 1), np.float32)
        raise KeyError("the seventh")

    with pytest.raises(tf.errors.OpError, match="the seventh"):
        list(fed(tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec((1,)))))

    def source(info):
        if info.idx_in_epoch >= 6:
            raise KeyError("the seventh")
        return np.float32([1])

    pipeline = made(lambda: fn.external_source(source=source, batch=False))
    with pytest.raises(tf.errors.OpError, match="the seventh"):
        list(plugin.experimental.DALIDatasetWithInputs(pipeline, tf.float32, **PLACE))


def test_types_that_are_no_numbers():
    for wrong in (tf.string, tf.variant, tf.resource):
        with pytest.raises(TypeError, match="expected types of numbers or truth values"):
            plugin.DALIDataset(made(numbers), (wrong, tf.int32), **PLACE)
        with pytest.raises(TypeError, match="expected types of numbers or truth values"):
            plugin.DALIIterator()(pipeline=made(numbers), batch_size=SIZE, dtypes=[tf.float32, wrong])
    with pytest.raises(ValueError, match="`output_dtypes` is empty"):
        plugin.DALIDataset(made(numbers), (), **PLACE)
    with pytest.raises(TypeError, match="`dtypes`: expected a `tf.DType`"):
        plugin.DALIIterator()(pipeline=made(numbers), batch_size=SIZE, dtypes=[None, tf.int32])
    with pytest.raises(ValueError, match="2 outputs, and 3 types"):
        plugin.DALIIterator()(pipeline=made(numbers), batch_size=SIZE, dtypes=[tf.float32] * 3)
    with pytest.raises(ValueError, match="`prefetch_queue_depth` is empty"):
        plugin.DALIIterator()(pipeline=made(numbers), batch_size=SIZE, dtypes=[tf.float32] * 2, prefetch_queue_depth={})


def test_an_operator_that_fails():
    dataset = fed(tf.data.Dataset.from_tensors(tf.zeros((3, 3, 3, 3), tf.float32)).repeat(), output_dtypes=tf.float32)
    with pytest.raises(tf.errors.OpError, match="outputs"):
        next(iter(dataset))


def test_nothing_is_kept():
    dataset = fed(growing(100))
    for _ in range(3):
        next(iter(dataset))
    gc.collect()
    passes = [value for value in gc.get_objects() if type(value).__name__ == "_Passes"]
    assert all(not found.passes for found in passes)


def test_tensors_of_a_graph():
    with tf.Graph().as_default():
        drawn, whole = plugin.DALIIterator()(
            pipeline=made(numbers), shapes=[(SIZE, 2, 3), ()], dtypes=[tf.float32, tf.int32], device_id=None
        )
        assert drawn.shape == (SIZE, 2, 3) and whole.shape.rank is None
        with tf.compat.v1.Session() as session:
            found = [session.run([drawn, whole]) for _ in range(3)]
    pipeline = made(numbers)
    for batch in found:
        for mine, its in zip(batch, pipeline.run()):
            assert np.array_equal(mine, its.as_array())


def test_tensors_at_once_and_sparse():
    pipeline = made(lambda: fn.random.uniform(shape=fn.cast(fn.random.uniform(range=[1, 9]), dtype=types.INT32)))
    found = [
        plugin.DALIIterator()(pipeline=pipeline, batch_size=SIZE, dtypes=[tf.float32], sparse=[True])[0]
        for _ in range(2)
    ]
    assert not np.array_equal(found[0].values, found[1].values)
    whole = tf.sparse.to_dense(found[0]).numpy()
    assert whole.shape[0] == SIZE and (whole != 0).sum() == found[0].values.shape[0]


def test_keras():
    def define():
        value = fn.random.uniform(range=[-1.0, 1.0], shape=[3])
        return value, fn.reductions.sum(value, keep_dims=True)

    dataset = plugin.DALIDataset(made(define), (tf.float32, tf.float32), ((SIZE, 3), (SIZE, 1)), **PLACE)
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    losses = model.fit(dataset, epochs=2, steps_per_epoch=40, verbose=0).history["loss"]
    assert losses[1] < losses[0]


# A pipeline without an end, of which TensorFlow's threads ask for batches ahead until the program has ended.
ENDLESS = """
import numpy as np
import tensorflow as tf
from gesso import fn, pipeline_def
from gesso.plugin.tf import DALIDataset, experimental

PLACE = {"batch_size": 8, "num_threads": 2, "device_id": None}


@pipeline_def(**PLACE)
def drawn():
    return fn.random.uniform(range=(0.0, 1.0), shape=[64, 64, 3])


@pipeline_def(**PLACE)
def fed():
    return fn.external_source(name="numbers") + fn.random.uniform(shape=[200, 200])


def dataset():
    return DALIDataset(drawn(), tf.float32, (8, 64, 64, 3), **PLACE)
"""
PROGRAMS = {
    "ahead": "batches = iter(dataset().prefetch(8))",
    "several": "batches = iter(tf.data.Dataset.range(3).interleave(lambda _: dataset(), cycle_length=3, num_parallel_calls=3))",
    "fed": """
numbers = tf.data.Dataset.from_tensors(np.float32(1)).repeat()
made = experimental.DALIDatasetWithInputs(fed(), tf.float32, (8, 200, 200), input_datasets={"numbers": numbers}, **PLACE)
batches = iter(made.prefetch(8))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("end", "code"), [("", 0), ("raise SystemExit(3)", 3), ("assert False", 1)])
def test_a_program_ends_with_batches_under_way(name, end, code):
    program = "\n".join([ENDLESS, PROGRAMS[name], "for _ in range(3):\n    next(batches)", end])
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stderr
