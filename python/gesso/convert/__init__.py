"""Preprocessing that people have becomes a stage that a server runs: Hugging Face's image processors, timm's
configurations, torchvision's transforms, Ultralytics' letterbox, open_clip's configurations. What cannot be made equal
is an error that names the field.

from gesso import convert

preprocess = convert.transformers(processor)
print(preprocess.source)
preprocess().serialize(filename="model.dali")

Each function returns what `pipeline_def` makes, with three attributes: `source`, the program, plain Python to read and
change; `stage`, what is done step by step; `reference()`, the library's own function of a file, where the library is
installed. `prove` compares the two."""

from .description import ConversionError, Stage

__all__ = ["ConversionError", "Stage", "open_clip", "prove", "timm", "torchvision", "transformers", "ultralytics"]


def transformers(processor, *, backend=None, **options):
    """Converts an image processor, a video processor or a feature extractor of Hugging Face: the object, a folder or
    file with its `preprocessor_config.json`, the file `video_preprocessor_config.json`, or the fields of one.

    `backend` is `"torchvision"` or `"pil"`, which transformers resizes with: the two give different pixels. By default
    it is that of the object, or what transformers 5 takes: torchvision, and Pillow for classes that end in `Pil`.
    `options` are those of all functions here:

    - `pillow`: `"pillow"` or `"pillow13"`, by default the installed one's rules;
    - `dtype`: `"float32"` or `"float16"`; `layout`: `"CHW"` or `"HWC"`;
    - `device`: `"cpu"`, or `"mixed"`: on a GPU where the server gives the model one;
    - `arithmetic`: `"exact"`, or `"dali"` for a file that DALI runs, too;
    - `batch_size`: the largest, 64.
    """
    from . import conversion, from_hf, from_hf_multimodal

    values, backend, folder = from_hf.given(processor, backend)
    values = from_hf_multimodal.as_called(values, from_hf.around(processor, ("patch_size", "spatial_merge_size")))
    reader = from_hf if from_hf_multimodal.class_of(values) is None else from_hf_multimodal
    return conversion.make(
        lambda pillow: reader.stage(values, backend, pillow),
        lambda: reader.reference(values, backend, folder),
        **options,
    )


def timm(config, **options):
    """Converts timm's evaluation: a `data_config`, a `pretrained_cfg`, a JSON file with one, or a model's name."""
    from . import configuration, conversion, from_timm

    values = configuration.fields_of(config, from_timm.fields_of)
    return conversion.make(
        lambda pillow: from_timm.stage(values, pillow), lambda: from_timm.reference(values), **options
    )


def torchvision(transform, *, takes="pil", train=None, **options):
    """Converts torchvision's transforms: a `Compose`, `weights.transforms()`, the name of weights, or `"file.py:name"`.

    `takes` says what the transforms are given: `"pil"`, images of Pillow, or `"tensor"`, bytes in a tensor. `train` is
    a folder with a folder for each class: then transforms may be random, and the pipeline reads this folder in random
    order and returns pixels and labels."""
    from . import conversion, from_torchvision

    found = from_torchvision.named(transform) if isinstance(transform, str) else transform
    return conversion.make(
        lambda pillow: from_torchvision.stage(found, pillow, takes, train),
        lambda: from_torchvision.reference(found, takes),
        **options,
    )


def ultralytics(imgsz=640, *, rect=False, stride=32, **options):
    """Converts what Ultralytics' `predict` does with a file: a letterbox of `imgsz`, a smaller one with `rect`."""
    from . import conversion, from_ultralytics

    given = {"imgsz": imgsz, "rect": rect, "stride": stride}
    return conversion.make(
        lambda _: from_ultralytics.stage(**given), lambda: from_ultralytics.reference(**given), **options
    )


def open_clip(config, **options):
    """Converts open_clip's evaluation: `open_clip_config.json`, or the fields of one or of its `preprocess_cfg`."""
    from . import configuration, conversion, from_open_clip

    values = configuration.fields_of(config)
    return conversion.make(
        lambda pillow: from_open_clip.stage(values, pillow), lambda: from_open_clip.reference(values), **options
    )


def prove(made, files):
    """Compares a converted pipeline with its library on files. Returns a `Proof`: `is_equal`, `outputs`, and what
    `print` shows."""
    from . import proof

    return proof.prove(made, files)
