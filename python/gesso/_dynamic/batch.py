"""`Batch`: samples of one type and rank, or what will be such when it is asked for; `batch` and `as_batch` make it."""

from .._tensors.formatting import format_batch
from .._tensors.tensor_list import TensorListCPU, TensorListGPU
from . import arithmetic, batching, slicing
from . import storage as _storage
from .device import Device
from .device import device as _device
from .dtypes import DType
from .dtypes import dtype as _dtype
from .invocation import Invocation
from .tensor import Moved, Tensor, _Shown, _torch, as_tensor


class SampleSlices:
    """`batch.slice[...]`: the same part of each sample, or, where bounds are batches, each sample's own."""

    def __init__(self, batch):
        self._batch = batch

    def __getitem__(self, ranges):
        return slicing.part_of(self._batch, ranges)


class Tensors:
    """The samples of a batch: `[i]` is one, a slice or a list of numbers are several."""

    def __init__(self, batch, indices=None):
        self._batch = batch
        self._indices = range(batch.batch_size) if indices is None else indices

    def __len__(self):
        return len(self._indices)

    def __iter__(self):
        return (self._batch._sample(i) for i in self._indices)

    def __getitem__(self, which):
        return self.select(which)

    def select(self, which):
        """One sample, or several."""
        if isinstance(which, slice):
            return Tensors(self._batch, self._indices[which])
        if isinstance(which, list):
            return Tensors(self._batch, [self._indices[i] for i in which])
        return self._batch._sample(self._indices[which])

    def tolist(self):
        """The samples as a list."""
        return list(self)

    def as_batch(self, copy=False):
        """These samples as a batch."""
        return batch(self) if copy else as_batch(self)


