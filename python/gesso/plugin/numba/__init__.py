"""Operators that numba compiles: `fn.numba_function` in `gesso.plugin.numba`."""

import inspect
import sys
import types as _types

import numpy as np

from ... import _extras
from ..._authoring.namespaces import make_function
from ..._callbacks.python_function import PythonFunction
from ..._tensors.enums import to_numpy_type
from ..._tensors.feeding import Batch

numba = _extras.needed("numba", "`gesso.plugin.numba`")


class NumbaFunction(PythonFunction):
    """Calls `run_fn(outputs..., inputs...)`, compiled by numba, which writes into the outputs.

    out_types, in_types, outs_ndim, ins_ndim: types and ranks. setup_fn(output shapes, input shapes): sets the outputs'
    shapes of a batch; without it they are those of the inputs. batch_processing: lists of samples in place of samples.
    """

    def __init__(
        self,
        run_fn,
        out_types,
        in_types,
        outs_ndim,
        ins_ndim,
        setup_fn=None,
        batch_processing=False,
        blocks=None,
        threads_per_block=None,
        **keywords,
    ):
        def listed(value):
            return list(value) if isinstance(value, (list, tuple)) else [value]

        self.out_types, self.in_types = listed(out_types), listed(in_types)
        self.outs_ndim, self.ins_ndim = listed(outs_ndim), listed(ins_ndim)
        if len(self.out_types) != len(self.outs_ndim):
            raise ValueError("Number of output types and `outs_ndim` should match.")
        if len(self.in_types) != len(self.ins_ndim):
            raise ValueError("Number of input types and `ins_ndim` should match.")
        if not 1 <= len(self.out_types) <= 6 or len(self.in_types) > 6:
            raise RuntimeError("A numba function has at most 6 inputs and 1 to 6 outputs.")
        for dtype in (*self.out_types, *self.in_types):
            to_numpy_type(dtype)
        super().__init__(run_fn, len(self.out_types), batch_processing=batch_processing, **keywords)
        # Without what `do_not_convert` puts around a function: numba cannot compile that.
        self._run = numba.njit(inspect.unwrap(run_fn))
        self._setup = numba.njit(inspect.unwrap(setup_fn)) if setup_fn is not None else None

    def _check_inputs(self, inputs):
        if len(inputs) != len(self.in_types):
            raise ValueError(f"Expected {len(self.in_types)} inputs, got {len(inputs)}.")
        for i, batch in enumerate(inputs):
            if batch.arrays and (batch.dtype != self.in_types[i] or batch.arrays[0].ndim != self.ins_ndim[i]):
                raise RuntimeError(
                    f"Data passed to input {i} has type {batch.dtype} and {batch.arrays[0].ndim} dimensions, expected "
                    f"{self.in_types[i]} and {self.ins_ndim[i]}."
                )

    def _shapes(self, inputs, count):
        if self._setup is None:
            return [[array.shape for array in inputs[min(i, len(inputs) - 1)].arrays] for i in range(self.num_outputs)]
        outs = [np.zeros((count, ndim), np.int64) for ndim in self.outs_ndim]
        ins = [np.array([array.shape for array in batch.arrays], np.int64).reshape(count, -1) for batch in inputs]
        self._setup(numba.typed.List(outs), numba.typed.List(ins))
        return [[tuple(int(extent) for extent in row) for row in out] for out in outs]

    def known_layouts(self):
        """None: what numba's functions make has no layouts."""
        return [""] * self.num_outputs

    def run_python(self, node, inputs, batch_size):
        """The batches that the function makes of `inputs`."""
        self._check_inputs(inputs)
        count = len(inputs[0].arrays) if inputs else batch_size
        shapes = self._shapes(inputs, count)
        outs = [
            [np.empty(shape, to_numpy_type(dtype)) for shape in column] for column, dtype in zip(shapes, self.out_types)
        ]
        if self.batch_processing:
            lists = [numba.typed.List(column) for column in (*outs, *(batch.arrays for batch in inputs))]
            self._run(*lists)
        else:
            for i in range(count):
                self._run(*(column[i] for column in outs), *(batch.arrays[i] for batch in inputs))
        return [Batch(column, dtype, "") for column, dtype in zip(outs, self.out_types)]


def _module(name, **content):
    module = _types.ModuleType(name, "Operators that numba compiles.")
    module.__path__ = []
    module.__dict__.update(content)
    sys.modules[name] = module
    return module


numba_function = make_function(NumbaFunction, "numba_function")
numba_function.__module__ = f"{__name__}.fn"
_inner = _module(f"{__name__}.fn.experimental", numba_function=numba_function)
fn = _module(f"{__name__}.fn", numba_function=numba_function, experimental=_inner)
experimental = _module(f"{__name__}.experimental", NumbaFunction=NumbaFunction)
