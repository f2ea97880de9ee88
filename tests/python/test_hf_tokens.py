"""Counts of tokens beside the recorded ones of transformers' processors (tests/data/multimodal/make_tokens.py), and
beside what the processors write where they are installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gesso import Pipeline
from gesso.convert import ConversionError
from gesso.hf import TokenCounter, count_tokens
from PIL import Image

DATA = Path(__file__).parents[1] / "data" / "multimodal"
sys.path.insert(0, str(DATA))

import definitions  # noqa: E402
import token_definitions  # noqa: E402

RECORDED = json.loads((DATA / "tokens.json").read_text())
ORIENTATION = 0x112


def refusal(config, size, expected):
    """Why files of such a size have no count; None if they have one. transformers also counts what it cannot resize, as
    no pixel of a side is left."""
    longest = config["image_processor"].get("size", {}).get("longest_edge", 1024)
    if config["image_processor"]["image_processor_type"].startswith("Pixtral") and min(size) * longest < max(size):
        return "a side of 0 pixels"
    return "at most 200 times" if expected is None else None


@pytest.mark.parametrize("name", token_definitions.CONFIGS)
def test_counts_are_those_of_transformers(name):
    config = token_definitions.CONFIGS[name]
    count, files = TokenCounter(config), []
    for size, expected in zip(token_definitions.SIZES, RECORDED[name], strict=True):
        header, text = token_definitions.as_header(*size), refusal(config, size, expected)
        if text is None:
            files.append((header, expected))
        else:
            with pytest.raises(ValueError, match=text):
                count(header)
    assert count([header for header, _ in files]) == [expected for _, expected in files]


@pytest.mark.parametrize("name", token_definitions.CONFIGS)
def test_prompts_have_as_many_tokens(name):
    pytest.importorskip("transformers", minversion="5")
    pytest.importorskip("torch")
    import make_tokens

    processor = make_tokens.processor(token_definitions.CONFIGS[name])
    count = TokenCounter(processor)
    for size in ((97, 61), (3, 150), (333, 500), (640, 480), (50, 1000)):
        assert make_tokens.written(processor, size) == count(token_definitions.as_header(*size)), size


@pytest.mark.parametrize("name", ["pixtral", "mistral3"])
def test_an_image_that_would_have_no_pixel_is_an_error(name):
    """It becomes so thin that nothing is left of a side; transformers counts 0 tokens and fails when it resizes."""
    with pytest.raises(ValueError, match="a side of 0 pixels"):
        count_tokens(token_definitions.as_header(1, 16384), token_definitions.CONFIGS[name])


def test_photos_count_as_they_are_shown(tmp_path):
    config, upright = token_definitions.CONFIGS["llava-next"], Image.new("RGB", (900, 300))
    turned = Image.Exif()
    turned[ORIENTATION] = 6
    counts = []
    for name, options in (("a.jpg", {}), ("b.jpg", {"exif": turned}), ("c.png", {})):
        upright.save(tmp_path / name, **options)
        counts.append(count_tokens(tmp_path / name, config))
    assert counts[0] == counts[2] != counts[1]
    upright.transpose(Image.Transpose.ROTATE_270).save(tmp_path / "d.jpg")
    assert counts[1] == count_tokens(str(tmp_path / "d.jpg"), config)


def test_grids_of_the_stage_say_the_same():
    from gesso import convert
    from gesso._comparison.compare import runner

    config = token_definitions.CONFIGS["qwen2-vl"]
    run, count = runner(convert.transformers(config["image_processor"])()), TokenCounter(config)
    for size in ((97, 61), (333, 500)):
        file = definitions.as_file(definitions.picture(*size))
        _, grid = run(np.frombuffer(file, np.uint8))
        assert count(file) == grid.prod() // 4


def saved(folder, config):
    """The two files of a model's folder."""
    around = {name: value for name, value in config.items() if name != "image_processor"}
    folder.mkdir(exist_ok=True)
    (folder / "processor_config.json").write_text(json.dumps(around))
    (folder / "preprocessor_config.json").write_text(json.dumps(config["image_processor"]))
    return folder


@pytest.mark.parametrize("name", ["internvl", "mistral3", "llava-next", "gemma3"])
def test_a_configuration_is_a_folder_a_file_or_fields(name, tmp_path):
    config, file = token_definitions.CONFIGS[name], token_definitions.as_header(480, 640)
    expected = count_tokens(file, config)
    (tmp_path / "whole.json").write_text(json.dumps(config))
    assert count_tokens(file, saved(tmp_path / "model", config)) == expected
    assert count_tokens(file, tmp_path / "whole.json") == expected


