"""`Execution`: the batches of a built pipeline, one after the other, in a thread of its own where they are prepared
ahead. What comes out becomes `TensorList`s, and what goes wrong the user's lines."""

import threading

from .. import _context
from .._authoring import serialization
from .._authoring.video_input import DECLARED, VideoInput
from .._native import device_choice, library
from .._native.engine import Engine
from .._tensors.device_array import on_host
from .._tensors.enums import DALIDataType
from .._tensors.tensor_list import TensorListCPU, TensorListGPU
from .._threads.background import Ahead
from .._threads.fork import Process
from .._threads.outcome import Outcome
from . import checkpoint, native_readers
from .epochs import Taken
from .fed_run import FedRun
from .input_checks import check_consistent
from .python_nodes import in_operator, is_reader, is_source
from .stream_run import StreamRun

_DTYPES = {name: dtype for dtype, name in ((d, serialization._dtype_name(d)) for d in list(DALIDataType)[1:13])}
_OTHER = "{} in the output_idx={} does not match. Expected: {}. Received: {}."


def dtype_named(name):
    """The type that descriptions name so, or None."""
    return _DTYPES.get(name)


class Begun(Outcome):
    """A batch that was begun: its outputs and errors of samples, and what it takes."""

    __slots__ = ("taken",)

    def __init__(self):
        super().__init__()
        self.taken = Taken()


def failed(error):
    """A batch that failed before it began."""
    outcome = Begun()
    outcome.set_exception(error)
    return outcome


class Execution:
    """What a built pipeline runs on. `run`: a `Run`; `inputs`: by name what was declared; `outputs`: (device, dtype,
    ndim, layout) each."""

    def __init__(self, run, inputs, outputs, max_batch_size, on_error, origins):
        self.run = run
        self.inputs = inputs
        self._takes_videos = any("videos" in declared for declared in inputs.values())
        self.outputs = outputs
        self._max_batch_size = max_batch_size
        self._on_error = on_error
        self._origins = origins
        self._thread, self._lock = None, threading.Lock()
        # Threads that make a batch.
        self._making = set()
        self.process = Process()

    def submit(self, fed, ahead, outcome=None):
        """Begins a batch, in the background if `ahead`; its outcome, a `Begun`, which may be there before."""
        outcome = outcome or Begun()
        if ahead:
            # Two threads may be the first: a second `Ahead` would take the calls of one with it.
            with self._lock:
                if self._thread is None:
                    self._thread = Ahead()
            return self._thread.submit_for(outcome, self.make, fed, outcome.taken)
        try:
            result = self.make(fed, outcome.taken)
        except BaseException as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)
        return outcome

    def check_outside(self):
        """Raises in a thread that makes a batch: in a function that the batch is made by."""
        if threading.get_ident() in self._making:
            raise RuntimeError(
                "a pipeline was run by a function that it calls itself: it would wait for itself. Let the function use another one."
            )

    def make(self, fed, taken):
        """The outputs of a batch, and errors of its samples. `taken`, a `Taken`, is told what it takes."""
        batch_size = self._batch_size(fed)
        self._making.add(threading.get_ident())
        try:
            results, errors = self.run.run(batch_size, fed, taken)
        except library.GessoError as error:
            raise RuntimeError(explained(error.text, self._origins)) from error
        finally:
            self._making.discard(threading.get_ident())
        if errors and self._on_error == "raise":
            index = min(errors)
            raise RuntimeError(self._explained(errors[index], index))
        if errors and self._on_error == "skip":
            results = [
                ([array for array in arrays if array is not None], layout, None) for arrays, layout, _ in results
            ]
        made = []
        for result, declared in zip(results, self.outputs):
            made.append(self._wrap(len(made), result, declared, bool(errors)))
        return tuple(made), errors

    def _batch_size(self, fed):
        if self._takes_videos:
            # The video says how many.
            return self._max_batch_size
        size = None
        for batch in fed.values():
            if size is None:
                size = len(batch.arrays)
            elif size != len(batch.arrays):
                came = ", ".join(f"`{name}` {len(batch.arrays)}" for name, batch in fed.items())
                message = f"all inputs of a batch need the same number of samples. Of the external sources came: {came}"
                raise RuntimeError(_context.add_words(message))
        return self._max_batch_size if size is None else size

    def _wrap(self, index, result, declared, may_have_gaps):
        arrays, layout, infos = result
        device, dtype, ndim, expected = declared
        if may_have_gaps and any(array is None for array in arrays):
            shape = (0,) * max((array.ndim for array in arrays if array is not None), default=1)
            kind = next((array.dtype for array in arrays if array is not None), "u1")
            import numpy as np

            arrays = [np.zeros(shape, kind) if array is None else array for array in arrays]
        if device == "cpu":
            # The library leaves what is made on a GPU there; the author wants it on the host.
            arrays = [on_host(array) for array in arrays]
        kind = TensorListGPU if device == "gpu" else TensorListCPU
        batch = kind._of(arrays, layout, infos=infos)
        if arrays and ndim is not None and batch.ndim() != ndim:
            raise RuntimeError(_OTHER.format("Number of dimensions", index, ndim, batch.ndim()))
        if arrays and dtype not in (None, DALIDataType.NO_TYPE) and batch.dtype != dtype:
            raise RuntimeError(_OTHER.format("Data type", index, dtype.name, batch.dtype.name))
        if expected and arrays and layout != expected:
            raise RuntimeError(_OTHER.format("Layout", index, expected, layout))
        return batch

    def _explained(self, message, index):
        return explained(message, self._origins, f"Sample {index} of the batch failed: ")


