"""Image processors of Hugging Face transformers in this process: the same call, the same tensors. And how many tokens
an image becomes, from its file's header.

from gesso.hf import ImageProcessor, count_tokens

processor = ImageProcessor.from_pretrained("Qwen2-VL")
inputs = processor(images=["a.jpg", "b.jpg"], return_tensors="pt")
tokens = count_tokens("a.jpg", "Qwen2-VL")

`ImageProcessor` needs the package transformers (the extra `hf`), and for tensors torch; counting needs neither."""

from .image_processor import ImageProcessor
from .token_counter import TokenCounter, count_tokens

__all__ = ["ImageProcessor", "TokenCounter", "count_tokens"]
