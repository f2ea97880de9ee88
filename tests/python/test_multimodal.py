"""`fn.gesso`, and stages in front of vision-language and speech models: beside the recorded answers of transformers
(tests/data/multimodal/make.py), and beside transformers itself, where it is installed."""

import json
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from gesso import Pipeline, convert, fn
from gesso._comparison.compare import runner
from gesso.convert import ConversionError, from_hf_multimodal, proof

DATA = Path(__file__).parents[1] / "data" / "multimodal"
sys.path.insert(0, str(DATA))

import definitions  # noqa: E402

ANSWERS = json.loads((DATA / "answers.json").read_text())
IMAGES = (
    *("qwen2-vl", "qwen2.5-vl", "qwen3-vl", "llava-next", "internvl", "pixtral", "gemma3"),
    *("idefics3", "smolvlm", "llama4", "minicpm-v"),
)
BY = [(name, backend) for name in IMAGES for backend in ("torchvision", "pil") if f"{name} {backend}" in ANSWERS]
# The last bit of features up to 2.
LAST_BIT = 2.0**-23
# A rounding of the last bit of a logarithm, divided by a band's deviation.
OF_FEATURES = 2e-6


@pytest.mark.parametrize(("name", "backend"), BY)
def test_images_become_what_transformers_makes_of_them(name, backend):
    made = convert.transformers(definitions.PROCESSORS[name], backend=backend, pillow="pillow")
    run = runner(made())
    for size, outputs in ANSWERS[f"{name} {backend}"].items():
        height, width = map(int, size.split("x"))
        file = np.frombuffer(definitions.as_file(definitions.picture(height, width)), np.uint8)
        if "error" in outputs:
            with pytest.raises(RuntimeError):
                run(file)
            continue
        found = dict(zip((made.stage.output, *made.stage.extras), run(file), strict=True))
        for output, (dtype, shape, checksum) in outputs.items():
            if output == "num_crops":
                continue
            value = found.pop(output)
            # transformers has a dimension of images, where they do not follow one another.
            shape = shape[len(shape) - value.ndim :]
            assert (str(value.dtype), list(value.shape)) == (dtype, shape), (size, output)
            assert zlib.crc32(np.ascontiguousarray(value).tobytes()) == checksum, (size, output)
        assert not found, size


@pytest.mark.parametrize("name", definitions.VIDEOS)
def test_videos_become_what_transformers_makes_of_their_frames(name):
    made = convert.transformers(definitions.VIDEOS[name])
    run = runner(made())
    for clip, outputs in ANSWERS[name].items():
        found = run(np.fromfile(DATA.parent / "video" / clip, np.uint8))
        for (output, (dtype, shape, checksum)), value in zip(outputs.items(), found, strict=True):
            assert (str(value.dtype), list(value.shape)) == (dtype, shape), (clip, output)
            assert zlib.crc32(np.ascontiguousarray(value).tobytes()) == checksum, (clip, output)


def recorded(name):
    fields, lengths = definitions.EXTRACTORS[name]
    made = convert.transformers(fields)
    run = runner(made())
    for samples in lengths:
        file = np.frombuffer(definitions.as_wav(definitions.sound(samples)), np.uint8)
        (found,) = run(file)
        assert tuple(found.shape) == tuple(size if size >= 0 else samples for size in made.stage.shape)
        yield samples, found


@pytest.mark.parametrize("name", ["whisper-80", "whisper-128"])
def test_features_are_whispers(name):
    with np.load(DATA / "sounds.npz") as values:
        for samples, found in recorded(name):
            expected = values[f"{name} {samples} input_features"]
            np.testing.assert_allclose(found, expected, rtol=0, atol=LAST_BIT)
            assert np.count_nonzero(found != expected) <= found.size // 1000


def test_features_are_seamless_m4ts():
    fields, (samples,) = definitions.EXTRACTORS["seamless-m4t"]
    run = runner(convert.transformers(fields)())
    features, mask = run(np.frombuffer(definitions.as_wav(definitions.sound(samples)), np.uint8))
    with np.load(DATA / "sounds.npz") as values:
        np.testing.assert_allclose(features, values[f"seamless-m4t {samples} input_features"], rtol=0, atol=OF_FEATURES)
        np.testing.assert_array_equal(mask, values[f"seamless-m4t {samples} attention_mask"])


