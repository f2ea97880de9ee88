"""The state of a pipeline: how many batches it gave, and in how many shards its readers read them. Readers go there
without reading; random numbers are drawn again."""

import json
import warnings

from .. import _context
from .._callbacks.sources import SourceKind

# Of what `save` writes.
_VERSION = 1
# Batches and epochs that a pipeline may have been through: at 1,000 batches a second, three weeks.
_MOST = (1 << 31) - 1


def save(pipeline, iterator_data=""):
    """The state as bytes; `iterator_data` is what an iterator wants to keep."""
    state = {
        "gesso_checkpoint": _VERSION,
        "batches": pipeline._consumed,
        "seed": pipeline._run_seed,
        "iter": pipeline._consumer_iter,
        "epoch_idx": pipeline._consumer_epoch_idx,
        "iterator_data": iterator_data,
        "readers": pipeline._execution.reader_history(pipeline._consumed),
    }
    return json.dumps(state).encode()


def read(saved):
    """The state in bytes that `save` made."""
    try:
        state = json.loads(saved)
        found = [state[name] for name in ("gesso_checkpoint", "batches", "seed", "iter", "epoch_idx", "iterator_data")]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(
            "the checkpoint is not one of this package: expected JSON, as `Pipeline.checkpoint` of Gesso gives it for the same pipeline"
        ) from None
    version, batches, seed, iteration, epoch, _ = found
    if version != _VERSION:
        raise ValueError(f"the checkpoint has version {version!r}, expected {_VERSION}: another Gesso wrote it")
    for name, value in (("batches", batches), ("iter", iteration), ("epoch_idx", epoch)):
        if type(value) is not int or not 0 <= value <= _MOST:
            raise ValueError(
                f"the checkpoint is damaged: `{name}` is {value!r}, expected a whole number from 0 to {_MOST}"
            )
    if seed is not None and type(seed) is not int:
        raise ValueError(f"the checkpoint is damaged: `seed` is {seed!r}, expected a whole number")
    if not isinstance(state.get("readers", {}), dict):
        raise ValueError("the checkpoint is damaged: `readers` is no object")
    return state


def restore(pipeline, state):
    """Brings a pipeline that was just built to a saved state."""
    batches = state["batches"]
    pipeline._epoch_idx = pipeline._consumer_epoch_idx = state["epoch_idx"]
    pipeline._consumer_iter = state["iter"]
    pipeline._consumed = batches
    pipeline._iterator_data = state["iterator_data"]
    pipeline._is_restored_from_checkpoint = True
    for group in pipeline._groups:
        group.current_iter = state["iter"]
        group.current_sample = state["iter"] * pipeline._max_batch_size
    pipeline._execution.skip(batches, state.get("readers", {}))


def next_epoch(pipeline):
    """Brings the readers of a pipeline to their next epoch; throws away what was prepared."""
    if pipeline._execution.restart is None:
        raise RuntimeError("`restart` is for pipelines with readers that were defined here.")
    if pipeline._groups or pipeline._fed:
        raise RuntimeError("A pipeline that is fed cannot be restarted: nobody would feed again what was prepared.")
    while pipeline._results:
        pipeline._results.popleft().exception()
    pipeline._batches_to_consume, pipeline._is_owed = 0, False
    pipeline._execution.restart(pipeline._consumed, pipeline._max_batch_size)
    pipeline._first_iter, pipeline._last_iter = True, False
    pipeline._epoch_idx += 1
    pipeline._consumer_epoch_idx += 1
    pipeline._consumer_iter = 0
    pipeline._epochs, pipeline._epochs_begin = None, pipeline._consumed


def warn_of_sources(pipeline):
    """Says which sources cannot go back to where they were."""
    for group in pipeline._groups:
        described = group.source_desc
        if described.kind is SourceKind.CALLABLE and described.has_inputs:
            continue
        if described.kind is SourceKind.CALLABLE:
            reason = "with parameterless callable as a 'source'"
        else:
            reason = f"with {described.kind} as a 'source'"
        message = (
            f"the checkpoint does not hold where the source of an external source is: {reason}. Who goes on from it must bring the source to that "
            "point, or it begins anew beside data that goes on"
        )
        warnings.warn(_context.add_words(message), Warning, stacklevel=5)
