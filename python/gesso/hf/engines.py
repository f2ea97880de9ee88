"""Engines of one definition, for threads that ask at the same time."""

import os
import re
import threading
from contextlib import contextmanager

from .._native import library
from .._native.engine import Engine, has_gpu
from .._tensors import feeding
from .._threads.fork import Process

#: Samples of one batch. More are several batches.
LARGEST_BATCH = 64
# A batch on a GPU takes its memory.
_MOST_ON_GPU = 2
# More threads than this do not make one image faster.
_MOST_THREADS = 4
_CUDA = re.compile(r"cuda(?::(\d{1,4}))?")


def cores():
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def gpu_of(device):
    """The number of the GPU that a device of torch is, or None for the host."""
    name = "cpu" if device is None else str(device)
    if name == "cpu":
        return None
    match = _CUDA.fullmatch(name)
    if match is None:
        raise ValueError(f"argument `device` is {name!r}: expected `cpu`, `cuda` or `cuda:N`")
    if not has_gpu():
        raise RuntimeError(f"argument `device` is {name!r}, and there is no GPU: expected `cpu`")
    return int(match[1] or 0)


class Engines:
    """Runs one file of a pipeline with one input. Threads that ask at the same time get an engine each, up to the
    number of cores; more of them wait."""

    def __init__(self, serialized, *, gpu=None, num_threads=None):
        self._serialized, self._gpu = serialized, gpu
        self._threads = num_threads or min(cores(), _MOST_THREADS)
        self._begin()

    def _begin(self):
        self._process, self._idle = Process(), []
        self._free = threading.Semaphore(cores() if self._gpu is None else _MOST_ON_GPU)

    @contextmanager
    def _engine(self):
        if not self._process.is_here():
            # A child has no threads of its parent's engines.
            self._begin()
        with self._free:
            try:
                engine = self._idle.pop()
            except IndexError:
                engine = self._new()
            try:
                yield engine
            finally:
                self._idle.append(engine)

    def _new(self):
        if self._gpu is None:
            return Engine(self._serialized, num_threads=self._threads)
        place = {"device": library.GPU, "gpu": self._gpu, "outputs_on_host": False}
        return Engine(self._serialized, **place, num_threads=self._threads)

    def run(self, name, samples, layout=None):
        """The outputs of each sample, a list of tuples of arrays; and why samples failed, by their places."""
        made, errors = [], {}
        for start in range(0, len(samples), LARGEST_BATCH):
            part = samples[start : start + LARGEST_BATCH]
            batch = feeding.to_batch(part, LARGEST_BATCH, layout, copy=False)
            with self._engine() as engine:
                outcome = engine.run(len(part), [(name, batch)])
            made += zip(*(arrays for arrays, _, _ in outcome.outputs), strict=True)
            errors |= {start + place: text for place, text in outcome.errors.items()}
        return made, errors
