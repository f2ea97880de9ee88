"""Processors of text and images whose tokens are counted, by the fields of their `processor_config.json`, and sizes of
images. Needs nothing."""

import struct
import zlib

import definitions

_QWEN3 = definitions.PROCESSORS["qwen3-vl"]

#: As models that use them have them.
CONFIGS = {
    "qwen2-vl": {"processor_class": "Qwen2VLProcessor", "image_processor": definitions.PROCESSORS["qwen2-vl"]},
    "qwen2.5-vl": {"processor_class": "Qwen2_5_VLProcessor", "image_processor": definitions.PROCESSORS["qwen2.5-vl"]},
    "qwen3-vl": {"processor_class": "Qwen3VLProcessor", "image_processor": _QWEN3},
    "llava-next": {
        "processor_class": "LlavaNextProcessor",
        "patch_size": 14,
        "vision_feature_select_strategy": "default",
        "num_additional_image_tokens": 1,
        "image_processor": definitions.PROCESSORS["llava-next"],
    },
    "llava-next-full": {
        "processor_class": "LlavaNextProcessor",
        "patch_size": 14,
        "vision_feature_select_strategy": "full",
        "image_processor": definitions.PROCESSORS["llava-next"]
        | {"image_grid_pinpoints": [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008], [1344, 1008]]},
    },
    "internvl": {
        "processor_class": "InternVLProcessor",
        "image_seq_length": 256,
        "image_processor": definitions.PROCESSORS["internvl"] | {"crop_to_patches": False},
    },
    "pixtral": {"processor_class": "PixtralProcessor", "image_processor": definitions.PROCESSORS["pixtral"]},
    "mistral3": {
        "processor_class": "PixtralProcessor",
        "patch_size": 14,
        "spatial_merge_size": 2,
        "image_processor": {"image_processor_type": "PixtralImageProcessor", "size": {"longest_edge": 1540}},
    },
    "gemma3": {
        "processor_class": "Gemma3Processor",
        "image_seq_length": 256,
        "image_processor": definitions.PROCESSORS["gemma3"],
    },
}


def _sizes(count):
    """Heights and widths: those of `definitions`, and others from 1 to 4,096, many of them thin."""
    found, state = list(definitions.SIZES), 58
    while len(found) < count:
        sides = []
        for _ in range(2):
            state = (state * 1103515245 + 12345) % (1 << 31)
            bits, rest = 1 + state % 12, state >> 8
            sides.append((1 << bits) - rest % (1 << (bits - 1)))
        if tuple(sides) not in found:
            found.append(tuple(sides))
    return found


SIZES = _sizes(200)


def as_header(height, width):
    """What a file of the format PNG begins with, and no pixel."""
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
