"""The input of training on a GPU: batches of data sets are made there, stay there and are those of the host. Skipped
without a GPU."""

import ctypes
import gc
import pathlib
import time

import numpy as np
import pytest
from gesso import Pipeline, TensorListCPU, TensorListGPU, fn, pipeline_def, types
from gesso._native import engine as _engine
from gesso._tensors import device_array

if not _engine.has_gpu():
    pytest.skip("no GPU", allow_module_level=True)
image = pytest.importorskip("PIL.Image")

FILES, SIDE, BATCH = 45, 64, 8
# Levels between what a GPU and the host make of a JPEG: decoders there round otherwise.
MOST, MEAN = 6, 0.6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """JPEGs of several sizes, without subsampled colors, in three classes."""
    root = tmp_path_factory.mktemp("images")
    for i in range(FILES):
        numbers = np.random.default_rng(i)
        coarse = image.fromarray(numbers.integers(0, 256, (7, 9, 3), np.uint8))
        (root / f"class{i % 3}").mkdir(exist_ok=True)
        coarse.resize((120 + 7 * i, 90 + 5 * i), image.BICUBIC).save(
            root / f"class{i % 3}" / f"{i:02}.jpg", quality=90, subsampling=0
        )
    return root


def training(folder, device_id=0, settings=None, **options):
    """Decode, resize, normalize; labels; numbers drawn at random."""

    @pipeline_def(**{"batch_size": BATCH, "num_threads": 4, "device_id": device_id, "seed": 3, **(settings or {})})
    def define():
        options.setdefault("random_shuffle", True)
        encoded, labels = fn.readers.file(file_root=str(folder), name="r", initial_fill=16, **options)
        pixels = fn.resize(fn.decoders.image(encoded, device="mixed"), size=[SIDE, SIDE])
        mirrored = fn.random.coin_flip()
        pixels = fn.crop_mirror_normalize(pixels, dtype=types.FLOAT, output_layout="CHW", mirror=mirrored)
        return pixels, labels, mirrored, labels.gpu() * 2

    return define()


def runs_on(pipeline):
    pipeline.build()
    return "library" if pipeline.runner.execution.run.is_read_by_library else "interpreter"


def assert_alike(batch, other):
    difference = np.abs(batch.as_cpu().as_array() - other.as_cpu().as_array())
    assert difference.max() <= MOST and difference.mean() <= MEAN


def assert_same_step(one, other):
    assert_alike(one[0], other[0])
    for i in (1, 2, 3):
        np.testing.assert_array_equal(one[i].as_cpu().as_array(), other[i].as_cpu().as_array())


def assert_on_device(outputs):
    for batch in (outputs[0], outputs[3]):
        assert isinstance(batch, TensorListGPU) and batch._is_on_device() and batch.device_id() == 0
    for batch in outputs[1:3]:
        assert type(batch) is TensorListCPU


