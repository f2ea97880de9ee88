"""Image processors of vision-language models and feature extractors of speech models, of Hugging Face transformers."""

import wave

import numpy as np

from . import description as steps
from . import from_hf, from_hf_tiles, from_hf_videos, hf_processors, multimodal, sizes
from .description import ConversionError, Stage
from .fields import LARGEST_SIDE, Fields, is_side
from .hf_classes import CLIP, CUBIC, LINEAR, ON, STANDARD

_LARGEST_AREA = 1 << 27
_MOST_TILES = 512
_LARGEST_GROUP = 64
_LONGEST_SOUND = 1 << 28

#: (how it works, what it has by default)
CLASSES: dict[str, tuple] = {
    "Qwen2VLImageProcessor": (
        "qwen2-vl",
        {
            **ON,
            **CLIP,
            **CUBIC,
            "size": {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280},
            "default_to_square": False,
            "do_convert_rgb": True,
            "patch_size": 14,
            "temporal_patch_size": 2,
            "merge_size": 2,
        },
    ),
    "LlavaNextImageProcessor": (
        "llava-next",
        {
            **ON,
            **CLIP,
            **CUBIC,
            "size": {"shortest_edge": 224},
            "default_to_square": False,
            "crop_size": {"height": 224, "width": 224},
            "do_center_crop": True,
            "do_convert_rgb": True,
            "do_pad": True,
            "image_grid_pinpoints": ((336, 672), (672, 336), (672, 672), (1008, 336), (336, 1008)),
        },
    ),
    "GotOcr2ImageProcessor": (
        "internvl",
        {
            **ON,
            **CLIP,
            **CUBIC,
            "size": {"height": 384, "width": 384},
            "do_convert_rgb": True,
            "crop_to_patches": False,
            "min_patches": 1,
            "max_patches": 12,
        },
    ),
    "PixtralImageProcessor": (
        "pixtral",
        {
            **ON,
            **CLIP,
            **CUBIC,
            "size": {"longest_edge": 1024},
            "patch_size": {"height": 16, "width": 16},
            "do_convert_rgb": True,
            "do_pad": True,
        },
    ),
    "Gemma3ImageProcessor": (
        "gemma3",
        {**ON, **STANDARD, **LINEAR, "size": {"height": 224, "width": 224}, "do_convert_rgb": True},
    ),
    **from_hf_tiles.CLASSES,
    **from_hf_videos.CLASSES,
    "WhisperFeatureExtractor": (
        "whisper",
        {
            "feature_size": 80,
            "sampling_rate": 16000,
            "hop_length": 160,
            "chunk_length": 30,
            "n_fft": 400,
            "padding_value": 0.0,
            "dither": 0.0,
        },
    ),
    "Wav2Vec2FeatureExtractor": (
        "wav2vec2",
        {"feature_size": 1, "sampling_rate": 16000, "padding_value": 0.0, "do_normalize": True},
    ),
    "SeamlessM4TFeatureExtractor": (
        "seamless-m4t",
        {"feature_size": 80, "num_mel_bins": 80, "sampling_rate": 16000, "padding_value": 0.0, "stride": 2},
    ),
}
SOUNDS = ("whisper", "wav2vec2", "seamless-m4t")

# Outputs of transformers with a row for each part of an image, those of all images one after the other.
_OF_PARTS = ("target_sizes",)
_OF_TORCH = (
    "transformers takes torch's transforms where torch is installed, which differ from its own numpy code by up to "
    "4e-5; the stage is that code, but for the last bit of some values."
)
_LOADS_SOUND = "transformers.audio_utils.load_audio(path)"
_OF_RATES = "Sounds of another rate are resampled as DALI does, not as a library of Python's."


def class_of(values):
    """The name of a class that is known here, or none."""
    if not isinstance(values, dict):
        return None
    for field in ("video_processor_type", "image_processor_type", "feature_extractor_type"):
        name = values.get(field)
        if isinstance(name, str):
            plain = name.removesuffix("Fast").removesuffix("Pil")
            return plain if plain in CLASSES else None
    return None


