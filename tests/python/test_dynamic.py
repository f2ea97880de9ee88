"""`gesso.dynamic` and layouts; shapes of videos."""

import json
from pathlib import Path

import gesso
import numpy as np
import pytest
from gesso import dynamic

VIDEOS = Path(__file__).parent.parent / "data" / "video"
RGB = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    "blur",
    [lambda x, **k: dynamic.gaussian_blur(x, sigma=2.0, **k), lambda x, **k: dynamic.laplacian(x, window_size=5, **k)],
)
def test_filters_do_not_mix_colours(blur):
    planes = np.stack([blur(np.ascontiguousarray(RGB[:, :, i])) for i in range(3)], 2)
    for picture in (RGB, gesso.TensorCPU(RGB, "HWC"), dynamic.resize(RGB, size=[20, 30])):
        assert (blur(picture) == planes).all()
    assert all((blurred == planes).all() for blurred in blur([RGB, RGB]))
    assert (blur(RGB, layout="DHW") != planes).any()
    assert (blur(gesso.TensorCPU(RGB, "DHW")) == blur(RGB, layout="DHW")).all()


def test_results_have_a_layout():
    small = dynamic.resize(RGB, size=[10, 12])
    assert isinstance(small, np.ndarray) and small.layout == "HWC"
    assert dynamic.transpose(small, perm=[2, 0, 1]).layout == "CHW"
    assert [picture.layout for picture in dynamic.flip([RGB, RGB])] == ["HWC", "HWC"]
    # What numpy makes of it may lie otherwise.
    assert small.T.layout == small[0].layout == ""
    assert type(small + 1) is np.ndarray and type(small.sum()) is np.uint64


def test_a_layout_lets_axes_be_named():
    part = dynamic.slice(dynamic.resize(RGB, size=[10, 12]), start=[2], end=[4], axis_names="W")
    assert part.shape == (10, 2, 3) and part.layout == "HWC"


@pytest.mark.parametrize(
    "name", ["h264.mp4", "av1.webm", "h265.mp4", "h264_fragments.mp4", "h264_edited.mp4", "h264.h264"]
)
def test_the_shape_of_a_video(name):
    data = (VIDEOS / name).read_bytes()
    shape = dynamic.decoders.video(np.frombuffer(data, np.uint8)).shape
    assert (
        gesso.peek_video_shape(VIDEOS / name)
        == gesso.peek_video_shape(data)
        == gesso.peek_video_shape(np.frombuffer(data, np.uint8))
        == shape
    )


def test_what_is_no_video():
    assert json.loads((VIDEOS / "index.json").read_text())
    with pytest.raises(RuntimeError, match="index.json"):
        gesso.peek_video_shape(VIDEOS / "index.json")
    with pytest.raises(TypeError):
        gesso.peek_video_shape(3)
