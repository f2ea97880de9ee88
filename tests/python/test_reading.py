"""Pipelines whose readers the library has, too, run as a stream of it: they give what readers in the interpreter give,
to the last detail."""

import ctypes
import gc
import weakref

import numpy as np
import pytest
from gesso import Pipeline, fn, pipeline_def, types
from gesso._native import declarations, library
from gesso._native.callbacks import Callbacks
from gesso._run import native_readers, stream_run
from gesso._run.fed_run import FedRun
from gesso._threads.fork import Process

FILES = 11


@pytest.fixture
def folder(tmp_path):
    for i in range(FILES):
        (tmp_path / f"class{i % 2}").mkdir(exist_ok=True)
        (tmp_path / f"class{i % 2}" / f"{i:02}.jpg").write_bytes(bytes(range(i + 1)))
    (tmp_path / "list.txt").write_text("".join(f"class{i % 2}/{i:02}.jpg {i}\n" for i in range(FILES)))
    return tmp_path


def of(define, batch_size=3, **settings):
    return pipeline_def(define, **{"batch_size": batch_size, "num_threads": 2, "seed": 7, **settings})()


def runs_on(pipeline):
    pipeline.build()
    return "library" if pipeline.runner.execution.run.is_read_by_library else "interpreter"


def interpreted(monkeypatch, make):
    """What `make` gives with readers in the interpreter."""
    with monkeypatch.context() as patch:
        patch.setattr(native_readers, "chosen", lambda *_: [])
        pipeline = make()
        assert runs_on(pipeline) == "interpreter"
    return pipeline


def contents(outputs):
    return [
        ([array.tolist() for array in batch.arrays], batch.layout(), [sample.source_info() for sample in batch])
        for batch in outputs
    ]


def both(monkeypatch, make):
    """A pipeline as a stream, and the same in the interpreter."""
    stream, staged = make(), interpreted(monkeypatch, make)
    assert runs_on(stream) == "library"
    assert stream.reader_meta() == staged.reader_meta()
    return stream, staged


def reads(folder, **options):
    options = {"file_root": str(folder), **options}

    def define():
        data, labels = fn.readers.file(**options, name="r")
        return data, labels, fn.random.uniform(range=[0, 1]) + labels

    return define


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"random_shuffle": True, "initial_fill": 4},
        {"random_shuffle": True, "initial_fill": 4, "seed": 5, "pad_last_batch": True},
        {"num_shards": 3, "shard_id": 1},
        {"num_shards": 3, "shard_id": 1, "stick_to_shard": True, "pad_last_batch": True},
        {"num_shards": 2, "shard_id": 1, "shuffle_after_epoch": True},
        {"file_filters": ["*5.jpg", "*6.JPG"], "case_sensitive_filter": False},
        {"dir_filters": ["*1"]},
        {"file_filters": ["0?.jpg", r"[^\0]*.jpg", "[[:digit:]]5.jpg"], "dir_filters": ["class[0-1]"]},
        {
            "dont_use_mmap": True,
            "read_ahead": True,
            "lazy_init": True,
            "prefetch_queue_depth": 3,
            "tensor_init_bytes": 9,
            "preserve": True,
        },
    ],
)
def test_batches_are_those_of_the_interpreter(folder, monkeypatch, options):
    stream, staged = both(monkeypatch, lambda: of(reads(folder, **options)))
    for _ in range(3 * FILES):
        assert contents(stream.run()) == contents(staged.run())


def test_lists_of_files(folder, monkeypatch):
    files = [str(folder / "class1" / "01.jpg"), str(folder / "class0" / "00.jpg")]
    for options in ({"file_list": str(folder / "list.txt")}, {"files": files}, {"files": files, "labels": [5, -6]}):
        options = {"file_root": None, "random_shuffle": True, **options}
        options = {key: value for key, value in options.items() if value is not None}

        def define(options=options):
            return tuple(fn.readers.file(**options, name="r"))

        stream, staged = both(monkeypatch, lambda define=define: of(define))
        for _ in range(8):
            assert contents(stream.run()) == contents(staged.run())


def test_random_numbers_in_branches(folder, monkeypatch):
    def define():
        labels = fn.readers.file(file_root=str(folder), random_shuffle=True, name="r")[1]
        if fn.squeeze(labels, axes=0) == 1:
            value = fn.random.uniform(range=[0, 1])
        else:
            value = fn.random.uniform(range=[2, 3], shape=[2])[0]
        return value, fn.random.coin_flip()

    stream, staged = both(monkeypatch, lambda: of(define, enable_conditionals=True))
    for _ in range(20):
        assert contents(stream.run()) == contents(staged.run())