@pytest.mark.parametrize("options", [{}, {"pad_last_batch": True, "num_shards": 2, "shard_id": 1}])
def test_two_epochs_are_those_of_the_host(folder, options):
    pipeline, host = training(folder, **options), training(folder, None, **options)
    assert runs_on(pipeline) == "library" and pipeline.reader_meta() == host.reader_meta()
    for _ in range(2 * FILES // BATCH + 3):
        outputs = pipeline.run()
        assert_on_device(outputs)
        assert_same_step(outputs, host.run())


def test_readers_in_the_interpreter_leave_batches_there_too(folder):
    pipeline, host = training(folder, on_missing="skip"), training(folder, None)
    assert runs_on(pipeline) == "interpreter"
    for _ in range(8):
        outputs = pipeline.run()
        assert_on_device(outputs)
        assert_same_step(outputs, host.run())


def test_a_loaded_file_gives_the_same(folder):
    defined = training(folder)
    loaded = Pipeline.deserialize(defined.serialize(), device_id=0)
    for _ in range(8):
        outputs = loaded.run()
        assert_on_device(outputs)
        assert_same_step(outputs, defined.run())


@pytest.mark.parametrize("depth, kind", [(2, "library"), (1, "interpreter")])
def test_a_part_of_the_multiprocessors_makes_what_all_make(folder, depth, kind):
    whole, part = (
        training(folder, settings={"prefetch_queue_depth": depth, "gpu_multiprocessors": count}) for count in (None, 8)
    )
    assert runs_on(part) == kind and (whole.gpu_multiprocessors, part.gpu_multiprocessors) == (None, 8)
    loaded = Pipeline.deserialize(whole.serialize(), device_id=0, gpu_multiprocessors=8)
    for _ in range(4):
        outputs = whole.run()
        assert_same_step(outputs, part.run())
        assert_same_step(outputs, loaded.run())


@pytest.mark.parametrize("lanes", [1, 4])
def test_random_numbers_are_those_of_one_batch_at_a_time(folder, lanes):
    def drawn(device_id, **settings):
        pipeline = training(folder, device_id, settings)
        return [[batch.as_cpu().as_array().tolist() for batch in pipeline.run()[1:3]] for _ in range(40)]

    assert drawn(0, num_threads=lanes) == drawn(None)


def test_python_functions_between(folder):
    def define(device_id):
        @pipeline_def(batch_size=4, num_threads=2, device_id=device_id)
        def made():
            encoded, _ = fn.readers.file(file_root=str(folder), name="r")
            pixels = fn.resize(fn.decoders.image(encoded, device="mixed"), size=[20, 30])
            # Of the pixels on the GPU the function gets a copy.
            turned = fn.python_function(pixels.cpu(), function=lambda array: array[::-1].copy())
            return pixels, turned.gpu(), fn.crop(pixels, crop=[8, 8]) + fn.crop(turned.gpu(), crop=[8, 8])

        return made()

    pipeline, host = define(0), define(None)
    for _ in range(5):
        outputs, expected = pipeline.run(), host.run()
        for batch, other in zip(outputs, expected):
            assert batch._is_on_device()
            array, right = batch.as_cpu().as_array().astype(int), other.as_cpu().as_array().astype(int)
            assert np.abs(array - right).max() <= 2 * MOST
        np.testing.assert_array_equal(outputs[1].as_cpu().as_array(), outputs[0].as_cpu().as_array()[:, ::-1])


def test_what_the_author_wants_on_the_host_comes_there(folder):
    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def define():
        pixels = fn.decoders.image(fn.readers.file(file_root=str(folder))[0], device="mixed")
        return pixels.cpu(), pixels

    host, device = define().run()
    assert type(host) is TensorListCPU and device._is_on_device()
    for array, other in zip(host, device):
        assert isinstance(array.array, np.ndarray)
        np.testing.assert_array_equal(array.array, other.as_cpu().array)


@pytest.mark.parametrize("options", [{}, {"on_missing": "skip"}])
def test_what_a_reader_gives_goes_to_the_gpu_as_it_is(folder, options):
    @pipeline_def(batch_size=4, num_threads=4, device_id=0)
    def define():
        encoded, labels = fn.readers.file(file_root=str(folder), name="r", **options)
        return encoded.gpu(), labels.gpu(), labels

    pipeline = define()
    kept = [pipeline.run() for _ in range(12)]
    paths = sorted(folder.glob("*/*.jpg"))
    for number, (encoded, on_device, labels) in enumerate(kept):
        assert encoded._is_on_device() and on_device._is_on_device()
        np.testing.assert_array_equal(on_device.as_cpu().as_array(), labels.as_array())
        for i, sample in enumerate(encoded.as_cpu()):
            path = paths[(4 * number + i) % FILES]
            assert sample.array.tobytes() == path.read_bytes() and sample.source_info() == str(path.relative_to(folder))


def test_going_on_from_a_checkpoint(folder):
    settings = {"enable_checkpointing": True}
    pipeline = training(folder, 0, settings)
    for _ in range(7):
        pipeline.run()
    state = pipeline.checkpoint()
    again = training(folder, 0, {**settings, "checkpoint": state})
    for _ in range(9):
        outputs = again.run()
        assert_on_device(outputs)
        assert_same_step(outputs, pipeline.run())


def test_a_restart_begins_the_next_epoch(folder):
    pipeline, host = training(folder), training(folder, None)
    for count in (3, 1, 7):
        for _ in range(count):
            assert_same_step(pipeline.run(), host.run())
        pipeline.restart()
        host.restart()


def test_damaged_and_missing_files(folder, tmp_path):
    files = [str(path) for path in sorted(folder.glob("*/*.jpg"))[:BATCH]]
    (tmp_path / "damaged.jpg").write_bytes((folder / "class0" / "00.jpg").read_bytes()[:200])

    def made(on_error):
        @pipeline_def(batch_size=BATCH, num_threads=4, device_id=0, on_error=on_error)
        def define():
            encoded, labels = fn.readers.file(files=[*files[:3], str(tmp_path / "damaged.jpg"), *files[4:]])
            return fn.decoders.image(encoded, device="mixed"), labels

        return define()

    skipping = made("skip")
    images, labels = skipping.run()
    assert (
        images._is_on_device()
        and labels.as_array().ravel().tolist() == [0, 1, 2, 4, 5, 6, 7]
        and list(skipping.errors) == [3]
    )
    with pytest.raises(RuntimeError, match="(?s)fn.decoders.image.*Sample 3 of the batch failed"):
        made("raise").run()
    files[5] = str(tmp_path / "none.jpg")
    with pytest.raises(RuntimeError, match="(?s)fn.readers.file.*Could not open file .*none.jpg"):
        made("skip").run()


def test_tensors_and_dlpack(folder):
    images = training(folder).run()[0]
    whole = images.as_tensor()
    assert whole.shape() == [BATCH, 3, SIDE, SIDE] and whole.__cuda_array_interface__["strides"] is None
    expected = images.as_cpu().as_array()
    np.testing.assert_array_equal(np.from_dlpack(images.as_cpu().as_tensor()), expected)
    np.testing.assert_array_equal(whole.as_cpu().array, expected)


def test_torch_reads_batches_whose_next_are_made(folder):
    torch = pytest.importorskip("torch")
    pipeline, host = training(folder), training(folder, None)
    sums = []
    for _ in range(60):
        # Nobody waits for the device, and the batch is let go while it is read.
        tensor = torch.from_dlpack(pipeline.run()[0].as_tensor())
        for _ in range(10):
            tensor = tensor + 1
        sums.append(tensor.mean())
    expected = [host.run()[0].as_cpu().as_array().mean() + 10 for _ in range(60)]
    np.testing.assert_allclose([float(each) for each in sums], expected, atol=MEAN)


def test_batches_outlive_their_pipeline(folder):
    pipeline, host = training(folder), training(folder, None)
    kept = [pipeline.run() for _ in range(10)]
    del pipeline
    gc.collect()
    for outputs in kept:
        assert_same_step(outputs, host.run())


def test_outputs_on_the_host_if_that_is_asked_for(folder):
    pipeline = training(folder)
    pipeline.build()
    engine = pipeline.runner.execution.run._engine
    engine._options.outputs_on_host = 1
    engine.restart(0, 0)
    arrays = engine.next().outputs[0][0]
    assert all(isinstance(array, np.ndarray) for array in arrays)
    np.testing.assert_array_equal(np.stack(arrays).shape, (BATCH, 3, SIDE, SIDE))


def free():
    gc.collect()
    # A thread gives back what was lent.
    time.sleep(0.3)
    left, total = ctypes.c_size_t(), ctypes.c_size_t()
    device_array.driver().run(0, "cuMemGetInfo_v2", ctypes.byref(left), ctypes.byref(total))
    return left.value


@pytest.mark.parametrize("options", [{}, {"on_missing": "skip"}])
def test_memory_stays_level(folder, options):
    pipeline = training(folder, 0, {"batch_size": 32}, **options)

    def run(count):
        for _ in range(count):
            outputs = pipeline.run()
            assert outputs[0].as_tensor().__cuda_array_interface__["data"][0]
            # Lent as to another library, and let go at once.
            outputs[0][0].__dlpack__()

    run(50)
    before = free()
    run(200)
    assert before - free() < 64 << 20


CLIPS = pathlib.Path(__file__).parents[1] / "data/video"


def sequences(
    device_id, reader=fn.experimental.readers.video, clips=("large_h264.mp4", "vp9.webm", "large_vp9.webm"), **options
):
    """Frames on the device, labels, numbers of frames."""
    options = {
        "sequence_length": 4,
        "enable_frame_num": "sequence",
        "random_shuffle": True,
        "initial_fill": 4,
        **options,
    }

    @pipeline_def(batch_size=3, num_threads=4, device_id=device_id, seed=5)
    def define():
        names = [str(CLIPS / clip) for clip in clips]
        return tuple(reader(device="gpu", filenames=names, labels=list(range(len(names))), name="r", **options))

    return define()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pad_mode": "constant", "fill_value": [9, 8, 7], "stride": 2},
        {"pad_mode": "reflect_101", "step": 3},
        {"reader": fn.readers.video, "pad_sequences": True},
        {"reader": fn.readers.video, "dtype": types.FLOAT, "normalized": True},
    ],
    ids=str,
)
def test_videos_of_a_reader_are_decoded_on_the_device(options):
    pipeline, host = sequences(0, **options), sequences(None, **options)
    assert runs_on(pipeline) == "library" and pipeline.reader_meta() == host.reader_meta()
    most = 2 / 255 if "normalized" in options else 2
    for _ in range(6):
        outputs, wanted = pipeline.run(), host.run()
        assert isinstance(outputs[0], TensorListGPU) and outputs[0]._is_on_device()
        for found, expected in zip(outputs[0].as_cpu(), wanted[0]):
            found, expected = np.array(found), np.array(expected)
            assert found.shape == expected.shape and found.dtype == expected.dtype
            assert np.abs(found.astype(np.float32) - expected).max() <= most
        for i in (1, 2):
            np.testing.assert_array_equal(outputs[i].as_cpu().as_array(), wanted[i].as_array())


def test_a_file_of_such_a_pipeline_is_decoded_on_the_device():
    written = sequences(None).serialize()
    pipeline, host = (Pipeline.deserialize(written, device_id=device) for device in (0, None))
    for _ in range(3):
        for found, expected in zip(pipeline.run()[0].as_cpu(), host.run()[0]):
            assert np.abs(np.array(found).astype(np.int16) - np.array(expected)).max() <= 2