def stage(values, backend=None, pillow="pillow"):
    """The stage of a configuration's fields."""
    name = class_of(values)
    kind, defaults = CLASSES[name]
    if kind in from_hf_videos.RULES:
        return from_hf_videos.stage(values, name, backend)
    if kind in SOUNDS:
        fields = Fields(values, name, defaults, null_is_default=False)
        fields.ignore("feature_extractor_type", "image_processor_type", "processor_class")
        made = {"whisper": _whisper, "wav2vec2": _wav2vec2, "seamless-m4t": _seamless_m4t}[kind](fields)
        fields.finish()
        return made
    _, backend = from_hf.name_and_backend(values, backend, CLASSES)
    fields = Fields(values, name, {"rescale_factor": 1 / 255, **defaults}, null_is_default=False)
    fields.ignore(*from_hf.WITHOUT_EFFECT, "default_to_square")
    if kind in from_hf_tiles.OF_TORCH_ALONE and backend == "pil":
        raise ConversionError(f"backend `pil`: transformers has `{name}` by torchvision alone")
    reader = from_hf.Processor(fields, kind, backend, pillow)
    reader.rgb()
    fields.only("data_format", "channels_first", needed="only `channels_first` is known")
    if not fields.flag("do_resize", True):
        fields.fail("do_resize", "tiles and patches need their size: expected true")
    if kind in from_hf_tiles.READERS:
        parts = from_hf_tiles.READERS[kind](fields, reader, _arithmetic(reader))
    else:
        parts = _IMAGES[kind](fields, reader)
    floats = reader.floats()
    if kind == "llama4" and floats is not None:
        floats = from_hf_tiles.floats_of_llama4(fields, floats)
    if floats is None:
        fields.fail("do_rescale", "models take floats: expected true, or `do_normalize`")
    resize, behind, extras, notes = parts
    by = "torchvision" if backend == "torchvision" else "Pillow and numpy"
    title = f"{name} of transformers, by {by}"
    whole = (steps.Decode(is_turned=True), *resize, floats, *behind)
    fields.finish()
    return Stage(title, from_hf.LOADS, whole, "pixel_values", extras, notes=(*reader.notes, *notes))


def as_called(values, around):
    """The fields of an image processor as the processor of text and images calls it, whose own fields are `around`:
    Mistral 3's sides are whole groups of patches."""
    if class_of(values) != "PixtralImageProcessor" or around.get("processor_class") != "PixtralProcessor":
        return values
    fields = Fields(around, "PixtralProcessor", {"patch_size": 16, "spatial_merge_size": 1})
    patch, merge = (_whole(fields, name, most) for name, most in (("patch_size", 256), ("spatial_merge_size", 64)))
    return values | {"patch_size": patch * merge}


def _arithmetic(reader):
    return {"filter": reader.filter(), "arithmetic": "torchvision" if reader.is_torch else reader.pillow}


