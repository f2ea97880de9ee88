"""`Calls`: the operators of a definition in debug mode, in the order in which it calls them. `call` is what functions
of operators come to instead of adding to a graph."""

import inspect
import random

from .. import _context
from .._authoring import call_site, graph, seeds
from . import branches
from .call import Call
from .given import BATCH, CONSTANT, SET, classify
from .node import DataNodeDebug

_ORDER = "Unexpected operator '{}'. Debug mode does not support changing the order of operators executed within the pipeline."
_NOT_OURS = (
    "Debug mode with conditional execution (when `enable_conditionals=True`) doesn't allow for modification of operator outputs by "
    "libraries other than DALI or using the TensorLists extracted via `.get()` as inputs. Expected `DataNodeDebug` as an input, got {} at {}."
)
_SETS = "Multiple input sets are not supported with conditional execution (when `enable_conditionals=True`)."
# Operators that read wherever their input is.
_ANYWHERE = ("Copy", "Shapes", "_Shape")
# Arguments of external sources that debug mode needs not.
_UNUSED = ("parallel", "prefetch_queue_depth", "no_copy", "use_copy_kernel", "cuda_stream")


class Calls:
    """What a definition called in its first run, and where it is in this one. `settings`: those of a pipeline that
    each operator gets."""

    def __init__(self, settings, seed):
        self._settings, self._calls, self._sources, self._early = settings, [], {}, {}
        self._seeds = seeds.seed_sequence(random.getrandbits(32) if seed is None or seed < 0 else seed)
        self._drawn = self._next = 0
        # Samples of the batch at hand, once known; whether the definition splits batches itself.
        self._size, self._is_split = None, False
        self._is_first = True

    def __bool__(self):
        return not self._is_first

    def run(self, definition):
        """The outputs of one run of a definition."""
        self._next, self._size = 0, None
        returned = definition()
        if returned is None:
            returned = ()
        nodes = graph.as_outputs(returned if isinstance(returned, tuple) else (returned,))
        self._is_first = False
        return tuple(node.get() for node in nodes)

    # --- operators

    def call(self, function, inputs, keywords):
        """What an operator returns."""
        conditions, name = _context.conditions(), function.__name__
        schema = getattr(getattr(function, "_operator_class", None), "schema", None)
        keywords = {key: value for key, value in keywords.items() if value is not None}
        if conditions is not None:
            self._check_ours(inputs, keywords)
            inputs, keywords = conditions.use_all(inputs, keywords)
            if schema is not None:
                conditions.add_scope(schema, keywords)
        given = [classify(value, f"Input {i}") for i, value in enumerate(inputs)]
        named = {key: classify(value, f"Argument '{key}'") for key, value in keywords.items()}
        self._check_sets(given, name)
        _check_devices(schema, given, named, name)
        made = self._at_once(schema, given, named)
        if made is None:
            self._check_sizes(given, conditions, name)
            made = self._through(function, schema, name, given, named)
        has_inputs = any(one.kind != CONSTANT for one in (*given, *named.values()))
        outputs, label, call = made
        return self._finish(outputs, label, call, conditions, has_inputs)

    def _at_once(self, schema, given, named):
        """What splits and merges give; None of others."""
        if schema is None or schema.name not in ("_conditional__Split", "_conditional__Merge"):
            return None
        batches = [branches.as_batch(one.data) for one in (*given, named["predicate"])]
        index, _ = self._at(schema.function_name, lambda: None)
        name = f"{schema.function_name}_{index}"
        if schema.name == "_conditional__Merge":
            return [branches.merge(*batches)], name, None
        self._is_split = self._is_split or "_if_stmt" not in named
        return branches.split(*batches), name, None

    def _through(self, function, schema, name, given, named):
        """What the call of a pipeline of its own gives."""
        index, call = self._at(name, lambda: self._made(function, schema, name, given, named))
        call.check(given, named)
        return call.run(given, named, self._size), f"{name}_{index}", call

    def _at(self, name, make):
        """The call at this place of a definition, with its number: made in the first run, the same one in others."""
        index, origin = self._next, call_site.of_caller()[-1:]
        self._next += 1
        if self._is_first and index == len(self._calls):
            self._calls.append((name, origin, make()))
        if index >= len(self._calls) or self._calls[index][:2] != (name, origin):
            raise RuntimeError(_ORDER.format(name))
        return index, self._calls[index][2]

    def _made(self, function, schema, name, given, named):
        """A call that was not there yet."""
        if schema is not None and schema.random and "seed" not in named:
            # As a file of all of them gives it.
            function = _with_seed(function, self._seeds[self._drawn % len(self._seeds)])
            self._drawn += 1
        has_batches = any(one.kind != CONSTANT for one in (*given, *named.values()))
        is_reader = schema is not None and "readers" in schema.modules
        is_sized = not (has_batches or is_reader) and self._size is not None
        return Call(self._settings, function, name, given, named, is_sized)

    def _finish(self, outputs, name, call, conditions, has_inputs):
        """The outputs as nodes, in the form that the operator's function returns."""
        if self._size is None and outputs:
            self._size = len(outputs[0])
        suffixes = [f"[{i}]" for i in range(len(outputs))] if len(outputs) > 1 else [""]
        nodes = [DataNodeDebug(data, name + suffix, call) for data, suffix in zip(outputs, suffixes)]
        if conditions is not None:
            conditions.register(nodes, has_inputs=has_inputs)
        if call is not None:
            return call.shaped(nodes)
        return nodes[0] if len(nodes) == 1 else nodes

    # --- checks

    def _check_ours(self, inputs, keywords):
        for where, value in (*enumerate(inputs), *keywords.items()):
            given = classify(value, where)
            if given.kind == SET:
                raise ValueError(_SETS)
            if given.kind == BATCH and not given.is_node:
                place = f"input {where}" if isinstance(where, int) else f"argument '{where}'"
                raise ValueError(_NOT_OURS.format(type(value), place))

    def _check_sets(self, given, name):
        lengths = {len(one.data) for one in given if one.kind == SET}
        if len(lengths) > 1:
            raise ValueError(
                f"All argument lists for Multiple Input Sets used with operator '{name}' must have the same length."
            )

    def _check_sizes(self, given, conditions, name):
        """The inputs of all operators have as many samples, outside of branches."""
        if conditions is not None or self._is_split:
            return
        for i, one in enumerate(given):
            for batch in one.batches():
                if self._size is None:
                    self._size = len(batch)
                if len(batch) != self._size:
                    raise RuntimeError(
                        f"Batch size must be uniform across an iteration. Input {i} for operator '{name}' has batch size = {len(batch)}, "
                        f"expected {self._size}."
                    )

    # --- sources

    def source(self, function, source, num_outputs, keywords):
        """What an external source gives next."""
        name = "external_source"
        index, call = self._at(name, lambda: self._made_source(function, name, source, num_outputs, keywords))
        outputs = call.run([], {}, None)
        size = len(outputs[0])
        if self._size is not None and size != self._size:
            raise RuntimeError(
                f"Batch size must be uniform across an iteration. External Source operator returned batch size: {size}, expected: "
                f"{self._size}. Call external sources before other operators: their batches may have another size in each run."
            )
        label = keywords.get("name") or f"{name}_{index}"
        return self._finish(outputs, label, call, _context.conditions(), False)

    def _made_source(self, function, name, source, num_outputs, keywords):
        """The call of an external source that was not there yet; it gets what was fed before."""
        own = _used(function, keywords)
        call = Call(self._settings, lambda: function(source, num_outputs, **own), name, [], {})
        if "name" in own:
            self._sources[own["name"]] = call
            for data, layout in self._early.pop(own["name"], ()):
                call.feed(own["name"], data, layout)
        return call

    def feed(self, name, data, layout):
        """Gives an external source its next batch; keeps it for one that was not called yet."""
        if name in self._sources:
            self._sources[name].feed(name, data, layout)
        elif not self._is_first:
            raise KeyError(f'Could not find an input operator with name "{name}". There are {sorted(self._sources)}.')
        else:
            self._early.setdefault(name, []).append((data, layout))

    def reset(self):
        """Begins the next epoch, where one has ended."""
        for call in self._through_pipelines():
            call.reset()

    def reader_meta(self):
        """What readers say of their data, by name."""
        return {name: meta for call in self._through_pipelines() for name, meta in call.reader_meta().items()}

    def _through_pipelines(self):
        return [call for _, _, call in self._calls if call is not None]


def _check_devices(schema, given, named, name):
    """An operator that is told to run on the CPU reads there, if it cares."""
    device = named.get("device")
    if schema is None or device is None or device.data != "cpu" or schema.name in _ANYWHERE:
        return
    for i, one in enumerate(given):
        if one.device == "gpu" and schema.input_devices.get(str(i)) != "gpu":
            raise RuntimeError(
                f"Input {i} for CPU operator '{name}' has an incompatible device \"gpu\": use `.cpu()`, or leave out `device`."
            )


def _used(function, keywords):
    """Arguments of an external source that have an effect here."""
    used = {}
    for key, value in keywords.items():
        if key in _UNUSED or key not in inspect.signature(function).parameters:
            call_site.warn(f"`{key}` of an external source has no effect in debug mode", UserWarning)
        elif value is not None:
            used[key] = value
    return used


def _with_seed(function, seed):
    return lambda *nodes, **named: function(*nodes, seed=seed, **named)
