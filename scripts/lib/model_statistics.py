"""What the server says it did between two moments, a model at a time: from Triton's statistics API."""

import time
from typing import NamedTuple

NANOSECONDS = 1e9
SETTLE_SECONDS = 1


class ModelWork(NamedTuple):
    """Requests and samples that succeeded, executions they took, and seconds spent on them, summed over the
    requests."""

    requests: int
    failures: int
    samples: int
    executions: int
    queue: float
    compute: float

    def __sub__(self, earlier):
        return ModelWork(*(after - before for after, before in zip(self, earlier)))

    @property
    def queue_ms(self):
        """Mean wait of a request, in milliseconds."""
        return 1e3 * self.queue / max(self.requests, 1)

    @property
    def compute_ms(self):
        """Mean time of the execution that a request was part of, in milliseconds."""
        return 1e3 * self.compute / max(self.requests, 1)

    @property
    def batch(self):
        """Samples an execution: above 1 when requests were merged."""
        return self.samples / max(self.executions, 1)


def steps(client, model):
    """The models that do the work of `model`, in order: those of an ensemble, or itself."""
    config = client.get_model_config(model).config
    return [step.model_name for step in config.ensemble_scheduling.step] or [model]


def snapshot(client, models):
    """The work of each of these models since the server's start."""
    return {name: _work(client.get_inference_statistics(name).model_stats) for name in models}


def settled(client, earlier, requests):
    """A snapshot that holds `requests` more than `earlier`: models count a request only after its answer has left.

    After a second, whatever there is: a failed request may not have reached every model.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        later = snapshot(client, earlier)
        counted = min(
            later[name].requests + later[name].failures - work.requests - work.failures
            for name, work in earlier.items()
        )
        if counted >= requests or time.monotonic() > deadline:
            return later
        time.sleep(0.001)


def between(earlier, later):
    """What was done from one snapshot to another, a model at a time."""
    return {name: later[name] - earlier[name] for name in later}


def _work(versions):
    work = ModelWork(0, 0, 0, 0, 0.0, 0.0)
    for version in versions:
        stats = version.inference_stats
        # Not `compute_output`: while a model sends its answer, the next one of an ensemble may already be at work.
        compute = stats.compute_input.ns + stats.compute_infer.ns
        done = (
            stats.success.count,
            stats.fail.count,
            version.inference_count,
            version.execution_count,
            stats.queue.ns / NANOSECONDS,
            compute / NANOSECONDS,
        )
        work = ModelWork(*(total + part for total, part in zip(work, done)))
    return work
