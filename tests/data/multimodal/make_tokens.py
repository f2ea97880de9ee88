"""Asks processors of transformers, made from configurations, how many tokens images of 200 sizes become: writes
tokens.json, which tests/python/test_hf_tokens.py reads.

    pip install transformers==5.24.0 torch==2.15.0 torchvision==0.29.2 pillow==12.0.0 numpy==2.4.6
    python make_tokens.py"""

import json
import pathlib

import definitions
import numpy as np
import token_definitions
import transformers
from PIL import Image
from tokenizers import Tokenizer, models

HERE = pathlib.Path(__file__).parent
# The words that processors look for, by the names that they have for them.
WORDS = {
    "image_token": "<image>",
    "video_token": "<video>",
    "context_image_token": "<image>",
    "start_image_token": "<img>",
    "end_image_token": "</img>",
    "boi_token": "<start>",
    "eoi_token": "<end>",
    "vision_start_token": "<vision>",
    "vision_end_token": "</vision>",
    "pixtral_token": "[IMG]",
    "pixtral_break_token": "[IMG_BREAK]",
    "pixtral_end_token": "[IMG_END]",
}


def processor(config):
    """A processor with a tokenizer of a few words."""
    words = ["<unk>", *dict.fromkeys(WORDS.values())]
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, "<unk>")),
        unk_token="<unk>",
        extra_special_tokens=WORDS,
    )
    fields = {name: value for name, value in config.items() if name not in ("processor_class", "image_processor")}
    image = dict(config["image_processor"])
    kind = getattr(transformers, image.pop("image_processor_type"))
    parts = {"image_processor": kind(**image), "tokenizer": tokenizer}
    made = getattr(transformers, config["processor_class"])
    if "video_processor" in made.get_attributes():
        parts["video_processor"] = transformers.Qwen2VLVideoProcessor()
    return made(**parts, **fields)


#: What stands for an image in a text, where it is not `image_token`.
IN_TEXT = {"PixtralProcessor": WORDS["pixtral_token"], "Gemma3Processor": WORDS["boi_token"]}
# Heights that transformers takes for channels where it counts without an image.
TAKEN_FOR_CHANNELS = (1, 3)


def written(made, size):
    """How many tokens of an image are in a prompt that the processor writes."""
    word = IN_TEXT.get(type(made).__name__, WORDS["image_token"])
    image = Image.fromarray(definitions.picture(*size))
    ids = made(images=[image], text=[word], return_tensors="np")["input_ids"][0]
    return int(np.isin(ids, made.image_token_ids).sum())


def counted(made, size):
    """How many it says that there are; of some sizes how many it writes."""
    if type(made).__name__ == "PixtralProcessor" and size[0] in TAKEN_FOR_CHANNELS:
        return written(made, size)
    (count,) = made._get_num_multimodal_tokens(image_sizes=[size])["num_image_tokens"]
    return int(count)


def main():
    lines = [f'"versions": {json.dumps({"transformers": transformers.__version__})}']
    for name, config in token_definitions.CONFIGS.items():
        made, counts = processor(config), []
        for size in token_definitions.SIZES:
            try:
                counts.append(counted(made, size))
            except ValueError:
                counts.append(None)
        lines.append(f"{json.dumps(name)}: {json.dumps(counts)}")
    (HERE / "tokens.json").write_text("{\n " + ",\n ".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