def test_sounds_are_wav2vecs():
    for samples, found in recorded("wav2vec2"):
        assert [str(found.dtype), list(found.shape), zlib.crc32(found.tobytes())] == ANSWERS["wav2vec2"][str(samples)]


def ran(function, *samples, **options):
    """The first output of a pipeline of one operator on one sample."""
    pipe = Pipeline(1, 1, None)
    with pipe:
        inputs = [fn.external_source(source=[[sample]], cycle=True, **options) for sample in samples]
        made = function(*inputs)
        pipe.set_outputs(*made if isinstance(made, (list, tuple)) else [made])
    pipe.build()
    return np.asarray(pipe.run()[0].at(0))


def test_hostile_sizes_are_errors():
    size = lambda *sides: np.asarray(sides, np.int64)
    for sides, says in (((0, 5), "from 1 to"), ((5, -3), "from 1 to"), ((1, 1 << 40), "from 1 to"), ((1, 999), "200")):
        with pytest.raises(RuntimeError, match=says):
            ran(fn.gesso.smart_resize, size(*sides))
    with pytest.raises(RuntimeError, match="expected 1 to 512"):
        ran(lambda x: fn.gesso.tile_grid(x, rule="internvl", tile_size=448, max_tiles=10_000), size(5, 5))
    with pytest.raises(RuntimeError, match="1 to 512 tiles of 2 x 2"):
        ran(lambda x: fn.gesso.tile(x, tile_size=2), np.zeros((200, 200, 3), np.uint8), layout="HWC")
    with pytest.raises(RuntimeError, match="multiples of 28"):
        ran(fn.gesso.patchify, np.zeros((3, 28, 42), np.float32), layout="CHW")
    with pytest.raises(RuntimeError, match="no numbers or too large"):
        ran(fn.gesso.log_mel, np.full(999, np.nan, np.float32))


HOSTILE = [
    ("tile_grid", {"rule": "idefics3", "tile_size": 20}, [(999, 999)], "tiles, expected at most 512 tiles"),
    ("tile_grid", {"rule": "idefics3", "tile_size": 364}, [(0, 9)], "from 1 to"),
    ("tile_grid", {"rule": "llama4", "tile_size": 336, "max_tiles": 10_000}, [(9, 9)], "expected 1 to 512"),
    ("tile_grid", {"rule": "minicpm-v", "tile_size": 0}, [(9, 9)], "`tile_size` is 0"),
    ("tile_grid", {"rule": "llava-next", "tile_size": 8, "canvases": [8, 8 * 10_000]}, [(9, 9)], "1 to 512 tiles"),
    ("patch_grid", {"frames": 1 << 40}, [(28, 28)], "frames"),
    ("patch_grid", {}, [(1 << 40, 28)], "from 1 to"),
    ("smart_resize", {"frames": 1}, [(99, 99)], "`temporal_patch_size`, 2, at least"),
    ("smart_resize", {"frames": 1 << 40}, [(99, 99)], "frames"),
    ("smart_resize", {"max_pixels": 1 << 40}, [(99, 99)], "max_pixels"),
    ("sample_frames", {}, [(1 << 40,), 25.0], "from 1 to 1048576"),
    ("sample_frames", {}, [(0, 9), 25.0], "from 1 to 1048576"),
    ("sample_frames", {}, [(9,), 0.0], "frames a second"),
    ("sample_frames", {}, [(9,), float("nan")], "frames a second"),
    ("sample_frames", {"num_frames": 10}, [(9,), 25.0], "10 frames of a video of 9"),
    ("sample_frames", {"rule": "qwen2-vl", "fps": 2}, [(1,), 25.0], "0 frames of a video of 1"),
    ("sample_frames", {"fps": 1e9}, [(9,), 25.0], "`fps` is"),
]


@pytest.mark.parametrize(("name", "options", "given", "says"), HOSTILE)
def test_hostile_numbers_are_errors(name, options, given, says):
    samples = [np.asarray(value, np.int64 if isinstance(value, tuple) else np.float64) for value in given]
    with pytest.raises(RuntimeError, match=says):
        ran(lambda *inputs: getattr(fn.gesso, name)(*inputs, **options), *samples)


