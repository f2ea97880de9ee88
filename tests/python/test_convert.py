"""`gesso.convert` and `gesso from`, without the libraries that they read definitions of: `test_convert_libraries.py`
compares with those."""

import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import gesso
import numpy as np
import pytest
from gesso import convert
from gesso._authoring.autoserialize import of_script
from gesso.convert import ConversionError, from_hf, hf_classes, pbtxt, repository, sizes
from PIL import Image

VIT = {"image_processor_type": "ViTImageProcessor"}
TIMM = {
    "input_size": [3, 224, 192],
    "interpolation": "bicubic",
    "mean": [0.485, 0.456, 0.406],
    "std": [0.229, 0.224, 0.225],
    "crop_pct": 0.9,
    "crop_mode": "border",
}


def photo(height=61, width=90):
    """The bytes of a file."""
    pixels = np.random.default_rng(5).integers(0, 256, (height, width, 3), np.uint8)
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "PNG")
    return np.frombuffer(data.getvalue(), np.uint8)


def answers(made, data=None):
    """What a converted pipeline makes of one input."""
    given = np.zeros((3, 50, 40, 3), np.uint8) if made.stage.takes_frames else photo() if data is None else data
    return [np.asarray(output.at(0)) for output in made().run(**{made.stage.input: [given]})]


def conversions():
    """One of each kind."""
    for name, (kind, _) in hf_classes.CLASSES.items():
        for backend in from_hf.BACKENDS[: 1 if kind == "rescales-first" else 2]:
            yield (
                f"{name}-{backend}",
                lambda name=name, backend=backend, **options: convert.transformers(
                    {"image_processor_type": name}, backend=backend, **options
                ),
            )
    for changes in (
        {"rescale_factor": 0.01},
        {"do_normalize": False, "rescale_factor": 0.01},
        {"do_rescale": False},
        {"do_rescale": False, "do_normalize": False},
    ):
        for backend in from_hf.BACKENDS:
            yield (
                f"{'-'.join(changes)}-{backend}",
                lambda changes=changes, backend=backend, **options: convert.transformers(
                    VIT | changes,
                    backend=backend,
                    **{
                        name: value
                        for name, value in options.items()
                        if name != "dtype" or len(changes) == 1 or "rescale_factor" in changes
                    },
                ),
            )
    for mode in ("center", "squash", "border"):
        yield f"timm-{mode}", lambda mode=mode, **options: convert.timm(TIMM | {"crop_mode": mode}, **options)
    for rect in (False, True):
        yield f"ultralytics-{rect}", lambda rect=rect, **options: convert.ultralytics(64, rect=rect, **options)
    for mode in ("shortest", "longest", "squash"):
        yield (
            f"open_clip-{mode}",
            lambda mode=mode, **options: convert.open_clip({"size": 64, "resize_mode": mode}, **options),
        )


CONVERSIONS = dict(conversions())


@pytest.mark.parametrize("name", CONVERSIONS)
def test_every_stage_runs_and_has_the_shape_and_the_type_that_it_says(name):
    for options in (
        {},
        {"dtype": "float16"} | ({} if "Siglip2" in name else {"layout": "HWC"}),
        {"arithmetic": "dali"},
    ):
        made = CONVERSIONS[name](**options)
        pixels = answers(made)[0]
        assert pixels.dtype == made.stage.type
        assert len(pixels.shape) == len(made.stage.shape)
        assert all(wanted in (-1, found) for wanted, found in zip(made.stage.shape, pixels.shape, strict=True)), (
            made.stage.shape,
            pixels.shape,
        )


@pytest.mark.parametrize("name", CONVERSIONS)
def test_the_printed_program_gives_the_same_file(name, tmp_path):
    made = CONVERSIONS[name]()
    (tmp_path / "program.py").write_text(made.source)
    assert of_script(str(tmp_path / "program.py")).serialize() == made().serialize()
    assert max(map(len, made.source.splitlines())) <= 160 and "gesso from" in made.source


@pytest.mark.parametrize("name", CONVERSIONS)
def test_a_file_for_dali_has_no_argument_that_dali_does_not_have(name):
    source = CONVERSIONS[name](arithmetic="dali").source
    assert not [word for word in ("arithmetic=", "filter=", "rounding=") if word in source]


