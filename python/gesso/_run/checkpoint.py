"""What a checkpoint says, read and checked: anybody may have edited it."""

import json
import reprlib

# Of what `Epochs.save` writes.
VERSION = 2
# What a pipeline may have been through. Batches and epochs: at 1,000 batches a second, three weeks.
_MOST = {"batches": (1 << 31) - 1, "samples": (1 << 63) - 1, "iter": (1 << 31) - 1, "epoch_idx": (1 << 31) - 1}
# Seeds have 64 bits, with a sign.
_SEEDS = -(1 << 63), (1 << 63) - 1
# Of readers: processes that read together, samples of a batch, as many as a pipeline of the library may have, and
# samples that all processes have read, which are drawn again. At 100 million a second, two days.
_MOST_SHARDS, _MOST_BATCH_SIZE, _MOST_READ = 65_536, 65_536, 1 << 44
_PART = "a list of shards, batch size and batches, and of 1 behind these where the epoch was left by `restart`"


def damaged(what, found, expected):
    """The error of a part of a checkpoint that nobody saved so."""
    return ValueError(f"the checkpoint is damaged: {what} is {reprlib.repr(found)}, expected {expected}")


def check_number(what, value, least, most):
    """Raises if that is no whole number from `least` to `most`."""
    if type(value) is not int or not least <= value <= most:
        raise damaged(what, value, f"a whole number from {least} to {most}")


def read(saved):
    """What a checkpoint says, checked."""
    state = _object(saved)
    for name, most in _MOST.items():
        check_number(f"`{name}`", state[name], 0, most)
    check_number("`seed`", state["seed"], *_SEEDS)
    if not isinstance(state["branch_samples"], list):
        raise damaged("`branch_samples`", state["branch_samples"], "a list")
    for samples in state["branch_samples"]:
        check_number("one of `branch_samples`", samples, 0, _MOST["samples"])
    if not isinstance(state["iterator_data"], str):
        raise damaged("`iterator_data`", state["iterator_data"], "a text")
    if not isinstance(state["readers"], dict):
        raise damaged("`readers`", state["readers"], "an object")
    for name, parts in state["readers"].items():
        _check_parts(f"`readers`, `{name}`,", parts, state["batches"])
    return state


def _object(saved):
    """The fields of a checkpoint of this version."""
    try:
        state = json.loads(saved)
        version = state["gesso_checkpoint"]
        if version == VERSION:
            _ = [state[name] for name in (*_MOST, "branch_samples", "seed", "iterator_data", "readers")]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(
            "the checkpoint is not one of this package: expected JSON, as `Pipeline.checkpoint` of Gesso gives it for "
            "the same pipeline"
        ) from None
    if type(version) is not int or version != VERSION:
        raise ValueError(
            f"the checkpoint has version {reprlib.repr(version)}, expected {VERSION}: another Gesso wrote it"
        )
    return state


def _check_parts(what, parts, batches):
    """Checks how a reader went through its shards: what `Reader.history` gives."""
    if not isinstance(parts, list) or not parts:
        raise damaged(what, parts, "a list of parts")
    for number, part in enumerate(parts):
        where = f"{what} part {number},"
        if not isinstance(part, list) or len(part) not in (3, 4):
            raise damaged(where, part, _PART)
        check_number(f"{where} the number of shards,", part[0], 1, _MOST_SHARDS)
        check_number(f"{where} the batch size,", part[1], 1, _MOST_BATCH_SIZE)
        check_number(f"{where} the number of batches,", part[2], 0, batches)
        check_number(f"{where} the number of samples,", part[0] * part[1] * part[2], 0, _MOST_READ)
        if len(part) == 4:
            check_number(f"{where} its end by `restart`,", part[3], 1, 1)
    if len(parts[-1]) == 4:
        raise damaged(f"{what} the last part,", parts[-1], "three numbers: it has not ended")
    found = sum(part[2] for part in parts)
    if found != batches:
        raise damaged(f"{what} the sum of batches,", found, f"that of `batches`, {batches}")


def check_readers(state, names):
    """Raises if a state is one of other readers than these."""
    if state["readers"].keys() != set(names):
        saved, own = (reprlib.repr(sorted(each)) for each in (state["readers"], names))
        raise ValueError(
            f"the checkpoint might be of another pipeline: it has the readers {saved}, the pipeline has {own}"
        )


def behind_restart(state):
    """How many batches were given before the epoch was last left by `restart`."""
    return max(
        (
            sum(part[2] for part in parts[:number])
            for parts in state["readers"].values()
            for number in range(1, len(parts))
            if len(parts[number - 1]) == 4
        ),
        default=0,
    )
