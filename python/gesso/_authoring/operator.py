"""Operators of a pipeline that is being defined: `Node` is one of its graph, `Operator` the base of the classes in
`ops`."""

import itertools
import threading
import weakref
from typing import Any

from .. import _context
from ..data_node import DataNode
from . import arguments, call_site, output_count
from . import schema as _schema
from .arguments import TypedValue
from .constants import Constant, ConstantNode, ScalarConstant

_detached = itertools.count()
_detached_lock = threading.Lock()
_NO_SEED = 'The argument "seed" should not be used with operators that don\'t use random numbers. It is left out.'
_TAKES_ANY = {"name", "_module", "_display_name"}


class Node:
    """One operator of a graph: what it is called, what it reads, what it is told, what it makes."""

    # Those of `fn.external_source` have these, too.
    layout: str
    group_of_sources: Any
    output_index: int | None

    def __init__(self, operator, inputs, tensors, scalars):
        pipeline = _context.current()
        self._pipeline = weakref.ref(pipeline) if pipeline is not None else None
        # One that it was not made in.
        self._user = None
        self.operator = operator
        self.schema = operator.schema
        self.device = operator.device
        self.origin = call_site.of_caller()
        self.group = id(self)
        self._id = None
        self.values = dict(operator.values)
        conditions = _context.conditions()
        if conditions is not None:
            inputs, tensors = conditions.use_all(inputs, tensors)
            conditions.add_scope(self.schema, tensors)
        self._take_name(scalars.pop("name", None))
        self.values.update(operator.convert(scalars))
        self.inputs = self._checked_inputs(inputs)
        self.tensors = self._checked_tensors(tensors)
        operator.warn_if_deprecated()
        self.outputs = []
        self._make_outputs(pipeline)
        if conditions is not None:
            conditions.register(self.outputs, has_inputs=bool(self.inputs or self.tensors))

    @property
    def pipeline(self):
        """The pipeline that it was made in; of one that was made outside of all the last that has it in its graph, or
        None."""
        found = self._pipeline or self._user
        return None if found is None else found()

    def use_in(self, pipeline):
        """Notes that it is in the graph of a pipeline."""
        self._user = weakref.ref(pipeline)

    @property
    def id(self):
        """Its number in its pipeline."""
        if self._id is None:
            if self.pipeline is not None:
                self._id = self.pipeline.runner.definition.next_id()
            else:
                with _detached_lock:
                    self._id = next(_detached)
        return self._id

    @property
    def spec(self):
        """The operator as a message shows it."""
        return self.schema.target

    def __repr__(self):
        file, line, _ = self.origin[-1] if self.origin else ("an unknown file", 0, "")
        return f'{self.operator.display} "{self.name}" of {file}:{line}'

    def is_foreign(self, pipeline):
        """Whether it was made in another pipeline than this one."""
        return self._pipeline is not None and self._pipeline() is not pipeline

    def _take_name(self, name):
        if name is not None and not isinstance(name, str):
            raise TypeError(f"The name of operator `{self.operator.display}`: expected a text, found {name!r}.")
        infix = "_" if self.pipeline is not None else "_detached_"
        self.is_named = name is not None
        self.name = name if name is not None else f"__{type(self.operator).__name__}{infix}{self.id}"

    def _checked_inputs(self, inputs):
        name, schema = self.operator.display, self.schema
        check_count(name, schema, inputs)
        for node in inputs:
            if not isinstance(node, DataNode):
                raise TypeError(f"an input is `{node}`, expected a `DataNode`")
        return list(inputs)

    def _checked_tensors(self, tensors):
        name = self.operator.display
        tensors = arguments.rename_deprecated(self.schema, tensors, name)
        checked = {}
        for keyword in sorted(tensors):
            node = tensors[keyword]
            if node is None:
                continue
            node = constant_input(node, "cpu", keyword, name)
            if node.device != "cpu":
                raise ValueError(
                    f"Invalid device \"{node.device}\" for argument '{keyword}' of operator '{name}'. It must be on the CPU."
                )
            check_tensor_argument(self.schema, name, keyword)
            checked[keyword] = node
        return checked

    def _make_outputs(self, pipeline):
        keep = self.operator.keep or self.values_of("preserve", False)
        if pipeline is None and keep:
            require_pipeline("Operators with side-effects ")
        device = "gpu" if self.device in ("gpu", "mixed") else "cpu"
        count = self.operator.output_count(self)
        if count == 0 and keep:
            pipeline.add_sink(DataNode(f"{type(self.operator).__name__}_id_{self.id}_sink", device, self, None))
            return
        for i in range(count):
            name = f"{self.name}[{i}]" if count > 1 else self.name
            node = DataNode(name, device, self, i, *self.operator.output_facts(self))
            if keep:
                pipeline.add_sink(node)
            self.outputs.append(node)

    def values_of(self, keyword, default=None):
        """The value of a scalar argument that was given, else `default`."""
        value = self.values.get(keyword)
        return default if value is None else value.value

    def check_required(self):
        """Raises unless every argument that must be there is."""
        given = self.values.keys() | self.tensors.keys()
        missing = [a.name for a in self.schema.arguments.values() if not a.optional and a.name not in given]
        if missing:
            names = ", ".join(f'"{name}"' for name in missing)
            raise RuntimeError(
                f'Not all required arguments were specified for op "{self.schema.name}". Please specify values for arguments: {names}'
                f"\nThe operator was made here:\n{call_site.describe(self.origin)}"
            )


