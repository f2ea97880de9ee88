"""`Pipeline`: its settings, its definition, its file. Running is in `_run.running`, the decorator in
`_pipeline_def`."""

import copy
import inspect
from enum import Enum

from . import _context, types
from ._authoring import call_site as _call_site
from ._authoring import drawing as _drawing
from ._authoring import graph as _graph
from ._authoring import serialization as _serialization
from ._authoring.settings import (
    check_output_declarations,
    count_of_multiprocessors,
    executor_flags,
    executor_type,
    integer,
    list_of_formats,
    wishes,
)
from ._readers import features
from ._run.running import Running
from .data_node import DataNode  # noqa: F401


class StreamPolicy(Enum):
    """How DALI gives streams to operators. Kept in files; Gesso needs none."""

    UNSPECIFIED = 0
    SINGLE = 16
    PER_BACKEND = 32
    PER_OPERATOR = 48


class OperatorConcurrency(Enum):
    """Which operators DALI runs at the same time. Kept in files."""

    UNSPECIFIED = 0
    NONE = 2
    BACKEND = 4
    FULL = 6


# Arguments that no file has a place for.
OF_GESSO = ("on_error", "gpu_multiprocessors", "deterministic", "formats")


class Pipeline(Running):
    """A graph of operators and what runs it.

    Usually made by a function with the decorator `pipeline_def`. By hand: `with pipeline:`, operators,
    `pipeline.set_outputs(...)`; or a subclass with `define_graph`. `build` is called when it is needed.

    `on_error`, `gpu_multiprocessors`, `deterministic` and `formats` are Gesso's, and in no file. `gpu_multiprocessors`:
    how many of the GPU's multiprocessors batches may take, which the driver rounds up, so that a model beside them has
    the others to itself; None: all. `deterministic`: whether a file becomes the same pixels in every run on a GPU,
    whatever runs beside it: its JPEG engines, whose pixels differ by a level, are not used then. `formats`: which
    formats of files are decoded, as a list or a text with commas: `"jpeg,png"` are these alone, `"-avif,-av1"` all but
    these; None: all."""

    def __init__(
        self,
        batch_size=None,
        num_threads=None,
        device_id=None,
        seed=None,
        exec_pipelined=True,
        prefetch_queue_depth=2,
        exec_async=True,
        bytes_per_sample=0,
        set_affinity=False,
        max_streams=None,
        default_cuda_stream_priority=None,
        *,
        enable_memory_stats=False,
        enable_checkpointing=False,
        checkpoint=None,
        py_num_workers=1,
        py_start_method="fork",
        py_callback_pickler=None,
        output_dtype=None,
        output_ndim=None,
        output_layout=None,
        exec_dynamic=None,
        experimental_exec_dynamic=None,
        stream_policy=None,
        concurrency=None,
        on_error="raise",
        gpu_multiprocessors=None,
        deterministic=False,
        formats=None,
    ):
        if experimental_exec_dynamic is not None:
            _call_site.warn("experimental_exec_dynamic is deprecated, please use exec_dynamic instead", Warning)
            exec_dynamic = experimental_exec_dynamic
        if default_cuda_stream_priority is not None:
            _call_site.warn("`default_cuda_stream_priority` does nothing any more.", Warning)
        if max_streams is not None:
            _call_site.warn("`max_streams` does nothing any more.", Warning)
        batch_size, num_threads, device_id = (
            integer("batch_size", batch_size),
            integer("num_threads", num_threads),
            integer("device_id", device_id),
        )
        seed, bytes_per_sample = integer("seed", seed), integer("bytes_per_sample", bytes_per_sample)
        if seed is not None and seed < 0:
            _call_site.warn(
                "a negative `seed` is an old way to say that there is none: leave it out, or give None.", UserWarning
            )
            seed = None
        if on_error not in ("raise", "skip", "mark"):
            raise ValueError(f'`on_error` must be "raise", "skip" or "mark", got {on_error!r}.')
        self._gpu_multiprocessors = count_of_multiprocessors(gpu_multiprocessors)
        self._deterministic = bool(deterministic)
        self._formats = list_of_formats(formats)
        if py_callback_pickler is not None and py_start_method == "fork":
            raise ValueError("`py_callback_pickler` is given, and workers are started by fork, which pickles nothing.")
        self._max_batch_size = batch_size
        self._num_threads = num_threads
        self._device_id = device_id
        self._seed = seed
        self._exec_pipelined = exec_pipelined
        self._exec_async = exec_async
        self._bytes_per_sample = bytes_per_sample
        self._set_affinity = set_affinity
        self._stream_policy = stream_policy
        self._concurrency = concurrency
        self._py_num_workers = py_num_workers
        self._py_start_method = py_start_method
        self._py_callback_pickler = py_callback_pickler
        self._enable_memory_stats = enable_memory_stats
        self._enable_checkpointing = enable_checkpointing
        self._checkpoint = checkpoint
        self._on_error = on_error
        self._take_queue_depth(prefetch_queue_depth)
        self._exec_dynamic = exec_dynamic
        if exec_dynamic is None and exec_pipelined and exec_async and not self._exec_separated:
            self._exec_dynamic = True
        self._executor_type = executor_type(exec_pipelined, exec_async, self._exec_separated, self._exec_dynamic)
        self._executor_flags = executor_flags(set_affinity, stream_policy, concurrency)
        check_output_declarations(output_dtype, output_ndim, output_layout)
        self._output_dtype = output_dtype
        self._output_ndim = output_ndim
        self._output_layout = output_layout
        self._id_counter = 0
        self._sinks = []
        self._graph_out = None
        self._operators = None
        self._graph_outputs = None
        self._conditions = None
        self._bytes = None
        self._start_running()

    def _take_queue_depth(self, depth):
        self._prefetch_queue_depth = depth
        self._exec_separated = isinstance(depth, dict)
        if self._exec_separated:
            if not self._exec_async:
                raise ValueError("separate queues (`prefetch_queue_depth` as a dictionary) need `exec_async`")
            self._cpu_queue_size, self._gpu_queue_size = depth["cpu_size"], depth["gpu_size"]
        elif type(depth) is int:
            self._cpu_queue_size = self._gpu_queue_size = depth
        else:
            raise TypeError(
                f"`prefetch_queue_depth` is {depth!r}, expected an int, or a dictionary with `cpu_size` and `gpu_size`"
            )
        if min(self._cpu_queue_size, self._gpu_queue_size) < 1:
            raise ValueError(f"`prefetch_queue_depth` must be at least 1, got {depth}.")

    def _take_wishes(self, flags, settings):
        """What a file asks of DALI's executor; `settings` come first."""
        affinity, policy, concurrency = wishes(flags)
        given = settings.get
        self._set_affinity = affinity if given("set_affinity") is None else given("set_affinity")
        self._stream_policy = StreamPolicy(policy) if given("stream_policy") is None else given("stream_policy")
        self._concurrency = OperatorConcurrency(concurrency) if given("concurrency") is None else given("concurrency")

    # --- which pipeline operators are added to

    @staticmethod
    def current():
        """The pipeline that is being defined by this thread, or None."""
        return _context.current()

    @staticmethod
    def push_current(pipeline):
        """Makes `pipeline` the current one; returns the one before."""
        return _context.push(pipeline)

    @staticmethod
    def pop_current():
        """Goes back to the pipeline before."""
        _context.pop()

    def __enter__(self):
        _context.push(self)
        return self

    def __exit__(self, *_):
        _context.pop()

    def _next_id(self):
        number = self._id_counter
        self._id_counter += 1
        return number

    def _require_exec_dynamic(self, message):
        if self._exec_dynamic:
            return
        if self._exec_separated:
            reason = "does not go with separate queues for the CPU and the GPU"
        elif not self._exec_async or not self._exec_pipelined:
            reason = "needs `exec_async` and `exec_pipelined`"
        else:
            reason = "is switched off in this pipeline"
        raise RuntimeError(f"{message}the dynamic executor, which {reason}.")

    # --- definition

    def set_outputs(self, *output_data_nodes):
        """Says what the pipeline gives."""
        self._graph_out = output_data_nodes

    def add_sink(self, edge):
        """Keeps an operator though nothing reads what it makes."""
        self._sinks.append(edge)

    def define_graph(self):
        """Makes the operators and returns the outputs; for subclasses."""
        raise NotImplementedError

    def _build_graph(self, define_graph=None):
        if self._operators is not None:
            return
        if define_graph is not None and self._graph_out is not None:
            raise RuntimeError("the graph is defined twice: by `set_outputs`, and by the `define_graph` of `build`")
        outputs = self._graph_out
        if not outputs:
            with self:
                outputs = (define_graph or self.define_graph)()
        outputs = _graph.as_outputs(outputs)
        operators = _graph.collect(outputs + self._sinks)
        _graph.require_unique_names(self, operators)
        _graph.forbid_foreign(self, operators)
        if self._enable_checkpointing:
            _graph.require_own(self, operators, "The pipeline does not support checkpointing")
        self._graph_outputs = outputs
        self._operators = operators
        self._collect_sources()

    def _declared_outputs(self):
        count = len(self._graph_outputs)

        def each(value):
            return list(value) if isinstance(value, (list, tuple)) else [value] * count

        dtypes, ndims, layouts = each(self._output_dtype), each(self._output_ndim), each(self._output_layout)
        if not len(dtypes) == len(ndims) == count:
            raise RuntimeError(
                f"Lengths of `output_dtype` ({len(dtypes)}), `output_ndim` ({len(ndims)}) and the graph's outputs ({count}) do not match"
            )
        nodes = self._graph_outputs
        return [(node.name, node.device, dtype, ndim) for node, dtype, ndim in zip(nodes, dtypes, ndims)], layouts

    def _parameters(self):
        """How it runs, as the fields of a description."""
        return {
            "max_batch_size": None if self._max_batch_size is None else int(self._max_batch_size),
            "num_threads": None if self._num_threads is None else int(self._num_threads),
            "device_id": self._device_id,
            "seed": None if self._seed is None else int(self._seed),
            "enable_checkpointing": bool(self._enable_checkpointing),
            "executor_type": self._executor_type,
            "executor_flags": self._executor_flags,
            "prefetch_queue_depth_cpu": self._cpu_queue_size,
            "prefetch_queue_depth_gpu": self._gpu_queue_size,
            "bytes_per_sample_hint": self._bytes_per_sample,
        }

    def description(self):
        """What the file will say, as `gesso_describe` says it of a file."""
        if self._description is not None:
            return self._description
        self._build_graph()
        return _serialization.describe(self._operators, self._declared_outputs()[0], self._parameters())

    def serialize(self, define_graph=None, filename=None):
        """The pipeline as the bytes of a file that Gesso and DALI load; also written to `filename`, if that is
        given."""
        if define_graph is not None and not callable(define_graph):
            raise TypeError(
                "Provided `define_graph` argument is not callable."
                + (" A file's name is given as `serialize(filename=...)`." if isinstance(define_graph, str) else "")
            )
        if self._bytes is None:
            self._build_graph(define_graph)
            self._bytes = features.of_nodes(_serialization.write(self.description()), self._operators)
        if filename is not None:
            with open(filename, "wb") as file:
                file.write(self._bytes)
        return self._bytes

    @classmethod
    def deserialize(cls, serialized_pipeline=None, filename=None, **settings):
        """A pipeline from what `serialize` made, of Gesso or DALI. `settings` are arguments of `Pipeline` and replace
        those of the file."""
        if (serialized_pipeline is None) == (filename is None):
            raise ValueError("expected one of `serialized_pipeline` and `filename`, found both or none")
        if filename is not None:
            with open(filename, "rb") as file:
                serialized_pipeline = file.read()
        for name in settings.keys() - inspect.signature(Pipeline.__init__).parameters.keys():
            # DALI takes any.
            _call_site.warn(f"`{name}` is no argument of a pipeline: `deserialize` leaves it out", UserWarning)
        # What no file says.
        pipeline = cls(**{name: settings[name] for name in OF_GESSO if name in settings})
        pipeline._load(serialized_pipeline, settings)
        return pipeline

    def deserialize_and_build(self, serialized_pipeline):
        """Makes this pipeline what the bytes say; settings that it has stay."""
        own = {
            "batch_size": self._max_batch_size,
            "num_threads": None if self._num_threads is None else int(self._num_threads),
            "device_id": self._device_id,
        }
        self._load(serialized_pipeline, {key: value for key, value in own.items() if value is not None})
        self.build()

    # --- for people

    def show(self):
        """Prints its operators as a table."""
        print(_drawing.as_text(self.description()))

    def _repr_html_(self):
        return _drawing.as_html(self.description())

    def save_graph_to_dot_file(self, filename, *, show_tensors=False, show_ids=None, use_colors=False):
        """Writes its graph in the language of Graphviz."""
        if show_ids is not None:
            _call_site.warn("The argument `show_ids` has no effect any more.", DeprecationWarning)
        with open(filename, "w", encoding="utf-8") as file:
            file.write(_drawing.as_dot(self.description(), show_tensors, use_colors))

    def _for_operator(self, batch_size):
        """A pipeline that an operator of this one runs: one batch at a time, in the same thread; errors are told by
        sample."""
        settings = {"prefetch_queue_depth": 1, "exec_async": False, "exec_pipelined": False, "on_error": "mark"}
        return Pipeline(batch_size, self._num_threads, None, **settings)

    def _stub(self):
        """A copy that cannot be run: what operators see of their pipeline inside of a callback."""
        stub = copy.copy(self)

        def forbidden(*_, **__):
            raise RuntimeError("this cannot be called here")

        names = (
            "build",
            "run",
            "schedule_run",
            "outputs",
            "share_outputs",
            "release_outputs",
            "add_sink",
            "set_outputs",
        )
        for name in (*names, "start_py_workers", "checkpoint", "executor_statistics"):
            setattr(stub, name, forbidden)
        return stub