def test_the_demos_stage_is_made_of_its_definition():
    models = Path(__file__).resolve().parents[2] / "model_repository"
    made = convert.timm(models / "classifier" / "data_config.json", device="mixed", pillow="pillow")
    assert (models / "preprocess" / "preprocess.py").read_text(encoding="utf-8") == made.source
    assert (models / "preprocess" / "1" / "model.dali").read_bytes() == made().serialize()
    assert "equal to the bit on 100 of 100" in (models / "preprocess" / "README.md").read_text(encoding="utf-8")


def test_a_stage_for_a_gpu_runs_without_one_too():
    for name in ("CLIPImageProcessor-torchvision", "DetrImageProcessor-pil", "timm-border", "ultralytics-True"):
        by_device = [answers(CONVERSIONS[name](device=device)) for device in ("cpu", "mixed")]
        for on_cpu, mixed in zip(*by_device, strict=True):
            np.testing.assert_array_equal(on_cpu, mixed)


def test_layouts_and_types_are_the_same_values():
    planes, rows, half = (
        answers(convert.transformers(VIT, **options))[0] for options in ({}, {"layout": "HWC"}, {"dtype": "float16"})
    )
    np.testing.assert_array_equal(planes.transpose(1, 2, 0), rows)
    np.testing.assert_array_equal(planes.astype(np.float16), half)


# Sizes


def computed(rule, height, width):
    """What the lines of a rule compute, for many sizes at once."""
    shim = type("math", (), {"min": np.minimum, "max": np.maximum, "floor": np.floor, "ceil": np.ceil})
    names = {"math": shim, "np": np, "height": height, "width": width}
    exec("\n".join([*sizes.HELPERS.values(), *rule.lines()]), names)
    return names["new_height"], names["new_width"]


def bounded(height, width, size, longest, multiple=None, keeps_upright=True):
    """transformers' rule, as its documentation says."""
    raw = float(size)
    if max(height, width) / min(height, width) * size > longest:
        raw = longest * float(min(height, width)) / float(max(height, width))
    side = round(raw)
    if min(height, width) == side and (keeps_upright or height <= width):
        made = (height, width)
    elif width < height:
        made = (int(raw * height / width), side)
    else:
        made = (side, int(raw * width / height))
    return tuple(each - each % multiple for each in made) if multiple else made


def kept(height, width, tall, wide, chosen):
    """timm's rule."""
    ratio = chosen(height / tall, width / wide)
    return round(height / ratio), round(width / ratio)


def patches(height, width, side, most):
    """SigLIP 2's rule: it halves."""
    least, largest = 1e-5 / 10, 100.0

    def whole(scale):
        return tuple(max(side, math.ceil(each * scale / side) * side) for each in (height, width))

    while largest - least >= 1e-5:
        scale = (least + largest) / 2
        tall, wide = whole(scale)
        least, largest = (scale, largest) if (tall / side) * (wide / side) <= most else (least, scale)
    return whole(least)


