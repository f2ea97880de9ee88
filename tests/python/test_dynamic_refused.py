"""What dynamic mode refuses: numbers of samples, values that are no arrays, arrays in other memory, sources, states;
and what pipelines of files do."""

import gesso
import numpy as np
import pytest
from gesso import dynamic as d


class Elsewhere:
    """An array of another library, in memory that its device says."""

    def __init__(self, device):
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **_):
        return np.zeros(3, np.float32).__dlpack__()


class OfCuda:
    """An array in memory of a GPU, as it says."""

    __cuda_array_interface__ = {"shape": (3,), "typestr": "|u1", "data": (4096, False), "version": 3}


@pytest.mark.parametrize(
    ("size", "error"), [(0, ValueError), (-1, ValueError), (65537, ValueError), ("2", TypeError), (1.0, TypeError)]
)
def test_numbers_of_samples(size, error):
    reader = d.readers.File(files=[__file__])
    for call in (
        lambda: d.random.uniform(shape=[2], batch_size=size),
        lambda: d.flip(d.tensor(np.zeros((2, 2, 3), np.uint8)), batch_size=size),
        lambda: reader.next_epoch(batch_size=size),
        lambda: reader(batch_size=size),
        lambda: d.readers.File(files=[__file__], batch_size=size),
    ):
        with pytest.raises(error, match=r"`batch_size`: expected a whole number"):
            call()
    assert len(d.random.uniform(shape=[2], batch_size=np.int64(3)).tensors) == 3


@pytest.mark.parametrize("device", [(2, 0), (10, 1), (99, 0)])
def test_memory_of_other_devices(device):
    for make in (d.tensor, d.as_tensor, lambda value: d.batch([value]), lambda value: d.math.abs(d.as_tensor(value))):
        with pytest.raises(TypeError, match=r"`Elsewhere` is in memory that cannot be read here: DLPack's device is"):
            make(Elsewhere(device))
    assert d.tensor(Elsewhere((1, 0))).shape == (3,)


def test_memory_of_a_gpu_that_is_not_there():
    from gesso._native.engine import has_gpu

    if has_gpu():
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError, match="memory of a GPU cannot be read on this host"):
        d.tensor(OfCuda())


def test_devices_that_are_none():
    with pytest.raises(TypeError, match="`Elsewhere` cannot be read as an array"):
        d.tensor(Elsewhere("cpu"))


def test_tensors_of_torch_that_are_no_arrays():
    torch = pytest.importorskip("torch")
    for value in (torch.zeros(3, device="meta"), torch.eye(3).to_sparse(), torch.ones(3, dtype=torch.bfloat16)):
        with pytest.raises(TypeError, match="a `Tensor` cannot be read as an array"):
            d.tensor(value)


def test_arrays_of_the_other_byte_order():
    made = d.tensor(np.arange(3, dtype=">i4"))
    assert made.dtype == d.int32 and np.asarray(made).tolist() == [0, 1, 2]


def test_sources():
    for wrong in (None, 3, object()):
        with pytest.raises(TypeError, match="`source`: expected a function without arguments or an iterable"):
            d.ExternalSource(wrong)

    def numbers():
        yield from (1.0, 4.0)
        raise OSError("the source is broken")

    source = d.ExternalSource(numbers)
    assert [float(source()) for _ in range(2)] == [1.0, 4.0]
    with pytest.raises(OSError, match="the source is broken"):
        source()

    def short():
        yield 7

    again = d.ExternalSource(short, cycle="quiet")
    assert [int(again()) for _ in range(3)] == [7, 7, 7]


def test_states(tmp_path):
    with pytest.raises(TypeError, match="expected a reader or a generator, which have a state; found a `int`"):
        d.checkpoint.Checkpoint().register(3, "number")
    (tmp_path / "state_0.json").write_text('{"version": 2, "sta')
    with pytest.raises(ValueError, match="Invalid checkpoint payload: expected JSON"):
        d.checkpoint.Checkpoint().load(str(tmp_path / "state_{seq}.json"))


@pytest.mark.parametrize("depth", [0, -3, "2", 1.5, {"cpu": 0}])
def test_depths_of_a_pipeline_from_a_file(depth):
    @gesso.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def drawn():
        return gesso.fn.random.uniform(shape=[3])

    file = drawn().serialize()
    with pytest.raises(ValueError, match="`prefetch_queue_depth`: expected a number of at least 1"):
        gesso.Pipeline.deserialize(file, prefetch_queue_depth=depth)
    for name in ("batch_size", "num_threads", "device_id", "seed"):
        with pytest.raises(TypeError, match=f"Argument `{name}` of the pipeline: expected an integer"):
            gesso.Pipeline.deserialize(file, **{name: "many"})


def test_arrays_of_files_on_a_gpu_or_in_its_place(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3))
    reader = d.readers.Numpy(device="gpu", file_root=str(tmp_path), files=["a.npy"])
    for (batch,) in reader.next_epoch(batch_size=1):
        assert np.asarray(batch.cpu().tensors[0]).tolist() == [[0, 1, 2], [3, 4, 5]]
