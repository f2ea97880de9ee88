"""Definitions of preprocessing as `gesso.convert` reads them: older spellings, defaults, options, and whatever is wrong
with one."""

import json

import numpy as np
import pytest
from gesso import convert
from gesso.convert import ConversionError, hf_classes

VIT = {"image_processor_type": "ViTImageProcessor"}
TIMM = {
    "input_size": [3, 224, 192],
    "interpolation": "bicubic",
    "mean": [0.485, 0.456, 0.406],
    "std": [0.229, 0.224, 0.225],
    "crop_pct": 0.9,
    "crop_mode": "border",
}


# Definitions as they are written


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            {"feature_extractor_type": "CLIPFeatureExtractor", "size": 224, "crop_size": 224, "resample": 3},
            {"image_processor_type": "CLIPImageProcessor"},
        ),
        (
            {
                "feature_extractor_type": "DetrFeatureExtractor",
                "size": 800,
                "max_size": 1333,
                "format": "coco_detection",
            },
            {"image_processor_type": "DetrImageProcessor"},
        ),
        ({"image_processor_type": "ViTImageProcessorFast", "size": [224, 224], "do_pad": None, "device": None}, VIT),
        (
            {
                "image_processor_type": "ViTImageProcessor",
                "size": 224,
                "default_to_square": True,
                "rescale_factor": 1 / 255,
            },
            VIT,
        ),
    ],
)
def test_older_spellings_are_the_same(old, new):
    assert convert.transformers(old).stage == convert.transformers(new).stage


def test_the_two_forms_of_a_class_differ():
    by_torch, by_pillow = (
        convert.transformers({"image_processor_type": f"ViTImageProcessor{ending}"}).source for ending in ("", "Pil")
    )
    assert 'arithmetic="transformers-fast"' in by_torch and 'arithmetic="torchvision"' in by_pillow
    assert convert.transformers(VIT, backend="pil", pillow="pillow13").source.count('arithmetic="pillow13"') == 1


def test_folders_and_files(tmp_path):
    with pytest.raises(ConversionError, match="has neither preprocessor_config.json nor processor_config.json"):
        convert.transformers(str(tmp_path))
    (tmp_path / "processor_config.json").write_text(json.dumps({"image_processor": VIT, "processor_class": "X"}))
    expected = convert.transformers(VIT).stage
    assert convert.transformers(tmp_path).stage == expected
    # The nested configuration comes first, as in transformers 5.
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(VIT | {"size": 64}))
    assert convert.transformers(tmp_path).stage == expected
    assert convert.transformers(tmp_path / "preprocessor_config.json").stage.shape == (3, 64, 64)
    (tmp_path / "processor_config.json").write_text(json.dumps({"image_processor": None, "processor_class": "X"}))
    assert convert.transformers(tmp_path).stage.shape == (3, 64, 64)
    for text, says in (
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "expected fields with names"),
        (" " * (1 << 20) + "{}", "more than"),
    ):
        (tmp_path / "preprocessor_config.json").write_text(text)
        with pytest.raises(ConversionError, match=says):
            convert.transformers(tmp_path)


@pytest.mark.parametrize("name", ["image_mean", "image_std", "size", "resample", "rescale_factor"])
def test_null_is_no_default_of_a_processor(name):
    with pytest.raises(ConversionError, match=f"field `{name}` of ViTImageProcessor is None"):
        convert.transformers(VIT | {name: None})


def test_null_turns_a_flag_off_and_is_no_matter_where_it_is_not_used():
    assert convert.transformers(VIT | {"do_normalize": None, "image_mean": None, "image_std": None}).stage == (
        convert.transformers(VIT | {"do_normalize": False}).stage
    )
    assert convert.transformers(VIT | {"do_resize": None, "size": None, "resample": None}).stage == (
        convert.transformers(VIT | {"do_resize": False}).stage
    )
    with pytest.raises(ConversionError, match="field `do_resize` of Siglip2ImageProcessor is None"):
        convert.transformers({"image_processor_type": "Siglip2ImageProcessor", "do_resize": None})


# Mutations: whatever is wrong with a definition, the error names the field.