def test_hostile_samples_are_errors():
    for file in (b"", b"RIFF", b"\0" * 99, b"\0\0\0\x18ftypmp42" + b"\xff" * 99):
        with pytest.raises(RuntimeError, match="video"):
            ran(fn.gesso.peek_video, np.frombuffer(file, np.uint8))
    for samples in (0, 399, 559):
        with pytest.raises(RuntimeError, match="windows, expected 2 at least"):
            ran(fn.gesso.seamless_features, np.zeros(samples, np.float32))
    with pytest.raises(RuntimeError, match="no numbers or too large"):
        ran(fn.gesso.seamless_features, np.full(999, np.inf, np.float32))
    with pytest.raises(RuntimeError, match="large|bytes"):
        ran(lambda x: fn.gesso.pad_to_batch(x, align=1 << 20), np.zeros((1, 1), np.uint8))


def test_a_batch_is_padded_and_says_where_its_samples_are():
    pipe = Pipeline(3, 1, None)
    given = [np.full((height, width, 3), 7, np.uint8) for height, width in ((2, 5), (4, 1), (3, 3))]
    with pipe:
        images = fn.external_source(source=[given], cycle=True, layout="HWC")
        pipe.set_outputs(*fn.gesso.pad_to_batch(images, axis_names="HW", fill_value=1))
    pixels, masks = pipe.run()
    assert pixels.shape() == [(4, 5, 3)] * 3 and masks.shape() == [(4, 5)] * 3
    for sample, found, mask in zip(given, pixels, masks, strict=True):
        height, width, _ = sample.shape
        found, mask = np.asarray(found), np.asarray(mask)
        assert mask.sum() == height * width and mask[:height, :width].all()
        assert (found == np.where(mask[..., None] == 1, 7, 1)).all()


def test_frames_that_are_sampled_are_decoded():
    file = np.fromfile(DATA.parent / "video" / "mjpeg.avi", np.uint8)
    pipe = Pipeline(1, 1, None)
    with pipe:
        encoded = fn.external_source(source=[[file]], cycle=True)
        extents, rate = fn.gesso.peek_video(encoded)
        frames, times = fn.gesso.sample_frames(extents, rate, num_frames=3)
        pipe.set_outputs(fn.decoders.video(encoded), fn.decoders.video(encoded, frames=frames), extents, frames, times)
    everything, some, extents, frames, times = (np.asarray(output.at(0)) for output in pipe.run())
    assert tuple(extents) == everything.shape
    np.testing.assert_array_equal(some, everything[frames])
    assert times[0] == 0 and len(times) == 3


def test_the_program_of_the_guide_is_qwens():
    page = (Path(__file__).parents[2] / "docs" / "guides" / "serve-multimodal.md").read_text()
    names = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    found = runner(names["preprocess"]())(np.frombuffer(definitions.as_file(definitions.picture(200, 300)), np.uint8))
    recorded = ANSWERS["qwen2-vl torchvision"]["200x300"]
    for output, value in zip(("pixel_values", "image_grid_thw"), found, strict=True):
        assert zlib.crc32(np.ascontiguousarray(value).tobytes()) == recorded[output][2], output


def test_the_program_is_plain_python():
    source = convert.transformers(definitions.PROCESSORS["qwen2-vl"]).source
    assert "fn.gesso.smart_resize(images.shape(), factor=28, min_pixels=3136, max_pixels=1003520)" in source
    assert 'name="image_grid_thw"' in source and 'name="pixel_values"' in source
    source = convert.transformers(definitions.EXTRACTORS["whisper-128"][0]).source
    assert "fn.decoders.audio(encoded, sample_rate=16000, downmix=True" in source and "nfilter=128" in source


