"""Feeds an engine pixel values in place of images: files become patches here, on the CPU or on a GPU, and the engine's
own preprocessing has nothing to do.

    python feed_engines.py MODEL PHOTO [PHOTO...] [--question TEXT] [--engine sglang|vllm] [--device cuda]

MODEL is a folder with Qwen2-VL, Qwen2.5-VL or Qwen3-VL. Without `--engine` it prints what an engine would get, and no
weights are needed. SGLang takes what a processor made (`format="processor_output"`, its page "Query VLM with Offline
Engine"); vLLM takes a rendered prompt (`vllm.inputs.engine.mm_input`), which `LLMEngine.add_request` knows. Needs
transformers, torch and the engine that is asked for."""

import argparse
import hashlib
from pathlib import Path

from gesso.hf import ImageProcessor
from transformers import AutoTokenizer

IMAGE_TOKEN = "<|image_pad|>"


def prompt(tokenizer, question, images):
    """The ids of a question about some images, one of `IMAGE_TOKEN` for each."""
    content = [{"type": "image"}] * images + [{"type": "text", "text": question}]
    messages = [{"role": "user", "content": content}]
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return tokenizer(text)["input_ids"]


def expanded(ids, image_token, counts):
    """The ids with as many image tokens as each image has, and where those of each begin."""
    if ids.count(image_token) != len(counts):
        raise ValueError(f"the prompt has {ids.count(image_token)} image tokens, expected {len(counts)}")
    found, begins, left = [], [], list(counts)
    for each in ids:
        if each == image_token:
            begins.append(len(found))
            found += [each] * left.pop(0)
        else:
            found.append(each)
    return found, begins


def for_sglang(ids, features):
    """The arguments of SGLang's `Engine.generate`: one item has all images of a request."""
    return {"input_ids": ids, "image_data": [dict(features, format="processor_output")]}


def for_vllm(ids, begins, counts, features, files):
    """A rendered prompt for vLLM's engine. Its caches know images by a hash; here it is that of the file."""
    from vllm.inputs.engine import mm_input
    from vllm.multimodal.inputs import MultiModalFieldConfig, MultiModalKwargsItems, PlaceholderRange

    patches = features["image_grid_thw"].prod(-1)
    fields = {
        "pixel_values": MultiModalFieldConfig.flat_from_sizes("image", patches),
        "image_grid_thw": MultiModalFieldConfig.batched("image", keep_on_cpu=True),
    }
    items = MultiModalKwargsItems.from_hf_inputs(features, fields)
    hashes = [hashlib.sha256(file).hexdigest() for file in files]
    places = [PlaceholderRange(offset, length) for offset, length in zip(begins, counts, strict=True)]
    return mm_input(ids, items, {"image": hashes}, {"image": places})


def prepared(model, files, question, device=None):
    """(ids, where each image begins in them, tokens of each image, its tensors) of the bytes of files."""
    processor = ImageProcessor.from_pretrained(model)
    tokenizer = AutoTokenizer.from_pretrained(model)
    features = processor(images=files, return_tensors="pt", device=device)
    counts = (features["image_grid_thw"].prod(-1) // processor.merge_size**2).tolist()
    ids = prompt(tokenizer, question, len(files))
    ids, begins = expanded(ids, tokenizer.convert_tokens_to_ids(IMAGE_TOKEN), counts)
    return ids, begins, counts, features


def by_sglang(model, ids, features):
    """The answer of an engine of SGLang's."""
    from sglang import Engine

    engine = Engine(model_path=model)
    try:
        return engine.generate(**for_sglang(ids, features), sampling_params={"max_new_tokens": 128})["text"]
    finally:
        engine.shutdown()


def by_vllm(model, rendered):
    """The answer of an engine of vLLM's."""
    from vllm import LLM, SamplingParams

    engine = LLM(model=model).llm_engine
    engine.add_request("0", rendered, SamplingParams(max_tokens=128))
    while engine.has_unfinished_requests():
        outputs = engine.step()
    return outputs[0].outputs[0].text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("photos", nargs="+", type=Path, metavar="PHOTO")
    parser.add_argument("--question", default="What is in these images?")
    parser.add_argument("--engine", choices=("sglang", "vllm"))
    parser.add_argument("--device", help="of the tensors, as torch names it [cpu]")
    options = parser.parse_args()
    files = [photo.read_bytes() for photo in options.photos]
    ids, begins, counts, features = prepared(options.model, files, options.question, options.device)
    print(f"{len(ids)} tokens, of images {counts}, which begin at {begins}")
    print(", ".join(f"{name} {tuple(value.shape)} {value.dtype} {value.device}" for name, value in features.items()))
    if options.engine == "sglang":
        print(by_sglang(options.model, ids, features))
    elif options.engine == "vllm":
        print(by_vllm(options.model, for_vllm(ids, begins, counts, features, files)))


if __name__ == "__main__":
    main()
