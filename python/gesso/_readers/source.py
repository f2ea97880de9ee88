"""`Reader`: an operator without inputs whose batches are read in the interpreter."""

import functools
import logging
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .. import _context
from .._authoring.operator import Operator
from .._authoring.schema import Argument, Schema
from .._tensors.enums import dtype_of
from .._tensors.feeding import Batch
from . import damage, elastic, storage
from . import shards as _shards
from .order import Order
from .sampling import Sampled

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
    # Whether `shuffle_after_epoch` shuffles files, not samples.
    shuffles_files = False
    # Whether files name it: DALI has it, too.
    in_files = True

    def __init__(self, *, sampler=None, weights=None, shards=None, on_missing="raise", **keywords):
        """Beside DALI's arguments: `sampler`, numbers of samples or a function of the epoch that gives them, in place
        of shuffling; `weights`, how likely each sample is drawn, with replacement; `shards`, where `shard_id` and
        `num_shards` come from ("auto", "torch", "jax", "env", or a pair); `on_missing`, what becomes of a sample that
        cannot be read: "raise", "skip" (the next one is read) or "pad" (the last one that could be read takes its
        place)."""
        if on_missing not in ("raise", "skip", "pad"):
            raise ValueError(f'`on_missing` must be "raise", "skip" or "pad", got {on_missing!r}.')
        if sampler is not None and weights is not None:
            raise ValueError("`sampler` and `weights` exclude each other.")
        if shards is not None:
            keywords["shard_id"], keywords["num_shards"] = _shards.of(shards)
        self._sampler, self._weights, self._on_missing = sampler, weights, on_missing
        super().__init__(**keywords)

    @property
    def only_in_python(self):
        """Arguments that were given and that files have no place for."""
        given = {
            "sampler": self._sampler is not None,
            "weights": self._weights is not None,
            "on_missing": self._on_missing != "raise",
        }
        return [name for name, is_given in given.items() if is_given]

    def expected(self, node):
        """What an error for a data set without samples says of where they should be."""
        return ""

    def begin(self, node):
        """Makes what reads for one pipeline: an object with `size` and `read(index)` > arrays of all outputs, where the
        sample is from: a text, or a list with one for each output."""
        raise NotImplementedError

    def start(self, node, restarts=False):
        """Opens the data set and begins its first epoch."""
        options = {name: value.value for name, value in node.values.items()}
        _check_shards(self.display, options, self.shuffles_all)
        with damage.named(f"the data set of `{self.display}`", but=(RuntimeError, OSError)):
            node.samples = self.begin(node)
        if node.samples.size == 0:
            raise RuntimeError(f"The reader `{self.display}` found no samples{self.expected(node)}.")
        if options.get("num_shards", 1) > node.samples.size:
            message = (
                f"The number of input samples: {node.samples.size}, needs to be at least equal to the requested number of shards: "
                f"{options['num_shards']}."
            )
            raise RuntimeError(_context.add_words(message))
        node.new_order = functools.partial(self.order, node.samples, options, restarts)
        node.order = node.new_order()
        node.parts, node.connections = [], None
        # Whether somebody waits for the batch that is being read.
        node.is_wanted = _always

    def stop(self, node):
        """Closes the data set."""
        if node.connections is not None:
            node.connections.shutdown(wait=False, cancel_futures=True)
        if hasattr(node.samples, "close"):
            node.samples.close()

    def order(self, samples, options, restarts, shard=None, shards=None):
        """Which of `samples` come one after the other."""
        if shards is not None:
            options = {**options, "shard_id": shard, "num_shards": shards}
        if self._sampler is not None or self._weights is not None:
            return Sampled(samples.size, self._sampler, self._weights, options)
        return Order(
            samples.size, options["seed"], options, self.shuffles_all, restarts, getattr(samples, "groups", None)
        )

    def history(self, node, batches, batch_size):
        """How `batches` were read, as parts: [shards, batch size, batches]. Only who goes on with another number of
        shards adds one, and who leaves an epoch in the middle: behind that part's numbers stands 1."""
        return [*node.parts, [node.order.shards, batch_size, batches - sum(part[2] for part in node.parts)]]

    def skip(self, node, batches, batch_size, history=None):
        """Goes to where so many batches were given; `history` says in which parts, if there were several or they differ
        from how it is now."""
        now = [node.order.shards, batch_size]
        parts = history or [[*now, batches]]
        most = max(part[0] for part in parts)
        if most > node.samples.size:
            raise ValueError(
                f"the checkpoint might be of another data set: `{node.name}` was read by {most} shards, expected at "
                f"most {node.samples.size}, the number of samples"
            )
        if parts[-1][:2] != now:
            parts = [*parts, [*now, 0]]
        node.parts = parts[:-1]
        node.order = elastic.go_on(node.new_order, parts, node.order.shard)

    def restart(self, node, batches, batch_size):
        """Goes on with the epoch behind the one that `batches` have got to."""
        self.skip(node, batches, batch_size, elastic.left(self.history(node, batches, batch_size)))

    def run_python(self, node, inputs, batch_size):
        """The next batch of each output."""
        return self.read_batch(node, batch_size, len(node.outputs))

    def read_batch(self, node, batch_size, columns):
        """The next batch as `read` gives it: so many columns."""
        indices = node.order.batch(batch_size)
        firsts = [functools.partial(node.samples.read, index, **_of_sample(node, i)) for i, index in enumerate(indices)]
        if getattr(node.samples, "is_remote", False):
            # From afar a batch comes at once; what is read again because something is missing, one by one.
            if node.connections is None:
                node.connections = ThreadPoolExecutor(storage.CONNECTIONS, "gesso-read")
            firsts = [node.connections.submit(first).result for first in firsts]
        rows, numbers = [], []
        for i, (index, first) in enumerate(zip(indices, firsts)):
            if not node.is_wanted():
                raise RuntimeError("The batch is not read: nobody waits for it.")
            row, number = self._read(node, index, first, i)
            rows.append(row)
            numbers.append(number)
        infos = [info if isinstance(info, list) else [info, *[""] * (columns - 1)] for _, info in rows]
        layouts = getattr(node.samples, "layouts", None) or [""] * columns
        batches = []
        for i in range(columns):
            arrays = [np.asarray(arrays[i]) for arrays, _ in rows]
            _check_alike(arrays, [info[i] for info in infos])
            batches.append(Batch(arrays, dtype_of(arrays[0]), layouts[i], [info[i] for info in infos], numbers=numbers))
        return batches

    def _read(self, node, index, read, i):
        """Sample `index`, or the one that stands for it, and its number."""
        for _ in range(node.samples.size + 1):
            try:
                with damage.named(f"a sample of `{self.display}`", but=(RuntimeError, OSError)):
                    node.last_read = read(), index
                return node.last_read
            except (RuntimeError, OSError) as error:
                if self._on_missing == "raise":
                    raise
                logging.getLogger("gesso").warning("a sample cannot be read: %s", error)
                if self._on_missing == "pad" and getattr(node, "last_read", None) is not None:
                    return node.last_read
                index = node.order.batch(1)[0]
                read = functools.partial(node.samples.read, index, **_of_sample(node, i))
        raise RuntimeError(f"None of the {node.samples.size} samples of `{self.display}` can be read.")

    def left(self, node):
        """Where other shards began this epoch: how many samples of it each shard of this run has; else None."""
        return getattr(node.order, "left", None)

    def meta(self, node):
        """What `Pipeline.reader_meta` says."""
        size, shards = node.order.size, node.order.shards
        return {
            "epoch_size": size,
            "epoch_size_padded": -(-size // shards) * shards if node.order.pads else size,
            "number_of_shards": shards,
            "shard_id": node.order.shard,
            "pad_last_batch": int(node.order.pads),
            "stick_to_shard": int(node.order.sticks),
        }


def _always():
    return True


def _of_sample(node, i):
    """The tensors that arguments are fed by, for one sample."""
    return {"fed": {name: np.ravel(arrays[i]).tolist() for name, arrays in node.fed.items()}} if node.fed else {}


def _check_alike(arrays, infos):
    """A batch has one type and one number of dimensions."""
    first = arrays[0]
    for array, info in zip(arrays, infos):
        if array.dtype != first.dtype:
            raise RuntimeError(
                f"Inconsistent data type in the batch: {_name(array)} in {info}, {_name(first)} in {infos[0]}."
            )
        if array.ndim != first.ndim:
            raise RuntimeError(
                f"Inconsistent data dimensionality in the batch: {array.ndim} in {info}, {first.ndim} in {infos[0]}."
            )


def _name(array):
    return {"float32": "float", "float64": "double"}.get(array.dtype.name, array.dtype.name)


def _check_shards(name, options, shuffles_all):
    shards, shard = options.get("num_shards", 1), options.get("shard_id", 0)
    if not 0 <= shard < shards:
        raise RuntimeError(
            f"The `shard_id` of `{name}` must be from 0 to {shards - 1}, as `num_shards` is {shards}; got {shard}."
        )
    if shuffles_all and options.get("random_shuffle") and options.get("shuffle_after_epoch"):
        raise RuntimeError("shuffle_after_epoch and random_shuffle cannot be both true")
    if options.get("stick_to_shard") and options.get("shuffle_after_epoch"):
        raise RuntimeError("shuffle_after_epoch and stick_to_shard cannot be both true")