@pytest.mark.parametrize(
    ("name", "fields", "says"),
    [
        ("qwen2-vl", {"do_resize": False}, "tiles and patches need their size"),
        ("qwen2-vl", {"size": {"shortest_edge": 56}}, "`longest_edge` of `size` or `max_pixels`"),
        ("qwen2-vl", {"size": {"shortest_edge": 56, "longest_edge": 5000, "x": 1}}, "expected `shortest_edge` and"),
        ("qwen2-vl", {"size": 56}, "expected `shortest_edge` and"),
        ("qwen2-vl", {"min_pixels": 1 << 30}, "from 1 to 134217728"),
        ("qwen2-vl", {"min_pixels": 5000, "max_pixels": 4000}, "the other way round"),
        ("qwen2-vl", {"merge_size": 0}, "field `merge_size`"),
        ("qwen2-vl", {"do_rescale": False, "do_normalize": False}, "models take floats"),
        ("qwen2-vl", {"longest_side": 5}, "field `longest_side`"),
        ("llava-next", {"crop_size": 224}, "field `crop_size`"),
        ("llava-next", {"size": {"height": [1], "width": [1]}}, "expected a square"),
        ("llava-next", {"image_grid_pinpoints": [[336, 500]]}, "multiples of 336"),
        ("llava-next", {"image_grid_pinpoints": [[336, 336]] * 600}, "multiples of 336"),
        ("internvl", {"crop_to_patches": False, "size": {"shortest_edge": 9}}, "or one number for both"),
        ("internvl", {"max_patches": 10_000}, "from 1 to 512"),
        ("internvl", {"min_patches": 12, "max_patches": 2}, "`max_patches` is 2"),
        ("whisper-80", {"dither": 0.1}, "noise is not added"),
        ("whisper-80", {"chunk_length": 0}, "field `chunk_length`"),
        ("whisper-80", {"sampling_rate": 8000}, "bands end at 8,000 Hz"),
        ("wav2vec2", {"do_normalize": False}, "field `do_normalize`"),
        ("idefics3", {"size": {"height": 364, "width": 364}}, "expected `longest_edge` alone"),
        ("smolvlm", {"max_image_size": {"longest_edge": 0}}, "field `max_image_size`"),
        ("llama4", {"size": {"height": 336, "width": 300}}, "of a square"),
        ("llama4", {"max_patches": 10_000}, "from 1 to 512"),
        ("llama4", {"image_mean": [0.5, 0.5, 0.4]}, "the same number for all channels"),
        ("llama4", {"do_rescale": False}, "normalizes floats alone"),
        ("minicpm-v", {"downsample_mode": "8x"}, "one of 4x, 16x"),
        ("minicpm-v", {"max_slice_nums": 0}, "field `max_slice_nums`"),
        ("seamless-m4t", {"stride": 1}, "mask is empty"),
        ("seamless-m4t", {"padding_value": 1.0}, "field `padding_value`"),
        ("qwen2-vl-video", {"do_sample_frames": True}, "either `fps` or `num_frames`"),
        ("qwen3-vl-video", {"num_frames": 8}, "either `fps` or `num_frames`"),
        ("qwen3-vl-video", {"fps": 0.3}, "that float32 has"),
        ("qwen3-vl-video", {"size": {"shortest_edge": 1}}, "`shortest_edge` and `longest_edge`"),
        ("qwen3-vl-video", {"do_resize": False}, "patches need their size"),
        ("qwen3-vl-video", {"max_frames": 0}, "field `max_frames`"),
    ],
)
def test_a_field_that_is_not_known_is_named(name, fields, says):
    with pytest.raises(ConversionError, match=says):
        convert.transformers({**fields_of(name), **fields})


def fields_of(name):
    """The fields of a processor of any kind."""
    known = definitions.PROCESSORS | definitions.VIDEOS
    return known.get(name) or definitions.EXTRACTORS[name][0]


def test_older_names_of_areas_are_read():
    areas = {"min_pixels": 3136, "max_pixels": 100_352}
    older = {**definitions.PROCESSORS["qwen2-vl"], "size": dict(areas), **areas}
    newer = {**definitions.PROCESSORS["qwen2-vl"], "size": {"shortest_edge": 3136, "longest_edge": 100_352}}
    assert convert.transformers(older).stage == convert.transformers(newer).stage


