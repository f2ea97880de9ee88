"""Videos that are fed and readers of videos with `device="mixed"` or "gpu": on a GPU, beside the host. Skipped without
a GPU."""

import pathlib

import numpy as np
import pytest
from gesso import Pipeline, TensorListGPU, fn, pipeline_def
from gesso._native import engine

if not engine.has_gpu():
    pytest.skip("no GPU", allow_module_level=True)

ROOT = pathlib.Path(__file__).parents[1]
CLIPS = ROOT / "data/video"
BATCH = 3
# Levels between engines and the host.
MOST = 2


def clip(name):
    return np.fromfile(CLIPS / name, np.uint8)


def defined(outputs, device_id, **settings):
    pipe = Pipeline(
        **{"batch_size": BATCH, "num_threads": 2, "device_id": device_id, "prefetch_queue_depth": 1, **settings}
    )
    with pipe:
        made = outputs()
        pipe.set_outputs(*(made if isinstance(made, (list, tuple)) else [made]))
    pipe.build()
    return pipe


def fed(pipe, names):
    """All batches of these videos: arrays on the host, and whether each output was on the device."""
    for name in names:
        pipe.feed_input("VIDEO", [clip(name)])
    found, places = [], set()
    while True:
        try:
            outputs = pipe.run()
        except RuntimeError as error:
            assert "No data was provided" in str(error), error
            return found, places
        places |= {(i, isinstance(out, TensorListGPU) and out._is_on_device()) for i, out in enumerate(outputs)}
        found.append(
            [
                [np.array(sample) for sample in (out.as_cpu() if isinstance(out, TensorListGPU) else out)]
                for out in outputs
            ]
        )


def assert_alike(found, expected, most=MOST):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        for outputs in zip(a, b, strict=True):
            for one, other in zip(*outputs, strict=True):
                assert one.shape == other.shape and one.dtype == other.dtype
                assert np.abs(one.astype(np.float32) - other).max() <= most


@pytest.mark.parametrize("policy", ["partial", "pad"])
@pytest.mark.parametrize(
    "name", ["large_h264.mp4", "large_h265.mp4", "large_vp9.webm", "vp9.webm", "mjpeg.avi", "h264_10_bits.mp4"]
)
def test_sequences_are_made_on_the_device(name, policy):
    def outputs():
        video = fn.experimental.inputs.video(
            name="VIDEO", sequence_length=5, last_sequence_policy=policy, device="mixed"
        )
        return video, fn.resize(video, size=[24, 32])

    found, places = fed(defined(outputs, 0), [name, "large_vp9.webm", name])
    expected, _ = fed(defined(outputs, None), [name, "large_vp9.webm", name])
    assert_alike(found, expected)
    assert places == {(0, True), (1, True)}


def test_behind_a_video_come_functions_branches_and_the_host():
    @pipeline_def(batch_size=BATCH, num_threads=2, prefetch_queue_depth=1, enable_conditionals=True)
    def define():
        video = fn.experimental.inputs.video(name="VIDEO", sequence_length=5, device="mixed")
        count = fn.python_function(video.cpu(), function=lambda frames: np.array([frames.shape[0]], np.int32))
        if count[0] == 5:
            small = fn.resize(video, size=[16, 16])
        else:
            small = fn.resize(video, size=[8, 8])
        return count, small, video, video.cpu()

    runs = []
    for device_id in (0, None):
        pipe = define(device_id=device_id)
        pipe.build()
        runs.append(fed(pipe, ["large_h264.mp4"])[0])
    assert_alike(*runs)


@pytest.mark.parametrize("name", ["sequences", "sequences_pad", "sequences_one"])
def test_a_file_that_dali_wrote_is_decoded_on_the_device(name):
    file = str(ROOT / f"gpu/data/{name}.dali")
    runs = [
        fed(Pipeline.deserialize(filename=file, device_id=device, prefetch_queue_depth=1), ["large_h264.mp4"])
        for device in (0, None)
    ]
    assert_alike(runs[0][0], runs[1][0])
    assert runs[0][1] == {(0, True)}


@pytest.mark.parametrize(
    "arguments", [{"size": [20, 30]}, {"resize_shorter": 24, "antialias": False, "pad_sequences": True}], ids=str
)
def test_a_resizing_reader_on_the_device(arguments):
    given = {
        "filenames": [str(CLIPS / name) for name in ("large_h264.mp4", "large_vp9.webm")],
        "labels": [1, 2],
        "sequence_length": 3,
        "enable_frame_num": "sequence",
        "random_shuffle": True,
        "seed": 3,
    }
    of_reader = {key: value for key, value in arguments.items() if key == "pad_sequences"}
    of_resize = {key: value for key, value in arguments.items() if key != "pad_sequences"}

    def together():
        return fn.readers.video_resize(device="gpu", **given, **arguments)

    def apart():
        frames, *others = fn.readers.video(device="gpu", **given, **of_reader)
        return [fn.resize(frames, **of_resize), *others]

    pipes = [defined(together, 0, prefetch_queue_depth=2), defined(apart, 0), defined(apart, None)]
    for _ in range(4):
        batches = [
            [
                [np.array(sample) for sample in (out.as_cpu() if isinstance(out, TensorListGPU) else out)]
                for out in pipe.run()
            ]
            for pipe in pipes
        ]
        assert_alike(batches[:1], batches[1:2], most=0)
        assert_alike(batches[:1], batches[2:], most=MOST)


def test_a_damaged_frame_names_its_file(tmp_path):
    data = bytearray((CLIPS / "h264.mp4").read_bytes())
    start = data.index(b"mdat")
    middle = start + (len(data) - start) // 2
    data[middle : middle + 600] = b"\xff" * 600
    path = tmp_path / "damaged.mp4"
    path.write_bytes(data)
    for device, device_id in (("gpu", 0), ("cpu", None)):
        for prefetch in (1, 2):
            pipe = defined(
                lambda: fn.readers.video(device=device, filenames=[str(path)], sequence_length=4, name="r"),
                device_id,
                prefetch_queue_depth=prefetch,
            )
            with pytest.raises(RuntimeError, match="damaged.mp4"):
                for _ in range(4):
                    pipe.run()
