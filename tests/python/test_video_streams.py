"""`inputs.video` beside what DALI answered."""

import gc
import weakref

import numpy as np
import pytest
from gesso import Pipeline, fn, pipeline_def, types
from video_streams import ANSWERS, BATCH, CLIPS, clip, define, taken


@pytest.mark.parametrize(
    "case", ANSWERS["inputs"], ids=lambda case: "-".join(map(str, [case["clip"], *case["arguments"].values()]))
)
def test_sequences_are_dalis(case):
    pipe = define(lambda: fn.experimental.inputs.video(name="VIDEO", **case["arguments"]))
    pipe.feed_input("VIDEO", clip(case["clip"])[None])
    assert taken(pipe) == case["batches"]


def test_a_video_of_another_codec_has_the_frames_of_the_decoder():
    pipe = define(lambda: fn.experimental.inputs.video(name="VIDEO", sequence_length=4))
    pipe.feed_input("VIDEO", [clip("h264_open.mp4")])
    (out,) = pipe.run()
    found = np.concatenate([np.array(sample) for sample in out])
    decoded = define(
        lambda: fn.decoders.video(fn.external_source(source=lambda: [clip("h264_open.mp4")], dtype=types.UINT8))
    )
    assert (found == np.array(decoded.run()[0][0])[: len(found)]).all()


def test_a_video_is_copied_unless_nobody_can_write_to_it_or_the_author_says_so():
    def fed(video, **arguments):
        pipe = define(lambda: fn.experimental.inputs.video(name="VIDEO", sequence_length=5, **arguments))
        pipe.feed_input("VIDEO", [video])
        return pipe

    expected = taken(fed(clip("vp9.webm")))
    changed = clip("vp9.webm")
    pipe = fed(changed)
    changed[:] = 0
    assert taken(pipe) == expected, "it was copied"
    pipe = fed(np.frombuffer(bytes(clip("vp9.webm")), np.uint8))
    gc.collect()
    assert taken(pipe) == expected, "it is kept"
    changed = clip("vp9.webm")
    pipe = fed(changed, no_copy=True)
    changed[:] = 0
    with pytest.raises(RuntimeError, match="not a video"):
        pipe.run()
    pipe.feed_input("VIDEO", [clip("vp9.webm")])
    assert taken(pipe) == expected, "the next one waits behind an error"


def test_memory_of_a_video_is_let_go_when_it_is_over():
    pipe = define(lambda: fn.experimental.inputs.video(name="VIDEO", sequence_length=5))
    video = np.frombuffer(bytes(clip("vp9.webm")), np.uint8)
    gone = weakref.ref(video)
    pipe.feed_input("VIDEO", [video])
    del video
    assert gone() is not None
    taken(pipe)
    assert gone() is None


def test_videos_wait_for_their_turn_and_what_stands_beside_follows():
    pipe = define(
        lambda: [
            fn.experimental.inputs.video(name="VIDEO", sequence_length=5),
            fn.external_source(name="NUMBER", dtype=types.INT32, ndim=1, repeat_last=True),
        ]
    )
    pipe.feed_input("NUMBER", np.array([[1], [2], [3]], np.int32))
    pipe.feed_input("VIDEO", [clip("vp9.webm")])
    pipe.feed_input("VIDEO", [clip("vp9.webm")[:3_000]])
    video, number = pipe.run()
    assert [np.array(sample).shape[0] for sample in video] == [5, 5, 2]
    assert np.concatenate([np.array(sample) for sample in number]).tolist() == [1, 2, 3]
    video, number = pipe.run()
    assert len(video) == len(number) < BATCH, "the second video is shorter"
    with pytest.raises(RuntimeError, match="No data was provided"):
        pipe.run()


def test_batches_are_prepared_ahead_as_long_as_there_is_a_video():
    pipe = define(lambda: fn.experimental.inputs.video(name="VIDEO", sequence_length=1), prefetch_queue_depth=2)
    pipe.feed_input("VIDEO", [clip("vp9.webm")])
    assert [len(batch) for batch in taken(pipe)] == [3, 3, 3, 3]


def test_a_python_function_and_a_branch_behind_a_video():
    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, prefetch_queue_depth=1, enable_conditionals=True)
    def described():
        video = fn.experimental.inputs.video(name="VIDEO", sequence_length=5)
        means = fn.python_function(video, function=lambda frames: np.array([frames.shape[0]], np.int32))
        if means[0] == 5:
            whole = fn.cast(means, dtype=types.INT32)
        else:
            whole = types.Constant(np.array([0], np.int32))
        return means, whole

    pipe = described()
    pipe.build()
    pipe.feed_input("VIDEO", [clip("vp9.webm")])
    counts, whole = pipe.run()
    assert np.concatenate([np.array(count) for count in counts]).tolist() == [5, 5, 2]
    assert np.concatenate([np.array(one) for one in whole]).tolist() == [5, 5, 0]


@pytest.mark.parametrize("name, beside", [("partial", False), ("pad", False), ("beside", True)])
def test_a_file_that_dali_wrote(name, beside):
    pipe = Pipeline.deserialize(filename=str(CLIPS / f"streams/{name}.dali"), prefetch_queue_depth=1)
    if beside:
        pipe.feed_input("NUMBER", np.array([[9]], np.int32))
    for _ in range(2):
        pipe.feed_input("VIDEO", [clip("vp9.webm")])
        outs = pipe.run()
        shapes = [np.array(sample).shape for sample in outs[0]]
        if beside:
            assert shapes == [(5, 16, 24, 3), (5, 16, 24, 3), (2, 16, 24, 3)]
            assert [np.array(sample).tolist() for sample in outs[1]] == [[9]] * 3
        else:
            assert [shape[0] for shape in shapes] == [7, 7 if name == "pad" else 5]
    with pytest.raises(RuntimeError, match="No data was provided"):
        pipe.run()


def test_a_damaged_video_is_an_error_and_the_next_one_goes_on():
    pipe = define(lambda: fn.experimental.inputs.video(name="VIDEO", sequence_length=2))
    pipe.feed_input("VIDEO", [np.zeros(100, np.uint8)])
    with pytest.raises(RuntimeError, match="not a video of a known kind"):
        pipe.run()
    pipe.feed_input("VIDEO", [clip("vp9.webm")])
    assert [np.array(sample).shape[0] for sample in pipe.run()[0]] == [2, 2, 2]


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"sequence_length": 0}, "`sequence_length` is 0"),
        ({"sequence_length": 5, "last_sequence_policy": "other"}, "`last_sequence_policy` is `other`"),
        ({}, "sequence_length"),
    ],
)
def test_what_cannot_be_meant_is_said(arguments, said):
    with pytest.raises(Exception, match=said):
        define(lambda: fn.experimental.inputs.video(name="VIDEO", **arguments)).run()
