"""Dynamic mode: operators on tensors and batches beside the same in a pipeline; readers, sources, files as pictures."""

import gesso
import numpy as np
import pytest
from gesso import dynamic as d
from gesso import fn, types
from PIL import Image

PICTURES = [np.random.default_rng(i).integers(0, 256, (20 + i, 30, 3), dtype=np.uint8) for i in range(3)]


def in_pipeline(define):
    """The output of a pipeline on the pictures."""
    pipeline = gesso.pipeline_def(batch_size=3, num_threads=1, prefetch_queue_depth=1)(
        lambda: define(fn.external_source(name="x", layout="HWC"), fn)
    )()
    return pipeline.run(x=PICTURES)[0]


@pytest.mark.parametrize("mode", [d.EvalMode.eager, d.EvalMode.deferred])
@pytest.mark.parametrize(
    "define",
    [
        lambda x, fn: fn.resize(x, size=[10, 12]),
        lambda x, fn: fn.crop_mirror_normalize(x, crop=[8, 8], mean=[1.0, 2.0, 3.0], dtype=types.FLOAT),
        lambda x, fn: fn.rotate(fn.flip(x), angle=30.0),
        lambda x, fn: fn.reductions.mean(fn.cast(x, dtype=types.FLOAT), axes=[0]),
        lambda x, fn: fn.gaussian_blur(x, sigma=1.5) + 3,
    ],
)
def test_operators_give_what_pipelines_give(define, mode):
    reference = in_pipeline(define)
    with mode:
        made = define(d.batch(PICTURES, layout="HWC"), d)
    assert isinstance(made, d.Batch) and (made.layout or "") == reference.layout()
    for mine, other in zip(made.tensors, reference):
        assert np.array_equal(mine, other)
    single = define(d.tensor(PICTURES[0], layout="HWC"), d)
    assert isinstance(single, d.Tensor) and np.array_equal(single, reference[0])


def test_arguments_for_each_sample():
    angles = [0.0, 90.0, 180.0]
    made = d.rotate(d.batch(PICTURES, layout="HWC"), angle=d.batch(angles))
    for picture, angle, mine in zip(PICTURES, angles, made):
        assert np.array_equal(mine, d.rotate(picture, angle=angle, layout="HWC"))


def test_numbers_that_differ_from_call_to_call():
    picture = d.tensor(PICTURES[0], layout="HWC")
    for i in range(40):
        mine = d.rotate(picture, angle=float(i))
        assert np.array_equal(mine, d.rotate(PICTURES[0], angle=np.float32(i), layout="HWC")), i


def test_several_outputs():
    kept = d.random_bbox_crop(d.tensor([[0.1, 0.1, 0.9, 0.9]]), rng=d.random.RNG(1))
    assert len(kept) == 3 and kept[0].shape == (2,)


def test_bad_calls():
    picture = d.tensor(PICTURES[0])
    with pytest.raises(TypeError, match="bogus"):
        d.flip(picture, bogus=1)
    with pytest.raises(ValueError, match="inputs"):
        d.flip(picture, picture)
    with pytest.raises(ValueError, match="Inconsistent batch size"):
        d.cat(d.batch(PICTURES), d.batch(PICTURES[:2]))
    with pytest.raises(TypeError, match="rng=RNG"):
        d.random.uniform(batch_size=1, seed=3)
    with pytest.raises(ValueError, match="Invalid device"):
        d.random_bbox_crop(d.tensor([[0.0] * 4]), device="gpu")


def files(folder, count=10):
    for i in range(count):
        (folder / f"{i}.bin").write_bytes(bytes([i] * (i + 1)))
    (folder / "list").write_text("".join(f"{i}.bin {i}\n" for i in range(count)))
    return {"file_root": str(folder), "file_list": str(folder / "list")}


def labels(batches):
    return [[int(label.item()) for label in found.tensors] for _, found in batches]


def test_readers_are_iterators(tmp_path):
    reader = d.readers.File(**files(tmp_path))
    assert labels(reader.next_epoch(batch_size=5)) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert len(labels(reader.next_epoch(batch_size=5))) == 2
    assert reader.get_metadata(5)["epoch_size"] == 10
    with pytest.raises(ValueError, match="batch_size"):
        next(reader.next_epoch(batch_size=4))
    single = [label.item() for _, label in d.readers.File(**files(tmp_path)).next_epoch()]
    assert single == list(range(10))


def test_shards(tmp_path):
    facts = files(tmp_path)
    for shard in range(3):
        found = d.readers.File(**facts, shard_id=shard, num_shards=3, stick_to_shard=True).next_epoch()
        assert [label.item() for _, label in found] == list(range(shard * 10 // 3, (shard + 1) * 10 // 3))
    with pytest.raises(ValueError, match="shard_id"):
        d.readers.File(**facts, shard_id=3, num_shards=3)


def test_readers_go_on(tmp_path):
    reader = d.readers.File(**files(tmp_path), enable_checkpointing=True)
    with pytest.raises(RuntimeError, match="before its first iteration"):
        reader.get_state()
    epoch = reader.next_epoch(batch_size=2)
    next(epoch), next(epoch)
    state = str(reader.get_state())
    expected = labels([next(epoch)])
    restored = d.readers.File(**files(tmp_path))
    restored.set_state(state)
    assert labels([next(restored.next_epoch(batch_size=2))]) == expected
    with pytest.raises(RuntimeError, match="after iteration has begun"):
        reader.set_state(state)
    with pytest.raises(NotImplementedError, match="compiled mode"):
        reader.next_epoch(batch_size=2, capture=True)
    broken = d.readers.File(**files(tmp_path))
    broken.set_state("{}")
    with pytest.raises(ValueError, match="checkpoint"):
        next(broken.next_epoch(batch_size=2))


def test_a_reader_left_in_the_middle(tmp_path):
    reader = d.readers.File(**files(tmp_path))
    for _ in reader.next_epoch(batch_size=2):
        break
    del reader


def test_sources():
    source = d.ExternalSource([np.full(2, i) for i in range(2)], cycle="raise", dtype=d.float32, layout="X")
    assert source().layout == "X" and source(batch_size=2).shape == [(2,)] * 2
    with pytest.raises(StopIteration):
        source()
    assert source()[0].item() == 0
    pairs = d.ExternalSource(lambda: (np.zeros(2), np.ones(3)), 2)
    assert [value.shape for value in pairs()] == [(2,), (3,)]
    with pytest.raises(ValueError, match="cycle"):
        d.ExternalSource([], cycle="often")


def test_files_as_pictures(tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(PICTURES[0]).save(path)
    picture = d.imread(path)
    reference = PICTURES[0]
    assert isinstance(picture, d.Tensor) and np.array_equal(picture, reference)
    pictures = d.imread([str(path), path], output_type=types.GRAY)
    assert isinstance(pictures, d.Batch) and pictures.tensors[1].shape == (*reference.shape[:2], 1)
    with pytest.raises(TypeError):
        d.imread(3)
