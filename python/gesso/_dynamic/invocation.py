"""`Invocation`: one call of an operator, and what it gave. Holds the line of the user's code that a failure names."""

import functools
import threading
import types
import weakref

from .._authoring import call_site
from . import batching, expressions
from . import storage as _storage
from .context import EvalContext
from .modes import EvalMode, current_loop

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
        self.operator, self._call_id = operator, call_id
        self.inputs, self.args = inputs or [], args or {}
        self.is_batch, self.batch_size = is_batch, batch_size
        # The call of the same operator before, if the order matters.
        self._previous_invocation = previous
        self._results = self._output_devices = self._num_outputs = None
        self._mode = self._origin = self._consumers = None
        # Where it is in an expression that ran and did not keep its results.
        self.within = None
        # Whether its results were asked for, and not only needed by others.
        self.is_asked = False
        self._eval_context = EvalContext.current()
        self._lock = threading.Lock()

    is_waiting = property(lambda self: self._results is None, doc="Whether it did not run yet.")

    @functools.cached_property
    def step(self):
        """How it is a part of a plan of several calls; None if it runs alone."""
        found = getattr(self.operator, "_step", None)
        return found(self.inputs) if found is not None and self._previous_invocation is None else None

    def tensors(self):
        """The tensors and batches that it reads."""
        return [value for value in (*self.inputs, *self.args.values()) if batching.is_ours(value)]

    def is_awaited(self, others):
        """Whether calls that are not among `others` wait for it."""
        return any(call.is_waiting and call not in others for call in self._consumers or ())

    def __len__(self):
        if self._num_outputs is None:
            self._num_outputs = self.operator._infer_num_outputs(*self.inputs, **self.args)
        return self._num_outputs

    def __getitem__(self, index):
        return InvocationResult(self, index)

    def __iter__(self):
        return (InvocationResult(self, index) for index in range(len(self)))

    def apply_eval_policy(self, has_external_inputs):
        """Runs now, unless it can be deferred. What others may change later (`has_external_inputs`) is read now."""
        mode, turn = EvalMode.current(), current_loop()
        if turn is not None and turn.notices(self, has_external_inputs):
            if self.is_waiting:
                self._defer()
            return
        if mode is EvalMode.deferred and not has_external_inputs:
            self._defer()
            return
        if not has_external_inputs:
            self._mode = mode
        if self._previous_invocation is None and not any(map(expressions.source_of, self.tensors())):
            self._run_alone(self._eval_context)
        else:
            self.run()
        if mode is EvalMode.sync_full and self._eval_context.cuda_stream is not None:
            self._eval_context.cuda_stream.synchronize()

    def _defer(self):
        self._mode, self._origin = EvalMode.deferred, call_site.of_caller(1)
        self.is_to_wait(self._eval_context._snapshot())

    def is_to_wait(self, context):
        """It will run in a context, and what it reads is not run without keeping results for it."""
        self._eval_context = context
        for source in map(expressions.source_of, self.tensors()):
            if source is not None:
                if source._consumers is None:
                    source._consumers = weakref.WeakSet()
                source._consumers.add(self)

    def run(self, context=None):
        """Runs, if it did not yet; before it the calls whose results it needs."""
        self.is_asked = True
        waiting = [self] if self._results is None else []
        while waiting:
            before = waiting[-1]._attempt(context)
            if before:
                waiting.extend(before)
            else:
                waiting.pop()

    def _attempt(self, context):
        """Runs, unless others have to run before: these."""
        with self._lock:
            if self._results is not None:
                return ()
            context = context or self._eval_context
            previous, self._previous_invocation = self._previous_invocation, None
            if previous is not None and previous.is_waiting:
                return (previous,)
            expression = expressions.Expression(self)
            if expression.before:
                return expression.before
            if len(expression.calls) > 1:
                try:
                    return expression.run(context)
                except Exception:
                    # One fails, or they do not go together. Alone each says its own line.
                    for call in expression.calls[:-1]:
                        with call._lock:
                            call._run_alone(context)
            self._run_alone(context)
            return ()

    def _run_alone(self, context):
        if self._results is not None:
            return
        try:
            size = self.batch_size if self.is_batch else None
            results = self.operator._run(context, *self.inputs, batch_size=size, **self.args)
        except Exception as error:
            if self._mode not in _WHEN:
                raise
            origin = self._origin or call_site.of_caller()
            if not origin:
                raise
            text = f"{_WHEN[self._mode]}\n{call_site.describe(origin[-1:])}\n{error}"
            told = _same_kind(error, text).with_traceback(error.__traceback__)
            raise told from error.with_traceback(_line_of(origin[-1]))
        self.take(results if isinstance(results, (tuple, list)) else (results,))

    def take(self, results):
        """These are its results."""
        self._results = tuple(results)
        self._num_outputs = len(self._results)
        # What it read may go.
        self.inputs, self.args, self._consumers, self.within = [], {}, None, None

    def values(self, context=None):
        """What it gave, after it ran."""
        self.run(context)
        return self._results

    def fact(self, name, index):
        """`dtype`, `ndim` or `layout` of a result: as the operator says it without running, else of the result."""
        if self._results is None:
            infer = getattr(self.operator, "_infer", None)
            known = infer(index, self.inputs, self.args).get(name) if infer is not None else None
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
            self._output_devices = self.operator._infer_output_devices(*self.inputs, **self.args)
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
        return self._invocation.batch_size

    @property
    def shape(self):
        """The shape; of a batch that of each sample. Runs the call."""
        shape = self.value().shape()
        return shape if self.is_batch else tuple(shape)

    def value(self, context=None):
        """What it is. Runs the call."""
        return self._invocation.values(context)[self._index]
