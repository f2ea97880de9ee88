"""PyTorch's tensors of our batches, without copies where memory allows."""

import numpy as np
import torch

from ..._enums import DALIDataType
from ..._tensor import TensorCPU
from ..._tensor_list import TensorListCPU, TensorListGPU

to_torch_type = {
    DALIDataType.BOOL: torch.bool,
    DALIDataType.UINT8: torch.uint8,
    DALIDataType.UINT16: torch.uint16,
    DALIDataType.UINT32: torch.uint32,
    DALIDataType.UINT64: torch.uint64,
    DALIDataType.INT8: torch.int8,
    DALIDataType.INT16: torch.int16,
    DALIDataType.INT32: torch.int32,
    DALIDataType.INT64: torch.int64,
    DALIDataType.FLOAT16: torch.float16,
    DALIDataType.FLOAT: torch.float32,
    DALIDataType.FLOAT64: torch.float64,
}


def of_array(array):
    """An array as a tensor that shares its memory; one that may not be written is copied."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _placed(tensor, batch):
    """What a pipeline makes on a GPU goes there."""
    if isinstance(batch, TensorListGPU) and torch.cuda.is_available():
        return tensor.to(torch.device("cuda", batch.device_id()), non_blocking=True)
    return tensor


def dense(batch):
    """A batch of samples of one shape as one tensor."""
    return _placed(of_array(np.asarray(batch.as_tensor().array)), batch)


def samples(batch):
    """A tensor for each sample."""
    return [_placed(of_array(np.asarray(array)), batch) for array in batch.arrays]


def sparse(batch):
    """A batch of samples of different shapes as one sparse tensor in coordinates; what a sample does not reach is zero."""
    arrays = [np.asarray(array) for array in batch.arrays]
    shape = (len(arrays), *np.max([array.shape for array in arrays], axis=0))
    places = [np.indices(array.shape).reshape(array.ndim, -1) for array in arrays]
    indices = np.concatenate([np.vstack([np.full((1, place.shape[1]), i), place]) for i, place in enumerate(places)], axis=1)
    values = np.concatenate([array.ravel() for array in arrays])
    tensor = torch.sparse_coo_tensor(torch.from_numpy(indices), of_array(values), tuple(map(int, shape)), check_invariants=True)
    return _placed(tensor, batch)


def feed_ndarray(dali_tensor, arr, cuda_stream=None, non_blocking=False):
    """Copies a tensor, or a batch of samples of one shape, into the PyTorch tensor `arr`; returns it."""
    source = dali_tensor.as_tensor() if isinstance(dali_tensor, TensorListCPU) else dali_tensor
    wanted = to_torch_type[source.dtype]
    assert wanted == arr.dtype, f"the tensor has the type {arr.dtype}, expected {wanted}"
    shape = source.shape() if isinstance(source, TensorCPU) else tuple(source.shape)
    assert tuple(shape) == tuple(arr.size()), f"the tensor has the shape {list(arr.size())}, expected {list(shape)}"
    arr.copy_(of_array(np.asarray(source.array)), non_blocking=non_blocking)
    return arr