RULES = {
    "detr": (sizes.Bounded(800, 1333), lambda h, w: bounded(h, w, 800, 1333)),
    "yolos": (sizes.Bounded(512, 864, 16, "down", False), lambda h, w: bounded(h, w, 512, 864, 16, False)),
    "mask2former": (
        sizes.Bounded(800, 1333, 32, "up"),
        lambda h, w: tuple(-(-side // 32) * 32 for side in bounded(h, w, 800, 1333)),
    ),
    "sam": (sizes.Longest(1024), lambda h, w: tuple(int(side * (1024 / max(h, w)) + 0.5) for side in (h, w))),
    "within": (
        sizes.Within(300, 451, "floor"),
        lambda h, w: tuple(int(side * min(300 / h, 451 / w)) for side in (h, w)),
    ),
    "letterbox": (
        sizes.Within(640, 640, "even"),
        lambda h, w: tuple(max(round(side * min(640 / h, 640 / w)), 1) for side in (h, w)),
    ),
    "covers": (sizes.KeepRatio(248, 213, False), lambda h, w: kept(h, w, 248, 213, min)),
    "patches": (sizes.Patches(16, 256), lambda h, w: patches(h, w, 16, 256)),
    "fits": (sizes.KeepRatio(248, 213, True), lambda h, w: kept(h, w, 248, 213, max)),
}


@pytest.mark.parametrize("name", RULES)
def test_sizes_are_those_of_the_library(name):
    rule, reference = RULES[name]
    rng = np.random.default_rng(57)
    height, width = np.exp(rng.uniform(0, math.log(5000), (2, 20_000))).astype(int)
    # Sides that are the sizes themselves, and their multiples, are where rounding decides.
    height[:3000], width[1500:4500] = rng.choice([640, 800, 1333, 512, 864, 1024, 1280, 1600], (2, 3000))
    found = np.stack(computed(rule, height.astype(float), width.astype(float)), 1)
    np.testing.assert_array_equal(found, [reference(int(h), int(w)) for h, w in zip(height, width, strict=True)])


def test_an_image_too_thin_for_its_size_is_an_error():
    made = convert.transformers(
        {"image_processor_type": "YolosImageProcessor", "size": {"shortest_edge": 64, "longest_edge": 64}}
    )
    with pytest.raises(RuntimeError, match="finite size"):
        answers(made, photo(9, 900))


# Padding of a batch


def test_a_request_is_padded_to_its_largest_image():
    made = convert.transformers(
        {"image_processor_type": "DetrImageProcessor", "size": {"shortest_edge": 30, "longest_edge": 60}}
    )
    pixels, mask = made().run(IMAGE=[photo(30, 40), photo(50, 30)])
    assert [np.asarray(pixels.at(number)).shape for number in range(2)] == [(3, 50, 40)] * 2
    inside = np.zeros((2, 50, 40), np.int64)
    inside[0, :30], inside[1, :, :30] = 1, 1
    np.testing.assert_array_equal([np.asarray(mask.at(number)) for number in range(2)], inside)
    assert not np.asarray(pixels.at(0))[:, 30:].any() and not np.asarray(pixels.at(1))[:, :, 30:].any()


# The repository

MODEL = """
# A model.
backend: "onnxruntime"
max_batch_size: 8
input [ { name: "pixel_values", data_type: TYPE_FP32, dims: [ 3, 224, 224 ] } ] # one
output { name: "logits" data_type: TYPE_FP32 dims: [ 1000 ] }
parameters { key: "a" value { string_value: "# no comment } \\" \\" " } }
"""


def models(folder, text=MODEL):
    (folder / "vit").mkdir(exist_ok=True)
    (folder / "vit" / "config.pbtxt").write_text(text)
    return repository.model(folder, "vit")


def test_an_ensemble_takes_name_type_and_shape_of_the_model(tmp_path):
    behind = models(tmp_path)
    assert behind.max_batch_size == 8 and behind.inputs[0].dims == (3, 224, 224)
    text = repository.ensemble(convert.transformers(VIT).stage, "pre", behind, 64)
    made = pbtxt._fields(pbtxt._tokens(text), None, 0)
    assert (
        made["max_batch_size"] == ["8"]
        and made["input"][0]["name"] == ["IMAGE"]
        and made["output"][0]["dims"] == ["1000"]
    )
    first, second = made["ensemble_scheduling"][0]["step"]
    assert first["output_map"][0]["value"] == second["input_map"][0]["value"] == ["stage.pixel_values"]
    for changed, options in (
        (("TYPE_FP32, dims", "TYPE_FP16, dims"), ("float16", "CHW")),
        (("3, 224, 224", "224, 224, 3"), ("float32", "HWC")),
    ):
        behind = models(tmp_path, MODEL.replace(*changed))
        found = behind.options("pixel_values")
        assert tuple(found.values()) == options
        repository.ensemble(convert.transformers(VIT, **found).stage, "pre", behind, 64)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (
            ("3, 224, 224", "3, 640, 640"),
            r"`pixel_values` of model `vit` has dims \[3, 640, 640\]: the stage's `pixel_values` has \[3, 224, 224\]",
        ),
        (("TYPE_FP32, dims", "TYPE_BF16, dims"), "is TYPE_BF16: the stage's `pixel_values` is TYPE_FP32"),
        (("max_batch_size: 8", ""), "`max_batch_size` is 0"),
        (("output", "result"), "expected at least one `input` and one `output`"),
        (("dims: [ 1000 ]", ""), "expected `name`, `data_type` and `dims` of each output"),
        (('name: "logits"', 'name: "a\\" } ensemble_scheduling {"'), "of each output; `name` .* is missing or wrong"),
        (('name: "logits"', "name: 'a\"b'"), "of each output; `name` .* is missing or wrong"),
        (('name: "logits"', 'name: "a\x1b[2J"'), "of each output; `name` .* is missing or wrong"),
        (
            ("TYPE_FP32 dims: [ 1000", '"TYPE_FP32 } x {" dims: [ 1000'),
            "of each output; `data_type` .* is missing or wrong",
        ),
        (
            ('{ name: "pixel_values"', '{ name: "a" data_type: TYPE_FP32 dims: 1 }, { name: "b"'),
            r"has inputs \['a', 'b'\]: expected one",
        ),
        (
            ("} ]", '}, { name: "pixel_mask" data_type: TYPE_INT64 dims: [-1, -1] } ]'),
            "input `pixel_mask` of model `vit`: the stage has no output for it",
        ),
        (("}", ""), "is no configuration of a model"),
        (("backend", "@"), "is no configuration of a model"),
        (('backend: "onnxruntime"', "a {" * 40), "braces in braces"),
    ],
)
def test_models_that_do_not_fit(tmp_path, changed, says):
    with pytest.raises(ConversionError, match=says):
        repository.ensemble(convert.transformers(VIT).stage, "pre", models(tmp_path, MODEL.replace(*changed)), 64)


