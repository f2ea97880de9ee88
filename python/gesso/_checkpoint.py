"""The state of a pipeline: how many batches it gave, and in how many shards its readers read them. Readers go there without reading; random numbers
are drawn again."""

import json
import warnings

from ._sources import SourceKind


def save(pipeline, iterator_data=""):
    """The state as bytes; `iterator_data` is what an iterator wants to keep."""
    state = {
        "gesso_checkpoint": 1,
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
        state["batches"], state["seed"]
        return state
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            "the checkpoint is not one of this package: expected JSON, as `Pipeline.checkpoint` of Gesso gives it for the same pipeline"
        ) from None


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
    pipeline._batches_to_consume = 0
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
        warnings.warn(
            f"the checkpoint does not hold where the source of an external source is: {reason}. Who goes on from it must bring the source to that "
            "point, or it begins anew beside data that goes on",
            Warning,
            stacklevel=5,
        )
