"""Operators at once: for each operator of the library a class, made with fixed arguments and called with inputs, and a
function."""

import threading

from .. import fn
from .._authoring import arguments as _arguments
from .._authoring import output_count, signature
from .._authoring import schema as _schema
from .._readers.registry import READERS
from .._tensors.enums import DALIDataType, DALIImageType, DALIInterpType
from . import batching, metadata, plans, random
from .batch import as_batch
from .device import Device
from .device import device as _device
from .dtypes import DType
from .dtypes import dtype as _dtype
from .expressions import POSITION, Step
from .invocation import Invocation
from .tensor import Tensor, as_tensor

_IGNORED = ("bytes_per_sample_hint", "preserve")
# What an argument's elements are as tensors, by their type in files.
_ELEMENTS = {"int64": DALIDataType.INT32, "float": DALIDataType.FLOAT, "bool": DALIDataType.BOOL}
# Operators that read from the host though they run on a GPU, or wherever their input is.
_ANYWHERE = ("Copy", "Shapes", "_Shape")
_lock = threading.Lock()
# Values that are arguments as they are, by themselves and in lists.
_PLAIN = {int, float, bool, str, type(None), DType, DALIDataType, DALIImageType, DALIInterpType}
# Operators of one class that functions keep, each with its arguments.
_MOST_KEPT = 64


def frozen(value):
    """A value that can be a key; lists become tuples."""
    if isinstance(value, (list, tuple)):
        return tuple(frozen(element) for element in value)
    if isinstance(value, DType):
        return value.type_id
    return value


def thawed(value):
    """What `frozen` was given, for operators: lists again."""
    return [thawed(element) for element in value] if isinstance(value, tuple) else value


