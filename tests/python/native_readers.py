"""What tests of readers that the library has share: the same pipeline as a stream and in the interpreter."""

import numpy as np
from gesso import Pipeline, pipeline_def
from gesso._native.stream import StreamEngine
from gesso._run import native_readers

# Orders that every kind of reader is read in.
ORDERS = [
    {},
    {"random_shuffle": True, "initial_fill": 4},
    {"random_shuffle": True, "initial_fill": 3, "seed": 5, "pad_last_batch": True},
    {"num_shards": 3, "shard_id": 1},
    {"num_shards": 3, "shard_id": 2, "stick_to_shard": True, "pad_last_batch": True},
    {"num_shards": 2, "shard_id": 1, "shuffle_after_epoch": True},
    {"shuffle_after_epoch": True, "shuffle_after_epoch_seed": 9, "pad_last_batch": True},
    {
        "dont_use_mmap": True,
        "read_ahead": True,
        "lazy_init": True,
        "prefetch_queue_depth": 3,
        "tensor_init_bytes": 9,
        "preserve": True,
    },
]


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


def both(monkeypatch, make):
    """A pipeline as a stream, and the same in the interpreter."""
    stream, staged = make(), interpreted(monkeypatch, make)
    assert runs_on(stream) == "library"
    assert stream.reader_meta() == staged.reader_meta()
    return stream, staged


def contents(outputs):
    return [
        (
            [(np.asarray(array).tolist(), array.shape, str(array.dtype)) for array in batch.arrays],
            batch.layout(),
            [sample.source_info() for sample in batch],
        )
        for batch in outputs
    ]


def compared(monkeypatch, define, batches=30, **settings):
    stream, staged = both(monkeypatch, lambda: of(define, **settings))
    for _ in range(batches):
        assert contents(stream.run()) == contents(staged.run())


def failures(monkeypatch, define, batches=4, **settings):
    """The errors of a pipeline, which are the same as in the interpreter."""
    pipelines = [of(define, **settings), interpreted(monkeypatch, lambda: of(define, **settings))]
    found = []
    for _ in range(batches):
        texts = []
        for pipeline in pipelines:
            try:
                texts.append(contents(pipeline.run()))
            except RuntimeError as error:
                texts.append(str(error))
        # Who made the pipeline is not the same.
        causes = [text.partition("encountered:")[2] if isinstance(text, str) else text for text in texts]
        assert causes[0] == causes[1]
        found += [texts[0]] if isinstance(texts[0], str) else []
    return found


def same_from_a_file(define):
    """The pipeline gives the same when it is loaded, and in the library alone, as in C."""
    defined = of(define)
    expected = [contents(defined.run()) for _ in range(9)]
    serialized = defined.serialize()
    loaded = Pipeline.deserialize(serialized)
    assert runs_on(loaded) == "library"
    assert [contents(loaded.run()) for _ in range(9)] == expected
    stream = StreamEngine(serialized, batch_size=3, prefetch=2, lanes=2)
    for outputs in expected:
        found = stream.next().outputs
        assert [[array.tolist() for array in arrays] for arrays, _, _ in found] == [
            [one[0] for one in arrays] for arrays, _, _ in outputs
        ]


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number, data):
    """A field of a protobuf message."""
    return bytes([number << 3 | 2]) + varint(len(data)) + data
