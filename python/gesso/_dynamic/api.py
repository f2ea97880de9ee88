"""All names of dynamic mode: `FUNCTIONS` by path, such as `decoders.image`; `fill` puts them into a module."""

import sys
import types

from . import arithmetic, imread, operators, random, readers
from .batch import Batch, as_batch, batch
from .checkpoint import Checkpoint
from .context import EvalContext, current_checkpoint
from .device import Device, device
from .dtypes import NAMED, DType, dtype, type_id
from .external_source import ExternalSource
from .modes import EvalMode
from .streams import Stream, get_current_stream, get_default_stream, set_current_stream, set_default_stream, stream
from .tensor import Tensor, as_tensor, tensor
from .threads import ThreadPool, get_num_threads, set_num_threads

NAMES = {
    value.__name__: value
    for value in (
        *(Batch, as_batch, batch, EvalContext, Device, device, DType, dtype, type_id, ExternalSource, EvalMode),
        *(Stream, stream, get_current_stream, get_default_stream, set_current_stream, set_default_stream),
        *(Tensor, as_tensor, tensor, ThreadPool, get_num_threads, set_num_threads),
    )
} | NAMED
# Path > class, of operators; of readers with their classes' names.
CLASSES = {}
FUNCTIONS = {}
READERS = {}


def _collect():
    for schema in operators.offered():
        kind = operators.class_of(schema)
        CLASSES[".".join((*schema.modules, schema.class_name))] = kind
        FUNCTIONS[kind._path] = operators.function_of(kind)
    for schema, function in readers.classes().values():
        kind = readers.class_of(schema, function)
        READERS[kind._path] = kind


_collect()
NAMES["imread"] = imread.made(FUNCTIONS["io.file.read"], FUNCTIONS["decoders.image"])


def _place(root, path):
    """The module `path` below `root`, made where it is not there."""
    for name in path:
        child = root.__dict__.get(name)
        if child is None:
            full = f"{root.__name__}.{name}"
            child = types.ModuleType(full, f"Operators of {full}.")
            sys.modules[full] = child
            setattr(root, name, child)
        root = child
    return root


def put(root, entries):
    """Puts what has a path, such as `decoders.image`, below a module."""
    for path, value in entries.items():
        *modules, name = path.split(".")
        place = _place(root, modules)
        setattr(place, name, value)


# What is beside the operators in modules.
MORE = {
    **{f"math.{name}": function for name, function in arithmetic.functions().items()},
    **{f"random.{name}": getattr(random, name) for name in ("RNG", "get_default_rng", "set_seed")},
    "capture.invariant": readers.invariant,
    "checkpoint.Checkpoint": Checkpoint,
    "checkpoint.current": current_checkpoint,
}


def fill(root):
    """Puts all of dynamic mode into a module, and modules below it."""
    put(root, NAMES | FUNCTIONS | READERS | MORE)