# The command line


def run(folder, *arguments):
    path = os.pathsep.join([os.path.dirname(os.path.dirname(gesso.__file__)), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, "-m", "gesso", "from", *arguments]
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path}
    )


def test_the_command_line(tmp_path):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(VIT))
    models(tmp_path)
    made = run(tmp_path, "hf", ".", "-o", "pre", "--model", "vit", "--no-proof")
    assert (made.returncode, made.stderr) == (0, ""), made.stderr
    assert sorted(path.name for path in (tmp_path / "pre").iterdir()) == [
        "1",
        "README.md",
        "config.pbtxt",
        "preprocess.py",
    ]
    assert (tmp_path / "vit_from_images" / "config.pbtxt").read_text().startswith("# Made by `gesso from`")
    readme = (tmp_path / "pre" / "README.md").read_text()
    assert "`gesso from hf . -o pre --model vit --no-proof`" in readme and "`Raw profile type exif`" in readme
    gesso.Pipeline.deserialize(filename=str(tmp_path / "pre" / "1" / "model.dali"), batch_size=1).build()
    again = run(tmp_path, "hf", ".", "-o", "pre", "--no-proof")
    assert again.returncode == 2 and "pre/1/model.dali` is there already" in again.stderr
    assert run(tmp_path, "hf", ".", "-o", "pre", "--no-proof", "--overwrite").returncode == 0
    printed = run(tmp_path, "ultralytics", "--imgsz", "64", "--print", "--no-proof")
    assert (
        printed.stdout.rstrip() == convert.ultralytics(64).source.rstrip()
        and printed.stderr == "not compared: `--no-proof`\n"
    )
    assert run(tmp_path, "hf", ".", "-o", "other", "--no-proof", "--require-equal").returncode == 1
    for arguments, says in (
        (("hf", "nowhere"), "cannot read `nowhere`"),
        (("hf", ".", "--no-proof"), "nothing is asked for"),
        (("hf", ".", "--model", "vit"), "`--output`"),
    ):
        wrong = run(tmp_path, *arguments)
        assert wrong.returncode == 2 and says in wrong.stderr, wrong.stderr


