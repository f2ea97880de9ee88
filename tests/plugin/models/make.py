"""Makes prepare/1/model.dali with DALI: images are mirrored. Recorded with nvidia-dali-cuda130 2.4."""
from pathlib import Path

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali._utils import dali_trace


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def prepare():
    image = fn.external_source(device="cpu", name="image", dtype=types.UINT8, layout="HWC")
    return fn.flip(image, horizontal=1, name="pixels")


dali_trace.set_tracing(enabled=False)
prepare().serialize(filename=str(Path(__file__).parent / "prepare" / "1" / "model.dali"))
