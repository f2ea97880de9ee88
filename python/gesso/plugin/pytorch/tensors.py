"""PyTorch's tensors of our batches, without copies where memory allows."""

import collections
import contextlib

import numpy as np
import torch

from ..._tensors.device_array import side_by_side
from ..._tensors.enums import DALIDataType
from ..._tensors.tensor import TensorCPU, TensorGPU
from ..._tensors.tensor_list import TensorListCPU, TensorListGPU

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


class _View:
    """Memory of the library's for PyTorch, whose user sees to it that it stays."""

    def __init__(self, array):
        self.__cuda_array_interface__ = array.interface()


# Batches that are being copied on a GPU, and what says that this is done.
_under_way = collections.deque()


@contextlib.contextmanager
def _lent(batch):
    """Views of the samples on the GPU, to be copied in PyTorch's current stream: one of all or None, and one of each.
    Nobody waits: the batch's memory stays until that is done, and is used again after it."""
    device = torch.device("cuda", batch.device_id())
    view = lambda array: torch.as_tensor(_View(array), device=device)
    with torch.cuda.device(device):
        whole = side_by_side(batch._data) if batch.is_dense_tensor() else None
        yield (view(whole), []) if whole is not None else (None, [view(array) for array in batch._data])
        done = torch.cuda.Event()
        done.record()
    while _under_way and _under_way[0][0].query():
        _under_way.popleft()
    _under_way.append((done, batch))


def _is_on_device(batch):
    return isinstance(batch, TensorListGPU) and batch._is_on_device()


def dense(batch):
    """A batch of samples of one shape as one tensor."""
    if _is_on_device(batch) and batch.is_dense_tensor():
        with _lent(batch) as (whole, each):
            return whole.clone(memory_format=torch.contiguous_format) if whole is not None else torch.stack(each)
    return _placed(of_array(np.asarray(batch.as_tensor().array)), batch)


def samples(batch):
    """A tensor for each sample."""
    if _is_on_device(batch):
        with _lent(batch) as (whole, each):
            return (
                list(whole.clone(memory_format=torch.contiguous_format))
                if whole is not None
                else [view.clone() for view in each]
            )
    return [_placed(of_array(np.asarray(array)), batch) for array in batch.arrays]


def sparse(batch):
    """A batch of samples of different shapes as one sparse tensor in coordinates; what a sample does not reach is
    zero."""
    arrays = [np.asarray(array) for array in batch.arrays]
    if not arrays:
        return torch.empty(0)
    shape = (len(arrays), *np.max([array.shape for array in arrays], axis=0))
    places = [np.indices(array.shape).reshape(array.ndim, -1) for array in arrays]
    indices = np.concatenate(
        [np.vstack([np.full((1, place.shape[1]), i), place]) for i, place in enumerate(places)], axis=1
    )
    values = np.concatenate([array.ravel() for array in arrays])
    tensor = torch.sparse_coo_tensor(
        torch.from_numpy(indices), of_array(values), tuple(map(int, shape)), check_invariants=True
    )
    return _placed(tensor, batch)


def feed_ndarray(dali_tensor, arr, cuda_stream=None, non_blocking=False):
    """Copies a tensor, or a batch of samples of one shape, into the PyTorch tensor `arr`; returns it."""
    source = dali_tensor.as_tensor() if isinstance(dali_tensor, TensorListCPU) else dali_tensor
    wanted = to_torch_type[source.dtype]
    assert wanted == arr.dtype, f"the tensor has the type {arr.dtype}, expected {wanted}"
    shape = source.shape() if isinstance(source, TensorCPU) else tuple(source.shape)
    assert tuple(shape) == tuple(arr.size()), f"the tensor has the shape {list(arr.size())}, expected {list(shape)}"
    if (
        arr.is_cuda
        and isinstance(source, TensorGPU)
        and source.device_id() == arr.device.index
        and hasattr(source, "__cuda_array_interface__")
    ):
        return arr.copy_(torch.as_tensor(source, device=arr.device))
    return arr.copy_(of_array(np.asarray(source.array)), non_blocking=non_blocking)
