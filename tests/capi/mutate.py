"""Mutations: serialized pipelines and inputs that nobody would send, made of those that were recorded.

A mutation takes what it needs from a `random.Random`, so that a number names it for good.
"""

import math
import struct

import numpy as np

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# Messages within messages of a pipeline file: {number of the field: what its message holds}.
ENDS = {}
ARGUMENT = {}
ARGUMENT[7] = ARGUMENT
PIPELINE = {5: {2: ENDS, 3: ENDS, 4: ARGUMENT}, 7: ENDS}
OPERATOR = 5

INTEGERS = (
    0,
    1,
    2,
    3,
    7,
    16,
    255,
    1 << 15,
    1 << 16,
    1 << 24,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    1 << 52,
    1 << 62,
    (1 << 63) - 1,
)
FLOATS = (0.0, 0.5, 1.0, 1.5, 3.0, 100.0, 1e-30, 1e-45, 1e9, 2.0**31, 2.0**63, 1e20, 3.4e38, math.inf, math.nan)
EXTENTS = (0, 0, 1, 1, 2, 3, 4, 5, 17, 64, 300)
# Of samples without elements, which cost a sender nothing.
HUGE_EXTENTS = (1, 3, 1 << 16, 1 << 31, 1 << 32, 1 << 40, (1 << 63) - 1)
LARGEST_SAMPLE = 1 << 20
DTYPES = (
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "bool",
)


def integer(rng, old=0):
    chosen = rng.choice(INTEGERS) if rng.random() < 0.7 else old + rng.randint(-3, 3)
    return -chosen if rng.random() < 0.4 else chosen


def real(rng):
    chosen = rng.choice(FLOATS) if rng.random() < 0.8 else rng.uniform(0, 300)
    return -chosen if rng.random() < 0.4 else chosen


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def parse(data, kinds):
    """The fields of a message, `[number, wire type, value]` each; messages within are such lists too."""
    fields, at = [], 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = read_varint(data, at)
        else:
            size = {FIXED64: 8, FIXED32: 4}.get(wire)
            if size is None:
                size, at = read_varint(data, at)
            value, at = bytes(data[at : at + size]), at + size
            if wire == BYTES and number in kinds:
                value = parse(value, kinds[number])
        fields.append([number, wire, value])
    return fields


def serialize(fields):
    parts = []
    for number, wire, value in fields:
        parts.append(varint(number << 3 | wire))
        if wire == VARINT:
            parts.append(varint(value))
            continue
        value = serialize(value) if isinstance(value, list) else value
        parts.append(varint(len(value)) + value if wire == BYTES else value)
    return b"".join(parts)


def copied(field):
    number, wire, value = field
    return [number, wire, [copied(inner) for inner in value] if isinstance(value, list) else value]


def messages(fields):
    """Every message in the tree, the root first."""
    yield fields
    for _, _, value in fields:
        if isinstance(value, list):
            yield from messages(value)


