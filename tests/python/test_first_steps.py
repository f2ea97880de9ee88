"""What who begins meets first: damaged files in a data set, loops over a pipeline, files that were written before, and
mistakes that need a good answer."""

import io
import json
import os
import struct
import subprocess
import sys

import numpy as np
import pytest
from gesso import DataNode, Pipeline, TensorGPU, TensorListGPU, fn, pipeline_def, tfrecord
from gesso.plugin.base_iterator import BaseIterator, LastBatchPolicy

image = pytest.importorskip("PIL.Image")
DAMAGED = (3, 9)


@pytest.fixture
def files(tmp_path):
    """Ten pictures, of which two are damaged."""
    for i in range(10):
        picture = io.BytesIO()
        image.new("RGB", (8, 8), (i, i, i)).save(picture, "PNG")
        (tmp_path / f"{i:02}.png").write_bytes(picture.getvalue() if i not in DAMAGED else b"junk")
    return [str(tmp_path / f"{i:02}.png") for i in range(10)]


def made(files, on_error="skip", batch_size=4, depth=2, **options):
    pipeline = Pipeline(batch_size, 2, on_error=on_error, prefetch_queue_depth=depth)
    with pipeline:
        encoded, labels = fn.readers.file(files=files, name="files", **options)
        pipeline.set_outputs(fn.decoders.image(encoded), labels)
    return pipeline


class Labels(BaseIterator):
    """The labels of each batch."""

    def __init__(self, pipelines, **options):
        super().__init__(pipelines, reader_name="files", auto_reset=True, **options)
        self._take_first_batch()

    def _convert(self, outputs):
        return [one[1].as_array().ravel().tolist() for one in outputs]

    def _cut(self, batches):
        counts = self._counts()
        return batches if counts is None else [batch[:count] for batch, count in zip(batches, self._there(counts))]


@pytest.mark.parametrize(
    "policy, expected",
    [
        ("FILL", [[0, 1, 2], [4, 5, 6, 7], [8]]),
        ("DROP", [[0, 1, 2], [4, 5, 6, 7]]),
        ("PARTIAL", [[0, 1, 2], [4, 5, 6, 7], [8]]),
    ],
)
def test_iterators_leave_damaged_samples_out(files, policy, expected):
    iterator = Labels(made(files, pad_last_batch=True), last_batch_policy=LastBatchPolicy[policy])
    for _ in range(3):
        assert [batch[0] for batch in iterator] == expected


def test_a_batch_of_damaged_samples_is_left_out(files):
    iterator = Labels(made(files[2:4] + files[:1], batch_size=1))
    assert [batch[0] for batch in iterator] == [[0], [2]]


@pytest.mark.parametrize("depth", [1, 2])  # Python reads, and the library does
def test_an_error_says_which_file(files, depth):
    pipeline = made(files, depth=depth)
    pipeline.run()
    ((index, text),) = pipeline.errors.items()
    assert index == 3 and f"`{files[3]}`, sample 3 of the reader `files`: " in text
    with pytest.raises(
        RuntimeError,
        match=f"(?s)fn.decoders.image.*Sample 3 of the batch failed: `{files[3]}`, sample 3 of the reader `files`",
    ):
        made(files, on_error="raise", depth=depth).run()


@pytest.mark.parametrize("pads, expected", [(True, [3, 3, 3, 3]), (False, [3, 2, 3, 2])])
def test_a_loop_over_a_pipeline_ends_with_the_epoch(files, pads, expected):
    pipeline = made(files, pad_last_batch=pads)
    assert [sum(1 for _ in pipeline) for _ in range(4)] == expected


def test_a_loop_goes_on_where_one_was_left(files):
    pipeline = made(files, pad_last_batch=True)
    next(iter(pipeline))
    assert sum(1 for _ in pipeline) == 2
    assert sum(1 for _ in pipeline) == 3
    next(iter(pipeline))
    pipeline.restart()
    assert sum(1 for _ in pipeline) == 3


# --- files with readers


def same(pipeline, again, batches=3):
    """Checks that two pipelines give the same."""
    for _ in range(batches):
        for one, other in zip(pipeline.run(), again.run()):
            assert [array.tolist() for array in one.arrays] == [array.tolist() for array in other.arrays]


def test_a_file_with_a_reader_is_read_back(tmp_path):
    for i in range(5):
        np.save(tmp_path / f"{i}.npy", np.arange(3 * i, 3 * i + 6).astype(np.float32).reshape(2, 3))

    @pipeline_def(batch_size=2, num_threads=1, seed=5, enable_conditionals=True)
    def define():
        data = fn.readers.numpy(
            file_root=str(tmp_path), random_shuffle=True, roi_start=[1], roi_axes=[0], name="arrays"
        )
        if fn.random.coin_flip():
            data = data + fn.random.uniform(range=[0, 1])
        return data

    again = Pipeline.deserialize(define().serialize())
    same(define(), again)
    assert again.reader_meta("arrays")["epoch_size"] == 5
    other = Pipeline(batch_size=2, num_threads=1, device_id=None)
    other.deserialize_and_build(define().serialize())
    assert len(other.run()[0]) == 2
    assert len(Pipeline.deserialize(define().serialize(), batch_size=3).run()[0]) == 3


def test_a_file_that_reads_files_is_read_back(files):
    pipeline = made(files)
    again = Pipeline.deserialize(pipeline.serialize(), on_error="skip")
    same(made(files), again)
    assert sum(1 for _ in again) == 2


