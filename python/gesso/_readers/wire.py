"""Messages of Protocol Buffers, as far as readers need them: fields by number."""

# Bytes of an integer of 64 bits, 7 in each.
_LONGEST = 10


def _varint(data, at):
    value = 0
    for i, byte in enumerate(data[at : at + _LONGEST]):
        value |= (byte & 127) << 7 * i
        if byte < 128:
            return value, at + i + 1
    raise RuntimeError("A protobuf message ends within an integer, or has one of more than 64 bits.")


def _piece(data, at, length):
    if at + length > len(data):
        raise RuntimeError(f"A protobuf message ends within a field of {length} bytes.")
    return data[at : at + length], at + length


def fields(data):
    """(number, value) of each field: integers, or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 1:
            value, at = _piece(data, at, 8)
        elif kind == 2:
            length, at = _varint(data, at)
            value, at = _piece(data, at, length)
        elif kind == 5:
            value, at = _piece(data, at, 4)
        else:
            raise RuntimeError(f"A protobuf message has a field of the unknown kind {kind}.")
        yield number, value


def signed(value):
    """A 64-bit integer field as it was meant."""
    return value - (1 << 64) if value >> 63 else value
