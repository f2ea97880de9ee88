"""What pipelines make on a GPU stays there, and GPU arrays that are fed stay there, too. Skipped without a GPU."""

import gc

import numpy as np
import pytest
from gesso import Pipeline, TensorListGPU, fn, pipeline_def, types
from gesso._native import engine
from gesso._tensors import device_array

if not engine.has_gpu():
    pytest.skip("no GPU", allow_module_level=True)

# Other shapes than one, so that samples do not lie at even distances.
SHAPES = [(3, 5), (7, 2), (1, 1)]


def of(define, **options):
    settings = {"batch_size": 3, "num_threads": 2, "device_id": 0, "prefetch_queue_depth": 1}
    return pipeline_def(define, **{**settings, **options})()


def numbers(shapes=SHAPES):
    return [np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) + i for i, shape in enumerate(shapes)]


def doubled(shapes, **options):
    """A batch that was made on the GPU, and what must be in it."""
    given = numbers(shapes)
    pipe = of(lambda: fn.external_source(name="x").gpu() * 2, **options)
    pipe.feed_input("x", given)
    (batch,) = pipe.run()
    return batch, [array * 2 for array in given]


def test_outputs_are_on_the_device():
    batch, expected = doubled(SHAPES)
    assert isinstance(batch, TensorListGPU) and batch[1].device_id() == 0
    assert batch[0].__cuda_array_interface__["shape"] == (3, 5)
    assert not hasattr(batch.as_cpu()[0], "__cuda_array_interface__")
    for sample, array in zip(batch, expected):
        assert sample.shape() == list(array.shape) and sample.dtype == types.FLOAT
        np.testing.assert_array_equal(sample.as_cpu().array, array)
    assert 'device="gpu"' in str(batch)


def test_a_batch_of_one_shape_is_one_tensor():
    for shape in [(64, 64), (5,), ()]:
        batch, expected = doubled([shape] * 3)
        whole = batch.as_tensor()
        assert whole.shape() == [3, *shape] and whole.__cuda_array_interface__["strides"] is None
        np.testing.assert_array_equal(whole.as_cpu().array, np.stack(expected))
        np.testing.assert_array_equal(batch.as_cpu().as_array(), np.stack(expected))


def test_dlpack_on_the_device_on_the_host_and_as_a_copy():
    torch = pytest.importorskip("torch")
    batch, expected = doubled(SHAPES)
    for sample, array in zip(batch, expected):
        shared = torch.utils.dlpack.from_dlpack(sample.__dlpack__(dl_device=(2, 0)))
        copied = torch.utils.dlpack.from_dlpack(sample.__dlpack__(copy=True))
        assert shared.data_ptr() == sample.data_ptr() != copied.data_ptr()
        shared += 1
        np.testing.assert_array_equal(copied.cpu().numpy(), array)
        host = torch.utils.dlpack.from_dlpack(sample.__dlpack__(dl_device=(1, 0)))
        assert not host.is_cuda
        np.testing.assert_array_equal(host.numpy(), array + 1)
        for named in ({"dl_device": (1, 0), "copy": False}, {"dl_device": (2, 1)}, {"dl_device": (3, 0)}):
            with pytest.raises(BufferError, match="it is on the device"):
                sample.__dlpack__(**named)


