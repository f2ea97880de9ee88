"""Models on a GPU, and requests whose tensors lie in its memory."""

from contextlib import contextmanager

import numpy as np
import tritonclient.grpc as triton
from recorded import cases
from tritonclient.utils import np_to_triton_dtype

KIND = "KIND_GPU"
SUFFIX = "_made_for_gpu"
# The recorded pipelines as DALI serialized them for a GPU, by their plain names.
PIPELINES = {name.removesuffix(SUFFIX): case for name, case in cases("pipelines").items() if name.endswith(SUFFIX)}


def config(count=1, max_batch_size=8, delay_us=0, gpus=(0,)):
    """A configuration with `count` instances on each of `gpus`."""
    return (
        f'backend: "gesso"\nmax_batch_size: {max_batch_size}\n'
        f"dynamic_batching {{ max_queue_delay_microseconds: {delay_us} }}\n"
        f"instance_group {{ kind: {KIND} count: {count} gpus: {list(gpus)} }}\n"
    )


@contextmanager
def registered(client, driver, name, size, gpu=0):
    """A region of the memory of `driver`'s GPU, which is number `gpu`, that the server knows by `name`."""
    with driver.allocate(size) as region:
        client.register_cuda_shared_memory(name, region.handle, gpu, size)
        try:
            yield region
        finally:
            client.unregister_cuda_shared_memory(name)


def lying_in(name, array, region, offset=0):
    """The input `name` that the server reads from a region, where `array` is written now."""
    made = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
    made.set_shared_memory(region, array.nbytes, offset)
    return made


def landing_in(name, size, region, offset=0):
    """The output `name` that the server writes into a region."""
    made = triton.InferRequestedOutput(name)
    made.set_shared_memory(region, size, offset)
    return made


def differences(found, expected):
    """Largest and mean absolute difference of two tensors that must have one type and shape."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    apart = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    return apart.max(), apart.mean()
