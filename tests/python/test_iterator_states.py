"""What an iterator keeps in a checkpoint: it goes on where it was, in every process, and what somebody edited is an
error."""

import json

import pytest
from gesso import Pipeline, fn
from gesso.plugin.base_iterator import BaseIterator, LastBatchPolicy

SAMPLES = 11


def pipeline(files, state=None, **options):
    made = Pipeline(2, 1, seed=3, enable_checkpointing=True, checkpoint=state)
    with made:
        made.set_outputs(fn.readers.file(files=files, name="r", **options)[1])
    return made


class Labels(BaseIterator):
    def __init__(self, pipelines, policy="PARTIAL", **options):
        super().__init__(pipelines, auto_reset=True, last_batch_policy=LastBatchPolicy[policy], **options)
        self._take_first_batch()

    def _convert(self, outputs):
        return [batch[0].as_array().ravel().tolist() for batch in outputs]

    def _cut(self, batch):
        counts = self._counts()
        return batch if counts is None else [own[: max(int(count), 0)] for own, count in zip(batch, counts)]


def of(files, state=None, policy="PARTIAL", **options):
    return Labels(pipeline(files, state, **options), policy, reader_name="r")


def changed(state, keep=(), **given):
    """A state whose iterator has other fields: each name > what it is instead, `...` for none."""
    state = json.loads(state)
    data = json.loads(state["iterator_data"])
    for name, value in given.items():
        where = data["shards"] if name in keep else data
        if value is ...:
            del where[name]
        else:
            where[name] = value
    return json.dumps({**state, "iterator_data": json.dumps(data)}).encode()


IN_SHARDS = ("turns", "read", "sizes", "first_sizes", "left", "epoch", "batch_size")
BAD_NUMBERS = (None, 1.5, "x", [], {}, True, 1 << 70, -(1 << 70), ...)
BAD_LISTS = (None, -1, "x", {}, True, [], [1, 2], ["a"], [None], [1.5], [True], [1 << 70], [[1]], ...)


@pytest.mark.parametrize("text", ["x", "{", "5", "[]", "{}", '{"counter": 1}', "null", '"a"', "true", "[" * 100_000])
def test_a_text_that_is_no_state_of_an_iterator(files, text):
    state = json.loads(of(files).checkpoints()[0])
    with pytest.raises(ValueError, match="the checkpoint is damaged: `iterator_data` is"):
        of(files, json.dumps({**state, "iterator_data": text}).encode())


@pytest.mark.parametrize(
    "name, value",
    [
        *((name, value) for name in ("counter", "turns", "epoch", "batch_size") for value in BAD_NUMBERS),
        *(("size", value) for value in (*BAD_NUMBERS, -1, 0, 1 << 40)),
        *((name, value) for name in ("read", "sizes") for value in BAD_LISTS if value != [] or name == "read"),
        *(("left", value) for value in BAD_LISTS if value not in ([], [[1]])),
        *(("first_sizes", value) for value in BAD_LISTS if value is not ...),
        *(("shards", value) for value in (-1, 1.5, "x", [], {}, True)),
        ("counter", -1),
        ("counter", 1 << 40),
        ("turns", 1),
        ("turns", -1),
        ("epoch", -1),
        ("read", [-(1 << 40)]),
        ("sizes", [-5]),
        ("sizes", [SAMPLES + 1]),
        ("left", [[-5]]),
        ("left", [[1, 2]]),
    ],
)
def test_a_number_that_was_edited_is_an_error(files, name, value):
    first = of(files)
    next(first)
    state = changed(first.checkpoints()[0], IN_SHARDS, **{name: value})
    with pytest.raises(ValueError, match="the checkpoint is damaged: .*, expected|does not say how they were read"):
        of(files, state)


def test_a_state_of_another_iterator(files):
    with_name, without = of(files).checkpoints()[0], Labels(pipeline(files)).checkpoints()[0]
    for state, options in ((with_name, {}), (without, {"reader_name": "r"})):
        with pytest.raises(ValueError, match="might be of another iterator: one of them has a `reader_name`"):
            Labels(pipeline(files, state), **options)


def test_states_of_several_iterators_are_none_of_one(files):
    def shards(*states):
        both = [pipeline(files, state, num_shards=2, shard_id=shard) for shard, state in enumerate(states)]
        return Labels(both, reader_name="r")

    first = shards(None, None)
    early = first.checkpoints()
    next(first)
    late = first.checkpoints()
    for states in ((early[0], late[1]), (None, late[1])):
        with pytest.raises(ValueError, match="of several iterators, or some of them from none"):
            shards(*states)
    assert next(shards(*late)) == next(first)


@pytest.mark.parametrize("policy", ["FILL", "DROP", "PARTIAL"])
@pytest.mark.parametrize("options", [{}, {"pad_last_batch": True}, {"random_shuffle": True, "stick_to_shard": True}])
@pytest.mark.parametrize("count", [2, 3])
def test_the_state_of_one_process_is_enough_for_all(files, policy, options, count):
    def shards(state=None):
        return [of(files, state, policy, num_shards=count, shard_id=shard, **options) for shard in range(count)]

    def epochs(iterators, number):
        return [[list(each) for each in iterators] for _ in range(number)]

    for done in range(4):
        first = shards()
        epochs(first, done)
        for each in first:
            next(each)
        states = [each.checkpoints()[0] for each in first]
        expected = epochs(first, 4)
        for state in states:
            assert epochs(shards(state), 4) == expected


@pytest.mark.parametrize("policy", ["FILL", "DROP", "PARTIAL"])
def test_an_iterator_that_was_restarted_goes_on(files, policy):
    first = of(files, policy=policy, random_shuffle=True)
    next(first)
    first.restart()
    again = of(files, first.checkpoints()[0], policy, random_shuffle=True)
    expected = [list(first) for _ in range(3)]
    assert [list(again) for _ in range(3)] == expected
    assert again.checkpoints() == first.checkpoints()