def test_torch_takes_and_gives():
    torch = pytest.importorskip("torch")
    batch, expected = doubled(SHAPES)
    taken = [torch.from_dlpack(sample) for sample in batch]
    shared = torch.as_tensor(batch[1], device="cuda")
    assert shared.data_ptr() == taken[1].data_ptr() == batch[1].data_ptr()
    del batch
    gc.collect()
    for tensor, array in zip(taken, expected):
        assert tensor.is_cuda
        np.testing.assert_array_equal(tensor.cpu().numpy(), array)
    pipe = of(lambda: fn.external_source(name="x", device="gpu") + 1)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        given = [torch.zeros(1000, 1000, device="cuda") for _ in range(3)]
        for tensor in given:
            for _ in range(20):
                tensor += 1
        pipe.feed_input("x", given)
        # Copied before.
        for tensor in given:
            tensor.zero_()
    (batch,) = pipe.run()
    assert all(
        float(torch.from_dlpack(sample).min()) == float(torch.from_dlpack(sample).max()) == 21 for sample in batch
    )
    whole = torch.arange(12.0, device="cuda").reshape(3, 4)
    pipe = of(lambda: fn.external_source(name="x", device="gpu") + 1)
    pipe.feed_input("x", whole)
    np.testing.assert_array_equal(pipe.run()[0].as_cpu().as_array(), whole.cpu().numpy() + 1)


def test_cupy_takes_and_gives():
    cupy = pytest.importorskip("cupy")
    batch, expected = doubled(SHAPES)
    np.testing.assert_array_equal(cupy.asnumpy(cupy.asarray(batch[1])), expected[1])
    pipe = of(lambda: fn.external_source(name="x", device="gpu") + 1)
    pipe.feed_input("x", [cupy.full((2, 2), i, cupy.int32) for i in range(3)])
    assert [int(sample.as_cpu().array[1, 1]) for sample in pipe.run()[0]] == [1, 2, 3]


def test_an_input_on_the_host_takes_device_arrays():
    torch = pytest.importorskip("torch")
    pipe = of(lambda: fn.external_source(name="x") + 1)
    pipe.feed_input("x", [torch.ones(3, device="cuda")] * 3)
    np.testing.assert_array_equal(pipe.run()[0].as_array(), np.full((3, 3), 2, np.float32))


def test_batches_outlive_their_pipeline_and_differ():
    kept = []
    pipe = of(lambda: fn.external_source(name="x").gpu() * 2)
    for i in range(5):
        pipe.feed_input("x", [np.full((100, 100), i, np.float32)] * 3)
        kept.append(pipe.run()[0])
    del pipe
    gc.collect()
    for i, batch in enumerate(kept):
        assert (batch.as_cpu().as_array() == 2 * i).all()


def test_memory_comes_back():
    import ctypes

    def free():
        gc.collect()
        left, total = ctypes.c_size_t(), ctypes.c_size_t()
        device_array.driver().run(0, "cuMemGetInfo_v2", ctypes.byref(left), ctypes.byref(total))
        return left.value

    pipe = of(lambda: fn.external_source(name="x").gpu() * 2)
    given = [np.zeros((1000, 1000), np.float32)] * 3

    def run():
        pipe.feed_input("x", given)
        (batch,) = pipe.run()
        return batch.as_tensor().shape()

    run()
    before = free()
    for _ in range(200):
        run()
    assert before - free() < 64 << 20


def test_the_iterator_gives_tensors_on_the_device():
    torch = pytest.importorskip("torch")
    from gesso.plugin.pytorch import DALIGenericIterator

    rounds = 30

    def source(info):
        if info.iteration >= rounds:
            raise StopIteration
        return np.full((300, 400), info.idx_in_epoch, np.float32)

    pipe: Pipeline = of(lambda: fn.external_source(source, batch=False).gpu() * 2, batch_size=8, prefetch_queue_depth=2)
    work = torch.zeros(8, device="cuda")
    batches = 0
    for (outputs,) in DALIGenericIterator([pipe], ["x"]):
        batches += 1
        tensor = outputs["x"]
        assert tensor.is_cuda and tensor.shape == (8, 300, 400)
        # As training does: nobody waits for the device in between.
        work += tensor.amin(dim=(1, 2)) + tensor.amax(dim=(1, 2))
    assert batches == rounds
    expected = 4 * (np.arange(8) * rounds + 8 * np.arange(rounds).sum())
    np.testing.assert_array_equal(work.cpu().numpy(), expected)