def _whole(fields, name, most, default=None):
    """A whole number from 1 on."""
    value = fields.take(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        fields.fail(name, f"expected a whole number from 1 to {most}")
    return value


def _qwen2_vl(fields, reader):
    size, bounds = fields.take("size"), {}
    if not isinstance(size, dict):
        fields.fail("size", "expected `shortest_edge` and `longest_edge`, the smallest and the largest area")
    left = set(size)
    for name, edge in (("min_pixels", "shortest_edge"), ("max_pixels", "longest_edge")):
        given = fields.take(name, None)
        # Older configurations have these names in `size`, too.
        left -= {edge} if given is None else {edge, name}
        bounds[name] = area = size.get(edge) if given is None else given
        if not isinstance(area, int) or isinstance(area, bool) or not 1 <= area <= _LARGEST_AREA:
            expected = f"a whole number of pixels from 1 to {_LARGEST_AREA}"
            fields.fail("size" if given is None else name, f"expected {expected}, `{edge}` of `size` or `{name}`")
    if left:
        fields.fail("size", "expected `shortest_edge` and `longest_edge`, the smallest and the largest area")
    if bounds["min_pixels"] > bounds["max_pixels"]:
        fields.fail("size", "the smallest area is larger than the largest: expected it the other way round")
    side = _whole(fields, "patch_size", 256)
    depth, merge = (_whole(fields, name, _LARGEST_GROUP) for name in ("temporal_patch_size", "merge_size"))
    resize = multimodal.SmartResize(side * merge, **bounds, **_arithmetic(reader))
    notes = ("An image whose longer side is more than 200 times the shorter one is an error.",)
    return ([resize], [multimodal.MergedPatches(side, depth, merge)], ("image_grid_thw",), notes)


def _llava_next(fields, reader):
    side = _only_side(fields, "size")
    crop = _only_side(fields, "crop_size")
    if side != crop:
        fields.fail("crop_size", f"`size` is {side}: tiles that are resized again are not known; expected the same")
    fields.flag("do_center_crop", True)
    fields.flag("do_pad", True)
    canvases = fields.take("image_grid_pinpoints")
    is_list = isinstance(canvases, (list, tuple)) and 1 <= len(canvases) <= _MOST_TILES
    if not is_list or not all(_is_canvas(canvas, side) for canvas in canvases):
        fields.fail("image_grid_pinpoints", f"expected heights and widths that are multiples of {side}")
    tiles = multimodal.CanvasTiles(side, tuple(map(tuple, canvases)), **_arithmetic(reader))
    return ([tiles], [], ("image_sizes",), ("Images of a request are not padded to the largest number of tiles.",))


def _is_canvas(canvas, side):
    is_pair = isinstance(canvas, (list, tuple)) and len(canvas) == 2
    return is_pair and all(is_side(each) and each % side == 0 for each in canvas)


def _only_side(fields, name):
    """The side of a square, in any spelling."""
    value = fields.take(name)
    if isinstance(value, dict) and set(value) in ({"shortest_edge"}, {"height", "width"}):
        sides = list(value.values())
        value = sides[0] if all(is_side(side) and side == sides[0] for side in sides) else None
    if not is_side(value):
        fields.fail(name, f"expected a square, a side from 1 to {LARGEST_SIDE} pixels")
    return value


def _internvl(fields, reader):
    if not fields.flag("crop_to_patches", False):
        fields.ignore("min_patches", "max_patches")
        return [_whole_image(fields, reader)], [], (), ("There is no output `num_patches`, which is 1.",)
    side = _only_side(fields, "size")
    least, most = (_whole(fields, name, _MOST_TILES) for name in ("min_patches", "max_patches"))
    if least > most:
        fields.fail("min_patches", f"`max_patches` is {most}: expected at most that")
    return ([multimodal.RatioTiles(side, least, most, **_arithmetic(reader))], [], ("num_patches",), ())


def _pixtral(fields, reader):
    size, patch = fields.take("size"), fields.take("patch_size")
    if isinstance(size, dict) and set(size) == {"longest_edge"}:
        size = {"height": size["longest_edge"], "width": size["longest_edge"]}
    if is_side(patch):
        patch = {"height": patch, "width": patch}
    for name, value in (("size", size), ("patch_size", patch)):
        is_pair = isinstance(value, dict) and set(value) == {"height", "width"} and all(map(is_side, value.values()))
        if not is_pair:
            fields.fail(name, f"expected `height` and `width`, each from 1 to {LARGEST_SIDE}, or one number for both")
    if fields.flag("do_center_crop", False):
        fields.fail("do_center_crop", "expected false")
    fields.flag("do_pad", True)
    rule = multimodal.WholePatches(size["height"], size["width"], patch["height"], patch["width"])
    resize = [steps.Resize(rule, **_arithmetic(reader)), multimodal.MeasureSize()]
    return resize, [], ("image_sizes",), ("Images of a request are not padded to the largest of them.",)


def _whole_image(fields, reader):
    """The resize to a size that the fields say."""
    size = fields.take("size")
    if is_side(size):
        size = {"height": size, "width": size}
    if not isinstance(size, dict) or set(size) != {"height", "width"} or not all(map(is_side, size.values())):
        fields.fail("size", f"expected `height` and `width`, each from 1 to {LARGEST_SIDE}, or one number for both")
    return steps.Resize(sizes.Exact(size["height"], size["width"]), **_arithmetic(reader))


def _gemma3(fields, reader):
    resize = _whole_image(fields, reader)
    if fields.flag("do_pan_and_scan", False):
        fields.fail("do_pan_and_scan", "crops beside the image are not known: expected false")
    fields.ignore("pan_and_scan_min_crop_size", "pan_and_scan_max_num_crops", "pan_and_scan_min_ratio_to_activate")
    return [resize], [], (), ("There is no output `num_crops`, which is 0.",)


_IMAGES = {
    "qwen2-vl": _qwen2_vl,
    "llava-next": _llava_next,
    "internvl": _internvl,
    "pixtral": _pixtral,
    "gemma3": _gemma3,
}


def _whisper(fields):
    rate, hop = (_whole(fields, "sampling_rate", 1 << 20), _whole(fields, "hop_length", 1 << 16))
    bands, length = (_whole(fields, "feature_size", 4096), _whole(fields, "n_fft", 1 << 16))
    samples = rate * _whole(fields, "chunk_length", 3600)
    if samples > _LONGEST_SOUND:
        fields.fail("chunk_length", f"expected at most {_LONGEST_SOUND} samples")
    if rate < 16000:
        fields.fail("sampling_rate", "bands end at 8,000 Hz: expected 16000 at least")
    fields.ignore("n_samples", "nb_max_frames", "mel_filters")
    _padding(fields)
    fields.only("dither", 0, 0.0, needed="noise is not added: expected 0")
    fields.only("return_attention_mask", False, needed="masks are not made: expected false")
    made = multimodal.LogMel(bands, length, hop, rate, samples)
    whole = (multimodal.DecodeSound(rate), made)
    title = "WhisperFeatureExtractor of transformers, by numpy"
    return Stage(title, _LOADS_SOUND, whole, "input_features", notes=(_OF_TORCH, _OF_RATES))


def _wav2vec2(fields):
    rate = _whole(fields, "sampling_rate", 1 << 20)
    fields.only("feature_size", 1, needed="expected 1")
    if not fields.flag("do_normalize", True):
        fields.fail("do_normalize", "the features are the sound then: expected true")
    _padding(fields)
    fields.flag("return_attention_mask", False)
    whole = (multimodal.DecodeSound(rate), multimodal.UnitVariance())
    notes = ("Sounds of a request are not padded, and there is no mask: pad behind the stage.", _OF_RATES)
    return Stage("Wav2Vec2FeatureExtractor of transformers", _LOADS_SOUND, whole, "input_values", notes=notes)


def _seamless_m4t(fields):
    rate, bands = _whole(fields, "sampling_rate", 1 << 20), _whole(fields, "num_mel_bins", 4096)
    stride = _whole(fields, "stride", _LARGEST_GROUP)
    if stride < 2:
        fields.fail("stride", "transformers' mask is empty then: expected 2 at least")
    if rate < 100:
        fields.fail("sampling_rate", "bands begin at 20 Hz: expected 100 at least")
    fields.only("feature_size", bands, needed=f"expected `num_mel_bins`, {bands}")
    _padding(fields)
    fields.only("return_attention_mask", True, needed="the mask is an output: expected true")
    fields.ignore("mel_filters", "window")
    whole = (multimodal.DecodeSound(rate), multimodal.SeamlessFeatures(bands, rate, stride))
    title = "SeamlessM4TFeatureExtractor of transformers"
    notes = ("Sounds of a request are not padded to the longest.", _OF_RATES)
    return Stage(title, _LOADS_SOUND, whole, "input_features", ("attention_mask",), notes=notes)


def _padding(fields):
    fields.only("padding_value", 0, 0.0, needed="expected 0")
    fields.only("padding_side", "right", needed="expected `right`")


def reference(values, backend=None, folder=None):
    """transformers' own answer to a file: the class's output of each name."""
    kind, _ = CLASSES[class_of(values)]
    if kind in SOUNDS:
        return _sound_reference(values, kind)
    if kind in from_hf_videos.RULES:
        return from_hf_videos.reference(values, class_of(values), stage(values))
    from transformers.image_utils import load_image

    name, backend = from_hf.name_and_backend(values, backend, CLASSES)
    processor, made = (hf_processors.loaded(name, values, backend, folder), stage(values, backend))

    # numpy has no bfloat16.
    tensors = "pt" if kind == "llama4" else "np"
    types = {name: dtype for name, (dtype, _) in made.outputs.items()}
    # A processor of text and images gives it to each call.
    called = {name: values[name] for name in ("patch_size",) if kind == "pixtral" and name in values}

    def answer(path):
        outputs = processor(load_image(str(path)), return_tensors=tensors, **called)
        pixels = outputs[made.output]
        if kind == "llama4":
            pixels = pixels.float().numpy()
        # Of some classes patches and tiles of all images follow one another.
        pixels = pixels[0] if pixels.ndim > len(made.shape) else pixels
        extras = (outputs[extra] if extra in _OF_PARTS else outputs[extra][0] for extra in made.extras)
        return [pixels, *(np.asarray(value, types[extra]) for extra, value in zip(made.extras, extras, strict=True))]

    return answer


def _sound_reference(values, kind):
    import transformers

    name = class_of(values)
    fields = {key: value for key, value in values.items() if not key.endswith("_type")}
    extractor = getattr(transformers, name).from_dict(fields)
    if kind == "whisper":
        # The numpy code, also where torch is installed.
        extractor._torch_extract_fbank_features = extractor._np_extract_fbank_features
    made = stage(values)

    def answer(path):
        rate = extractor.sampling_rate
        found = extractor(samples(path, rate), sampling_rate=rate, return_tensors="np")
        return [found[name][0] for name in (made.output, *made.extras)]

    return answer


def samples(path, rate):
    """The samples of a file in the format WAV, of one channel and 16 bits; of other files what transformers loads."""
    try:
        with wave.open(str(path)) as file:
            is_plain = (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, rate)
            levels = np.frombuffer(file.readframes(file.getnframes()), "<i2") if is_plain else None
    except (wave.Error, EOFError):
        levels = None
    if levels is not None:
        return (levels / 32768).astype(np.float32)
    from transformers.audio_utils import load_audio

    return load_audio(str(path), sampling_rate=rate)