class Operator:
    """One operator with its fixed arguments. `device`: where it runs."""

    _description = _function = _path = None
    _is_reader = False
    # Values of arguments that were seen, by name; operators of calls before, by their arguments.
    _seen = _kept = None

    def __init__(self, max_batch_size=None, name=None, device="cpu", **fixed):
        """Makes the operator, to be called. `fixed`: its arguments that are the same for each call."""
        self._device = _device(device)
        self._place = self._place_of(self._device)
        fixed.pop("seed", None)
        self._fixed = {key: frozen(value) for key, value in fixed.items() if value is not None and key not in _IGNORED}
        for key in self._fixed:
            self._argument(key)
        self._name, self._max_batch_size = name, max_batch_size
        seed = [("seed", plans.SEED)] if self._description.random else []
        self._given = (*sorted(self._fixed.items()), ("device", self._place), *seed)

    @classmethod
    def _argument(cls, name):
        try:
            return _arguments.lookup(cls._description, name)
        except KeyError as error:
            raise TypeError(f"{cls._path}() got an unexpected keyword argument '{name}'. {error.args[0]}") from None

    @classmethod
    def _place_of(cls, device):
        """`cpu`, `gpu` or `mixed`: how files call where it runs."""
        if device.device_type in cls._description.devices:
            return device.device_type
        if device.device_type == "gpu" and "mixed" in cls._description.devices:
            return "mixed"
        raise ValueError(
            f'Invalid device "{device}" for operator `{cls._path}`: it runs on {", ".join(cls._description.devices)}'
        )

    @classmethod
    def _device_for(cls, device, inputs):
        """Where a call runs: where it is told to, else where its inputs are."""
        if device is not None:
            return _device(device)
        for value in inputs:
            if batching.is_ours(value) and value.device.device_type == "gpu":
                return value.device
        return Device.CPU if "cpu" in cls._description.devices else Device("gpu")

    def _to_input(self, index, value, size):
        own = (
            as_batch(value) if size is not None and not batching.is_ours(value) and batching.size_of([value]) else value
        )
        own = own if batching.is_ours(own) else as_tensor(own)
        if self._description.name in _ANYWHERE:
            return own
        wanted = self._description.input_devices.get(str(index)) or ("gpu" if self._place == "gpu" else "cpu")
        if wanted == own.device.device_type:
            return own
        return own.to_device(self._device if wanted == "gpu" else Device.CPU)

    def _to_argument(self, name, value):
        """A tensor or batch on the host with the argument's type."""
        argument = self._argument(name)
        if not argument.tensor:
            raise TypeError(
                f"argument `{name}` of `{self._path}`: expected {_arguments.expected(argument)}, found a tensor"
            )
        element = _ELEMENTS.get(argument.kind[0])
        if argument.type in _arguments.ENUMS:
            element = None
        if batching.is_ours(value):
            own = value.cpu()
            if element is None or own.dtype.type_id == element:
                return own
            make = as_batch if own._is_batch else as_tensor
            return make(own, dtype=_dtype(element))
        make = as_batch if batching.size_of([value]) is not None else as_tensor
        return make(value, dtype=None if element is None else _dtype(element), device=Device.CPU)

    def __call__(self, *inputs, batch_size=None, rng=None, **tensors):
        """Runs the operator, or defers that, as the mode says: a `Batch` if an input is one or `batch_size` is given,
        else a `Tensor`. `rng`: what random operators draw from. `tensors`: arguments for each sample."""
        inputs = [value for value in inputs if value is not None]
        low, high = self._description.min_inputs, self._description.max_inputs
        if not low <= len(inputs) <= high:
            raise ValueError(f"`{self._path}` expects from {low} to {high} inputs, but received {len(inputs)}.")
        tensors = {name: value for name, value in tensors.items() if value is not None}
        batch_size = batching.checked_size(batch_size)
        size = batching.size_of([*inputs, *tensors.values()])
        if batch_size is not None and size not in (None, batch_size):
            raise ValueError(f"`batch_size` is {batch_size}, and the inputs have {size} samples")
        size = batch_size if size is None else size
        inputs = [self._to_input(i, value, size) for i, value in enumerate(inputs)]
        named = {name: self._to_argument(name, value) for name, value in sorted(tensors.items())}
        if self._description.random:
            named[POSITION] = random.position_of(rng)
        elif rng is not None:
            raise TypeError(f"{self._path}() got an unexpected keyword argument 'rng': it draws no random numbers")
        invocation = Invocation(self, None, inputs, named, size is not None, size)
        given = [*inputs, *(value for value in named.values() if batching.is_ours(value))]
        outputs = batching.outputs_of(invocation, any(value._is_external() for value in given))
        return outputs[0] if len(outputs) == 1 else outputs

    def _infer_num_outputs(self, *inputs, **_):
        values = {name: thawed(value) for name, value in self._fixed.items()}
        return output_count.count(self._description, values, len(inputs))

    def _infer_output_devices(self, *inputs, **named):
        where = Device.CPU if self._place == "cpu" else self._device
        return [where] * self._infer_num_outputs(*inputs, **named)

    def _infer(self, index, inputs, named):
        frames = [value for value in named.values() if batching.is_ours(value) and (value.layout or "").startswith("F")]
        if frames and not (inputs and (inputs[0].layout or "").startswith("F")):
            # Arguments for each frame can make frames of a picture.
            return {}
        return metadata.of(self._description, self._fixed, index, inputs)

    def _device_id(self):
        return None if self._place == "cpu" else self._device.device_id

    def _step(self, _inputs):
        if self._function.only_in_python:
            return None
        return Step(self._function, self._given, self._device_id(), self._description.random)

    def _run(self, context, *inputs, batch_size=None, _position=None, **named):
        batches = [batching.batch_storage(value, batch_size) for value in inputs]
        tensors = {name: batching.batch_storage(value, batch_size) for name, value in named.items()}
        size, device_id, threads = batch_size or 1, self._device_id(), context.num_threads
        outputs = plans.run(self._function, batches, tensors, self._given, size, device_id, threads, _position)
        return batching.results(outputs, batch_size)

    @classmethod
    def _varies(cls, name, value):
        """Whether a number that could be a tensor differs from call to call, so that no plan is made for it."""
        if not cls._description.arguments[name].tensor or not _is_numbers(value):
            return False
        with _lock:
            seen = cls._seen.setdefault(name, set())
            if len(seen) < plans.MOST_VALUES:
                seen.add(value)
            return value not in seen


