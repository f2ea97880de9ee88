"""`DataNodeDebug`: what an operator returns in debug mode, a batch that is there."""

from .. import _context
from .._tensors.tensor_list import TensorListGPU
from ..data_node import DataNode


class DataNodeDebug(DataNode):
    """A batch in a definition that runs in debug mode: `get()` is its data. All that a `DataNode` can do, it can."""

    def __init__(self, data, name, source=None):
        super().__init__(name, "gpu" if isinstance(data, TensorListGPU) else "cpu", source)
        self._data = data

    def get(self):
        """The data, a `TensorListCPU` or `TensorListGPU`."""
        return self._data

    def shape(self, **_):
        """The shapes of the samples, a list of tuples."""
        return self._data.shape()

    def __str__(self):
        return f'DataNodeDebug(name="{self.name}", data={self._data})'

    __repr__ = __str__
    __hash__ = DataNode.__hash__

    def __array__(self, dtype=None, copy=None):
        return self._data.as_cpu().__array__(dtype)

    def _on(self, device):
        if self.device == device:
            return self
        conditions = _context.conditions()
        node = self if conditions is None else conditions.use(self)
        data = node._data._as_gpu() if device == "gpu" else node._data.as_cpu()
        moved = DataNodeDebug(data, node.name, node.source)
        if conditions is not None:
            conditions.register([moved])
        return moved

    def _check_gpu2cpu(self):
        """Nothing: the data is there."""
