"""`ExternalSource`: data of a function or an iterable, one piece a call."""

import functools
import inspect
from collections.abc import Sequence

from .._tensors.tensor_list import TensorListCPU
from .batch import Batch, as_batch, batch
from .capture import Loop
from .context import EvalContext
from .tensor import as_tensor

_CYCLES = {None: "no", False: "no", True: "quiet", "no": "no", "quiet": "quiet", "raise": "raise"}


class ExternalSource:
    """Called, gives what `source` gives next, a function without arguments, one that is a generator, or an iterable:
    a `Tensor`, or a `Batch` where that is one; a tuple if `num_outputs` is more than 1.

    `cycle`, of an iterable that ends: `no`, StopIteration; `quiet`, it begins again; `raise`, StopIteration once, then
    it begins again. `layout` and `dtype` are one for all outputs, or a list."""

    def __init__(self, source, num_outputs=1, *, cycle=None, device="cpu", layout=None, dtype=None):
        if cycle not in _CYCLES:
            raise ValueError(f'`cycle` must be "no", "quiet" or "raise", found {cycle!r}')
        if num_outputs < 1:
            raise ValueError(f"`num_outputs` must be at least 1, found {num_outputs}")
        self._cycle, self._count, self._device = _CYCLES[cycle], num_outputs, device
        self._layouts, self._dtypes = self._each(layout), self._each(dtype)
        is_generator = inspect.isgeneratorfunction(source)
        if not callable(source) and not hasattr(source, "__iter__"):
            raise TypeError(f"`source`: expected a function without arguments or an iterable, found {source!r}"[:200])
        self._function = source if callable(source) and not is_generator else None
        if self._function is not None and self._cycle != "no":
            raise ValueError("`cycle` needs an iterable: a function ends when it likes")
        self._begin, self._iterator = source if is_generator else functools.partial(iter, source), None
        self._loop = self._loop_size = None

    def _each(self, value):
        if not isinstance(value, Sequence) or isinstance(value, str):
            return [value] * self._count
        if len(value) != self._count:
            raise ValueError(f"expected a list of {self._count} values, one for each output, found {len(value)}")
        return list(value)

    def _next(self):
        if self._function is not None:
            return self._function()
        if self._iterator is None:
            self._iterator = self._begin()
        try:
            return next(self._iterator)
        except StopIteration:
            if self._cycle == "no":
                raise
            self._iterator = None
            if self._cycle == "raise":
                raise
            self._iterator = self._begin()
            return next(self._iterator)

    def __call__(self, *, batch_size=None):
        """The next piece; tensors are repeated `batch_size` times, if that is given."""
        if self._loop is not None:
            raise RuntimeError("the source is read ahead by a loop of `captured`, and gives nothing otherwise")
        return self._piece(batch_size)

    def _piece(self, batch_size):
        data = self._next()
        if self._count == 1:
            data = (data,)
        elif not isinstance(data, Sequence) or len(data) != self._count:
            raise ValueError(f"the source gave no {self._count} outputs, but {data!r}"[:200])
        outputs = [self._made(value, i, batch_size) for i, value in enumerate(data)]
        if len({type(output) for output in outputs}) > 1:
            raise TypeError("the outputs of a source must be tensors, or batches, and not both")
        return outputs[0] if self._count == 1 else tuple(outputs)

    def captured(self, batch_size, ctx=None):
        """A loop over what the source gives, until it ends: a batch, or a tuple of batches. What the loop does with
        them is done ahead with the next ones. The source is called by another thread."""
        if self._loop is None:
            self._loop, self._loop_size = Loop(lambda: self._batches(batch_size)), batch_size
        if batch_size != self._loop_size:
            raise ValueError(f"`batch_size` is {batch_size}, and the source is read with {self._loop_size}")
        for values in self._loop.turns(ctx or EvalContext.current()):
            yield values[0] if self._count == 1 else tuple(values)

    def _batches(self, size):
        found = self._piece(size)
        # A source may write its next piece where this one is.
        return [batch(value) if value._is_external() else value for value in (found if self._count > 1 else [found])]

    def _made(self, value, index, size):
        facts = {"dtype": self._dtypes[index], "device": self._device, "layout": self._layouts[index]}
        if isinstance(value, (Batch, TensorListCPU)):
            made = as_batch(value, **facts)
            if size is not None and made.batch_size != size:
                raise ValueError(f"the source gave {made.batch_size} samples, expected {size}")
            return made
        made = as_tensor(value, **facts)
        return made if size is None else Batch.broadcast(made, size)