def contents(folder):
    """All that is in a folder: files with what is in them."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_nothing_of_others_is_replaced(tmp_path):
    """Each is refused before the proof, which would take transformers, and before anything is written."""
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(VIT))
    models(tmp_path)
    for folder, name in (("readme", "README.md"), ("program", "preprocess.py"), ("model", "config.pbtxt")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text("of a user")
    (tmp_path / "linked").symlink_to("readme")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "README.md").symlink_to(tmp_path / "new.txt")
    (tmp_path / "file").write_text("of a user")
    (tmp_path / "newer" / "2").mkdir(parents=True)
    (tmp_path / "deep" / "1").mkdir(parents=True)
    (tmp_path / "deep" / "1" / "model.dali").symlink_to("/dev/null")
    before = contents(tmp_path)
    behind = ("--model", "vit")
    for arguments, says in (
        (("-o", "readme"), "README.md` is there already"),
        (("-o", "readme", "--overwrite"), "was not made by `gesso from`"),
        (("-o", "program", "--overwrite"), "was not made by `gesso from`"),
        (("-o", "model", "--overwrite"), "was not made by `gesso from`"),
        (("-o", "linked", "--overwrite"), "is a symbolic link"),
        (("-o", "inner"), "is a symbolic link"),
        (("-o", "deep", "--overwrite"), "is a symbolic link"),
        (("-o", "file"), "is no folder"),
        (("-o", "newer", "--overwrite"), "has version `2`"),
        (("-o", "x/.."), "option `--output` is '..'"),
        (("-o", 'a"b'), "option `--output` is 'a\"b'"),
        (("-o", "vit", *behind, "--overwrite"), "option `--output` is 'vit', as the model"),
        (("-o", "pre", *behind, "--ensemble", "pre"), "option `--ensemble` is 'pre', as the model"),
        (("-o", "pre", *behind, "--ensemble", "vit", "--overwrite"), "option `--ensemble` is 'vit', as the model"),
        (("-o", "pre", *behind, "--ensemble", "../e4"), "option `--ensemble` is '../e4'"),
        (("-o", "pre", *behind, "--ensemble", "model"), "config.pbtxt` is there already"),
        (("-o", "pre", *behind, "--ensemble", "model", "--overwrite"), "was not made by `gesso from`"),
        (("-o", "pre", "--model", "../vit"), "option `--model` is '../vit'"),
        (("-o", "pre", "--model", "no"), "option `--model` is 'no': expected its configuration at"),
        (("-o", "pre", "--ensemble", "e"), "without `--model`"),
        (("--ensemble", "e"), "without `--output`"),
    ):
        wrong = run(tmp_path, "hf", ".", *arguments)
        assert wrong.returncode == 2 and says in wrong.stderr and not wrong.stdout, (
            arguments,
            wrong.stderr,
            wrong.stdout,
        )
        assert contents(tmp_path) == before, arguments


def test_programs_that_end_themselves_and_photos_that_are_none(tmp_path):
    pytest.importorskip("torchvision")
    (tmp_path / "leaves.py").write_text("import sys\n\nsys.exit(0)\n")
    wrong = run(tmp_path, "torchvision", "leaves.py:transform", "-o", "pre", "--no-proof")
    assert (
        wrong.returncode == 2
        and "`leaves.py`, line 3: SystemExit: code of the user ends the program with 0" in wrong.stderr
    )
    assert not (tmp_path / "pre").exists()
    (tmp_path / "right.py").write_text(
        "from torchvision.transforms import *\ntransform = Compose([CenterCrop(8), ToTensor()])\n"
    )
    (tmp_path / "photos").mkdir()
    for folder, says in (
        ("nowhere", "option `--photos` is 'nowhere': expected a folder"),
        ("photos", "option `--photos` is 'photos': there is"),
    ):
        wrong = run(tmp_path, "torchvision", "right.py:transform", "-o", "pre", "--photos", folder)
        assert wrong.returncode == 2 and says in wrong.stderr, wrong.stderr
    (tmp_path / "photos" / "0.png").write_bytes(photo().tobytes())
    (tmp_path / "photos" / "notes.txt").write_text("no image")
    made = run(tmp_path, "torchvision", "right.py:transform", "-o", "pre", "--photos", "photos")
    assert made.returncode == 0 and made.stderr == "photos: 1 files are left out: their names end like no image\n"
    assert "PIXELS: equal to the bit on 1 of 1" in made.stdout


def test_control_characters_are_escaped(tmp_path):
    (tmp_path / "preprocessor_config.json").write_text(
        json.dumps(VIT | {"\x1b[2Jfield\npixel_values: equal": "\x1b]0;title\x07"})
    )
    wrong = run(tmp_path, "hf", ".", "--print")
    assert wrong.returncode == 2 and "field `\\x1b[2Jfield\\npixel_values: equal`" in wrong.stderr
    assert all(each.isprintable() or each == "\n" for each in wrong.stderr) and len(wrong.stderr.splitlines()) == 1