def require_pipeline(what):
    """Raises because there is no current pipeline."""
    raise RuntimeError(
        f"{what} operator is made outside of a pipeline: no pipeline is the current one.\nMake it in `define_graph` or in a function that "
        "`@pipeline_def` marks, inside of `with pipeline:`, or behind `Pipeline.push_current(pipeline)`."
    )


def check_count(name, schema, inputs):
    """Raises unless an operator takes that many inputs."""
    if not schema.min_inputs <= len(inputs) <= schema.max_inputs:
        raise ValueError(
            f"Operator {name} expects from {schema.min_inputs} to {schema.max_inputs} inputs, but received {len(inputs)}."
        )


def check_tensor_argument(schema, name, keyword):
    """Raises unless the argument may be a tensor."""
    argument = arguments.lookup(schema, keyword)
    if not argument.tensor:
        raise TypeError(
            f"argument `{keyword}` of operator `{name}` is a `DataNode`, expected {arguments.expected(argument)} that is known when the operator is made"
        )


def constant_input(value, device, where, name):
    """`value` as a `DataNode`: itself, or a constant."""
    if isinstance(value, DataNode):
        return value
    if isinstance(value, ScalarConstant):
        return ConstantNode(device, value.value, value.dtype, value.shape, None)
    try:
        return Constant(value, device=device)
    except Exception as error:
        raise TypeError(
            f"input `{where}` of operator `{name}` is a `{type(value).__name__}`, expected a `DataNode`, a list of them, or a constant"
        ) from error


def _is_input_set(value):
    if not isinstance(value, list):
        return False
    is_node = [isinstance(element, DataNode) for element in value]
    return any(is_node) and all(n or isinstance(e, ScalarConstant) for n, e in zip(is_node, value))


def choose_device(inputs):
    """`gpu` if an input is there, else `cpu`."""
    for value in inputs:
        nodes = value if isinstance(value, (list, tuple)) else (value,)
        if any(getattr(node, "device", None) == "gpu" for node in nodes):
            return "gpu"
    return "cpu"


