"""Video processors of Hugging Face transformers: `video_preprocessor_config.json`, or the processor itself. Frames are
those that the stage decodes; what follows is equal to the bit."""

import json

import numpy as np

from . import from_hf, multimodal
from .description import ConversionError, Stage
from .fields import Fields, is_number
from .hf_classes import CLIP, CUBIC, ON, STANDARD

_LARGEST_AREA = (1 << 31) - 1
_LARGEST_PATCH, _LARGEST_GROUP = 256, 64
_MOST_FRAMES = 1 << 20
_LARGEST_RATE = 1e6
_QWEN = {
    **ON,
    **CUBIC,
    "do_convert_rgb": True,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "min_frames": 4,
    "max_frames": 768,
}

#: (how it works, what it has by default)
CLASSES = {
    "Qwen2VLVideoProcessor": (
        "qwen2-vl-video",
        {
            **_QWEN,
            **CLIP,
            "size": {"shortest_edge": 128 * 28 * 28, "longest_edge": 28 * 28 * 768},
            "patch_size": 14,
            "do_sample_frames": False,
            "max_video_tokens": 128_000,
        },
    ),
    "Qwen3VLVideoProcessor": (
        "qwen3-vl-video",
        {
            **_QWEN,
            **STANDARD,
            "size": {"shortest_edge": 128 * 32 * 32, "longest_edge": 32 * 32 * 768},
            "patch_size": 16,
            "do_sample_frames": True,
            "max_video_tokens": 768,
            "fps": 2,
        },
    ),
}
#: Kinds, and whose rule they choose frames by.
RULES = {"qwen2-vl-video": "qwen2-vl", "qwen3-vl-video": "qwen3-vl"}
_WITHOUT_EFFECT = ("video_processor_type", "return_metadata", "video_metadata", "default_to_square")
_LOADS = "transformers.video_utils.load_video(path)"
_NOTES = (
    "The library's answer is to the frames that the stage decodes: decoders of Python's differ in their colours.",
    "A video's rate is that of its frames' times; transformers takes that of the decoder.",
)


def stage(values, name, backend=None):
    """The stage of a configuration's fields."""
    kind, defaults = CLASSES[name]
    if backend not in (None, "torchvision"):
        raise ConversionError(f"backend `{backend}`: transformers has `{name}` by torchvision alone")
    fields = Fields(values, name, {"rescale_factor": 1 / 255, **defaults}, null_is_default=False)
    fields.ignore(*from_hf.WITHOUT_EFFECT, *_WITHOUT_EFFECT)
    reader = from_hf.Processor(fields, kind, "torchvision", None)
    fields.flag("do_convert_rgb", True)
    fields.only("data_format", "channels_first", needed="only `channels_first` is known")
    if fields.flag("do_center_crop", False):
        fields.fail("do_center_crop", "expected false")
    if not fields.flag("do_resize", True):
        fields.fail("do_resize", "patches need their size: expected true")
    patch = _whole(fields, "patch_size", _LARGEST_PATCH)
    depth, merge = (_whole(fields, each, _LARGEST_GROUP) for each in ("temporal_patch_size", "merge_size"))
    least, most = _areas(fields)
    filters = {"filter": reader.filter(), "arithmetic": "torchvision"}
    resize = multimodal.ClipResize(
        patch * merge, least, most, depth, kind == "qwen3-vl-video", _cap(fields, kind), **filters
    )
    floats = reader.floats()
    if floats is None:
        fields.fail("do_rescale", "models take floats: expected true, or `do_normalize`")
    whole = (
        _frames(fields, kind, depth),
        resize,
        floats,
        multimodal.MergedPatches(patch, depth, merge, "video_grid_thw", "count"),
    )
    fields.finish()
    extras = ("video_grid_thw", "timestamps")
    return Stage(f"{name} of transformers", _LOADS, whole, "pixel_values_videos", extras, notes=_NOTES)