def test_two_readers(folder, monkeypatch):
    def define():
        options = {"file_root": str(folder), "random_shuffle": True}
        first, second = fn.readers.file(**options, name="a"), fn.readers.file(**options, name="b", num_shards=2)
        return first[1], second[0], first[1] - second[1]

    stream, staged = both(monkeypatch, lambda: of(define))
    for _ in range(10):
        assert contents(stream.run()) == contents(staged.run())


def test_states_are_the_same(folder, monkeypatch):
    settings = {"enable_checkpointing": True, "seed": None}

    def make(**more):
        return of(reads(folder, random_shuffle=True, initial_fill=5), **settings, **more)

    stream = make()
    for _ in range(5):
        stream.run()
    state = stream.checkpoint()
    expected = [contents(stream.run()) for _ in range(6)]
    again, staged = both(monkeypatch, lambda: make(checkpoint=state))
    assert again.checkpoint() == staged.checkpoint() == state
    for each in expected:
        assert contents(again.run()) == contents(staged.run()) == each
    # With another batch size what is left is dealt out anew, by readers in the interpreter.
    assert (
        runs_on(of(reads(folder, random_shuffle=True, initial_fill=5), 2, **settings, checkpoint=state))
        == "interpreter"
    )


@pytest.mark.parametrize("pads", [False, True])
def test_restarts_are_the_same(folder, monkeypatch, pads):
    stream, staged = both(
        monkeypatch, lambda: of(reads(folder, random_shuffle=True, initial_fill=5, pad_last_batch=pads))
    )
    kept = []
    for count in (2, 1, 5, 4, 3):
        for _ in range(count):
            kept.append(stream.run())
            assert contents(kept[-1]) == contents(staged.run())
        stream.restart()
        staged.restart()
    assert contents(stream.run())[0] == contents(staged.run())[0]
    # Where a batch of long ago is from, is found out when somebody asks.
    assert kept[0][0][1].source_info().endswith(".jpg")


def test_files_that_are_not_there(folder, monkeypatch):
    stream, staged = both(monkeypatch, lambda: of(reads(folder), on_error="skip"))
    (folder / "class0" / "04.jpg").unlink()
    for batch in range(6):
        if batch in (0, 4):
            for pipeline in (stream, staged):
                with pytest.raises(
                    RuntimeError,
                    match="(?s)fn.readers.file.*test_reading.py.*RuntimeError: Could not open file .*04.jpg: No such file",
                ):
                    pipeline.run()
        else:
            labels = [pipeline.run()[1].as_array().ravel().tolist() for pipeline in (stream, staged)]
            assert labels[0] == labels[1]


def test_images_that_are_damaged(folder, monkeypatch):
    def define():
        data, labels = fn.readers.file(file_root=str(folder), name="r")
        return fn.decoders.image(data), labels

    for pipeline in both(monkeypatch, lambda: of(define)):
        with pytest.raises(RuntimeError, match="(?s)fn.decoders.image.*test_reading.py.*Sample 0 of the batch failed"):
            pipeline.run()


def test_what_the_library_does_not_do_stays_in_the_interpreter(folder):
    for options in ({"sampler": [1, 0]}, {"on_missing": "skip"}, {"seed": -1}):
        assert runs_on(of(reads(folder, **options))) == "interpreter", options
    assert runs_on(of(reads(folder, shuffle_after_epoch=True), enable_checkpointing=True)) == "interpreter"
    assert runs_on(of(reads(folder), prefetch_queue_depth=1)) == "interpreter"
    assert runs_on(of(reads(folder), exec_async=False, exec_pipelined=False)) == "interpreter"

    def function():
        return fn.python_function(fn.readers.file(file_root=str(folder))[1], function=lambda label: label + 1)

    assert runs_on(of(function)) == "library"


def test_errors_of_definitions_are_those_of_the_interpreter(tmp_path, folder):
    with pytest.raises(RuntimeError, match="none`: No such file"):
        of(reads(tmp_path / "none")).build()
    with pytest.raises(
        RuntimeError,
        match="number of input samples: 11, needs to be at least equal to the requested number of shards: 20",
    ):
        of(reads(folder, num_shards=20)).build()


def test_nothing_keeps_a_pipeline(folder):
    pipeline = of(reads(folder))
    outputs, gone = pipeline.run(), weakref.ref(pipeline)
    del pipeline
    gc.collect(0)
    assert gone() is None
    assert outputs[0][2].source_info().endswith("04.jpg") and outputs[0].at(2).tolist() == list(range(5))


