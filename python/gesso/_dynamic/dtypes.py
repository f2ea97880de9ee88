"""`DType`: element types of tensors with what is known of them, such as `float32.bytes`."""

import re
from enum import Enum

from .._tensors.enums import DALIDataType, to_dali_type

# bits > (exponent bits, significand bits) of IEEE 754.
_IEEE = {16: (5, 10), 32: (8, 23), 64: (11, 52)}
_by_id, _by_name = {}, {}


class DType:
    """An element type: `kind`, `bits`, `bytes`, `name`, and for floats `exponent_bits` and `significand_bits`.
    Called, it makes a tensor of this type: `int16([1, 2])`."""

    class Kind(Enum):
        """What the bits mean."""

        signed = 1
        unsigned = 2
        float = 3
        bool = 4
        enum = 5

    def __init__(self, kind, bits, exponent_bits=None, significand_bits=None, bytes=None, type_id=None, name=None):
        self.kind, self.bits, self.type_id = kind, bits, type_id
        self.bytes = bytes or (bits + 7) // 8
        self.exponent_bits = self.significand_bits = None
        if kind == DType.Kind.float:
            exponent, significand = _IEEE.get(bits, (None, None))
            self.exponent_bits = exponent_bits or exponent
            self.significand_bits = significand_bits or significand
        self.name = name or self._usual_name()
        self.__doc__ = f"The element type {self.name}."

    def _usual_name(self):
        letter = {DType.Kind.signed: "i", DType.Kind.unsigned: "u", DType.Kind.float: "f"}.get(self.kind)
        if letter is None:
            return "bool"
        usual = _IEEE.get(self.bits)
        if self.kind != DType.Kind.float or usual == (self.exponent_bits, self.significand_bits):
            return f"{letter}{self.bits}"
        return f"f{self.bits}e{self.exponent_bits}m{self.significand_bits}"

    def _key(self):
        which = self.type_id if self.kind == DType.Kind.enum else None
        return self.kind, self.bits, self.exponent_bits, self.significand_bits, which

    def __eq__(self, other):
        return self is other or isinstance(other, DType) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __str__(self):
        return self.name

    def __repr__(self):
        parts = [f"kind={self.kind}", f"bits={self.bits}"]
        for name in ("exponent_bits", "significand_bits"):
            if getattr(self, name) is not None:
                parts.append(f"{name}={getattr(self, name)}")
        return f"DType({', '.join(parts)})"

    @staticmethod
    def from_type_id(type_id):
        """The type with that number in files."""
        return _by_id[type_id]

    @staticmethod
    def from_fw_type(framework_type):
        """The type that numpy or another framework calls so."""
        return _by_id[to_dali_type(framework_type)]

    @staticmethod
    def parse(name):
        """The type of that name, such as `f32`, `bfloat16` or `f8e4m3`."""
        known = _by_name.get(name)
        if known is not None:
            return known
        found = re.fullmatch(r"(?:([iu])(\d+)|f(\d+)e(\d+)m(\d+))", name)
        if not found:
            raise ValueError(f"no element type is called {name!r}; expected one such as 'u8', 'f32' or 'bool'")
        letter, bits, *parts = found.groups()
        if letter:
            return DType(DType.Kind.signed if letter == "i" else DType.Kind.unsigned, int(bits))
        return DType(DType.Kind.float, *map(int, parts))


def _known(kind, bits, type_id, name=None, **more):
    made = DType(kind, bits, type_id=type_id, name=name, **more)
    if type_id is not None:
        _by_id[type_id] = made
    _by_name[made.name] = made
    return made


_KIND, _ID = DType.Kind, DALIDataType
int8 = _known(_KIND.signed, 8, _ID.INT8)
int16 = _known(_KIND.signed, 16, _ID.INT16)
int32 = _known(_KIND.signed, 32, _ID.INT32)
int64 = _known(_KIND.signed, 64, _ID.INT64)
uint8 = _known(_KIND.unsigned, 8, _ID.UINT8)
uint16 = _known(_KIND.unsigned, 16, _ID.UINT16)
uint32 = _known(_KIND.unsigned, 32, _ID.UINT32)
uint64 = _known(_KIND.unsigned, 64, _ID.UINT64)
float16 = _known(_KIND.float, 16, _ID.FLOAT16)
float32 = _known(_KIND.float, 32, _ID.FLOAT)
float64 = _known(_KIND.float, 64, _ID.FLOAT64)
boolean = _known(_KIND.bool, 8, _ID.BOOL, "bool")
# Tensors have no elements of it yet.
bfloat16 = _known(_KIND.float, 16, None, "bfloat16", exponent_bits=8, significand_bits=7)
DataType = _known(_KIND.enum, 32, _ID.DATA_TYPE, "DataType")
ImageType = _known(_KIND.enum, 32, _ID.IMAGE_TYPE, "ImageType")
InterpType = _known(_KIND.enum, 32, _ID.INTERP_TYPE, "InterpType")

# By the names that a program imports.
NAMED = {
    **{f"{kind}{bits}": _by_name[f"{kind[0]}{bits}"] for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{"float16": float16, "float32": float32, "float64": float64, "bool": boolean, "bfloat16": bfloat16},
    **{"DataType": DataType, "ImageType": ImageType, "InterpType": InterpType},
}


def dtype(*arguments):
    """The `DType` that a name, a number of files or a type of a framework means."""
    if len(arguments) != 1:
        return DType(*arguments)
    (value,) = arguments
    if isinstance(value, DType):
        return value
    if isinstance(value, DALIDataType):
        return DType.from_type_id(value)
    return DType.parse(value) if isinstance(value, str) else DType.from_fw_type(value)


def type_id(value):
    """The number in files of an element type."""
    if isinstance(value, DType):
        return value.type_id
    if isinstance(value, DALIDataType):
        return value
    raise ValueError(f"expected an element type, found {value!r}")