def example(number):
    """An `Example` of two features."""
    field = lambda number, value: bytes([number << 3 | 2, len(value)]) + value
    values = {
        "n": field(3, field(1, bytes([number]))),
        "pairs": field(2, field(1, struct.pack("<4f", 1, 2, 3, number))),
    }
    pairs = b"".join(field(1, field(1, name.encode()) + field(2, value)) for name, value in values.items())
    return field(1, pairs)


def test_features_of_a_file_are_read_back(tmp_path):
    records = [struct.pack("<Q4x", len(example(i))) + example(i) + bytes(4) for i in range(3)]
    (tmp_path / "a").write_bytes(b"".join(records))
    at = np.cumsum([0] + [len(record) for record in records])
    (tmp_path / "a.idx").write_text("".join(f"{begin} {len(record)}\n" for begin, record in zip(at, records)))
    wanted = {
        "n": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        "pairs": tfrecord.VarLenFeature([2], tfrecord.float32, 0.0),
        "text": tfrecord.FixedLenFeature((), tfrecord.string, "none"),
    }

    @pipeline_def(batch_size=2, num_threads=1)
    def define():
        return tuple(
            fn.readers.tfrecord(
                path=[str(tmp_path / "a")], index_path=[str(tmp_path / "a.idx")], features=wanted, name="t"
            ).values()
        )

    file = define().serialize()
    told = Pipeline.deserialize(file).description()["operators"][0]["arguments"]
    assert told["feature_names"] == list(wanted)
    assert [json.loads(text) for text in told["features"]] == [
        {"type": [0], "has_shape": [True], "shape": [1], "default_value": [-1]},
        {"type": [2], "has_shape": [False], "shape": [], "partial_shape": [2], "default_value": [0.0]},
        {"type": [1], "has_shape": [True], "shape": [], "default_value": ["none"]},
    ]
    same(define(), Pipeline.deserialize(file))
    assert len(Pipeline.deserialize(file, batch_size=3).run()[1]) == 3


# --- mistakes, and what is missing


def test_numpys_functions_and_types_are_answered():
    with Pipeline(1, 1):
        node = fn.external_source(name="x")
        with pytest.raises(TypeError, match="fn.reductions.mean"):
            np.mean(node)
        assert isinstance(np.float32(2) * node, DataNode)
        assert isinstance(fn.cast(node, dtype=np.float32), DataNode)
        with pytest.raises(AttributeError, match="Return it as an output"):
            node.get()


def test_bytes_that_are_fed_are_answered():
    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1)
    def define():
        return fn.external_source(name="x")

    assert bytes(define().run(x=[b"abc"])[0].at(0)) == b"abc"
    with pytest.raises(TypeError, match="np.fromfile"):
        define().run(x=["a.jpg"])


def test_a_sample_of_a_batch_on_the_gpu_is_a_tensor():
    batch = TensorListGPU([np.zeros((2, 3), np.uint8)], layout="HW")
    assert type(batch.at(0)) is TensorGPU and type(batch[0]) is TensorGPU
    assert batch.at(0).shape() == [2, 3] and batch.at(0).layout() == "HW"
    with pytest.raises(RuntimeError):
        batch.at(1)


def test_nothing_is_said_at_the_end(files, tmp_path):
    program = (
        "from gesso import Pipeline, fn\n"
        f"pipeline = Pipeline(2, 1)\nwith pipeline:\n    pipeline.set_outputs(fn.readers.file(files={files!r})[1] + 0)\n"
        "pipeline.run()\nclass Keeps:\n    pass\nkept = Keeps()\nkept.self, kept.pipeline = kept, pipeline\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env=os.environ, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_function_of_pytorchs_tensors():
    torch = pytest.importorskip("torch")
    from gesso.plugin.pytorch.fn import torch_python_function

    @pipeline_def(batch_size=2, num_threads=1)
    def define():
        data = fn.constant(fdata=[1.0, 2.0], shape=[2])
        return torch_python_function(data, function=lambda x: torch.stack([x, 2 * x]))

    assert define().run()[0].at(1).tolist() == [[1, 2], [2, 4]]


def test_a_function_of_jaxs_arrays():
    pytest.importorskip("jax")
    from gesso.plugin.jax.fn import jax_function

    @jax_function(num_outputs=2)
    def both(data):
        return data[:, ::-1], data.sum(axis=1)

    @pipeline_def(batch_size=2, num_threads=1)
    def define():
        return tuple(both(fn.external_source(lambda: np.float32([[1, 2], [3, 4]]), layout="X")))

    reversed_, sums = define().run()
    assert reversed_.as_array().tolist() == [[2, 1], [4, 3]] and reversed_.layout() == "X"
    assert sums.as_array().tolist() == [3, 7]


def test_a_transform_that_was_used_works_in_a_child():
    torch = pytest.importorskip("torch")
    from gesso.plugin.pytorch import Transform

    double = Transform(lambda x: x * 2)
    assert double(np.int32([1])).tolist() == [2]

    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return double(np.int32([index]))

    loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=1, timeout=60)
    assert [batch.ravel().tolist() for batch in loader] == [[0, 2], [4, 6]]


def test_a_loader_is_measured():
    pytest.importorskip("torch")
    from gesso.plugin.pytorch.loader_evaluator import LoaderEvaluator

    replayed = LoaderEvaluator([1, 2, 3], mode="replay", num_cached_batches=2)
    assert list(replayed) == [2, 3, 2] and replayed.get_metrics()["total_batches"] == 3
    assert list(LoaderEvaluator([1, 2, 3])) == [1, 2, 3]
