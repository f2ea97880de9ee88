"""Where the engines of a pipeline run: on the host, or on a GPU or a part of one; and what they decode there."""

import os
from typing import NamedTuple

from . import engine, library


class Place(NamedTuple):
    """A device, the number of a GPU, how many of its multiprocessors batches may take (0: all), whether files become
    the same pixels in every run, and the formats of files that are decoded (None: all)."""

    device: int = library.CPU
    gpu: int = 0
    gpu_multiprocessors: int = 0
    deterministic: bool = False
    formats: bytes | None = None


def of(settings):
    """Where it runs: on the GPU only if it has a number of one, and there is one."""
    wanted = settings.gpu is not None and not os.environ.get("GESSO_CPU_ONLY")
    if not (wanted and engine.has_gpu()):
        return on_host(settings)
    multiprocessors, formats = settings.gpu_multiprocessors or 0, on_host(settings).formats
    return Place(library.GPU, settings.gpu, multiprocessors, settings.deterministic, formats)


def on_host(settings):
    """A place on the host, with what the pipeline lets decode."""
    return Place(formats=settings.formats.encode() if settings.formats is not None else None)