def _property(name, doc, field=None):
    def get(self):
        return getattr(self, field or f"_{name}")

    get.__doc__ = doc
    return property(get)


for _name, _doc in {
    "max_batch_size": "The largest batch.",
    "num_threads": "Worker threads.",
    "seed": "The seed of random numbers, or None.",
    "exec_pipelined": "Whether batches are prepared ahead.",
    "exec_async": "Whether that happens in another thread.",
    "exec_dynamic": "Whether the file asks for DALI's dynamic executor.",
    "exec_separated": "Whether the queues of CPU and GPU have sizes of their own.",
    "stream_policy": "How DALI is to use streams.",
    "concurrency": "What DALI is to run at the same time.",
    "set_affinity": "Whether DALI is to pin its threads.",
    "prefetch_queue_depth": "Batches that are prepared ahead.",
    "cpu_queue_size": "Batches that are prepared ahead on the host.",
    "gpu_queue_size": "Batches that are prepared ahead on the GPU.",
    "enable_memory_stats": "Whether DALI is to count memory.",
    "py_num_workers": "Worker processes of parallel sources.",
    "py_start_method": "How these are started.",
    "gpu_multiprocessors": "Multiprocessors of the GPU that batches may take, or None for all.",
    "deterministic": "Whether files become the same pixels in every run.",
    "formats": "Formats of files that are decoded, or None for all.",
    "is_restored_from_checkpoint": "Whether it goes on from a checkpoint.",
}.items():
    setattr(Pipeline, _name, _property(_name, _doc))
Pipeline._py_pool = property(lambda self: self._workers, doc="DALI's name of the worker processes.")
Pipeline.max_streams = property(lambda self: -1, doc="Not used.")
Pipeline.default_cuda_stream_priority = property(lambda self: 0, doc="Not used.")


def _device_id(self):
    """The number of the GPU, or None."""
    return None if self._device_id == types.CPU_ONLY_DEVICE_ID else self._device_id


def _batch_size(self):
    """Deprecated: `max_batch_size`."""
    _call_site.warn("batch_size is deprecated, please use max_batch_size instead", Warning)
    return self._max_batch_size


Pipeline.device_id = property(_device_id)
Pipeline.batch_size = property(_batch_size)
