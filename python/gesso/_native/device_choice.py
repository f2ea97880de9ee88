"""Where the engines of a pipeline run: on the host, or on a GPU or a part of one."""

import os
from typing import NamedTuple

from . import engine, library


class Place(NamedTuple):
    """A device, the number of a GPU, how many of its multiprocessors batches may take (0: all), and whether files become the same pixels in every run."""

    device: int = library.CPU
    gpu: int = 0
    gpu_multiprocessors: int = 0
    deterministic: bool = False


HOST = Place()


def of(pipeline):
    """Where it runs: on the GPU only if it has a number of one, and there is one."""
    wanted = pipeline.device_id is not None and not os.environ.get("GESSO_CPU_ONLY")
    if not (wanted and engine.has_gpu()):
        return HOST
    return Place(library.GPU, pipeline.device_id, pipeline.gpu_multiprocessors or 0, pipeline.deterministic)