class Mutator:
    """Knows the texts and arguments of all recorded pipelines, to put them where they do not belong, and `files` of
    images."""

    def __init__(self, pipelines, files):
        self.files = files
        self.texts, self.operators, self.arguments = set(), [], []
        for pipeline in pipelines:
            tree = parse(pipeline, PIPELINE)
            for message in messages(tree):
                self.texts.update(v for _, wire, v in message if wire == BYTES and isinstance(v, bytes) and len(v) < 64)
            for number, _, operator in tree:
                if number == OPERATOR:
                    self.operators.append(operator)
                    self.arguments += [field for field in operator if field[0] == 4]
        self.texts = sorted(self.texts)
        by_text = {serialize([field]): field for field in self.arguments}
        self.arguments = [by_text[key] for key in sorted(by_text)]

    def pipeline(self, rng, pipeline):
        """The file with one to four changes."""
        if rng.random() < 0.12:
            return self.raw(rng, pipeline)
        tree = parse(pipeline, PIPELINE)
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
            self.change(rng, tree)
        return serialize(tree)

    def raw(self, rng, data):
        """Bytes changed without a look at what they are."""
        data = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data)) if data else 0
            match rng.randrange(5):
                case 0 if data:
                    data[at] ^= 1 << rng.randrange(8)
                case 1 if data:
                    data[at] = rng.choice((0, 1, 127, 128, 255))
                case 2:
                    del data[at:]
                case 3:
                    begin = rng.randrange(len(data)) if data else 0
                    data[at:at] = data[begin : begin + rng.randint(1, 64)]
                case 4:
                    del data[at : at + rng.randint(1, 16)]
        return bytes(data)

    def change(self, rng, tree):
        operators = [value for number, _, value in tree if number == OPERATOR and isinstance(value, list)]
        kind = rng.random()
        if operators and kind < 0.8:
            # What its arguments say, most of the time: nearly all other changes only fail the load.
            operator = rng.choice(operators)
            arguments = [field for field in operator if field[0] == 4 and isinstance(field[2], list)]
            if arguments and kind < 0.6:
                self.argument(rng, rng.choice(arguments)[2])
            elif kind < 0.7:
                operator.append(copied(self.known_argument(rng, operator)))
            else:
                self.anything(rng, operator)
        else:
            self.anything(rng, rng.choice([m for m in messages(tree) if m] or [tree]))

    def known_argument(self, rng, operator):
        """An argument that an operator of this name had in another file, or just any."""
        name = next((value for number, _, value in operator if number == 1), None)
        same = [o for o in self.operators if [1, BYTES, name] in o and any(f[0] == 4 for f in o)]
        if same and rng.random() < 0.8:
            return rng.choice([field for field in rng.choice(same) if field[0] == 4])
        return rng.choice(self.arguments)

    def argument(self, rng, argument):
        """The values of an argument: numbers at the ends of their range, lists of another length."""
        elements = [field for field in argument if field[0] == 7 and isinstance(field[2], list)]
        if elements and rng.random() < 0.7:
            match rng.randrange(6):
                case 0:
                    argument.remove(rng.choice(elements))
                case 1:
                    argument.append(copied(rng.choice(elements)))
                case 2:
                    argument[:] = [field for field in argument if field[0] != 7]
                case 3:
                    argument += [copied(rng.choice(elements)) for _ in range(rng.choice((20, 300)))]
                case _:
                    self.argument(rng, rng.choice(elements)[2])
            return
        values = [field for field in argument if field[0] in (3, 4, 5, 6)]
        if values:
            self.value(rng, rng.choice(values))
        else:
            self.anything(rng, argument)

    def value(self, rng, field):
        _, wire, value = field
        if wire == VARINT:
            field[2] = integer(rng, value)
        elif wire == FIXED32:
            field[2] = struct.pack("<f", real(rng))
        elif isinstance(value, bytes):
            match rng.randrange(5):
                case 0:
                    field[2] = self.raw(rng, value)
                case 1:
                    field[2] = value * rng.choice((0, 2, 40))
                case 2:
                    field[2] = bytes(rng.sample(value, len(value)))
                case _:
                    field[2] = rng.choice(self.texts)

    def anything(self, rng, message):
        """Some field of a message: its value, once more, gone, or elsewhere."""
        if not message:
            return
        at = rng.randrange(len(message))
        match rng.randrange(8):
            case 0:
                del message[at]
            case 1:
                message.insert(rng.randrange(len(message) + 1), copied(message[at]))
            case 2:
                other = rng.randrange(len(message))
                message[at], message[other] = message[other], message[at]
            case 3:
                message[at][0] = rng.randint(1, 12)
            case _:
                self.value(rng, message[at])

    def inputs(self, rng, inputs):
        """Other samples for some inputs: their values, shapes, types and number."""
        changed = {name: list(samples) for name, samples in inputs.items()}
        for name, samples in changed.items():
            if rng.random() < 0.3:
                continue
            for i, sample in enumerate(samples):
                if rng.random() < 0.6:
                    samples[i] = self.sample(rng, sample)
            if rng.random() < 0.1:
                dtype = rng.choice(DTYPES)
                with np.errstate(all="ignore"):
                    changed[name] = [sample.astype(dtype) for sample in samples]
        match rng.randrange(12):
            case 0:
                changed = {name: samples[:1] for name, samples in changed.items()}
            case 1:
                changed = {name: samples * rng.choice((2, 30)) for name, samples in changed.items()}
            case 2:
                changed = {name: samples[: rng.randint(1, len(samples))] for name, samples in changed.items()}
        return changed

    def sample(self, rng, sample):
        if sample.ndim == 1 and sample.dtype == np.uint8 and sample.size > 40 and rng.random() < 0.9:
            file = rng.choice(self.files) if rng.random() < 0.3 else sample.tobytes()
            return np.frombuffer(self.coded(rng, file), np.uint8)
        if rng.random() < 0.5:
            return self.values(rng, sample)
        return self.shape(rng, sample)

    def coded(self, rng, data):
        """A file of an image or of a sound, with a number near its begin that lies."""
        if rng.random() < 0.3:
            return self.raw(rng, data)
        data = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 4))):
            size = rng.choice((1, 2, 4, 8))
            at = int(rng.random() ** 2 * min(len(data) - 8, 700))
            number = integer(rng) % (1 << 8 * size)
            data[at : at + size] = number.to_bytes(size, rng.choice(("little", "big")))
        return bytes(data)

    def values(self, rng, sample):
        """Extremes of the type, some of them or all."""
        sample = np.array(sample)
        if not sample.size:
            return sample
        if sample.dtype.kind == "f":
            value = real(rng)
        elif sample.dtype.kind == "b":
            value = rng.random() < 0.5
        else:
            info = np.iinfo(sample.dtype)
            value = rng.choice((info.min, info.max, max(info.min, min(info.max, integer(rng)))))
        with np.errstate(all="ignore"):
            if rng.random() < 0.5:
                sample.reshape(-1)[rng.randrange(sample.size)] = value
            else:
                sample[...] = value
        return sample

    def shape(self, rng, sample):
        """The same values, again and again or cut, in another shape."""
        shape = list(sample.shape)
        match rng.randrange(6):
            case 0 if shape:
                del shape[rng.randrange(len(shape))]
            case 1:
                shape.insert(rng.randint(0, len(shape)), rng.choice(EXTENTS))
            case 2:
                shape = [rng.choice(EXTENTS) for _ in range(rng.randint(0, 6))]
            case 3:
                shape = [rng.choice(HUGE_EXTENTS) for _ in range(max(len(shape), 1))]
                shape[rng.randrange(len(shape))] = 0
            case _ if shape:
                shape[rng.randrange(len(shape))] = rng.choice(EXTENTS)
        if 0 in shape:
            return Empty(sample.dtype, shape)
        if math.prod(shape) > LARGEST_SAMPLE:
            return sample
        return np.resize(sample, shape) if sample.size else np.zeros(shape, sample.dtype)


class Empty:
    """A sample without elements, whose shape numpy may refuse."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape, self.ndim, self.size = np.dtype(dtype), tuple(shape), len(shape), 0

    def astype(self, dtype):
        return Empty(dtype, self.shape)
