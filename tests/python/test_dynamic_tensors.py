"""Dynamic mode: types, devices, tensors, batches, arithmetic, parts, modes, contexts, random numbers, checkpoints."""

import json
import threading
import traceback

import gesso
import numpy as np
import pytest
from gesso import dynamic as d
from gesso import fn, types


def pipeline_of(define, **feeds):
    """The first output of a pipeline with these inputs, as arrays."""

    def graph():
        inputs = [fn.external_source(name=name) for name in feeds]
        return define(*inputs), *inputs

    pipeline = gesso.pipeline_def(batch_size=len(next(iter(feeds.values()))), num_threads=1, prefetch_queue_depth=1)(
        graph
    )()
    return [np.asarray(sample) for sample in pipeline.run(**feeds)[0]]


def test_element_types():
    assert d.float32.exponent_bits == 8 and d.float16.significand_bits == 10 and d.int16.bytes == 2
    assert d.dtype("u8") is d.uint8 is d.dtype(types.UINT8) is d.dtype(np.uint8)
    assert str(d.bfloat16) == "bfloat16" and d.dtype("f8e4m3").significand_bits == 3
    assert repr(d.uint8) == "DType(kind=Kind.unsigned, bits=8)"
    with pytest.raises(ValueError, match="no element type"):
        d.dtype("f8q")


def test_what_tensors_are_made_of():
    # Types as DALI 2.4 gives them.
    kinds = {1.5: "f32", True: "bool", 3: "i32", 2**31: "u32"}
    assert {value: str(d.tensor(value).dtype) for value in kinds} == kinds
    with pytest.raises(OverflowError):
        d.tensor(2**40)
    with pytest.raises(OverflowError):
        d.tensor([300], dtype=d.uint8)
    assert d.tensor(types.INTERP_CUBIC).dtype == d.InterpType
    assert d.tensor([1, 2], dtype="f16").dtype == d.float16
    assert d.int16([1, 2]).dtype == d.int16
    array = np.arange(6, dtype=np.int32)
    view, copy = d.as_tensor(array), d.tensor(array)
    array[0] = 9
    assert view[0].item() == 9 and copy[0].item() == 0
    with pytest.raises(ValueError, match="layout"):
        d.tensor(np.zeros((2, 2)), layout="HWC")
    with pytest.raises(TypeError):
        d.tensor("text")


def test_batches():
    batch = d.batch([[1, 2, 3], [4, 5]], layout="X")
    assert batch.shape == [(3,), (2,)] and batch.dtype == d.int32 and batch.layout == "X" and len(batch) == 2
    assert [t.shape for t in batch.tensors[::-1]] == [(2,), (3,)]
    assert batch.select([1]).shape == [(2,)]
    assert np.array_equal(d.as_tensor(batch, pad=True), [[1, 2, 3], [4, 5, 0]])
    assert d.as_tensor(d.batch([[1], [2]])).shape == (2, 1)
    with pytest.raises(ValueError, match="non-uniform"):
        d.as_tensor(batch)
    with pytest.raises(ValueError, match="Element type"):
        d.batch([])
    with pytest.raises(ValueError, match="one type, rank and device"):
        d.batch([[1], [[1]]])
    assert d.Batch.broadcast([1, 2], 3).shape == [(2,)] * 3
    assert "num_samples=2" in repr(batch)


def test_parts():
    array = np.arange(5 * 6 * 7).reshape(5, 6, 7)
    tensor = d.tensor(array, layout="ABC")
    for part in ((slice(1, 3), Ellipsis, slice(4)), (0, slice(None), -1), (slice(None, None, -1),), (Ellipsis, 2)):
        assert np.array_equal(tensor[part], array[part])
    assert tensor[:, 0].layout == "AC"
    batch = d.batch([np.arange(4), np.arange(10)])
    assert [int(t) for t in batch.slice[d.as_batch([1, 9])]] == [1, 9]
    assert batch.slice[d.as_batch([1, 2]) :].shape == [(3,), (8,)]
    with pytest.raises(IndexError):
        tensor[7]
    with pytest.raises(ValueError, match="Ellipsis"):
        tensor[..., ...]


@pytest.mark.parametrize("mode", list(d.EvalMode))
def test_arithmetic_is_that_of_pipelines(mode):
    a, b = np.arange(6, dtype=np.int8).reshape(2, 3), np.full((2, 3), 2.5, np.float32)
    with mode:
        for define in (
            lambda x, y: x + y,
            lambda x, y: x / 2 - y,
            lambda x, y: (x << 1) & 6,
            lambda x, y: abs(-x) >= y,
            lambda x, y: 3 // (x + 1),
        ):
            mine = define(d.tensor(a), d.tensor(b))
            reference = pipeline_of(define, x=[a], y=[b])[0]
            assert np.asarray(mine).dtype == reference.dtype and np.array_equal(mine, reference)
        assert np.allclose(d.math.sqrt(d.batch([[4.0], [9.0]])).tensors[1], 3)
        assert np.array_equal(np.array([1, 2]) + d.tensor([1, 2]), [2, 4])


def test_many_numbers_are_fed():
    tensor = d.tensor([1, 2])
    for i in range(40):
        assert np.array_equal(tensor + i, [1 + i, 2 + i]) and (tensor + i).dtype == d.int32
        assert np.allclose(tensor * (i + 0.5), np.array([1, 2]) * (i + 0.5))


