"""What `gesso.hf` makes on a GPU stays there, and is what it makes on the host. Skipped without a GPU."""

import sys
from pathlib import Path

import numpy as np
import pytest
from gesso._native import engine
from gesso._tensors.device_array import DeviceArray, on_host
from gesso.hf.engines import gpu_of
from gesso.hf.images import Reader
from gesso.hf.variants import Variant

if not engine.has_gpu():
    pytest.skip("no GPU", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).parents[1] / "data" / "multimodal"))

import definitions

SIZES = ((97, 61), (333, 500), (240, 200))
NAMES = ("qwen2-vl", "llava-next", "internvl", "pixtral", "gemma3", "idefics3", "llama4", "minicpm-v")


@pytest.mark.parametrize("backend", ["torchvision", "pil"])
@pytest.mark.parametrize(
    "fields", [{"image_processor_type": "CLIPImageProcessor"}, *map(definitions.PROCESSORS.get, NAMES)]
)
def test_a_gpu_makes_what_the_host_makes(fields, backend):
    if fields["image_processor_type"] == "Llama4ImageProcessor" and backend == "pil":
        pytest.skip("transformers has it by torchvision alone")
    variant = Variant(fields, backend, "pillow", None)
    pixels = [definitions.picture(*size) for size in SIZES]
    given = Reader(variant.makes_rgb, backend).read([*pixels, *map(definitions.as_file, pixels)])
    for host, device in zip(variant.run(given, None), variant.run(given, gpu_of("cuda:0")), strict=True):
        assert isinstance(device[0], DeviceArray)
        for ours, theirs in zip(host, device, strict=True):
            np.testing.assert_array_equal(ours, on_host(theirs))


@pytest.mark.parametrize("name", ["qwen2-vl", "idefics3", "llama4", "minicpm-v"])
def test_tensors_are_on_the_gpu(name):
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA in torch")
    from gesso.hf import ImageProcessor

    processor = ImageProcessor(definitions.PROCESSORS[name])
    files = [definitions.as_file(definitions.picture(*size)) for size in SIZES]
    found, expected = (processor(files, return_tensors="pt", device=device) for device in ("cuda", "cpu"))
    assert found["pixel_values"].is_cuda and torch.equal(found["pixel_values"].cpu(), expected["pixel_values"])
