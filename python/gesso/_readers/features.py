"""The features of TFRecord readers in a file, as DALI writes them: arguments inside of arguments, for which a
description of a file has no place."""

import struct

from .._authoring import serialization
from ..tfrecord import Feature, float32, int64, string
from . import wire

# Fields of the messages. Of a pipeline: its operators; of an operator: its arguments, its name; of an argument: its
# name, its type, values of each type, arguments inside of it, whether it is a list.
_OPERATOR = 5
_ARGUMENT, _INSTANCE = 4, 5
_NAME, _TYPE, _FLOAT, _INT, _TEXT, _BOOL, _PART, _IS_LIST = range(1, 9)
_TYPES = (int64, string, float32)


def of_file(serialized):
    """The features of each reader in a file: name of the reader > name of the feature > what it is."""
    found = {}
    for number, operator in wire.fields(serialized):
        if number != _OPERATOR:
            continue
        fields = list(wire.fields(operator))
        arguments = dict(_named(value) for number, value in fields if number == _ARGUMENT)
        if "features" in arguments and "feature_names" in arguments:
            names = [_value(part) for _, part in _parts(arguments["feature_names"])]
            features = [_feature(part) for _, part in _parts(arguments["features"])]
            found[next((bytes(value).decode() for number, value in fields if number == _INSTANCE), "")] = dict(
                zip(names, features)
            )
    return found


def _named(argument):
    """(name, fields) of an argument."""
    fields = list(wire.fields(argument))
    return next((bytes(value).decode() for number, value in fields if number == _NAME), ""), fields


def _parts(fields):
    return [_named(value) for number, value in fields if number == _PART]


def _value(fields):
    """The value of an argument that is no list; None without one."""
    for number, value in fields:
        if number == _FLOAT:
            return struct.unpack("<f", value)[0]
        if number == _TEXT:
            return bytes(value).decode("utf-8", "surrogateescape")
        if number in (_INT, _BOOL):
            return bool(value) if number == _BOOL else wire.signed(value)
    return None


def _integers(fields):
    return [wire.signed(value) for number, value in fields or () if number == _INT]


def _feature(fields):
    parts = dict(_parts(fields))
    kind = _value(parts.get("type", ()))
    if kind not in range(len(_TYPES)):
        raise RuntimeError(f"a feature of a TFRecord reader has the type {kind}, expected 0 to {len(_TYPES) - 1}")
    shape = _integers(parts.get("shape")) if _value(parts.get("has_shape", ())) else None
    default = _value(parts.get("default_value", ()))
    return Feature(shape, _TYPES[kind], default, _integers(parts.get("partial_shape")) or None)


def add(serialized, features):
    """The bytes of a file with the features of its readers, by their names."""
    out = []
    for number, value in wire.fields(serialized):
        if number == _OPERATOR:
            name = next((bytes(part).decode() for number, part in wire.fields(value) if number == _INSTANCE), None)
            if name in features:
                value = bytes(value) + _arguments(features[name])
        out.append(_field(number, value))
    return b"".join(out)


def _arguments(features):
    names = [_argument(f"element {i}", "string", _field(_TEXT, name.encode())) for i, name in enumerate(features)]
    elements = [
        _argument(f"element {i}", "TFRecord", b"".join(_of_feature(feature)))
        for i, feature in enumerate(features.values())
    ]
    lists = (("feature_names", "string", names), ("features", "TFRecord", elements))
    return b"".join(_field(_ARGUMENT, _inner(name, kind, b"".join(parts), True)) for name, kind, parts in lists)


def _of_feature(feature):
    kind = _TYPES.index(feature.dtype)
    yield _argument("type", "int64", _field(_INT, kind))
    yield _argument("has_shape", "bool", _field(_BOOL, int(feature.shape is not None)))
    for name, shape in (("shape", feature.shape), ("partial_shape", feature.partial_shape)):
        if shape is not None or name == "shape":
            extents = [shape] if isinstance(shape, int) else list(shape or ())
            yield _argument(name, "int64" if extents else "", b"".join(_field(_INT, int(extent)) for extent in extents))
    default = feature.default
    if kind == 0:
        yield _argument("default_value", "int64", _field(_INT, int(default or 0)))
    elif kind == 1:
        yield _argument("default_value", "string", _field(_TEXT, str(default or "").encode()))
    else:
        yield _argument("default_value", "float", _varint(_FLOAT << 3 | 5) + struct.pack("<f", float(default or 0)))


def _argument(name, kind, payload):
    """An argument inside of another one."""
    return _field(_PART, _inner(name, kind, payload, False))


def _inner(name, kind, payload, is_list):
    return (
        _field(_NAME, name.encode())
        + (_field(_TYPE, kind.encode()) if kind else b"")
        + payload
        + _field(_IS_LIST, int(is_list))
    )


def _field(number, value):
    """A field: an integer, or a message or a text."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value & (1 << 64) - 1)
    return _varint(number << 3 | 2) + _varint(len(value)) + bytes(value)


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def rewritten(serialized, described):
    """The bytes of a file whose description was changed; with the features that the description has no place for."""
    found = of_file(serialized)
    if not found:
        return serialization.write(described)
    return _written(described, found)


def _written(described, found):
    operators = [
        {**entry, "unreadable": []} if entry["instance"] in found else entry for entry in described["operators"]
    ]
    for entry in operators:
        if entry["instance"] in found:
            entry["arguments"] = {name: value for name, value in entry["arguments"].items() if name != "feature_names"}
            entry["stored"] = [stored for stored in entry["stored"] if stored["name"] != "feature_names"]
    return add(serialization.write({**described, "operators": operators}), found)


def _of(nodes):
    return {node.name: node.operator.features for node in nodes or () if getattr(node.operator, "features", None)}


def of_nodes(serialized, nodes):
    """The bytes of a file with the features of those nodes that have some."""
    features = _of(nodes)
    return add(serialized, features) if features else serialized


def written(described, nodes):
    """The bytes of a file that has those nodes; they may be of another file, which says their features, too."""
    return _written(described, _of(nodes))
