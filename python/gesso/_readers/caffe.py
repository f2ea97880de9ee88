"""`fn.readers.caffe` and `fn.readers.caffe2`: images and labels in LMDB databases."""

import numpy as np

from . import wire
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
        self._paths = paths
        self._records = Joined(paths)
        self._read = read
        self.size = len(self._records)

    def read(self, index):
        return self._read(self._records[index]), f"{self._paths[0]} at index {index}"


class Caffe(Reader):
    """Reads Caffe's LMDB databases. Outputs: images, and labels."""

    schema_name = "readers__Caffe"
    schema = named_schema = schema("readers__Caffe", "Reads images and labels of Caffe's databases.", _OWN, required=("path",))
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
    if kind == 3:
        return np.frombuffer(data, np.uint8).reshape(dims)
    return np.array(numbers, _TYPES2.get(kind, np.float32)).reshape(dims or -1)


class Caffe2(Reader):
    """Reads Caffe2's LMDB databases. Outputs: images, and what `label_type` says of labels."""

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

    def begin(self, node):
        """Opens the databases."""
        has_image = node.values_of("image_available", True)

        def read(record):
            tensors = [_tensor2(value) for number, value in wire.fields(record) if number == 1]
            return tensors if has_image else tensors[1:]

        return _Records(node.values_of("path"), read)
