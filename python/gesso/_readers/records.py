"""`fn.readers.tfrecord` and `fn.readers.mxnet`: records in files with an index."""

import dataclasses
import struct

import numpy as np

from .. import _context
from ..tfrecord import Feature
from . import damage, storage, wire
from .source import Reader, schema

_OWN = {"path": ("_STRING_VEC", None), "index_path": ("_STRING_VEC", None), "use_o_direct": ("BOOL", False)}


class _Indexed:
    """Pieces of files: (file, where, how long)."""

    def __init__(self, paths, places):
        self._files = [storage.open_file(path) for path in paths]
        self.is_remote = any(map(storage.is_remote, paths))
        self.places = places
        self.groups = [[i for i, place in enumerate(places) if place[0] == k] for k in range(len(paths))]
        self.size = len(places)
        self.paths = paths

    def close(self):
        """Closes the files."""
        for file in self._files:
            file.close()

    def bytes(self, index):
        number, at, length = self.places[index]
        where = f"{self.paths[number]} at index {at}"
        data = self._files[number].read_at(at, length)
        if len(data) != length:
            raise RuntimeError(
                f"Error reading from {where}: the file ends within a record of {length} bytes. Does the index belong to it?"
            )
        return data, where


def _count(paths, indices, what):
    if len(paths) != len(indices):
        raise RuntimeError(f"Number of {what} files and index files should match: {len(paths)} and {len(indices)}.")


def _index(path):
    """The two numbers in each line of an index."""
    pairs = []
    for number, line in enumerate(storage.text(path).splitlines(), 1):
        words = line.split()[:2]
        if not words:
            continue
        if len(words) < 2 or not all(word.isdigit() for word in words):
            raise RuntimeError(f"Malformed index file {path}:{number}: expected two whole numbers, got {line[:40]!r}.")
        pairs.append((int(words[0]), int(words[1])))
    return pairs


# Bytes of a record's length and of two sums, around its data.
_FRAME = 16


class _Features(_Indexed):
    def __init__(self, paths, indices, features):
        _count(paths, indices, "TFRecord")
        places = []
        for number, index in enumerate(indices):
            places += [(number, at, length) for at, length in _index(index)]
        super().__init__(paths, places)
        self.features = features

    def read(self, index):
        data, where = self.bytes(index)
        length = struct.unpack_from("<Q", data)[0] if len(data) >= _FRAME else -1
        if length != len(data) - _FRAME:
            raise RuntimeError(
                f"No record of {len(data)} bytes begins in {where}: the index does not belong to this file."
            )
        with damage.named(where):
            found = _example(data[12 : 12 + length])
            return [_feature(found.get(name), feature) for name, feature in self.features.items()], where


def _example(message):
    """Features of an `Example` message by name: (kind, payload)."""
    features = next((value for number, value in wire.fields(message) if number == 1), b"")
    found = {}
    for number, entry in wire.fields(features):
        if number == 1:
            pair = dict(wire.fields(entry))
            found[pair[1].decode()] = next(iter(wire.fields(pair.get(2, b""))), (0, b""))
    return found


def _values(kind, payload):
    values = []
    for number, value in wire.fields(payload):
        if number != 1:
            continue
        if kind == 1:
            values.append(value)
        elif kind == 2:
            values += wire.floats(value)
        elif isinstance(value, (bytes, bytearray)):
            values += wire.packed_integers(value)
        else:
            values.append(wire.signed(value))
    return values


_KINDS = {1: "STRING", 2: "FLOAT", 3: "INT64"}
_NUMPY = {"INT64": np.int64, "FLOAT": np.float32}


def _feature(found, feature):
    wanted = feature.dtype.name
    if found is None or found[0] == 0:
        if wanted == "STRING":
            return np.frombuffer(str(feature.default or "").encode(), np.uint8)
        return np.array(feature.default, _NUMPY[wanted])
    if _KINDS[found[0]] != wanted:
        raise RuntimeError(f"Feature of the type {_KINDS[found[0]]} does not match the wanted type {wanted}.")
    values = _values(*found)
    if wanted == "STRING":
        return np.frombuffer(values[0] if values else b"", np.uint8)
    array = np.array(values, _NUMPY[wanted])
    if feature.partial_shape:
        return array.reshape([-1, *feature.partial_shape])
    return array if feature.shape is None else array.reshape(feature.shape)


