"""Iterators whose batches are dictionaries of PaddlePaddle's tensors, one for each pipeline."""

import numpy as np
import paddle

from ..._tensors.enums import DALIDataType
from ..._tensors.tensor_list import TensorListCPU, TensorListGPU
from ..base_iterator import LastBatchPolicy
from ..dictionary_iterator import DataAndLabel, DictionaryIterator

_core = paddle.framework.core
_VarType = _core.VarDesc.VarType

_TYPES = {
    DALIDataType.BOOL: _VarType.BOOL,
    DALIDataType.FLOAT: _VarType.FP32,
    DALIDataType.FLOAT64: _VarType.FP64,
    DALIDataType.FLOAT16: _VarType.FP16,
    DALIDataType.UINT8: _VarType.UINT8,
    DALIDataType.INT8: _VarType.INT8,
    DALIDataType.INT16: _VarType.INT16,
    DALIDataType.INT32: _VarType.INT32,
    DALIDataType.INT64: _VarType.INT64,
}


def to_paddle_type(tensor):
    """The element type of a tensor or a batch as PaddlePaddle's."""
    found = _TYPES.get(tensor.dtype)
    if found is None:
        raise TypeError(f"PaddlePaddle has no tensors of the type {tensor.dtype.name}")
    return found


def feed_ndarray(dali_tensor, ptr, cuda_stream=None):
    """Copies a tensor, or a batch of samples of one shape, to the address `ptr`, where memory of PaddlePaddle's is;
    returns the address. What is on a GPU is copied in `cuda_stream`."""
    source = dali_tensor.as_tensor() if isinstance(dali_tensor, TensorListCPU) else dali_tensor
    to_paddle_type(source)
    source.copy_to_external(ptr, cuda_stream)
    return ptr


def _place(batch):
    is_there = isinstance(batch, TensorListGPU) and paddle.is_compiled_with_cuda()
    return paddle.CUDAPlace(batch.device_id()) if is_there else paddle.CPUPlace()


def _tensor():
    return _core.DenseTensor() if hasattr(_core, "DenseTensor") else _core.LoDTensor()


def _lengths(arrays, levels):
    """How long the parts of each level are: of the samples, then of their parts, and so on."""
    return [
        [array.shape[level] for array in arrays for _ in range(int(np.prod(array.shape[:level])))]
        for level in range(levels)
    ]


def _ragged(arrays, levels, place):
    """Samples behind each other: of their first `levels` dimensions one is made, and their lengths are kept."""
    made = _tensor()
    made.set(np.concatenate([array.reshape(-1, *array.shape[levels:]) for array in arrays]), place)
    made.set_recursive_sequence_lengths(_lengths(arrays, levels))
    return made


def _dense(batch):
    """One tensor of samples of one shape, which shares their memory if that is on the host."""
    if isinstance(batch, TensorListGPU) and paddle.is_compiled_with_cuda():
        return _core.from_dlpack(batch.as_tensor().__dlpack__())
    array = np.asarray(batch.as_tensor().array)
    return _core.from_dlpack((array if array.flags.writeable else array.copy()).__dlpack__())


def _pair(entry):
    """The name of an output, and how many levels its samples have."""
    pair = (entry, 0) if isinstance(entry, str) else entry
    if isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], str):
        name, levels = pair
        if isinstance(levels, int) and levels >= 0:
            return name, levels
    raise ValueError(f"`output_map`: expected names, or pairs of a name and a number of levels, found {entry!r}"[:400])


class DALIGenericIterator(DictionaryIterator):
    """Iterates over the batches of one or several pipelines: a list with a dictionary (name > tensor) for each
    pipeline. The tensors are those of `paddle.framework.core`; `paddle.Tensor(tensor)` is one of them as the rest of
    PaddlePaddle has it.

    output_map: names of the outputs, or pairs of a name and a number of levels: then samples may have several shapes,
    which the tensor's `lod` says. reader_name: the reader that says how long an epoch is; else `size` does, the samples
    of an epoch over all pipelines (-1: until the source ends). last_batch_policy: what becomes of a last batch that is
    not full. last_batch_padded: whether the data repeats its last sample (without a reader's name). auto_reset: whether
    an epoch's end begins the next. prepare_first_batch: whether the first batch is made at once. dynamic_shape: not
    needed, shapes may always differ from batch to batch."""

    def __init__(
        self,
        pipelines,
        output_map,
        size=-1,
        reader_name=None,
        auto_reset=False,
        fill_last_batch=None,
        dynamic_shape=False,
        last_batch_padded=False,
        last_batch_policy=LastBatchPolicy.FILL,
        prepare_first_batch=True,
    ):
        pairs = [_pair(entry) for entry in output_map]
        self._levels = [levels for _, levels in pairs]
        super().__init__(
            pipelines,
            [name for name, _ in pairs],
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )

    def _make(self, index, batch, count=None):
        to_paddle_type(batch)
        levels = self._levels[index]
        if not levels:
            assert batch.is_dense_tensor(), (
                f"samples of `{self.output_map[index]}` have several shapes: give `(name, levels)` in `output_map`"
            )
            return _dense(batch)
        arrays = [np.asarray(array) for array in batch.as_cpu().arrays]
        if arrays and (levels > arrays[0].ndim or len({array.shape[levels:] for array in arrays}) > 1):
            raise ValueError(
                f"`{self.output_map[index]}` has {levels} levels in `output_map`: expected samples of at least as many "
                f"dimensions that are equal in all behind them, found {batch.shape()}"[:400]
            )
        return _ragged(arrays[:count], levels, _place(batch))

    def _convert(self, outputs):
        # What `_first` makes the last batch of.
        self._outputs = outputs
        return super()._convert(outputs)

    def _first(self, pipe, index, tensor, count):
        output = self._outputs[pipe][index]
        if self._levels[index]:
            return self._make(index, output, count)
        made = _tensor()
        made.set(np.array(tensor)[:count], _place(output))
        return made


class DALIClassificationIterator(DataAndLabel, DALIGenericIterator):
    """`DALIGenericIterator` for pipelines with two outputs: `data` and `label`."""


Iterator, ClassificationIterator = DALIGenericIterator, DALIClassificationIterator