def _is_numbers(value):
    return isinstance(value, (int, float)) or isinstance(value, tuple) and bool(value) and all(map(_is_numbers, value))


def _is_tensor(value):
    return batching.is_ours(value) or hasattr(value, "shape") and not isinstance(value, type)


def _key(device, given):
    """Arguments as a key, if all are plain; else None."""
    key = [device.device_id]
    for name, value in given.items():
        kind = type(value)
        if kind is list or kind is tuple:
            value = tuple(value)
            if not all(type(element) in _PLAIN for element in value):
                return None
        elif kind not in _PLAIN:
            return None
        key.append((name, kind, value))
    return tuple(key)


def _call(kind, *inputs, batch_size=None, device=None, rng=None, **given):
    device = kind._device_for(device, inputs)
    key = _key(device, given)
    operator, tensors = kind._kept.get(key), {}
    if operator is None:
        operator, tensors = _made(kind, device, given)
        if key is not None and not tensors:
            if len(kind._kept) >= _MOST_KEPT:
                kind._kept.clear()
            kind._kept[key] = operator
    return operator(*inputs, batch_size=batch_size, rng=rng, **tensors)


def _made(kind, device, given):
    """An operator with arguments that stay, and those that are tensors."""
    fixed, tensors = {}, {}
    for name, value in given.items():
        if value is None or name in _IGNORED:
            continue
        if name == "seed":
            raise TypeError(f"{kind._path}() got an unexpected keyword argument 'seed': give `rng=RNG(seed)`")
        kind._argument(name)
        if _is_tensor(value) and kind._description.arguments[name].tensor:
            tensors[name] = value
            continue
        value = frozen(value.item() if isinstance(value, Tensor) else value)
        if kind._varies(name, value):
            tensors[name] = value
        else:
            fixed[name] = value
    return kind(device=device, **fixed), tensors


def function_of(kind, name=None):
    """The function of an operator's class."""

    def function(*inputs, batch_size=None, device=None, **given):
        return _call(kind, *inputs, batch_size=batch_size, device=device, **given)

    function.__name__ = function.__qualname__ = name or kind._description.function_name
    function.__doc__, function._operator_class = kind.__doc__, kind
    function.__signature__ = signature.of_function(kind._description)
    return function


def class_of(schema, base=Operator):
    """The class of an operator."""
    place = fn
    for name in schema.modules:
        place = getattr(place, name)
    path = ".".join((*schema.modules, schema.function_name))
    body = {
        "_description": schema,
        "_function": staticmethod(_with_lists(getattr(place, schema.function_name), schema.name in READERS)),
        "_path": path,
        "_seen": {},
        "_kept": {},
        "__doc__": signature.documentation(schema, schema),
    }
    return type(schema.class_name, (base,), body)


def _with_lists(function, only_in_python):
    def call(*nodes, **named):
        return function(*nodes, **{name: thawed(value) for name, value in named.items()})

    call.__name__, call.only_in_python = function.__name__, only_in_python
    return call


def _is_offered(schema):
    hidden_ones = ("_TensorSubscript", "_SubscriptDimCheck", "_ArithmeticGenericOp")
    special = ("ExternalSource", "experimental__inputs__Video", "Constant")
    if schema.name in special or schema.replacement or schema.alias:
        return False
    return not schema.hidden or schema.name.startswith("TensorSubscript") or schema.name in hidden_ones


def offered():
    """Schemas of the operators that can be called at once, without the readers."""
    every = {**_schema.all_schemas(), **{name: kind.schema for name, kind in READERS.items()}}
    return [
        schema
        for schema in every.values()
        if _is_offered(schema) and "readers" not in schema.modules and "inputs" not in schema.modules
    ]