WRONG = (
    "two",
    [],
    {},
    -1,
    0,
    1.5,
    True,
    [1, 2, 3, 4],
    {"height": 3},
    {"height": 224, "width": "224"},
    float("nan"),
    float("inf"),
    10**9,
    10**400,
    1e-300,
    [0.5, None, 0.5],
)


def definitions():
    """Whole definitions: (what converts one, its fields, those without a default)."""
    for name, (_, defaults) in hf_classes.CLASSES.items():
        values = {"image_processor_type": name, **json.loads(json.dumps(defaults)), "rescale_factor": 1 / 255}
        values.pop("default_to_square", None)
        yield convert.transformers, values, ("image_processor_type",)
    yield convert.timm, TIMM, tuple(TIMM)
    clip = {
        "size": 224,
        "mean": [0.5] * 3,
        "std": [0.5] * 3,
        "interpolation": "bicubic",
        "resize_mode": "longest",
        "fill_color": 3,
    }
    yield convert.open_clip, clip, ("size",)


def is_right(field, value, values):
    """Whether a wrong value happens to be one that the field may have."""
    if field in ("image_mean", "mean", "rescale_factor", "crop_pct"):
        return (
            isinstance(value, (int, float))
            and value is not True
            and abs(value) < 10**6
            and (field in ("image_mean", "mean") or value > 1e-6)
        )
    if field in ("image_std", "std"):
        return isinstance(value, (int, float)) and value is not True and 1e-6 < value < 10**6
    return (
        field.startswith("do_")
        and value is True
        or field == "size_divisor"
        and value == 0
        and value is not True
        or field in ("resample", "fill_color")
        and value == 0
    )


def mutated(rng, values, required):
    """A definition with something wrong, and the field that is."""
    kind, field = rng.choice(["removed", "misspelt", "type", "member", "contradiction"]), str(rng.choice(list(values)))
    values = json.loads(json.dumps(values))
    if kind == "removed":
        field = str(rng.choice(required))
        del values[field]
    elif kind == "misspelt":
        wrong = (
            field.replace("_", "", 1) if "_" in field and rng.integers(2) else field + str(rng.choice(["s", "_", "X"]))
        )
        values[wrong] = values.pop(field)
        # Where the field has no default that one is missed first.
        return values, (wrong, field)
    elif kind == "type":
        wrong = [value for value in WRONG if not is_right(field, value, values)]
        values[field] = wrong[rng.integers(len(wrong))]
    elif kind == "member" and isinstance(values[field], dict):
        key = str(rng.choice(list(values[field])))
        if rng.integers(2) and set(values[field]) != {"shortest_edge", "longest_edge"}:
            values[field][key + "s"] = values[field].pop(key)
        else:
            values[field][key] = [0, -3, "x", None, 2.5, 10**6][rng.integers(6)]
    elif kind == "member" and isinstance(values[field], list):
        values[field] = values[field][:2] if rng.integers(2) else [*values[field], 0.5]
    else:
        wrong = {
            "size": {"height": 224, "shortest_edge": 224},
            "resample": 9,
            "interpolation": "area",
            "crop_mode": "middle",
            "auto_map": {"A": "b.C"},
        }
        field = str(rng.choice([name for name in wrong if name in values or name == "auto_map"]))
        values[field] = wrong[field]
    return values, (field,)


def test_mutated_definitions_name_the_field():
    bases, tried = list(definitions()), 0
    for number in range(600):
        rng = np.random.default_rng([57, number])
        function, values, required = bases[rng.integers(len(bases))]
        wrong, fields = mutated(rng, values, required)
        assert wrong != values
        with pytest.raises(ConversionError) as caught:
            function(wrong)
            pytest.fail(f"{function.__name__} takes {wrong}, where `{fields}` is wrong")
        assert any(f"`{field}`" in str(caught.value) for field in fields), (fields, wrong, str(caught.value))
        tried += 1
    assert tried == 600


