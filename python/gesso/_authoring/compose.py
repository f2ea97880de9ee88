"""`ops.Compose`: operators one behind the other."""

from ..data_node import DataNode
from .operator import choose_device


class Compose(list):
    """A list of operators as one: each gets what the one before returned."""

    def __init__(self, op_list):
        if not op_list:
            raise ValueError("`Compose` must be called with a non-empty list of operators.")
        super().__init__(op_list)

    def __call__(self, *inputs, **keywords):
        for operator in self:
            if choose_device(inputs) == "cpu" and getattr(operator, "device", "cpu") == "gpu":
                inputs = tuple(value.gpu() if isinstance(value, DataNode) else value for value in inputs)
            results = operator(*inputs, **keywords)
            keywords = {}
            inputs = tuple(results) if isinstance(results, (list, tuple)) else (results,)
        return inputs[0] if len(inputs) == 1 else list(inputs)
