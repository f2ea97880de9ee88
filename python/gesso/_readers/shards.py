"""Which part of a data set this process reads, when several train together. Knows no readers."""

import os
import sys

_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("PMI_RANK", "PMI_SIZE"),
)
NAMES = ("auto", "torch", "jax", "env")


def _of_torch():
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _of_jax():
    jax = sys.modules.get("jax")
    return None if jax is None else (jax.process_index(), jax.process_count())


def _of_environment():
    for rank, size in _VARIABLES:
        if rank in os.environ and size in os.environ:
            return int(os.environ[rank]), int(os.environ[size])
    return None


def of(shards):
    """(shard_id, num_shards) of what a reader's `shards` says: "torch" asks `torch.distributed`, "jax" its processes,
    "env" the variables that torchrun, Open MPI, Slurm and MPICH set; "auto" asks all in this order. A pair is
    itself."""
    if isinstance(shards, (tuple, list)):
        shard, count = shards
        return int(shard), int(count)
    if shards not in NAMES:
        raise ValueError(f"`shards` must be one of {NAMES} or a pair (shard_id, num_shards), got {shards!r}.")
    ways = {"torch": (_of_torch,), "jax": (_of_jax,), "env": (_of_environment,)}
    found = next(
        (pair for way in ways.get(shards, (_of_torch, _of_environment, _of_jax)) if (pair := way()) is not None), None
    )
    if found is None and shards != "auto":
        what = {
            "torch": "`torch.distributed` is not initialized",
            "jax": "jax is not imported",
            "env": "no variable says the rank",
        }[shards]
        raise RuntimeError(f"`shards={shards!r}`: {what}.")
    return found or (0, 1)
