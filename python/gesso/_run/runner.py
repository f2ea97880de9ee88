"""Runs the batches of a built pipeline, in a thread of its own where batches are prepared ahead. Makes `TensorList`s of
what comes out."""

import functools
import threading
from concurrent.futures import Future

from .. import _context
from .._authoring import call_site, serialization
from .._authoring.video_input import DECLARED, TARGET, VideoInput, Videos
from .._native import device_choice, library
from .._native.engine import Engine
from .._native.stream import StreamEngine
from .._tensors.device_array import on_host
from .._tensors.enums import DALIDataType
from .._tensors.tensor_list import TensorListCPU, TensorListGPU
from .._threads.background import Ahead
from .._threads.fork import Process
from . import file_graph, native_readers
from .engines_by_layout import LayoutEngines
from .graph_run import FedRun, StreamRun
from .input_checks import check_consistent
from .python_nodes import is_python, is_source

_DTYPES = {name: dtype for dtype, name in ((d, serialization._dtype_name(d)) for d in list(DALIDataType)[1:13])}
_OTHER = "{} in the output_idx={} does not match. Expected: {}. Received: {}."


def dtype_named(name):
    """The type that descriptions name so, or None."""
    return _DTYPES.get(name)


def failed(error):
    """A batch that failed before it began."""
    future = Future()
    future.set_exception(error)
    return future


def pass_on(done, waiting):
    """Gives the outcome of one future to another."""
    if done.cancelled():
        waiting.cancel()
    elif done.exception() is not None:
        waiting.set_exception(done.exception())
    else:
        waiting.set_result(done.result())


class Execution:
    """What a built pipeline runs on. `inputs`: by name what was declared; `outputs`: (device, dtype, ndim, layout)
    each."""

    def __init__(self, run, inputs, outputs, max_batch_size, on_error, origins):
        self._run = run
        self.inputs = inputs
        self.outputs = outputs
        self._max_batch_size = max_batch_size
        self._on_error = on_error
        self._origins = origins
        self._thread, self._lock = None, threading.Lock()
        # Threads that make a batch.
        self._making = set()
        self.process = Process()
        self.reader_meta = self.reader_history = self.reader_left = _nothing
        # `go_on`: of plans without functions of the program.
        self.skip = self.restart = self.go_on = None

    def submit(self, fed, ahead):
        """Begins a batch, in the background if `ahead`; a future of (outputs, errors)."""
        if ahead:
            # Two threads may be the first: a second `Ahead` would take the calls of one with it.
            with self._lock:
                if self._thread is None:
                    self._thread = Ahead()
            return self._thread.submit(self._batch, fed)
        future = Future()
        try:
            future.set_result(self._batch(fed))
        except BaseException as error:
            future.set_exception(error)
        return future

    def check_outside(self):
        """Raises in a thread that makes a batch: in a function that the batch is made by."""
        if threading.get_ident() in self._making:
            raise RuntimeError(
                "a pipeline was run by a function that it calls itself: it would wait for itself. Let the function use another one."
            )

    def _batch(self, fed):
        batch_size = self._batch_size(fed)
        self._making.add(threading.get_ident())
        try:
            results, errors = self._run(batch_size, fed)
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
        return tuple(
            self._wrap(i, result, declared) for i, (result, declared) in enumerate(zip(results, self.outputs))
        ), errors

    def _batch_size(self, fed):
        if any("videos" in declared for declared in self.inputs.values()):
            # The video says how many.
            return self._max_batch_size
        sizes = {name: len(batch.arrays) for name, batch in fed.items()}
        if len(set(sizes.values())) > 1:
            came = ", ".join(f"`{name}` {size}" for name, size in sizes.items())
            message = f"all inputs of a batch need the same number of samples. Of the external sources came: {came}"
            raise RuntimeError(_context.add_words(message))
        return next(iter(sizes.values()), self._max_batch_size)

    def _wrap(self, index, result, declared):
        arrays, layout, infos = result
        device, dtype, ndim, expected = declared
        if any(array is None for array in arrays):
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
    return (
        f"Critical error in pipeline:\nError in {node.device.upper()} operator `{node.operator.display}`,\nwhich was used in the "
        f"pipeline definition with the following traceback:\n\n{call_site.describe(node.origin)}\n\nencountered:\n\n{lead}{message}"
    )


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
    """The execution of a pipeline that was defined here, which goes on from a saved state."""
    settings, definition = parts.settings, parts.definition
    declared, layouts = definition.declared(settings)
    outputs = [(device, dtype, ndim, layout) for (_, device, dtype, ndim), layout in zip(declared, layouts)]
    inputs, origins = {}, {}
    for node in definition.operators:
        origins[node.name] = node
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
    parameters = {**settings.fields(), "seed": parts.epochs.seed}
    if any(is_python(node) for node in definition.operators):
        graph = _graph_run(parts, parameters, origins, bool(inputs), state)
        run, skip, meta, restart = graph.run, graph.skip, graph.reader_meta, graph.restart
        history, left = graph.reader_history, graph.reader_left
        go_on = None
    else:
        meta, restart, history, left = dict, None, _nothing, _nothing
        engines = LayoutEngines(
            {**definition.description(settings), "seed": parts.epochs.seed}, _opener(settings, origins)
        )
        run, skip, go_on = _whole(engines), _without_history(engines), engines.go_on
    execution = Execution(run, inputs, outputs, settings.batch_size, settings.on_error, origins)
    execution.reader_meta, execution.skip, execution.restart, execution.go_on = meta, skip, restart, go_on
    execution.reader_history, execution.reader_left = history, left
    return execution