def test_what_a_class_has_by_default_may_be_left_out():
    for name, (_, defaults) in hf_classes.CLASSES.items():
        values = {"image_processor_type": name}
        whole = convert.transformers(defaults | values).stage
        for field in defaults:
            left = {key: value for key, value in (defaults | values).items() if key != field or key in values}
            assert convert.transformers(left).stage == whole, (name, field)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            {"image_processor_type": "NoImageProcessor"},
            "`image_processor_type` is 'NoImageProcessor': this class is not known",
        ),
        (
            {"image_processor_type": "Siglip2ImageProcessor", "do_resize": False},
            "field `do_resize` of Siglip2ImageProcessor is False",
        ),
        (
            {"image_processor_type": "Owlv2ImageProcessor"},
            "`image_processor_type` is 'Owlv2ImageProcessor': it resizes floats by another library",
        ),
        (
            {"image_processor_type": "DINOv3ViTImageProcessorFast", "resample": 0},
            "field `resample` of DINOv3ViTImageProcessor is 0: this class resizes floats",
        ),
        (
            {"image_processor_type": "DINOv3ViTImageProcessor", "do_rescale": False},
            "`do_rescale` of DINOv3ViTImageProcessor is False: this class normalizes floats",
        ),
        (
            VIT | {"resample": 4},
            r"`resample` of ViTImageProcessor is 4: expected one of 0 \(nearest-exact\), 1 \(lanczos\).*`--backend pil`",
        ),
        (VIT | {"do_pad": True, "pad_size": 200}, "images may have 224 x 224 pixels before they are padded"),
        (VIT | {"do_pad": True, "do_resize": False, "pad_size": 200}, "images may have any size"),
        (VIT | {"data_format": "channels_last"}, "`data_format` of ViTImageProcessor is 'channels_last'"),
        (VIT | {"do_resize": False, "crop_pct": 0.9}, "`crop_pct` of ViTImageProcessor is 0.9: it is not known"),
        (
            {"image_processor_type": "SegformerImageProcessor", "do_center_crop": True},
            "SegformerImageProcessor does not crop",
        ),
        (
            {
                "image_processor_type": "DetrImageProcessor",
                "size": {"shortest_edge": 800, "longest_edge": 1333},
                "max_size": 1000,
            },
            "`max_size`.*is 1000",
        ),
        (
            {"image_processor_type": "ConvNextImageProcessor", "size": {"height": 224, "width": 224}},
            "takes `shortest_edge` alone",
        ),
    ],
)
def test_what_has_no_equal_stage_is_refused(values, says):
    with pytest.raises(ConversionError, match=says):
        convert.transformers(values)


def test_options_are_checked():
    for options, says in (
        ({"dtype": "bfloat16"}, "`dtype` is 'bfloat16': expected float32 or float16"),
        ({"layout": "NCHW"}, "`layout`"),
        ({"pillow": "12"}, "`pillow`"),
        ({"arithmetic": "torch"}, "`arithmetic`"),
        ({"batch_size": 0}, "`batch_size` is 0"),
        ({"backend": "slow"}, "backend `slow`"),
        ({"device": "gpu"}, "`device` is 'gpu': expected cpu or mixed"),
    ):
        with pytest.raises(ConversionError, match=says):
            convert.transformers(VIT, **options)
    with pytest.raises(ConversionError, match="`dtype` is 'float16': this stage makes bytes"):
        convert.transformers(VIT | {"do_rescale": False, "do_normalize": False}, dtype="float16")
    for name, options, says in (
        ("DINOv3ViTImageProcessor", {"backend": "pil"}, "by torchvision alone"),
        ("DINOv3ViTImageProcessor", {"device": "mixed"}, "resizes floats, which is exact on a CPU alone"),
        ("VideoMAEImageProcessor", {"device": "mixed"}, "takes frames"),
    ):
        with pytest.raises(ConversionError, match=says):
            convert.transformers({"image_processor_type": name}, **options)
    for imgsz in (641, 0, "640", (640, 640, 3), True):
        with pytest.raises(ConversionError, match="`imgsz`"):
            convert.ultralytics(imgsz)
    with pytest.raises(ConversionError, match="a `int` is given"):
        convert.timm(3)
    with pytest.raises(ConversionError, match="a `builtins.object` is given"):
        convert.transformers(object())
