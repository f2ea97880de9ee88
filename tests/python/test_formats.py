"""The argument `formats` of `Pipeline`: which formats of files are decoded."""

import io
from pathlib import Path

import gesso.fn as fn
import numpy as np
import pytest
from gesso import pipeline_def
from PIL import Image

MP4 = Path(__file__).resolve().parents[1] / "data/video/h264.mp4"


def encoded(kind):
    """A small picture, as a file's bytes."""
    file = io.BytesIO()
    Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(file, kind)
    return np.frombuffer(file.getvalue(), np.uint8)


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def decoded(kind):
    return fn.decoders.image(fn.external_source(source=lambda: [encoded(kind)], batch=True))


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def peeked(kind):
    return fn.peek_image_shape(fn.external_source(source=lambda: [encoded(kind)], batch=True))


@pytest.mark.parametrize("define", [decoded, peeked])
def test_a_picture_of_another_format_is_refused(define):
    for formats in ("png", ["png", "bmp"], "-jpeg"):
        (output,) = define("PNG", formats=formats).run()
        assert output.at(0).size
        with pytest.raises(RuntimeError, match="format `jpeg` is switched off by parameter `formats`"):
            define("JPEG", formats=formats).run()
    define("JPEG").run()


def test_a_video_is_known_by_its_frames():
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def frames():
        return fn.decoders.video(
            fn.external_source(source=lambda: [np.fromfile(MP4, np.uint8)], batch=True), end_frame=1
        )

    frames(formats="h264").run()
    with pytest.raises(RuntimeError, match="format `h264` is switched off"):
        frames(formats="-h264").run()


def test_readers_that_decode_ask_too():
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def frames():
        return fn.readers.video(filenames=[str(MP4)], sequence_length=1)

    frames(formats="h264").run()
    with pytest.raises(RuntimeError, match="format `h264` is switched off"):
        frames(formats="vp9").run()


def test_wrong_lists_are_errors():
    with pytest.raises(RuntimeError, match="`jpg` is no format, expected some of jpeg, jpeg2000"):
        decoded("PNG", formats="jpg").run()
    with pytest.raises(TypeError, match="`formats` must be a text or a list of texts"):
        decoded("PNG", formats=[1])
