"""`fn.readers.caffe` and `fn.readers.caffe2`: images and labels in LMDB databases."""

import numpy as np

from . import damage, wire
from .lmdb import Joined
from .source import Reader, schema

_OWN = {"path": ("_STRING_VEC", None), "image_available": ("BOOL", True), "label_available": ("BOOL", True)}
_DATA, _LABEL, _HEIGHT, _WIDTH, _CHANNELS, _ENCODED = 4, 5, 2, 3, 1, 7


def _datum(record, has_image, has_label):
    """The outputs for one of Caffe's `Datum` messages."""
    found = dict(wire.fields(record))
    outputs = []
    if has_image:
        image = np.frombuffer(found.get(_DATA, b""), np.uint8)
        if not found.get(_ENCODED, 0):
            shape = (found.get(_HEIGHT, 1), found.get(_WIDTH, 1), found.get(_CHANNELS, 1))
            image = image.reshape(shape) if image.size == np.prod(shape) else image
        outputs.append(image)
    if has_label:
        outputs.append(np.array([wire.signed(found.get(_LABEL, 0))], np.int32))
    return outputs


class _Records:
    def __init__(self, paths, read):
        self._records = Joined(paths)
        self._read = read
        self.size = len(self._records)

    def read(self, index):
        part, number = self._records.find(index)
        with damage.named(part.path):
            where = f"{part.path} at key {part.key(number)}"
        with damage.named(where):
            return self._read(part[number]), where

    def close(self):
        """Closes the databases."""
        self._records.close()


class Caffe(Reader):
    """Reads Caffe's LMDB databases. Outputs: images, and labels."""

    schema_name = "readers__Caffe"
    schema = named_schema = schema(
        "readers__Caffe", "Reads images and labels of Caffe's databases.", _OWN, required=("path",)
    )
    shuffles_all = False

    def begin(self, node):
        """Opens the databases."""
        has_image, has_label = node.values_of("image_available", True), node.values_of("label_available", True)
        return _Records(node.values_of("path"), lambda record: _datum(record, has_image, has_label))


_TYPES2 = {1: np.float32, 2: np.int32, 3: np.uint8}


def _tensor2(message):
    """An array of one of Caffe2's `TensorProto` messages."""
    dims, kind, numbers, data, texts = [], 1, [], b"", []
    for number, value in wire.fields(message):
        if number == 1:
            dims += wire.packed_integers(value) if isinstance(value, (bytes, bytearray)) else [value]
        elif number == 2:
            kind = value
        elif number == 3:
            numbers += wire.floats(value)
        elif number == 4:
            numbers += wire.packed_integers(value) if isinstance(value, (bytes, bytearray)) else [wire.signed(value)]
        elif number == 5:
            data = value
        elif number == 6:
            texts.append(value)
    if kind == 4:
        return np.frombuffer(texts[0] if texts else b"", np.uint8)
    if kind != 3:
        values = np.array(numbers, _TYPES2.get(kind, np.float32))
        return values.reshape(dims) if values.size == np.prod(dims) else values
    if len(data) != np.prod(dims):
        raise RuntimeError(f"Image data size mismatch: {len(data)} bytes for a tensor of shape {dims}.")
    return np.frombuffer(data, np.uint8).reshape(dims)


_SINGLE, _SPARSE, _DENSE, _WEIGHTED_SPARSE, _NO_LABEL = range(5)


def _spread(indices, weights, count):
    """A label for each class, of the classes that are there."""
    labels = np.zeros(count, weights.dtype)
    indices = indices.ravel()
    if indices.size and not 0 <= indices.min() <= indices.max() < count:
        raise RuntimeError(
            f"Label index out of bounds: the indices {indices.tolist()} must be below `num_labels`, {count}."
        )
    labels[indices] = weights.ravel()
    return labels


class Caffe2(Reader):
    """Reads Caffe2's LMDB databases. Outputs: images, and what `label_type` says of labels.

    Sparse labels are two outputs: a label for each of `num_labels` classes, and the classes that are there.
    """

    schema_name = "readers__Caffe2"
    schema = named_schema = schema(
        "readers__Caffe2",
        "Reads images and labels of Caffe2's databases.",
        {
            "path": ("_STRING_VEC", None),
            "image_available": ("BOOL", True),
            "label_type": ("INT32", 0),
            "num_labels": ("INT32", 1),
            "additional_inputs": ("INT32", 0),
            "bbox": ("BOOL", False),
        },
        required=("path",),
    )
    shuffles_all = False

    def output_count(self, node):
        get = node.values_of
        labels = {_NO_LABEL: 0, _SPARSE: 2, _WEIGHTED_SPARSE: 2}.get(get("label_type", _SINGLE), 1)
        return bool(get("image_available", True)) + labels + get("additional_inputs", 0) + bool(get("bbox"))

    def begin(self, node):
        """Opens the databases."""
        get = node.values_of
        label_type, count = get("label_type", _SINGLE), get("num_labels", 1)
        images, wanted = bool(get("image_available", True)), self.output_count(node)

        def read(record):
            tensors = [_tensor2(value) for number, value in wire.fields(record) if number == 1]
            outputs, rest = tensors[:images], tensors[images:]
            if label_type == _SPARSE:
                outputs += [_spread(rest[0], np.ones(rest[0].size, np.int32), count), rest[0]]
                rest = rest[1:]
            elif label_type == _WEIGHTED_SPARSE:
                outputs += [_spread(rest[0], rest[1], count), rest[0]]
                rest = rest[2:]
            outputs += rest
            if len(outputs) < wanted:
                raise RuntimeError(f"A record has {len(tensors)} tensors, which is too few for {wanted} outputs.")
            return outputs

        return _Records(get("path"), read)