def test_patches_that_a_processor_merges_are_whole_groups(tmp_path):
    fields = {**definitions.PROCESSORS["pixtral"], "patch_size": 14}
    around = {"processor_class": "PixtralProcessor", "patch_size": 14, "spatial_merge_size": 2}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(fields))
    assert convert.transformers(tmp_path).stage == convert.transformers(fields).stage
    (tmp_path / "processor_config.json").write_text(json.dumps(around))
    assert convert.transformers(tmp_path).stage == convert.transformers(fields | {"patch_size": 28}).stage
    (tmp_path / "processor_config.json").write_text(json.dumps(around | {"spatial_merge_size": 0}))
    with pytest.raises(ConversionError, match="field `spatial_merge_size` of PixtralProcessor is 0"):
        convert.transformers(tmp_path)
    (tmp_path / "processor_config.json").write_text(json.dumps(around))
    pytest.importorskip("transformers", minversion="5")
    file = tmp_path / "file"
    file.write_bytes(definitions.as_file(definitions.picture(99, 180)))
    assert convert.prove(convert.transformers(tmp_path), [file]).is_equal


def test_options_that_do_not_fit_are_errors():
    for name, options, says in (
        ("qwen2-vl", {"layout": "HWC"}, "rows of patches"),
        ("llava-next", {"arithmetic": "dali"}, "DALI has no operators"),
    ):
        with pytest.raises(ConversionError, match=says):
            convert.transformers(definitions.PROCESSORS[name], **options)
    for options in ({"device": "mixed"}, {"dtype": "float16"}):
        with pytest.raises(ConversionError, match=next(iter(options))):
            convert.transformers(definitions.EXTRACTORS["whisper-80"][0], **options)


def test_defaults_are_those_of_the_classes():
    transformers = pytest.importorskip("transformers")
    for name, (_, defaults) in from_hf_multimodal.CLASSES.items():
        made = getattr(transformers, name)()
        for field, value in defaults.items():
            found = getattr(made, field)
            if isinstance(found, list):
                found = tuple(tuple(each) if isinstance(each, list) else each for each in found)
            assert (dict(found) if hasattr(found, "shortest_edge") else found) == value, (name, field, found)


@pytest.mark.parametrize("name", [*IMAGES, "whisper-80", "wav2vec2", "seamless-m4t", "qwen3-vl-video"])
def test_a_processor_is_what_its_configuration_is(name, tmp_path):
    transformers = pytest.importorskip("transformers", minversion="5")
    fields = fields_of(name)
    kind = next(value for key, value in fields.items() if key.endswith("_type"))
    options = {key: value for key, value in fields.items() if not key.endswith("_type")}
    processor = getattr(transformers, kind)(**options)
    processor.save_pretrained(tmp_path)
    stage = convert.transformers(fields).stage
    assert convert.transformers(processor).stage == stage == convert.transformers(tmp_path).stage
    file = tmp_path / "file"
    if name in IMAGES:
        file.write_bytes(definitions.as_file(definitions.picture(99, 180)))
    elif name in definitions.VIDEOS:
        file.write_bytes((DATA.parent / "video" / "mjpeg.avi").read_bytes())
    else:
        file.write_bytes(definitions.as_wav(definitions.sound(12345)))
    found = convert.prove(convert.transformers(tmp_path), [file])
    assert found.is_equal or name == "whisper-80" and found.outputs[0][1].largest <= LAST_BIT, str(found)


def test_the_script_that_proves_all_presets(tmp_path):
    pytest.importorskip("transformers", minversion="5")
    script, rows = Path(__file__).parents[2] / "scripts" / "lib" / "prove_multimodal.py", tmp_path / "rows.json"
    presets = ("pixtral", "qwen2-vl", "wav2vec2", "seamless-m4t")
    command = [sys.executable, script, *presets, "--images", "14", "--pixels", "2000", "--sounds", "2", "--json", rows]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    made = json.loads(rows.read_text())
    assert [row[3:6] for row in made["qwen2-vl"]] == [[11, 0, 0]] * 2 and set(made) == set(presets)


def test_the_proof_of_a_sound_is_of_sounds(tmp_path):
    files = proof.sounds(tmp_path, 3)
    assert len(files) == 3 and all(file.read_bytes()[:4] == b"RIFF" for file in files)
