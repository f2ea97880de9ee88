"""Messages of Protocol Buffers, as far as readers need them: fields by number."""

import struct


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each field: integers, or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 1:
            value, at = data[at : at + 8], at + 8
        elif kind == 2:
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        elif kind == 5:
            value, at = data[at : at + 4], at + 4
        else:
            raise RuntimeError(f"A protobuf message has a field of the unknown kind {kind}.")
        yield number, value


def signed(value):
    """A 64-bit integer field as it was meant."""
    return value - (1 << 64) if value >> 63 else value


def packed_integers(data):
    """The integers of a packed field."""
    at, values = 0, []
    while at < len(data):
        value, at = _varint(data, at)
        values.append(signed(value))
    return values


def floats(data):
    """The floats of a packed field."""
    return list(struct.unpack(f"<{len(data) // 4}f", data))