def test_an_image_processor_alone_says_it_where_one_model_has_it():
    file = token_definitions.as_header(480, 640)
    assert count_tokens(file, definitions.PROCESSORS["qwen2-vl"]) == 23 * 17
    assert count_tokens([file, file], definitions.PROCESSORS["gemma3"]) == [256, 256]
    named = definitions.PROCESSORS["internvl"] | {"processor_class": "InternVLProcessor"}
    assert count_tokens(file, named) == 256 * 13 + 2


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (definitions.PROCESSORS["internvl"], "field `processor_class` is None: expected one of Gemma3Processor"),
        ({"processor_class": "FuyuProcessor"}, "field `processor_class` is 'FuyuProcessor'"),
        (definitions.PROCESSORS["llava-next"], "field `patch_size` of LlavaNextProcessor is missing"),
        (token_definitions.CONFIGS["llava-next"] | {"patch_size": 0}, "field `patch_size`"),
        (token_definitions.CONFIGS["llava-next"] | {"vision_feature_select_strategy": "x"}, "default, full"),
        (token_definitions.CONFIGS["gemma3"] | {"image_seq_length": -1}, "field `image_seq_length`"),
        (token_definitions.CONFIGS["gemma3"] | {"image_seq_length": 1 << 40}, "from 0 to 65536"),
        (token_definitions.CONFIGS["mistral3"] | {"spatial_merge_size": "2"}, "field `spatial_merge_size`"),
        (
            token_definitions.CONFIGS["qwen2-vl"] | {"image_processor": definitions.PROCESSORS["gemma3"]},
            "`image_processor_type` is 'Gemma3ImageProcessor': it does not fit",
        ),
    ],
)
def test_what_is_not_known_is_named(config, says):
    with pytest.raises(ConversionError, match=says):
        TokenCounter(config)


def test_files_that_are_none_are_errors():
    count = TokenCounter(definitions.PROCESSORS["gemma3"])
    for file in (b"", b"no image", token_definitions.as_header(480, 640)[:20]):
        with pytest.raises(ValueError):
            count(file)
    with pytest.raises(ValueError, match="file 1: "):
        count([token_definitions.as_header(4, 4), b"no image"])
    with pytest.raises(FileNotFoundError):
        count("no-such-file.png")


def test_the_counter_is_a_file_of_a_pipeline():
    serialized = TokenCounter(token_definitions.CONFIGS["pixtral"]).serialize()
    pipeline = Pipeline.deserialize(serialized, prefetch_queue_depth=1)
    (counts,) = pipeline.run(IMAGE=[np.frombuffer(token_definitions.as_header(480, 640), np.uint8)])
    assert np.asarray(counts.at(0)).tolist() == 30 * 41


def test_the_command(tmp_path):
    folder = saved(tmp_path / "model", token_definitions.CONFIGS["qwen2-vl"])
    photos = tmp_path / "photos"
    photos.mkdir()
    for name, size in (("a.png", (640, 480)), ("b.png", (56, 56))):
        Image.new("RGB", size).save(photos / name)
    (photos / "c.png").write_bytes(b"no image")

    def gesso(*arguments):
        program = [sys.executable, "-m", "gesso", "tokens", *map(str, arguments)]
        return subprocess.run(program, capture_output=True, text=True, env=dict(os.environ))

    done = gesso(photos, photos / "none.png", "--for", folder)
    assert done.returncode == 2
    assert done.stdout.split() == ["391", f"{photos}/a.png", "4", f"{photos}/b.png"]
    first, second = done.stderr.splitlines()
    assert first.startswith(f"error: {photos}/c.png: ") and second.startswith(f"error: {photos}/none.png: ")
    done = gesso("-o", tmp_path / "count.dali", "--for", folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with open(photos / "a.png", "rb") as file:
        data = np.frombuffer(file.read(), np.uint8)
    (counts,) = Pipeline.deserialize(filename=tmp_path / "count.dali", prefetch_queue_depth=1).run(IMAGE=[data])
    assert int(np.asarray(counts.at(0))) == 391
    assert gesso("--for", folder).returncode == 2
    assert "has neither" in gesso(photos, "--for", photos).stderr
