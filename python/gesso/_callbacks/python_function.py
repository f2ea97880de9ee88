"""`fn.python_function` and `fn.dl_tensor_python_function`: operators that are functions of the user's, run in the
interpreter."""

import numpy as np

from .. import _context
from .._authoring.arguments import TypedValue
from .._authoring.operator import Operator, require_pipeline
from .._authoring.schema import Argument, Schema
from .._tensors import dlpack
from .._tensors.enums import dtype_of
from .._tensors.feeding import Batch, _check_rank, _dense, to_array
from .._threads.interrupts import let
from ..data_node import DataNode


def _schema_of(name):
    arguments = {
        "output_layouts": Argument("output_layouts", "_TENSOR_LAYOUT_VEC"),
        "num_outputs": Argument("num_outputs", "INT32", 1),
        "batch_processing": Argument("batch_processing", "BOOL"),
        "synchronize_stream": Argument("synchronize_stream", "BOOL"),
        "function": Argument("function", "PYTHON_OBJECT", optional=False),
        "preserve": Argument("preserve", "BOOL", False),
    }
    doc = "Calls a Python function with the samples, one at a time or all of a batch."
    return Schema(name, ("cpu", "gpu"), 0, 256, 1, arguments, doc=doc, keep=True)


def _as_sample(value):
    """What a function returned for one sample, as an array that the library can read."""
    array = _dense(to_array(value), copy=False)
    if dtype_of(array) is None:
        raise TypeError(f"A Python function returned data of the type {array.dtype}: expected numbers or truth values.")
    return array


def _as_batch(samples, layout):
    arrays = [_as_sample(value) for value in samples]
    _check_rank(arrays, layout)
    return Batch(arrays, dtype_of(arrays[0]) if arrays else None, layout)


class PythonFunction(Operator):
    """Calls `function` with numpy arrays and takes what it returns as outputs.

    `num_outputs` above 1: it returns a tuple; 0: nothing. With `batch_processing` it gets and returns a list of samples
    for each input and output. It runs once for each sample, in order, in the thread that runs the pipeline.
    """

    schema_name = "PythonFunction"
    schema = named_schema = _schema_of("PythonFunction")
    _by_batch = False

    def __init__(
        self,
        function,
        num_outputs=1,
        *,
        batch_processing=None,
        output_layouts=None,
        synchronize_stream=None,
        **keywords,
    ):
        if not callable(function):
            raise TypeError(f"`function` must be callable, got {type(function)}.")
        super().__init__(**keywords)
        self.function = function
        self.num_outputs = num_outputs
        self.batch_processing = self._by_batch if batch_processing is None else batch_processing
        self.layouts = self._each(output_layouts)
        self._check_layouts()
        self.values["function"] = TypedValue("object", False, [function])

    def _each(self, layouts):
        """A layout for each output; one text is that of all."""
        return [layouts] * self.num_outputs if isinstance(layouts, str) else list(layouts or ())

    def _check_layouts(self):
        if len(self.layouts) > self.num_outputs:
            raise RuntimeError(
                f"The length of `output_layouts` is greater than the number of outputs: {len(self.layouts)} and {self.num_outputs}."
            )

    @property
    def keep(self):
        """It may do more than return."""
        return True

    def output_count(self, node):
        return self.num_outputs

    def _promote(self, inputs):
        if _context.current() is None:
            require_pipeline("PythonFunction")
        for value in inputs:
            if isinstance(value, list) and any(isinstance(element, DataNode) for element in value):
                raise TypeError(
                    f"an input of a Python function is a `{type(value).__name__}`, expected a `DataNode`; lists of them (input sets) "
                    "are not taken"
                )
        self.pipeline = _context.stub()
        return super()._promote(inputs)

    def __call__(self, *inputs, **keywords):
        layouts = keywords.pop("output_layouts", None)
        if layouts is not None:
            if self.layouts:
                raise ValueError("The argument `output_layouts` was already specified in __init__.")
            self.layouts = self._each(layouts)
            self._check_layouts()
        return super().__call__(*inputs, **keywords)

    # --- running

    def _give(self, array):
        """A sample as the function sees it."""
        return array

    def _check(self, results):
        if self.num_outputs > 1:
            if not isinstance(results, tuple):
                raise TypeError(
                    f"The output from a multi-output Python function operator must be a tuple, got: {type(results)}"
                )
            if len(results) != self.num_outputs:
                raise ValueError(
                    f"Unexpected number of outputs from Python function operator - got {len(results)}, expected {self.num_outputs}"
                )
        return results if isinstance(results, tuple) else (results,)

    def run_python(self, node, inputs, batch_size):
        """The batches that the function makes of `inputs`."""
        with self.pipeline, let():
            columns = self._of_batch(inputs) if self.batch_processing else self._of_samples(inputs, batch_size)
        if self.num_outputs == 0:
            return []
        if columns is None:
            raise RuntimeError(
                f"The function of `{self.display}` returned nothing, but it has {self.num_outputs} outputs."
            )
        return [_as_batch(column, layout) for column, layout in zip(columns, self._all_layouts())]

    def known_layouts(self):
        """The layouts of the outputs, as far as they are known before the function is called."""
        return self._all_layouts()

    def _all_layouts(self):
        return self.layouts + [""] * (self.num_outputs - len(self.layouts))

    def _of_batch(self, inputs):
        results = self.function(*([self._give(array) for array in batch.arrays] for batch in inputs))
        return None if results is None else self._check(results)

    def _of_samples(self, inputs, batch_size):
        count = len(inputs[0].arrays) if inputs else batch_size
        rows = []
        for i in range(count):
            results = self.function(*(self._give(batch.arrays[i]) for batch in inputs))
            if results is None:
                continue
            rows.append(self._check(results))
        if not rows:
            return None if count else [[] for _ in range(self.num_outputs)]
        return [list(column) for column in zip(*rows)]


class DLTensorPythonFunction(PythonFunction):
    """As `PythonFunction`, with DLPack capsules in place of arrays."""

    schema_name = "DLTensorPythonFunction"
    schema = named_schema = _schema_of("DLTensorPythonFunction")
    _by_batch = True

    def _give(self, array):
        if not array.flags.writeable:
            array = array.copy()
        return array.__dlpack__()


def to_dlpack(array):
    """An array as a DLPack capsule."""
    array = np.asarray(array)
    return (array if array.flags.writeable else array.copy()).__dlpack__()


def from_dlpack(capsule):
    """A DLPack capsule as an array."""
    return dlpack.from_capsule(capsule)