def _whole(fields, name, most, default=None):
    """A whole number from 1 on."""
    value = fields.take(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        fields.fail(name, f"expected a whole number from 1 to {most}")
    return value


def _areas(fields):
    """The smallest and the largest area."""
    size = fields.take("size")
    size = dict(size) if isinstance(size, dict) else {}
    for older, name in (("min_pixels", "shortest_edge"), ("max_pixels", "longest_edge")):
        given, beside = fields.take(older, None), size.pop(older, None)
        size[name] = given if given is not None else size.get(name, beside)
    is_pair = set(size) == {"shortest_edge", "longest_edge"}
    if not is_pair or not all(isinstance(area, int) and 1 <= area <= _LARGEST_AREA for area in size.values()):
        expected = "`shortest_edge` and `longest_edge`, the smallest and the largest area"
        fields.fail("size", f"expected {expected}, each from 1 to {_LARGEST_AREA}")
    if size["shortest_edge"] > size["longest_edge"]:
        fields.fail("size", "the smallest area is larger than the largest: expected it the other way round")
    return size["shortest_edge"], size["longest_edge"]


def _cap(fields, kind):
    """Tokens that bound the area of a frame, if they do."""
    is_capped = fields.flag("cap_pixels_per_frame", False)
    tokens = _whole(fields, "max_video_tokens", _LARGEST_AREA)
    return tokens if is_capped else None


def _frames(fields, kind, depth):
    """How frames are chosen."""
    is_sampled = fields.flag("do_sample_frames", False)
    least, most = (_whole(fields, name, _MOST_FRAMES) for name in ("min_frames", "max_frames"))
    number, rate = fields.take("num_frames", None), None
    if fields.is_null("fps"):
        fields.ignore("fps")
    else:
        rate = fields.take("fps", None)
    if not is_sampled:
        return multimodal.DecodeVideo("uniform")
    if (number is None) == (rate is None):
        fields.fail("fps", "transformers takes either `fps` or `num_frames`: expected one of them, the other one null")
    if number is not None:
        number = _whole(fields, "num_frames", _MOST_FRAMES)
    elif not is_number(rate) or not 0 < rate <= _LARGEST_RATE or float(np.float32(rate)) != rate:
        fields.fail("fps", "expected a number above 0 that float32 has")
    return multimodal.DecodeVideo(RULES[kind], None if rate is None else float(rate), number, least, most, depth)


def reference(values, name, made):
    """transformers' own answer to the frames that the stage decodes."""
    import transformers
    from transformers.video_utils import VideoMetadata

    options = {key: value for key, value in values.items() if not key.endswith("_type")}
    processor = getattr(transformers, name)(**json.loads(json.dumps(options)))

    def answer(path):
        frames, rate = decoded(path)
        metadata = VideoMetadata(total_num_frames=len(frames), fps=rate)
        found = processor([frames], video_metadata=[metadata], return_tensors="np", return_metadata=True)
        chosen = found["video_metadata"][0].frames_indices
        chosen = range(len(frames)) if chosen is None else np.asarray(chosen)
        times = np.asarray([frame / rate for frame in chosen], np.float64)
        return [found[made.output], np.asarray(found["video_grid_thw"][0], np.int64), times]

    return answer


def decoded(path):
    """All frames of a file, and how many there are a second."""
    from .. import fn, types
    from ..pipeline import Pipeline

    pipe = Pipeline(1, 1, None, prefetch_queue_depth=1)
    with pipe:
        encoded = fn.external_source(name="VIDEO", dtype=types.UINT8, ndim=1)
        _, rate = fn.gesso.peek_video(encoded)
        pipe.set_outputs(fn.decoders.video(encoded), rate)
    frames, rate = pipe.run(VIDEO=[np.fromfile(path, np.uint8)])
    return np.asarray(frames.at(0)), float(np.asarray(rate.at(0)))
