"""Makes the models of the plugin's tests with DALI. Recorded with nvidia-dali-cuda130 2.4.

prepare/1/model.dali: images are mirrored, on the CPU.
noisy/1/model.dali: noise is added, from a seed, on the CPU.
convert/1/model.dali: images become floats, on the GPU. DALI needs a GPU to write such a file, so it writes one for the CPU
    and every device in it is exchanged."""
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


dali_trace.set_tracing(enabled=False)
for name, made in (("prepare", prepare()), ("noisy", noisy()), ("convert", convert())):
    target = MODELS / name / "1" / "model.dali"
    target.parent.mkdir(parents=True, exist_ok=True)
    written = made.serialize()
    target.write_bytes(written.replace(b"cpu", b"gpu") if name == "convert" else written)
