"""Makes data/rand_augment.dali: `rand_augment` with two augmentations, as DALI 2.4 serializes it: 352 operators in
conditionals.

Needs the package nvidia-dali-cuda130, and no GPU.
"""

from pathlib import Path

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali._utils import dali_trace
from nvidia.dali.auto_aug import rand_augment

# Else the file holds the Python stack of every operator, with file names of the machine that made it.
dali_trace.set_tracing(enabled=False)


@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=42, enable_conditionals=True)
def augmented():
    encoded = fn.external_source(name="IMAGE", dtype=types.UINT8, ndim=1)
    shape = fn.peek_image_shape(encoded)
    image = rand_augment.rand_augment(fn.decoders.image(encoded), n=2, m=9, shape=shape)
    image = fn.resize(image, size=[64, 64])
    return fn.crop_mirror_normalize(image, dtype=types.FLOAT, output_layout="CHW", name="PIXELS")


if __name__ == "__main__":
    data = Path(__file__).parent / "data" / "rand_augment.dali"
    data.write_bytes(augmented().serialize())
    print(f"{data}: {data.stat().st_size} bytes")