class Operator:
    """Base of the classes in `ops`: made with arguments, called with inputs and more arguments. Subclasses have a
    `schema`."""

    schema: Any = None

    def __init__(self, *, device="cpu", **keywords):
        self.module = keywords.pop("_module", None) or _context.shown(type(self).__module__)
        self.display_name = keywords.pop("_display_name", None) or type(self).__name__
        self.display = f"{self.module}.{self.display_name}"
        if device not in ("cpu", "gpu", "mixed"):
            raise ValueError(f'Unsupported device type: "{device}".')
        self.device = device
        self._scalars, self._tensors = arguments.separate(keywords, DataNode)
        for keyword in self._tensors:
            check_tensor_argument(self.schema, self.display, keyword)
        self._name = self._scalars.pop("name", None)
        self.values = {"device": TypedValue("string", False, [device]), **self.convert(dict(self._scalars))}

    @property
    def keep(self):
        """Whether it stays in the graph though nothing reads it."""
        return self.schema.keep or bool(self._scalars.get("preserve", False))

    preserve = keep

    def convert(self, scalars):
        """Typed values of scalar arguments."""
        scalars = arguments.rename_deprecated(self.schema, scalars, self.display)
        converted = {}
        for keyword, value in scalars.items():
            if keyword == "seed" and "seed" not in self.schema.arguments:
                call_site.warn(_NO_SEED, DeprecationWarning)
            elif value is not None and keyword not in _TAKES_ANY:
                converted[keyword] = arguments.convert(arguments.lookup(self.schema, keyword), value, self.display)
        return converted

    def output_count(self, node):
        """How many outputs `node` has."""
        values = {keyword: value.value for keyword, value in node.values.items()}
        return output_count.count(self.schema, values, len(node.inputs))

    def output_facts(self, node):
        """(ndim, dtype, layout) of the outputs, as far as they are known."""
        return (None, None, None)

    def warn_if_deprecated(self):
        """Says so if there is something newer."""
        schema = getattr(type(self), "named_schema", self.schema)
        if not schema.deprecation:
            return
        text = f"WARNING: `{self.display}` is now deprecated."
        if schema.replacement:
            other = _schema.find(schema.replacement)
            name = ".".join([*other.modules, other.function_name]) if other else schema.replacement
            text += f" Use `{_context.package}.fn.{name}` instead."
        call_site.warn(text + "\n" + schema.deprecation, DeprecationWarning)

    def _input_device(self, index):
        return self.schema.input_devices.get(str(index)) or ("gpu" if self.device == "gpu" else "cpu")

    def _promote(self, inputs):
        check_count(self.display, self.schema, inputs)
        promoted = []
        for i, value in enumerate(inputs):
            device = self._input_device(i)
            if _is_input_set(value):
                value = [constant_input(element, device, i, self.display) for element in value]
            else:
                value = constant_input(value, device, i, self.display)
            promoted.append(value)
        return promoted

    def _merged(self, given, earlier, keep_earlier):
        merged = dict(earlier) if keep_earlier else {}
        for keyword, value in given.items():
            if value is None:
                continue
            if keyword in earlier:
                raise ValueError(f"The argument `{keyword}` was already specified in __init__.")
            merged[keyword] = value
        return merged

    def __call__(self, *inputs, **keywords):
        if _context.at_once() is not None:
            raise RuntimeError(f"debug mode runs functions of `fn`: call one in place of the class `{self.display}`")
        inputs = self._promote(inputs)
        scalars, tensors = arguments.separate(keywords, DataNode)
        scalars = self._merged(scalars, self._scalars, keep_earlier=False)
        if self._name is not None:
            scalars = self._merged(scalars, {"name": self._name}, keep_earlier=True)
        tensors = self._merged(tensors, self._tensors, keep_earlier=True)
        if not any(isinstance(value, list) for value in inputs):
            return unwrap(Node(self, inputs, dict(tensors), dict(scalars)).outputs)
        return self._call_sets(inputs, tensors, scalars)

    def _call_sets(self, inputs, tensors, scalars):
        """Several sets of inputs in one call make several operators that share a seed."""
        length = max(len(value) for value in inputs if isinstance(value, list))
        if any(isinstance(value, list) and len(value) != length for value in inputs):
            raise ValueError(f"lists of arguments for several input sets of operator `{self.display}` differ in length")
        sets = zip(*(value if isinstance(value, list) else [value] * length for value in inputs))
        nodes = [Node(self, list(one), dict(tensors), dict(scalars)) for one in sets]
        for node in nodes:
            node.group = nodes[0].group
        outputs = [node.outputs for node in nodes]
        if len(outputs) == 1:
            return unwrap(outputs[0])
        if len(outputs[0]) == 1:
            return [one[0] for one in outputs]
        return [list(column) for column in zip(*outputs)]


def unwrap(outputs):
    """One output by itself, several as a list."""
    return outputs[0] if len(outputs) == 1 else outputs
