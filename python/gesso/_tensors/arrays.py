"""What kind of array a value is, without importing the framework that it belongs to."""

import numpy as np


def is_numpy_array(value):
    """An array or a number of numpy's."""
    return isinstance(value, (np.ndarray, np.generic))


def is_torch_tensor(value):
    """A tensor of PyTorch's."""
    return "torch.Tensor" in str(type(value))


def is_mxnet_array(value):
    """An array of MXNet's."""
    return "mxnet.ndarray.ndarray.NDArray" in str(type(value))


def is_cupy_array(value):
    """An array of CuPy's."""
    return "cupy" in str(type(value)) and "ndarray" in str(type(value))


def is_compatible_array_type(value):
    """An array that a constant can be made of."""
    return is_numpy_array(value) or is_torch_tensor(value) or is_mxnet_array(value)


def is_scalar_shape(shape):
    """The shape of one number."""
    return shape is None or shape == 1 or tuple(shape) in ((), (1,))


def is_scalar_value(value):
    """One number, or an array of one."""
    if value is None or isinstance(value, (bool, int, float)):
        return True
    return not is_compatible_array_type(value) or is_scalar_shape(value.shape)