class Batch(batching._Ours):
    """A batch on a device. `tensors`: a list of what tensors are made of, an array whose first dimension counts
    samples, or a batch."""

    _is_batch = True

    def __init__(self, tensors, dtype=None, device=None, layout=None, *, copy=False):
        self._result, self._samples, self._external = None, None, False
        wanted = None if dtype is None else _dtype(dtype).type_id
        target = None if device is None else _device(device)
        if isinstance(tensors, Batch):
            stored, self._external = tensors.evaluate()._storage, tensors._external
        elif isinstance(tensors, TensorListCPU):
            stored, self._external = tensors, True
        elif isinstance(tensors, Tensor) or _storage.is_array(tensors):
            stored = self._parts(tensors, layout)
        else:
            stored, copy = self._collected(tensors, wanted, target, layout, copy), False
        before = stored
        if wanted is not None:
            stored = _storage.cast(stored, wanted)
        target = target or _storage.device_of(stored)
        if target != _storage.device_of(stored) or copy and stored is before:
            stored = _storage.moved(stored, target, force=True)
        self._external = self._external and stored is before
        self._storage = stored if layout is None else _storage.with_layout(stored, layout)

    def _parts(self, value, layout):
        whole = as_tensor(value)
        self._external = whole._is_external()
        stored = whole.evaluate()._storage
        if stored.ndim() == 0:
            raise ValueError("Cannot create a batch from a scalar")
        return _storage.parts(stored, layout)

    def _collected(self, values, dtype, device, layout, copy):
        samples = []
        for i, value in enumerate(values):
            if value is None:
                raise TypeError(f"A batch is made of arrays or numbers; sample {i} is None.")
            if isinstance(value, Batch):
                raise ValueError("A list of batches is no batch")
            one = Tensor(value, dtype, device, layout, copy=copy)
            if dtype is None:
                dtype = one.dtype.type_id
            self._external = self._external or one._external
            samples.append(one.evaluate()._storage)
        if samples:
            return _storage.joined(samples, layout)
        if dtype is None:
            raise ValueError("Element type must be specified if the list is empty: give `dtype`.")
        kind = TensorListGPU if device is not None and device.device_type == "gpu" else TensorListCPU
        return kind._of([], layout or "", dtype)

    @classmethod
    def _of_result(cls, result):
        """What a call will give."""
        made = cls.__new__(cls)
        made._result, made._storage, made._samples, made._external = result, None, None, False
        return made

    @classmethod
    def _of_storage(cls, stored):
        """What a call gave."""
        made = cls._of_result(None)
        made._storage = stored
        return made

    @staticmethod
    def broadcast(sample, batch_size, device=None, dtype=None):
        """One tensor, `batch_size` times."""
        if isinstance(sample, (Batch, TensorListCPU)):
            raise ValueError("Cannot broadcast a Batch")
        stored = as_tensor(sample, dtype=dtype, device=device).evaluate()._storage
        return Batch._of_storage(_storage.listed(stored, batch_size))

    # DALI's name.
    _invocation_result = property(lambda self: self._result)

    def _is_external(self):
        """Whether its memory is somebody else's, who may change it."""
        return self._external

    def evaluate(self):
        """Makes sure that the data is there; itself."""
        if self._storage is None:
            self._storage = self._result.value()
        return self

    @property
    def batch_size(self):
        """How many samples there are."""
        if self._storage is None and self._result.batch_size is not None:
            return self._result.batch_size
        return len(self.evaluate()._storage)

    def __len__(self):
        return self.batch_size

    @property
    def shape(self):
        """The shape of each sample."""
        return self.evaluate()._storage.shape()

    @property
    def dtype(self):
        """The type of the elements."""
        return DType.from_type_id(self._storage.dtype) if self._storage is not None else _dtype(self._result.dtype)

    @property
    def ndim(self):
        """Dimensions of a sample."""
        return self._storage.ndim() if self._storage is not None else self._result.ndim

    @property
    def layout(self):
        """A letter for each dimension of a sample, or None."""
        return (self._storage.layout() if self._storage is not None else self._result.layout) or None

    @property
    def device(self):
        """Where it is, or will be."""
        if self._storage is None:
            return self._result.device
        if isinstance(self._storage, TensorListGPU):
            return Device("gpu", self._storage.device_id() if len(self._storage) else None)
        return Device.CPU

    tensors = property(Tensors, doc="The samples.")
    slice = property(SampleSlices, doc="Parts of the samples: `batch.slice[0:5]`.")

    def _sample(self, index):
        if isinstance(index, bool) or not isinstance(index, int):
            index = int(index)
        count = self.batch_size
        if not -count <= index < count:
            raise IndexError(f"the batch has {count} samples, there is none with the number {index}")
        index %= count
        if self._samples is None:
            self._samples = {}
        if index not in self._samples:
            self._samples[index] = one = Tensor._of_sample(self, index)
            one._external = self._external
            if self._storage is not None:
                one.evaluate()
        return self._samples[index]

    def __iter__(self):
        return iter(self.tensors)

    def select(self, which):
        """A sample by its number; a batch by a slice or a list of numbers; itself for `...`."""
        if which is Ellipsis:
            return self
        chosen = self.tensors[which]
        return as_batch(chosen) if isinstance(chosen, Tensors) else chosen

    def to_device(self, device, force_copy=False):
        """The batch on another device; itself if it is there and no copy is asked for."""
        target = _device(device)
        if target == self.device and not force_copy:
            return self
        size = self.batch_size
        return batching.outputs_of(Invocation(Moved(target), None, [self], {}, True, size), self._external)[0]

    def cpu(self):
        """The batch in host memory."""
        return self.to_device(Device.CPU)

    def gpu(self, index=None):
        """The batch in memory of a GPU, by default the current one."""
        return self.to_device(Device("gpu", index))

    def torch(self, copy=None, pad=False):
        """As one tensor of PyTorch's. `pad`: samples of several shapes get zeros behind them. `copy`: None, only where
        it must be; True, always; False: an error where it must be."""
        _torch()
        if copy is False and not self.evaluate()._storage.is_dense_tensor():
            raise ValueError("This batch cannot be converted to a tensor without a copy.")
        return as_tensor(self, pad=pad).torch(bool(copy))

    def __repr__(self):
        return format_batch(_ShownBatch(self))


class _ShownBatch(_Shown):
    """A batch as the module that prints batches sees it."""

    def __len__(self):
        return len(self.shape())


_ShownBatch.__name__ = "Batch"


def batch(tensors, dtype=None, device=None, layout=None):
    """A batch in memory of its own."""
    return Batch(tensors, dtype, device, layout, copy=True)


def as_batch(tensors, dtype=None, device=None, layout=None):
    """As `batch`, without a copy where that can be."""
    same = (
        dtype is None
        and layout is None
        and (device is None or isinstance(tensors, Batch) and _device(device) == tensors.device)
    )
    if isinstance(tensors, Batch) and same:
        return tensors
    return Batch(tensors, dtype, device, layout)


batching.KINDS[True] = Batch
arithmetic.install(Batch)
