"""What features a TFRecord has."""

from . import types

int64, string, float32 = types.INT64, types.STRING, types.FLOAT


class Feature:
    """A feature: its type, its shape or None, and what stands for a missing one."""

    def __init__(self, shape, dtype, default, partial_shape=None):
        self.shape, self.dtype, self.default, self.partial_shape = shape, dtype, default, partial_shape


def FixedLenFeature(shape, dtype, default_value):
    """A feature whose shape is known."""
    return Feature(list(shape) if isinstance(shape, (list, tuple)) else [shape], dtype, default_value)


def VarLenFeature(*arguments):
    """A feature of any length; `(dtype, default)` or `(partial_shape, dtype, default)`."""
    partial_shape = arguments[0] if len(arguments) == 3 else None
    return Feature(None, arguments[-2], arguments[-1], partial_shape)