def test_a_loaded_file_gives_the_same(folder):
    defined = of(reads(folder, random_shuffle=True))
    loaded = Pipeline.deserialize(defined.serialize())
    for _ in range(9):
        for one, other in zip(defined.run(), loaded.run()):
            np.testing.assert_array_equal(
                np.concatenate([array.ravel() for array in one.arrays]),
                np.concatenate([array.ravel() for array in other.arrays]),
            )


def test_images_at_the_end_of_epochs(folder):
    def define():
        return fn.cast(fn.readers.file(file_root=str(folder), name="r", pad_last_batch=True)[1], dtype=types.INT64)

    pipeline = of(define, 4)
    labels = [pipeline.run()[0].as_array().ravel().tolist() for _ in range(3)]
    assert labels == [[0] * 4, [0, 0, 1, 1], [1, 1, 1, 1]]


def planned_for_gpu(serialized, functions):
    """In place of an engine: what the plan of a file reads and gives, and where."""
    pipeline = ctypes.c_void_p()
    callbacks = Callbacks(functions or {}, Process())
    callbacks.load(serialized, library.GPU, pipeline)
    found = devices("input", pipeline), devices("output", pipeline)
    library.library().gesso_pipeline_free(pipeline)
    return found


def devices(kind, pipeline):
    """Where the inputs or the outputs of a plan are, by their names."""
    info, found = declarations.TensorInfo(struct_size=ctypes.sizeof(declarations.TensorInfo)), {}
    for i in range(getattr(library.library(), f"gesso_pipeline_{kind}_count")(pipeline)):
        library.call(f"gesso_pipeline_{kind}", pipeline, i, ctypes.byref(info))
        found[info.name.decode()] = "gpu" if info.device == library.GPU else "cpu"
    return found


def planned(define):
    """The plan of a pipeline for a GPU; it is not run, so there need not be one."""
    pipeline = of(define, device_id=0)
    pipeline.runner.define(pipeline)
    parts = pipeline.runner
    made = FedRun(
        parts.definition, parts.settings, {**parts.settings.fields(), "seed": 1}, planned_for_gpu, on_gpu=True
    )
    return made._engines._engines[()]


def test_a_plan_with_functions_leaves_on_a_gpu_what_is_wanted_there(folder):
    def decoded():
        data, labels = fn.readers.file(file_root=str(folder), on_missing="skip", name="r")
        return fn.decoders.image(data, device="mixed", name="image"), labels

    def halved(image):
        return fn.python_function(image.cpu(), function=lambda array: array[::2], name="halved")

    def outputs():
        image, labels = decoded()
        return image, labels, labels.gpu()

    # The labels on the host are there without the plan.
    assert planned(outputs) == ({"r[0]": "cpu", "r[1]": "gpu"}, {"image": "gpu", "r[1]": "gpu"})
    assert planned(lambda: halved(decoded()[0])) == ({"r[0]": "cpu"}, {"halved": "cpu"})

    def between():
        image, _ = decoded()
        return fn.resize(image, size=[9, 9], name="small") + fn.resize(halved(image).gpu(), size=[9, 9])

    inputs, made = planned(between)
    assert inputs == {"r[0]": "cpu"} and list(made.values()) == ["gpu"]


def test_numbers_are_the_same_with_any_number_of_lanes(folder, monkeypatch):
    def define():
        data, labels = fn.readers.file(file_root=str(folder), random_shuffle=True, initial_fill=4, name="r")
        noise = fn.random.uniform(range=[0, 255], shape=[16, 16, 3], dtype=types.UINT8)
        drawn = (
            fn.random.normal(),
            fn.random.choice([1, 2, 3], shape=[4]),
            fn.random.beta(alpha=2, beta=3),
            fn.batch_permutation(),
        )
        pixels = (
            fn.random_resized_crop(noise, size=[8, 8]),
            fn.jitter(noise),
            fn.noise.gaussian(noise, stddev=9),
            fn.noise.salt_and_pepper(noise),
        )
        return (data, labels, *drawn, *pixels)

    alone = of(define, 4)
    monkeypatch.setattr(stream_run, "lanes", lambda *_: {"lanes": 4, "num_threads": 1, "prefetch": 6})
    together = of(define, 4)
    staged = interpreted(monkeypatch, lambda: of(define, 4))
    assert runs_on(alone) == "library" and runs_on(together) == "library"
    for _ in range(30):
        expected = contents(staged.run())
        assert contents(together.run()) == expected and contents(alone.run()) == expected
