"""Readers as iterators: `for files, labels in reader.next_epoch(batch_size=8):`."""

from .. import fn
from .._pipeline_def import pipeline_def
from .._readers.registry import READERS
from . import batching
from .batch import Batch
from .capture import Loop
from .context import EvalContext
from .device import device as _device
from .operators import Operator, frozen, thawed
from .tensor import Tensor

_NAME = "reader"
_CAPTURED = "Checkpointing is not supported in compiled mode, which `capture` asks for."


def invariant(value):
    """The value itself: arguments are compared at each call, so nothing needs to be told that it stays the same."""
    return value


class ReaderState:
    """Where a reader is; as a text it can be saved."""

    __slots__ = ("_text",)

    def __init__(self, text):
        self._text = text

    def __str__(self):
        return self._text


class Reader(Operator):
    """Base of the readers: made with DALI's arguments of the reader, iterated epoch by epoch. `batch_size`: that of
    `next_epoch`, where none is given there. `enable_checkpointing`: whether `get_state` will be called."""

    _is_reader = True

    def __init__(self, batch_size=None, name=None, device="cpu", enable_checkpointing=False, **given):
        """Makes the reader; `given` are arguments of the reader. It begins to read when batches are asked for."""
        self._max_batch_size = given.pop("max_batch_size", None)
        self._device = _device(device)
        self._place = self._place_of(self._device)
        self._name, self._batch_size = name, batching.checked_size(batch_size)
        self._given = {key: self._value(value) for key, value in given.items() if value is not None}
        self._shard_id = int(self._given.get("shard_id", 0))
        self._num_shards = int(self._given.get("num_shards", 1))
        if not 0 <= self._shard_id < self._num_shards:
            raise ValueError(
                f"`shard_id` is {self._shard_id}, expected a number from 0 to `num_shards` - 1, which is {self._num_shards - 1}"
            )
        self._fixed = {key: frozen(value) for key, value in self._given.items() if not isinstance(value, dict)}
        self._checkpointing = enable_checkpointing
        self._pipeline = self._started_size = self._names = self._saved = self._capture = self._loop = None

    @classmethod
    def _place_of(cls, device):
        # Readers of videos decode on a GPU, too, and that of arrays brings them there; files are read on the host.
        on_both = "Video" in cls._description.class_name or cls._description.class_name == "Numpy"
        return "gpu" if on_both and device.device_type == "gpu" else super()._place_of(device)

    @staticmethod
    def _value(value):
        if isinstance(value, Batch):
            raise ValueError("Readers cannot be constructed with batch keyword arguments")
        if isinstance(value, Tensor):
            return value.item() if value.ndim == 0 else value.cpu().evaluate()._storage.array.tolist()
        return value

    def _enable_checkpointing(self):
        if self._checkpointing:
            return
        if self._capture:
            raise NotImplementedError(_CAPTURED)
        if self._pipeline is not None:
            raise RuntimeError(
                "the reader runs already, with checkpointing disabled: make it with `enable_checkpointing=True`"
            )
        self._checkpointing = True

    def _start(self, size, extra=None):
        """The running pipeline, for batches of `size`."""
        if self._pipeline is not None:
            if size != self._started_size:
                raise ValueError(f"`batch_size` is {size}, and the reader runs with {self._started_size}")
            return self._pipeline
        limit = self._max_batch_size
        if limit is not None and size > limit:
            raise ValueError(f"`batch_size` {size} is larger than the `max_batch_size` {limit} of the reader")
        arguments = {
            key: thawed(frozen(value)) if isinstance(value, (list, tuple)) else value
            for key, value in self._given.items()
        }
        arguments = {key: getattr(value, "type_id", value) for key, value in arguments.items()} | (extra or {})
        place, names = self._place, []
        function = self._function

        @pipeline_def(
            batch_size=size,
            num_threads=EvalContext.current().num_threads,
            device_id=None if place == "cpu" else self._device.device_id,
            enable_checkpointing=self._checkpointing,
            checkpoint=self._saved,
        )
        def define():
            outputs = function(name=_NAME, device=place, **arguments)
            if isinstance(outputs, dict):
                names.extend(outputs)
                outputs = outputs.values()
            return tuple(outputs) if not hasattr(outputs, "device") else outputs

        pipeline = define()
        pipeline.build()
        self._pipeline, self._started_size, self._names = pipeline, size, names or None
        return pipeline

    def get_metadata(self, batch_size=None):
        """What the reader says of its data, such as `epoch_size`."""
        return self._start(batch_size or self._batch_size or 1).reader_meta(_NAME)

    def _samples_of_epoch(self):
        size = self._pipeline.reader_meta(_NAME)["epoch_size_padded"]
        begin = self._shard_id * size // self._num_shards
        return (self._shard_id + 1) * size // self._num_shards - begin

    def next_epoch(self, batch_size=None, ctx=None, capture=False, compile=False):
        """An iterator over the next epoch: tuples of batches, or of tensors where no batch size is given; dictionaries
        of readers whose outputs have names. Go through it before the next one.

        `capture`: what the loop does with a batch is done ahead with the next ones, and the reader is bound to this way
        of reading."""
        capture = bool(capture or compile)
        size = self._batch_size if batch_size is None else batching.checked_size(batch_size)
        if capture:
            if self._checkpointing:
                raise NotImplementedError(_CAPTURED)
            if size is None:
                raise ValueError("`capture=True` needs a `batch_size`")
        if self._capture not in (None, capture):
            raise RuntimeError("the reader was used with another `capture`, and cannot switch")
        self._capture = capture
        return self._captured_epoch(size, ctx) if capture else self._epoch(size, ctx)

    def _epoch(self, size, context):
        with context or EvalContext.current():
            pipeline = self._start(size or 1)
        left = self._samples_of_epoch()
        while left > 0:
            outputs = pipeline.run()
            left -= len(outputs[0])
            yield self._shaped(outputs, size)
        self._next_shard()

    def _captured_epoch(self, size, context):
        context = context or EvalContext.current()
        with context:
            pipeline = self._start(size)
        if self._loop is None:
            self._loop = Loop(lambda: [Batch._of_storage(output) for output in pipeline.run()])
        left = self._samples_of_epoch()
        for values in self._loop.turns(context) if left > 0 else ():
            left -= len(values[0])
            yield dict(zip(self._names, values)) if self._names else tuple(values)
            if left <= 0:
                break
        self._next_shard()

    def _next_shard(self):
        if not self._given.get("stick_to_shard", False):
            self._shard_id = (self._shard_id + 1) % self._num_shards

    def _shaped(self, outputs, size):
        values = tuple(Batch._of_storage(output) for output in outputs)
        if size is None:
            values = tuple(value.tensors[0] for value in values)
        return dict(zip(self._names, values)) if self._names else values

    def __call__(self, *, batch_size=None, **tensors):
        """The next batch, or the next sample; arguments are those of the reader that were not given before."""
        if self._loop is not None:
            raise RuntimeError("the reader is read ahead by a loop with `capture=True`, and gives no batches otherwise")
        size = self._batch_size if batch_size is None else batching.checked_size(batch_size)
        again = sorted(tensors.keys() & self._given.keys())
        if again:
            raise ValueError(f"{again} was given to the reader already; it cannot be given to the call, too")
        extra = {name: self._value(value) for name, value in tensors.items() if value is not None}
        values = self._shaped(self._start(size or 1, extra).run(), size)
        return values[0] if isinstance(values, tuple) and len(values) == 1 else values

    def _infer_num_outputs(self, *_, **__):
        return len(self._start(self._batch_size or self._max_batch_size or 1).runner.definition.returned)

    def get_state(self, *, cuda_stream=None):
        """Where the reader is, for `set_state` of a new one."""
        if self._pipeline is None:
            raise RuntimeError("a reader has no state before its first iteration: call `next_epoch` first")
        if not self._checkpointing:
            raise RuntimeError("the reader runs with checkpointing disabled: make it with `enable_checkpointing=True`")
        return ReaderState(self._pipeline.checkpoint().decode())

    def set_state(self, state):
        """Makes a reader that did not begin go on where another one was: a `ReaderState`, or its text."""
        if isinstance(state, bytes):
            state = state.decode()
        if not isinstance(state, (ReaderState, str)):
            raise TypeError(f"expected a ReaderState, or its text, found a `{type(state).__name__}`")
        if self._pipeline is not None:
            raise RuntimeError("the state of a reader cannot be set after iteration has begun: set that of a new one")
        self._checkpointing, self._saved = True, str(state).encode()


def classes():
    """Schema > function of each reader."""
    made = {}
    for name, kind in READERS.items():
        schema = kind.schema
        if "readers" not in schema.modules:
            continue
        place = fn
        for part in schema.modules:
            place = getattr(place, part)
        made[name] = (schema, getattr(place, schema.function_name))
    return made


def class_of(schema, function):
    """The class of a reader."""
    body = {
        "_description": schema,
        "_function": staticmethod(function),
        "_path": ".".join((*schema.modules, schema.class_name)),
        "_seen": {},
        "__doc__": f"{schema.doc or schema.name} Arguments are those of `fn.{'.'.join((*schema.modules, schema.function_name))}`.",
    }
    return type(schema.class_name, (Reader,), body)