def _graph_run(parts, parameters, origins, is_fed, state):
    """What runs a graph with operators of the interpreter."""
    settings, definition = parts.settings, parts.definition
    place, restarts = device_choice.of(settings), parameters["enable_checkpointing"]
    graph = definition.operators, definition.outputs, parameters
    if is_fed or not settings.prepares_ahead or not any(map(is_source, definition.operators)):
        opener, on_gpu = _opener(settings, origins), place.device == library.GPU
        open_engines = lambda description, functions: LayoutEngines(description, opener, functions)
        return FedRun(*graph, open_engines, settings.batch_size, on_gpu)
    begun = state["batches"] if state else 0
    natives = native_readers.chosen(definition.operators, settings, place.device, restarts, state)
    sources = functools.partial(native_readers.SourceStream, definition.operators, settings, place, restarts, begun)
    if natives:
        try:
            return StreamRun(*graph, sources(natives))
        except (library.GessoError, RuntimeError, TypeError, ValueError, OverflowError):
            # The interpreter says what is wrong.
            pass
    try:
        return StreamRun(*graph, sources([]))
    except library.GessoError as error:
        raise RuntimeError(explained(error.text, origins)) from error


def _nothing(*_):
    return {}


def _without_history(engine):
    def skip(batches, readers):
        engine.skip(batches)

    return skip


def _whole(engine):
    def run(batch_size, fed):
        outcome = engine.run(batch_size, list(fed.items()))
        return outcome.outputs, outcome.errors

    return run


def _of_videos(settings, serialized, video, inputs, outputs):
    """The execution of a file that takes videos: a stream of the library's, which is fed."""
    other = next((name for name, declared in inputs.items() if name != video and not declared["repeat_last"]), None)
    if other is not None:
        raise NotImplementedError(
            f"The input `{other}` stands beside a video in a file, and has no `repeat_last=True`: such a file cannot be run."
        )
    limits = {"num_threads": settings.num_threads or 0, "batch_size": settings.batch_size, "prefetch": 1}
    videos = Videos(video, StreamEngine(serialized, *device_choice.of(settings), **limits))
    inputs[video] = {**DECLARED, **{name: inputs[video][name] for name in ("blocking", "no_copy")}, "videos": videos}

    def run(batch_size, fed):
        outcome = videos.next(fed.items())
        return outcome.outputs, outcome.errors

    execution = Execution(run, inputs, outputs, settings.batch_size, settings.on_error, {})
    execution.skip = lambda batches, readers: None
    return execution


def of_file(parts):
    """The execution of a pipeline that came from a file."""
    settings, described = parts.settings, parts.definition.loaded
    serialized = parts.definition.serialized(settings)
    outputs = [
        (output["device"], _DTYPES.get(output["dtype"]), output["ndim"], None) for output in described["outputs"]
    ]
    inputs = {}
    for source in described["inputs"]:
        flags = {name: bool(values and values[0]) for name, values in source.get("arguments", {}).items()}
        inputs[source["name"]] = {
            "dtype": _DTYPES.get(source["dtype"]),
            "ndim": source["ndim"],
            "layout": source["layout"],
            "repeat_last": flags.get("repeat_last", False),
            "blocking": flags.get("blocking", False),
            "no_copy": flags.get("no_copy", False),
        }
    video = next((source["name"] for source in described["inputs"] if source.get("operator") == TARGET), None)
    if video is not None:
        return _of_videos(settings, serialized, video, inputs, outputs)
    if file_graph.reads_videos(described):
        place = device_choice.of(settings)
        # Sequences of frames are large: one batch of them at a time.
        limits = native_readers.lanes(place.device, settings.num_threads, settings.queue_depth, most=1)
        engine = StreamEngine(serialized, *place, batch_size=settings.batch_size, **limits)
        meta = engine.reader_meta
    else:
        engine, meta = LayoutEngines(described, _opener(settings, {})), dict
    execution = Execution(_whole(engine), inputs, outputs, settings.batch_size, settings.on_error, {})
    execution.reader_meta = meta
    execution.skip = _without_history(engine)
    return execution