class TFRecord(Reader):
    """Reads `Example`s of TFRecord files; `features` names the outputs: feature > what it is."""

    schema_name = "readers__TFRecord"
    named_schema = schema(
        "readers__TFRecord", "Reads features of TFRecord files.", _OWN, required=("path", "index_path")
    )
    # The name that DALI's files have.
    schema = dataclasses.replace(named_schema, alias="readers___TFRecord")
    shuffles_all = False
    names_all = True

    def __init__(self, path, index_path=None, features=None, **keywords):
        super().__init__(path=path, index_path=index_path, **keywords)
        self.features = features or {}
        for name, feature in self.features.items():
            if not isinstance(feature, Feature):
                raise TypeError(
                    f'Expected `{_context.package}.tfrecord.Feature` for the "{name}", but got {type(feature)}. Use '
                    f"`{_context.package}.tfrecord.FixedLenFeature` or `{_context.package}.tfrecord.VarLenFeature` to define the features to "
                    "extract."
                )

    def __call__(self, *inputs, **keywords):
        outputs = super().__call__(*inputs, **keywords)
        outputs = outputs if isinstance(outputs, list) else [outputs]
        return dict(zip(self.features, outputs))

    def output_count(self, node):
        return len(self.features)

    def begin(self, node):
        """Reads the indices."""
        return _Features(node.values_of("path"), node.values_of("index_path"), self.features)


_MAGIC = 0xCED7230A
_KIND_BITS, _LENGTH_MASK = 29, 0x1FFFFFFF
_WHOLE, _LAST = 0, 3


class _RecordIO(_Indexed):
    """Records of files that one index counts through as if they were one file."""

    def __init__(self, paths, indices):
        if len(indices) != 1:
            raise RuntimeError(f"The reader of RecordIO takes a single index file for all files, got {len(indices)}.")
        ends = np.cumsum([storage.open_file(path).size for path in paths]).tolist()
        offsets = sorted(at for _, at in _index(indices[0]))
        if offsets and offsets[-1] >= ends[-1]:
            raise RuntimeError(
                f"The index {indices[0]} names byte {offsets[-1]}, but its files have {ends[-1]}: it does not belong to them."
            )
        places, number = [], 0
        for at, behind in zip(offsets, offsets[1:] + [ends[-1]]):
            while at >= ends[number]:
                number += 1
            if behind > at:
                places.append((number, at - (ends[number - 1] if number else 0), behind - at))
        super().__init__(paths, places)

    def read(self, index):
        data, where = self.bytes(index)
        with damage.named(where):
            record = _joined(data, where)
            flag, label = struct.unpack_from("<If", record)
            labels = np.frombuffer(record, np.float32, flag, 24) if flag else np.array([label], np.float32)
            return (np.frombuffer(record, np.uint8, offset=24 + 4 * flag), labels), where


def _joined(data, where):
    """A record's bytes. One that has the magic number inside is stored in parts that are cut there."""
    parts, at = [], 0
    while True:
        magic, word = struct.unpack_from("<II", data, at)
        if magic != _MAGIC:
            raise RuntimeError(f"Invalid RecordIO: wrong magic number in {where}.")
        length, kind = word & _LENGTH_MASK, word >> _KIND_BITS
        if at + 8 + length > len(data):
            raise RuntimeError(f"Invalid RecordIO: a part of {length} bytes in {where} ends behind its record.")
        parts.append(data[at + 8 : at + 8 + length])
        if kind in (_WHOLE, _LAST):
            return struct.pack("<I", _MAGIC).join(parts)
        at += 8 + (length + 3) // 4 * 4


class MXNet(Reader):
    """Reads RecordIO files. Outputs: images, and labels."""

    schema_name = "readers__MXNet"
    schema = named_schema = schema(
        "readers__MXNet", "Reads images and labels of RecordIO files.", _OWN, required=("path", "index_path")
    )
    shuffles_all = False

    def begin(self, node):
        """Reads the indices."""
        return _RecordIO(node.values_of("path"), node.values_of("index_path"))