def explained(text, origins, lead=""):
    """An error of the library, an `ErrorText`, with the user's lines where it names an operator or an input."""
    message = _context.add_words(text)
    # Two operators that run as one are called `first + second`.
    node = next((origins[name] for name in (*text.operator.split(" + "), text.source) if name in origins), None)
    if node is None:
        return f"Critical error in pipeline:\n{lead}{message}"
    return in_operator(node, lead + message)


def _opener(settings, origins):
    # Nothing here keeps the pipeline: when its last user lets it go, it is gone at once, and its worker processes with
    # it.
    place, threads = device_choice.of(settings), settings.num_threads or 0

    def open_engine(serialized, functions=None):
        try:
            return Engine(serialized, *place, num_threads=threads, outputs_on_host=False, functions=functions)
        except library.GessoError as error:
            raise RuntimeError(explained(error.text, origins)) from error

    return open_engine


def of_graph(parts, state=None):
    """The execution of a pipeline, which goes on from a saved state."""
    settings, definition = parts.settings, parts.definition
    declared, layouts = definition.declared(settings)
    outputs = [(device, dtype, ndim, layout) for (_, device, dtype, ndim), layout in zip(declared, layouts)]
    origins = {node.name: node for node in definition.operators}
    inputs = _inputs(definition.operators)
    if state is not None:
        # Who takes videos has no data set of its own.
        readers = [node.name for node in definition.operators if is_reader(node) and node.name not in inputs]
        checkpoint.check_readers(state, readers)
    run = _run_of(parts, origins, bool(inputs), state)
    return Execution(run, inputs, outputs, settings.batch_size, settings.on_error, origins)


def _inputs(operators):
    """What the inputs are declared to be, by name."""
    inputs = {}
    for node in operators:
        if node.schema.target == serialization.SOURCE:
            dtype = node.values_of("dtype")
            inputs[node.name] = {
                "dtype": None if dtype is None else DALIDataType(dtype),
                "ndim": node.values_of("ndim"),
                "layout": node.values_of("layout", ""),
                "repeat_last": node.values_of("repeat_last", False),
                "blocking": node.values_of("blocking", False),
            }
            check_consistent(inputs[node.name])
        elif isinstance(node.operator, VideoInput):
            flags = {name: node.values_of(name, False) for name in ("blocking", "no_copy")}
            inputs[node.name] = {**DECLARED, **flags, "videos": node}
    return inputs


def _run_of(parts, origins, is_fed, state):
    """What runs the graph."""
    settings, definition = parts.settings, parts.definition
    place, parameters = device_choice.of(settings), {**settings.fields(), "seed": parts.epochs.seed}
    if is_fed or not settings.prepares_ahead or not any(map(is_source, definition.operators)):
        on_gpu = place.device == library.GPU
        return FedRun(definition, settings, parameters, _opener(settings, origins), on_gpu)
    restarts = parameters["enable_checkpointing"]
    natives = native_readers.chosen(definition.operators, settings, place.device, restarts, state)
    if natives:
        try:
            return StreamRun(definition, settings, parameters, place, natives, state)
        except (library.GessoError, RuntimeError, TypeError, ValueError, OverflowError):
            # The interpreter says what is wrong.
            pass
    try:
        return StreamRun(definition, settings, parameters, place, [], state)
    except library.GessoError as error:
        raise RuntimeError(explained(error.text, origins)) from error
