"""How many tokens files of images become, from their headers."""

import os

import numpy as np

from .. import fn, types
from ..pipeline import Pipeline
from . import token_rules
from .engines import LARGEST_BATCH, Engines

INPUT, OUTPUT = "IMAGE", "num_tokens"


def pipeline(rule):
    """The pipeline that counts: of a file's bytes it makes one number. Nothing is decoded."""
    made = Pipeline(batch_size=LARGEST_BATCH, num_threads=1, prefetch_queue_depth=1)
    with made:
        encoded = fn.external_source(name=INPUT, dtype=types.UINT8, ndim=1)
        count = rule.tokens(fn.peek_image_shape(encoded))
        made.set_outputs(fn.cast(count, dtype=types.INT64, name=OUTPUT))
    return made


class TokenCounter:
    """Counts the tokens that stand for an image in a prompt: what `_get_num_multimodal_tokens` of transformers'
    processors says for its size. Of files only headers are looked at; a photo that EXIF turns counts as it is shown.

    `config` is a model's folder, the fields of its `processor_config.json`, or a processor of transformers, of
    Qwen2-VL, Qwen2.5-VL, Qwen3-VL, LLaVA-NeXT, InternVL, Pixtral, Mistral 3 or Gemma 3. Threads may count at the same
    time."""

    def __init__(self, config):
        rule = token_rules.of(config)
        self.processor, self._file = rule.processor, pipeline(rule).serialize()
        self._engines = Engines(self._file, num_threads=1)

    def __call__(self, file):
        """The tokens of a file, a path or its bytes; of a list of files a list. A file that is no image is a
        `ValueError`."""
        is_list = isinstance(file, (list, tuple))
        outputs, errors = self._engines.run(INPUT, [_bytes(each) for each in (file if is_list else [file])])
        if errors:
            first = min(errors)
            raise ValueError(f"file {first}: {errors[first]}" if is_list else str(errors[first]))
        found = [int(count) for (count,) in outputs]
        return found if is_list else found[0]

    def serialize(self):
        """The counter as a file of a pipeline, for Triton and for C: input `IMAGE`, a file's bytes; output
        `num_tokens`."""
        return self._file


def count_tokens(file, config):
    """The tokens that a file, a path or its bytes, becomes for a model; of a list of files a list. `config` is what
    `TokenCounter` takes, which reads it once for many calls."""
    return TokenCounter(config)(file)


def _bytes(file):
    if isinstance(file, (str, os.PathLike)):
        return np.fromfile(file, np.uint8)
    return file if isinstance(file, np.ndarray) else np.frombuffer(file, np.uint8)
