"""`Invocation`: one call of an operator, and what it gave. Holds the line of the user's code that a failure names."""

import threading
import types

from .._authoring import call_site
from . import storage as _storage
from .context import EvalContext
from .modes import EvalMode

_WHEN = {
    EvalMode.eager: "An operator failed. It was called at:",
    EvalMode.deferred: "An operator that was deferred failed. It was called at:",
}


def _line_of(origin):
    """A traceback that ends at a line of the user's code."""
    file, line, function = origin
    code = compile("\n" * (line - 1) + "raise LookupError", file, "exec").replace(co_name=function)
    try:
        exec(code, {})
    except LookupError as error:
        own = error.__traceback__.tb_next
        return types.TracebackType(None, own.tb_frame, own.tb_lasti, line)


class Invocation:
    """A call of `operator` (which has `_run`) with tensors or batches. Runs once, when it is asked for, or as the mode
    says."""

    def __init__(self, operator, call_id=None, inputs=None, args=None, is_batch=False, batch_size=None, previous=None):
        self._operator, self._call_id = operator, call_id
        self._inputs, self._args = inputs or [], args or {}
        self._is_batch, self._batch_size = is_batch, batch_size
        # The call of the same operator before, if the order matters.
        self._previous_invocation = previous
        self._results = self._output_devices = self._num_outputs = None
        self._mode = self._origin = None
        self._eval_context = EvalContext.current()
        self._lock = threading.Lock()

    is_batch = property(lambda self: self._is_batch, doc="Whether the results are batches.")

    def __len__(self):
        if self._num_outputs is None:
            self._num_outputs = self._operator._infer_num_outputs(*self._inputs, **self._args)
        return self._num_outputs

    def __getitem__(self, index):
        return InvocationResult(self, index)

    def __iter__(self):
        return (InvocationResult(self, index) for index in range(len(self)))

    def apply_eval_policy(self, has_external_inputs):
        """Runs now, unless it can be deferred. What others may change later (`has_external_inputs`) is read now."""
        mode = EvalMode.current()
        if mode is EvalMode.deferred and not has_external_inputs:
            self._mode, self._origin = mode, call_site.of_caller()
            self._eval_context = self._eval_context._snapshot()
            return
        if not has_external_inputs:
            self._mode = mode
        self.run()
        if mode is EvalMode.sync_full and self._eval_context.cuda_stream is not None:
            self._eval_context.cuda_stream.synchronize()

    def run(self, context=None):
        """Runs, if it did not yet."""
        if self._results is not None:
            return
        try:
            with self._lock:
                self._run(context or self._eval_context)
        except Exception as error:
            if self._mode not in _WHEN:
                raise
            origin = self._origin or call_site.of_caller()
            if not origin:
                raise
            text = f"{_WHEN[self._mode]}\n{call_site.describe(origin[-1:])}\n{error}"
            told = _same_kind(error, text).with_traceback(error.__traceback__)
            raise told from error.with_traceback(_line_of(origin[-1]))

    def _run(self, context):
        if self._results is not None:
            return
        if self._previous_invocation is not None:
            self._previous_invocation.run(context)
            self._previous_invocation = None
        size = self._batch_size if self._is_batch else None
        results = self._operator._run(context, *self._inputs, batch_size=size, **self._args)
        self._results = tuple(results) if isinstance(results, (tuple, list)) else (results,)
        self._num_outputs = len(self._results)
        # What it read may go.
        self._inputs, self._args = [], {}

    def values(self, context=None):
        """What it gave, after it ran."""
        self.run(context)
        return self._results

    def fact(self, name, index):
        """`dtype`, `ndim` or `layout` of a result: as the operator says it without running, else of the result."""
        if self._results is None:
            infer = getattr(self._operator, "_infer", None)
            known = infer(index, self._inputs, self._args).get(name) if infer is not None else None
            if known is not None:
                return known
            self.run()
        value = getattr(self._results[index], name)
        return value if name == "dtype" else value()

    def device(self, index):
        """Where a result will be."""
        if self._results is not None:
            return _storage.device_of(self._results[index])
        if self._output_devices is None:
            self._output_devices = self._operator._infer_output_devices(*self._inputs, **self._args)
        return self._output_devices[index]


def _same_kind(error, text):
    """An error of the same class with another text, and what else it holds."""
    try:
        made = type(error)(text)
    except Exception:  # its class wants more than a text
        return RuntimeError(text)
    made.__dict__.update(error.__dict__)
    return made


class InvocationResult:
    """One result of an invocation."""

    __slots__ = ("_invocation", "_index")

    def __init__(self, invocation, index):
        self._invocation, self._index = invocation, index

    invocation = property(lambda self: self._invocation, doc="The call.")
    index = property(lambda self: self._index, doc="Which result of it.")
    is_batch = property(lambda self: self._invocation.is_batch, doc="Whether it is a batch.")
    device = property(lambda self: self._invocation.device(self._index), doc="Where it will be.")
    ndim = property(lambda self: self._invocation.fact("ndim", self._index), doc="Dimensions of a sample.")
    dtype = property(lambda self: self._invocation.fact("dtype", self._index), doc="The type of the elements.")

    @property
    def layout(self):
        """A letter for each dimension, or None."""
        return self._invocation.fact("layout", self._index) or None

    @property
    def batch_size(self):
        """Samples of the batch, if that is known without running."""
        return self._invocation._batch_size

    @property
    def shape(self):
        """The shape; of a batch that of each sample. Runs the call."""
        shape = self.value().shape()
        return shape if self.is_batch else tuple(shape)

    def value(self, context=None):
        """What it is. Runs the call."""
        return self._invocation.values(context)[self._index]
