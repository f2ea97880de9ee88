"""`Pipeline`: DALI's names for what its parts do. The parts are in `_run.runner`, the decorator in `_pipeline_def`."""

import inspect

from . import _context
from ._authoring import call_site, drawing
from ._authoring.settings import OperatorConcurrency, Settings, StreamPolicy  # noqa: F401
from ._run.runner import Runner
from ._tensors.enums import DALIDataType
from .data_node import DataNode  # noqa: F401
from .types import _raw_cuda_stream

# Arguments that no file has a place for.
OF_GESSO = ("on_error", "gpu_multiprocessors", "deterministic", "formats")


_ARGUMENTS = inspect.signature(Settings).parameters


def _property(field, doc):
    return property(lambda self: getattr(self.runner.settings, field), doc=doc)


class Pipeline:
    """A graph of operators and what runs it.

    Usually made by a function with the decorator `pipeline_def`. By hand: `with pipeline:`, operators,
    `pipeline.set_outputs(...)`; or a subclass with `define_graph`. `build` is called when it is needed.

    `on_error`, `gpu_multiprocessors`, `deterministic` and `formats` are Gesso's, and in no file. `gpu_multiprocessors`:
    how many of the GPU's multiprocessors batches may take, which the driver rounds up, so that a model beside them has
    the others to itself; None: all. `deterministic`: whether a file becomes the same pixels in every run on a GPU,
    whatever runs beside it: its JPEG engines, whose pixels differ by a level, are not used then. `formats`: which
    formats of files are decoded, as a list or a text with commas: `"jpeg,png"` are these alone, `"-avif,-av1"` all but
    these; None: all."""

    def __init__(self, *arguments, **settings):
        # For modules of the package; its own methods are what users call.
        self.runner = Runner(Settings(*arguments, **settings).checked())

    __init__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *_ARGUMENTS.values()]
    )

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

    # --- definition

    def set_outputs(self, *output_data_nodes):
        """Says what the pipeline gives."""
        self.runner.definition.returned = output_data_nodes

    def add_sink(self, edge):
        """Keeps an operator though nothing reads what it makes."""
        self.runner.definition.sinks.append(edge)

    def define_graph(self):
        """Makes the operators and returns the outputs; for subclasses."""
        raise NotImplementedError

    def description(self):
        """What the file will say, as `gesso_describe` says it of a file."""
        self.runner.define(self)
        return self.runner.definition.description(self.runner.settings)

    def serialize(self, define_graph=None, filename=None):
        """The pipeline as the bytes of a file that Gesso and DALI load; also written to `filename`, if that is
        given."""
        if define_graph is not None and not callable(define_graph):
            raise TypeError(
                "Provided `define_graph` argument is not callable."
                + (" A file's name is given as `serialize(filename=...)`." if isinstance(define_graph, str) else "")
            )
        self.runner.define(self, define_graph)
        serialized = self.runner.definition.serialized(self.runner.settings)
        if filename is not None:
            with open(filename, "wb") as file:
                file.write(serialized)
        return serialized

    @classmethod
    def deserialize(cls, serialized_pipeline=None, filename=None, **settings):
        """A pipeline from what `serialize` made, of Gesso or DALI. `settings` are arguments of `Pipeline` and replace
        those of the file."""
        if (serialized_pipeline is None) == (filename is None):
            raise ValueError("expected one of `serialized_pipeline` and `filename`, found both or none")
        if filename is not None:
            with open(filename, "rb") as file:
                serialized_pipeline = file.read()
        for name in settings.keys() - _ARGUMENTS.keys():
            # DALI takes any.
            call_site.warn(f"`{name}` is no argument of a pipeline: `deserialize` leaves it out", UserWarning)
        # What no file says.
        pipeline = cls(**{name: settings[name] for name in OF_GESSO if name in settings})
        pipeline.runner.load(serialized_pipeline, settings)
        return pipeline

    def deserialize_and_build(self, serialized_pipeline):
        """Makes this pipeline what the bytes say; settings that it has stay."""
        own = {name: getattr(self.runner.settings, name) for name in ("batch_size", "num_threads", "device_id")}
        self.runner.load(serialized_pipeline, {name: value for name, value in own.items() if value is not None})
        self.build()

    # --- for people

    def show(self):
        """Prints its operators as a table."""
        print(drawing.as_text(self.description()))

    def _repr_html_(self):
        return drawing.as_html(self.description())

    def save_graph_to_dot_file(self, filename, *, show_tensors=False, show_ids=None, use_colors=False):
        """Writes its graph in the language of Graphviz."""
        if show_ids is not None:
            call_site.warn("The argument `show_ids` has no effect any more.", DeprecationWarning)
        with open(filename, "w", encoding="utf-8") as file:
            file.write(drawing.as_dot(self.description(), show_tensors, use_colors))

    # --- running

    def start_py_workers(self):
        """Starts the worker processes of parallel sources. Call it before anything that does not survive a fork, such
        as CUDA."""
        self.runner.start_workers(self)

    def build(self):
        """Makes all that is needed to run. Called by what needs it."""
        self.runner.build(self)

    def iter_setup(self):
        """Called before each batch, for subclasses that feed inputs there. May raise StopIteration."""

    # Nobody need call that one.
    iter_setup.does_nothing = iter_setup  # type: ignore[attr-defined]

    def input_feed_count(self, input_name):
        """Batches that the input wants before the first run."""
        self.build()
        return self.runner.settings.queue_depth if self.exec_pipelined else 1

    def feed_input(self, data_node, data, layout=None, cuda_stream=None, use_copy_kernel=False):
        """Gives an input its next batch: a list of tensors, or an array whose first dimension counts samples."""
        self.runner.feed(self, data_node, data, layout)

    # Nobody need call that one for data that `run` is given.
    feed_input.only_feeds = feed_input  # type: ignore[attr-defined]

    def enable_api_check(self, enable):
        """Whether `run`, `schedule_run` and iterators may not be mixed."""
        self.runner.is_unchecked = not enable

    def _check_api_type_scope(self, api_type):
        """DALI's name, which its iterators use."""
        return self.runner.scope(api_type)

    def run(self, cuda_stream=None, /, **pipeline_inputs):
        """Runs one batch and returns its outputs. Keyword arguments feed inputs by name; that needs
        `prefetch_queue_depth=1`. `cuda_stream`: a CUDA stream, or its address; outputs are ready for any."""
        if cuda_stream is not None:
            self._check_stream(cuda_stream)
        return self.runner.run(self, pipeline_inputs)

    def schedule_run(self):
        """Begins the next batch; at first, as many as are prepared ahead. `outputs` or `share_outputs` waits for it."""
        self.runner.schedule(self)

    def outputs(self, cuda_stream=None):
        """The outputs of the oldest batch that was begun, a tuple; StopIteration when the epoch is over."""
        if cuda_stream is not None:
            self._check_stream(cuda_stream)
        return self.runner.outputs(self)

    def share_outputs(self, cuda_stream=None):
        """As `outputs`; the memory is the pipeline's until `release_outputs`."""
        return self.outputs(cuda_stream)

    def release_outputs(self):
        """Gives back what `share_outputs` gave."""
        self.runner.check_scheduled(self)

    def _check_stream(self, cuda_stream):
        _raw_cuda_stream(cuda_stream)
        self.runner.settings.require_exec_dynamic("outputs that are not waited for need ")

    def __iter__(self):
        """Batches until the epoch ends: that of the sources, or that of the readers. Then the pipeline is reset, and
        the next loop is the next epoch."""
        self.build()
        end = self.runner.end_of_epoch()
        while end is None or self.runner.epochs.consumed < end:
            try:
                outputs = self.run()
            except StopIteration:
                self.reset()
                return
            yield outputs

    def _shutdown(self):
        """DALI's name. Nothing: what a pipeline runs on goes with its last user."""

    def empty(self):
        """Whether no batch is under way."""
        return not self.runner.begun

    def reset(self):
        """Begins the next epoch, if one has ended."""
        self.runner.reset()

    def restart(self):
        """Begins the next epoch of the readers at once, in the middle of one. Batches that were prepared are thrown
        away."""
        self.build()
        self.runner.restart()

    def checkpoint(self, filename=None):
        """The state of the pipeline, to go on from; also written to `filename`."""
        self.build()
        saved = self.runner.checkpoint()
        if filename is not None:
            with open(filename, "wb") as file:
                file.write(saved)
        return saved

    # --- what it says of itself

    @property
    def errors(self):
        """Errors of samples of the last batch, by their place in it; with `on_error="skip"` or `"mark"`."""
        return self.runner.errors

    @property
    def num_outputs(self):
        """How many outputs there are."""
        self.build()
        return len(self.runner.execution.outputs)

    def output_dtype(self):
        """The declared types of the outputs."""
        self.build()
        dtypes = [dtype for _, dtype, _, _ in self.runner.execution.outputs]
        return [None if dtype in (None, DALIDataType.NO_TYPE) else dtype for dtype in dtypes]

    def output_ndim(self):
        """The declared ranks of the outputs."""
        self.build()
        return [ndim for _, _, ndim, _ in self.runner.execution.outputs]

    def output_stream(self):
        """The stream of the outputs: None, they are done."""
        return None

    def reader_meta(self, name=None):
        """What readers say of their data: of one, or of all by name."""
        self.build()
        meta = self.runner.execution.run.reader_meta()
        if name is None:
            return meta
        if name not in meta:
            raise ValueError(f"There is no reader named `{name}` in the pipeline; it has {sorted(meta)}.")
        return meta[name]

    def epoch_size(self, name=None):
        """Samples of an epoch: of one reader, or of all by name."""
        meta = self.reader_meta(name)
        if name is not None:
            return meta["epoch_size_padded"]
        return {key: value["epoch_size_padded"] for key, value in meta.items()}

    def executor_statistics(self):
        """What DALI counts of memory. Empty."""
        self.build()
        return {}

    def external_source_shm_statistics(self):
        """Shared memory of parallel sources, in bytes."""
        workers = self.runner.sources.workers
        if workers is None:
            return {"capacities": [], "per_sample_capacities": []}
        return workers.statistics(self.max_batch_size)

    def for_operator(self, batch_size):
        """A pipeline that an operator of this one runs: one batch at a time, in the same thread; errors are told by
        sample."""
        settings = {"prefetch_queue_depth": 1, "exec_async": False, "exec_pipelined": False, "on_error": "mark"}
        return Pipeline(batch_size, self.num_threads, None, **settings)

    # --- settings

    max_batch_size = _property("batch_size", "The largest batch.")
    device_id = _property("gpu", "The number of the GPU, or None.")
    num_threads = _property("num_threads", "Worker threads.")
    seed = _property("seed", "The seed of random numbers, or None.")
    exec_pipelined = _property("exec_pipelined", "Whether batches are prepared ahead.")
    exec_async = _property("exec_async", "Whether that happens in another thread.")
    exec_dynamic = _property("exec_dynamic", "Whether the file asks for DALI's dynamic executor.")
    exec_separated = _property("exec_separated", "Whether the queues of CPU and GPU have sizes of their own.")
    stream_policy = _property("stream_policy", "How DALI is to use streams.")
    concurrency = _property("concurrency", "What DALI is to run at the same time.")
    set_affinity = _property("set_affinity", "Whether DALI is to pin its threads.")
    prefetch_queue_depth = _property("prefetch_queue_depth", "Batches that are prepared ahead.")
    cpu_queue_size = _property("cpu_queue_size", "Batches that are prepared ahead on the host.")
    gpu_queue_size = _property("gpu_queue_size", "Batches that are prepared ahead on the GPU.")
    enable_memory_stats = _property("enable_memory_stats", "Whether DALI is to count memory.")
    py_num_workers = _property("py_num_workers", "Worker processes of parallel sources.")
    py_start_method = _property("py_start_method", "How these are started.")
    gpu_multiprocessors = _property(
        "gpu_multiprocessors", "Multiprocessors of the GPU that batches may take, or None for all."
    )
    deterministic = _property("deterministic", "Whether files become the same pixels in every run.")
    formats = _property("formats", "Formats of files that are decoded, or None for all.")
    max_streams = property(lambda self: -1, doc="Not used.")
    default_cuda_stream_priority = property(lambda self: 0, doc="Not used.")
    is_restored_from_checkpoint = property(
        lambda self: self.runner.epochs.is_restored, doc="Whether it goes on from a checkpoint."
    )
    _py_pool = property(lambda self: self.runner.sources.workers, doc="DALI's name of the worker processes.")

    @property
    def batch_size(self):
        """Deprecated: `max_batch_size`."""
        call_site.warn("batch_size is deprecated, please use max_batch_size instead", Warning)
        return self.max_batch_size
