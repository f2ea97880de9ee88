"""Makes the models of the plugin's tests with DALI. Recorded with nvidia-dali-cuda130 2.4.

prepare/1/model.dali: images are mirrored, on the CPU.
noisy/1/model.dali: noise is added, from a seed, on the CPU.
convert/1/model.dali: images become floats, on the GPU. DALI needs a GPU to write such a file, so it writes one for the
CPU
    and every device in it is exchanged.
declared/1/model.dali: prepare, with the type and the rank of its output declared.
through/1/model.dali: prepare, and an input of which nothing is declared, passed through: as `docs/examples/multi_input`
of DALI's backend. classify/1/model.dali: a file is decoded, resized and normalized, of whose input nothing is declared:
as `docs/examples/resnet50_trt` of
    DALI's backend, smaller."""

from pathlib import Path

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali._utils import dali_trace

MODELS = Path(__file__).parent


def image():
    return fn.external_source(device="cpu", name="image", dtype=types.UINT8, layout="HWC")


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def prepare():
    return fn.flip(image(), horizontal=1, name="pixels")


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=7)
def noisy():
    return fn.noise.gaussian(image(), stddev=40, name="pixels")


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def convert():
    return fn.cast(image(), dtype=types.FLOAT, name="pixels")


@pipeline_def(batch_size=4, num_threads=2, device_id=None, output_dtype=[types.UINT8], output_ndim=[3])
def declared():
    return fn.flip(image(), horizontal=1, name="pixels")


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def through():
    return fn.flip(image(), horizontal=1, name="pixels"), fn.external_source(device="cpu", name="raw")


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def classify():
    images = fn.decoders.image(fn.external_source(device="cpu", name="encoded"), device="mixed", output_type=types.RGB)
    images = fn.resize(images, resize_x=16, resize_y=16)
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=[128.0] * 3, std=[64.0] * 3)


dali_trace.set_tracing(enabled=False)
for make in (prepare, noisy, convert, declared, through, classify):
    target = MODELS / make.__name__ / "1" / "model.dali"
    target.parent.mkdir(parents=True, exist_ok=True)
    made = make().serialize()
    target.write_bytes(made.replace(b"cpu", b"gpu") if make is convert else made)