def test_deferred_calls_know_their_types():
    with d.EvalMode.deferred:
        picture = d.tensor(np.zeros((4, 4, 3), np.uint8), layout="HWC")
        for made in (
            d.flip(picture),
            d.cast(picture, dtype=types.FLOAT),
            d.resize(picture, size=[2, 2]),
            picture * 2.0,
        ):
            invocation = made._invocation_result.invocation
            known = made.dtype, made.ndim, made.layout
            assert invocation._results is None
            made.evaluate()
            assert known == (made.dtype, made.ndim, made.layout)


def test_what_others_may_change_is_read_at_once():
    array = np.array([1, 2], np.int32)
    with d.EvalMode.deferred:
        made = d.as_tensor(array) + 1
        array[:] = 7
    assert np.array_equal(made, [2, 3])


def test_a_failure_names_the_line():
    for mode in (d.EvalMode.deferred, d.EvalMode.eager):
        with mode, pytest.raises(RuntimeError, match="It was called at") as caught:
            cropped = d.crop(d.tensor(np.zeros((4, 4, 3), np.uint8), layout="HWC"), crop=(9, 9))  # this line
            cropped.evaluate()
        assert __file__ in str(caught.value)
        assert traceback.extract_tb(caught.value.__cause__.__traceback__)[-1].line.endswith("# this line")


def test_contexts_and_threads():
    with d.EvalContext(num_threads=3) as context:
        assert d.EvalContext.current() is context and context.num_threads == 3
        errors = []

        def enter():
            try:
                with context:
                    pass
            except RuntimeError as error:
                errors.append(error)

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        assert "EvalContext" in str(errors[0])
    d.set_num_threads(5)
    try:
        assert d.get_num_threads() == d.EvalContext.current().thread_pool.num_threads == 5
    finally:
        d.set_num_threads(None)
    with pytest.raises(ValueError):
        d.set_num_threads(0)
    with pytest.raises(ValueError, match="exclude"):
        d.EvalContext(num_threads=1, thread_pool=d.ThreadPool(1))


def test_devices():
    assert d.Device("cpu") == d.device("cpu") and str(d.Device("cpu")) == "cpu"
    for wrong in ("tpu", "cpu:1", "gpu:x", "gpu:999"):
        with pytest.raises(ValueError, match="Invalid device"):
            d.Device(wrong)
    with d.Device("cpu"):
        assert d.Device.current() == d.Device("cpu")


@pytest.mark.filterwarnings("ignore:there is no GPU")
def test_operators_on_a_gpu_or_in_its_place():
    tensor = d.tensor(np.arange(12, dtype=np.uint8).reshape(2, 2, 3), layout="HWC")
    flipped = d.flip(tensor.gpu())
    assert flipped.device.device_type == "gpu"
    assert np.array_equal(flipped.cpu(), d.flip(tensor))
    with pytest.raises(ValueError, match="Cannot mix GPU and CPU"):
        tensor + tensor.gpu()


def test_generators():
    # Numbers and states of DALI 2.4.
    rng = d.random.RNG(seed=1234)
    assert [rng() for _ in range(6)] == [546353992, 3665621163, 1140953199, 3419031310, 2666454581, 482218876]
    assert str(rng.state) == "Philox_00000000000004D2_0000000000000000:0000000000000001_2"
    rng = d.random.RNG(seed=2**63 + 5)
    assert [rng() for _ in range(3)] == [4169149457, 47544881, 1243793531]
    rng.advance(10)
    assert rng() == 391939772
    other = rng.clone()
    assert [rng() for _ in range(9)] == [other() for _ in range(9)]
    with pytest.raises(ValueError, match="no state"):
        d.random.RNG(state="Philox")
    with pytest.raises(ValueError, match="both"):
        d.random.RNG(1, state=str(rng.state))


def test_random_operators():
    draw = lambda seed: np.asarray(d.random.uniform(range=[0.0, 1.0], shape=[10], rng=d.random.RNG(seed)))
    assert np.array_equal(draw(1), draw(1)) and not np.array_equal(draw(1), draw(2))
    assert d.random.coin_flip(batch_size=3, rng=d.random.RNG(1)).shape == [()] * 3
    with pytest.raises(ValueError, match="RNG"):
        d.random.uniform(rng=3)
    with pytest.raises(TypeError, match="rng"):
        d.flip(d.tensor(np.zeros((2, 2, 3), np.uint8)), rng=d.random.RNG(1))


def test_checkpoints_of_generators(tmp_path):
    rng = d.random.RNG(7)
    saved = d.checkpoint.Checkpoint()
    assert saved.register(rng) == "__op_0" and saved.register(rng) == "__op_0"
    saved.collect()
    expected = [rng() for _ in range(5)]
    pattern = str(tmp_path / "[a]_{seq:03d}.json")
    assert saved.save(pattern) != saved.save(pattern)
    loaded, again = d.checkpoint.Checkpoint(), d.random.RNG(8)
    assert loaded.load(pattern).endswith("_001.json")
    loaded.register(again)
    assert [again() for _ in range(5)] == expected


@pytest.mark.parametrize(
    "text", ["[]", json.dumps({"version": 1, "states": {}}), json.dumps({"version": 2, "states": {"a": "b"}})]
)
def test_damaged_checkpoints(text):
    with pytest.raises(ValueError):
        d.checkpoint.Checkpoint().deserialize(text)
