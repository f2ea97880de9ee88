"""`Reader`: an operator without inputs whose batches are read in the interpreter."""

import numpy as np

from .._enums import dtype_of
from .._feeding import Batch
from .._operator import Operator
from .._schema import Argument, Schema
from .order import Order

_SHARED = {
    "random_shuffle": ("BOOL", False),
    "initial_fill": ("INT32", 1024),
    "num_shards": ("INT32", 1),
    "shard_id": ("INT32", 0),
    "tensor_init_bytes": ("INT32", 1048576),
    "stick_to_shard": ("BOOL", False),
    "read_ahead": ("BOOL", False),
    "prefetch_queue_depth": ("INT32", 1),
    "skip_cached_images": ("BOOL", False),
    "lazy_init": ("BOOL", False),
    "pad_last_batch": ("BOOL", False),
    "dont_use_mmap": ("BOOL", False),
    "shuffle_after_epoch": ("BOOL", False),
    "shuffle_after_epoch_seed": ("INT64", None),
    "seed": ("INT64", -1),
    "preserve": ("BOOL", False),
    "bytes_per_sample_hint": ("_INT32_VEC", None),
}


def schema(name, doc, own, required=(), outputs=2, tensors=()):
    """The schema of a reader; `own` are its arguments besides those that all have: name > (type, default)."""
    arguments = {
        key: Argument(key, kind, default, optional=key not in required, tensor=key in tensors)
        for key, (kind, default) in {**_SHARED, **own}.items()
    }
    return Schema(name, ("cpu",), 0, 0, outputs, arguments, doc=doc, random=True)


class Reader(Operator):
    """Base of the readers. A subclass says how many samples there are and reads one."""

    is_source = True
    shuffles_all = True

    def begin(self, node):
        """Makes what reads for one pipeline: an object with `size` and `read(index)` > arrays of all outputs, where the sample is from."""
        raise NotImplementedError

    def start(self, node, restarts=False):
        """Opens the data set and begins its first epoch."""
        options = {name: value.value for name, value in node.values.items()}
        _check_shards(self.display, options, self.shuffles_all)
        node.samples = self.begin(node)
        if node.samples.size == 0:
            raise RuntimeError(f"The reader `{self.display}` found no samples.")
        if options.get("num_shards", 1) > node.samples.size:
            raise RuntimeError(
                f"The number of input samples: {node.samples.size}, needs to be at least equal to the requested number of shards: "
                f"{options['num_shards']}."
            )
        node.order = Order(node.samples.size, options["seed"], options, self.shuffles_all, restarts, getattr(node.samples, "groups", None))

    def run_python(self, node, inputs, batch_size):
        """The next batch of each output."""
        return self.read_batch(node, batch_size, len(node.outputs))

    def read_batch(self, node, batch_size, columns):
        """The next batch as `read` gives it: so many columns."""
        indices = node.order.batch(batch_size)
        rows = [node.samples.read(index, **_of_sample(node, i)) for i, index in enumerate(indices)]
        infos = [info for _, info in rows]
        layouts = getattr(node.samples, "layouts", None) or [""] * columns
        batches = []
        for i in range(columns):
            arrays = [np.asarray(arrays[i]) for arrays, _ in rows]
            batches.append(Batch(arrays, dtype_of(arrays[0]), layouts[i], infos))
        return batches

    def meta(self, node):
        """What `Pipeline.reader_meta` says."""
        size, shards = node.samples.size, node.order.shards
        return {
            "epoch_size": size,
            "epoch_size_padded": -(-size // shards) * shards if node.order.pads else size,
            "number_of_shards": shards,
            "shard_id": node.order.shard,
            "pad_last_batch": int(node.order.pads),
            "stick_to_shard": int(node.order.sticks),
        }


def _of_sample(node, i):
    """The tensors that arguments are fed by, for one sample."""
    return {"fed": {name: list(arrays[i]) for name, arrays in node.fed.items()}} if node.fed else {}


def _check_shards(name, options, shuffles_all):
    shards, shard = options.get("num_shards", 1), options.get("shard_id", 0)
    if not 0 <= shard < shards:
        raise RuntimeError(f"The `shard_id` of `{name}` must be from 0 to {shards - 1}, as `num_shards` is {shards}; got {shard}.")
    if shuffles_all and options.get("random_shuffle") and options.get("shuffle_after_epoch"):
        raise RuntimeError("shuffle_after_epoch and random_shuffle cannot be both true")
    if options.get("stick_to_shard") and options.get("shuffle_after_epoch"):
        raise RuntimeError("shuffle_after_epoch and stick_to_shard cannot be both true")
