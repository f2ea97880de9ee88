"""States of pipelines: which pipelines save one, and which go on from it."""

import pytest
from gesso import Pipeline, fn

SAMPLES = 11


@pytest.fixture
def files(tmp_path):
    for i in range(SAMPLES):
        (tmp_path / f"{i:02}").write_bytes(bytes([i]))
    return [str(tmp_path / f"{i:02}") for i in range(SAMPLES)]


def made(define, state=None, depth=2, **settings):
    settings = {"enable_checkpointing": True, **settings}
    pipeline = Pipeline(settings.pop("batch_size", 4), 1, prefetch_queue_depth=depth, checkpoint=state, **settings)
    with pipeline:
        pipeline.set_outputs(*define())
    pipeline.build()
    return pipeline


@pytest.mark.parametrize("name", ["other", None])
def test_a_state_of_another_reader_is_none_of_this_pipeline(files, name):
    state = made(lambda: fn.readers.file(files=files, name="r")).checkpoint()
    with pytest.raises(ValueError, match=r"might be of another pipeline: it has the readers \['r'\]"):
        made(lambda: fn.readers.file(files=files, name=name), state)
    with pytest.raises(ValueError, match=r"might be of another pipeline: .* the pipeline has \[\]"):
        made(lambda: [fn.random.uniform(range=(0, 1))], state)
