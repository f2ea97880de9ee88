"""examples/python/feed_engines.py beside what transformers' processor makes of the same request, and what the engines'
own code makes of it, where they are installed."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from gesso.hf import ImageProcessor

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", minversion="5")

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples" / "python"), str(ROOT / "tests" / "data" / "multimodal")]

import definitions  # noqa: E402
import feed_engines  # noqa: E402
from PIL import Image  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402

TEMPLATE = (
    "{% for part in messages[0]['content'] %}{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}"
)
QUESTION = "what is this"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder of a model without weights: a processor of Qwen2-VL with a tokenizer of a few words."""
    marks = ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>", "<|video_pad|>"]
    words = ["<unk>", *marks, *QUESTION.split()]
    made = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, "<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        unk_token="<unk>",
        extra_special_tokens={f"mark_{at}": mark for at, mark in enumerate(marks)},
        chat_template=TEMPLATE,
    )
    parts = (transformers.Qwen2VLImageProcessor(), tokenizer, transformers.Qwen2VLVideoProcessor())
    processor = transformers.Qwen2VLProcessor(*parts, chat_template=TEMPLATE)
    folder = tmp_path_factory.mktemp("model")
    processor.save_pretrained(folder)
    return folder, processor


@pytest.fixture(scope="module")
def request_of(model):
    """A request of two photos: what the example makes, the processor's answer, and the files."""
    folder, processor = model
    images, files = [Image.fromarray(definitions.picture(*size)) for size in ((97, 160), (333, 500))], []
    for image in images:
        file = io.BytesIO()
        image.save(file, "PNG")
        files.append(file.getvalue())
    text = "<|vision_start|><|image_pad|><|vision_end|>" * 2 + QUESTION
    return (
        feed_engines.prepared(folder, files, QUESTION),
        processor(images=images, text=text, return_tensors="pt"),
        files,
    )


def test_ids_and_tensors_are_the_processors(request_of):
    (ids, begins, counts, features), expected, _ = request_of
    assert ids == expected["input_ids"][0].tolist()
    for name in ("pixel_values", "image_grid_thw"):
        assert torch.equal(features[name], expected[name]) and features[name].dtype == expected[name].dtype
    image = ids[begins[0]]
    for begin, count in zip(begins, counts, strict=True):
        assert set(ids[begin : begin + count]) == {image} and image not in (ids[begin - 1], ids[begin + count])


def test_a_processor_of_text_and_images_may_have_it(model, request_of):
    folder, _ = model
    _, expected, files = request_of
    processor = transformers.Qwen2VLProcessor.from_pretrained(folder)
    processor.image_processor = ImageProcessor(processor)
    images = [Image.open(io.BytesIO(file)) for file in files]
    text = "<|vision_start|><|image_pad|><|vision_end|>" * 2 + QUESTION
    found = processor(images=images, text=text, return_tensors="pt")
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


def test_the_guide_runs(model, tmp_path, monkeypatch, capsys):
    _, processor = model
    monkeypatch.chdir(tmp_path)
    processor.save_pretrained("Qwen2-VL")
    for name, size in (("a.jpg", (480, 640)), ("b.jpg", (56, 84))):
        Image.fromarray(definitions.picture(*size)).save(name)
    page = (ROOT / "docs" / "guides" / "image-processors.md").read_text()
    exec("\n".join(part.split("```")[0] for part in page.split("```python\n")[1:]), {})
    assert capsys.readouterr().out.splitlines()[-2:] == ["391", "[391, 6]"]


def test_what_sglang_gets(request_of):
    (ids, _, _, features), _, _ = request_of
    arguments = feed_engines.for_sglang(ids, features)
    (item,) = arguments["image_data"]
    assert item["format"] == "processor_output" and item["pixel_values"] is features["pixel_values"]
    assert arguments["input_ids"] == ids


def test_sglang_makes_an_item_of_it(request_of):
    processors = pytest.importorskip("sglang.srt.multimodal.processors.base_processor")
    (ids, _, _, features), _, _ = request_of
    data = feed_engines.for_sglang(ids, features)["image_data"]
    processors.BaseMultimodalProcessor.validate_mm_data(image_data=data)
    assert processors.BaseMultimodalProcessor._is_preprocessed_input(data[0])


def test_vllm_takes_it_apart(request_of):
    inputs = pytest.importorskip("vllm.multimodal.inputs")
    (ids, begins, counts, features), expected, files = request_of
    rendered = feed_engines.for_vllm(ids, begins, counts, features, files)
    assert rendered["type"] == "multimodal" and rendered["prompt_token_ids"] == ids
    assert rendered["mm_placeholders"]["image"] == [inputs.PlaceholderRange(*each) for each in zip(begins, counts)]
    patches, start = expected["image_grid_thw"].prod(-1).tolist(), 0
    for item, count in zip(rendered["mm_kwargs"]["image"], patches, strict=True):
        values = item.get_data()
        assert torch.equal(values["pixel_values"], expected["pixel_values"][start : start + count])
        start += count
    assert len(set(rendered["mm_hashes"]["image"])) == len(files)


def test_a_prompt_with_other_images_is_an_error():
    with pytest.raises(ValueError, match="has 1 image tokens, expected 2"):
        feed_engines.expanded([1, 7, 2], 7, [3, 4])
    assert feed_engines.expanded([1, 7, 2, 7], 7, [2, 3]) == ([1, 7, 7, 2, 7, 7, 7], [1, 4])
    assert np.array_equal(feed_engines.expanded([5], 7, [])[0], [5])
