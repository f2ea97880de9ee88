"""FITS files: headers and where their data is, images as arrays. Compressed ones are in `fits_tiles`."""

import math
import os

import numpy as np

from . import fits_tiles, storage

_BLOCK, _CARD, _MAGIC = 2880, 80, b"SIMPLE  ="
# What files may ask for.
_MAX_HEADER_BLOCKS, _MAX_DIMENSIONS, _MAX_BYTES = 4096, 16, 2 << 30
_TYPES = {8: ">u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}
# Integers of the other sign are stored moved by half of their range.
_OTHER_SIGN = {
    (8, -128): (np.int8, 1 << 7),
    (16, 1 << 15): (np.uint16, 1 << 15),
    (32, 1 << 31): (np.uint32, 1 << 31),
    (64, 1 << 63): (np.uint64, 1 << 63),
}


def _value(text):
    text = text.strip()
    if text.startswith("'"):
        return text[1:].split("'")[0].rstrip()
    text = text.split("/")[0].strip()
    if text in ("T", "F"):
        return text == "T"
    try:
        return int(text)
    except ValueError:
        try:
            return float(text.replace("D", "E"))
        except ValueError:
            return text


def _header(file, path):
    """The cards of a header as a dictionary, or None at the end of the file."""
    cards = {}
    for number in range(_MAX_HEADER_BLOCKS):
        block = file.read(_BLOCK)
        if not block and number == 0:
            return None
        if len(block) < _BLOCK:
            raise RuntimeError(f"The FITS file {path} ends within a header.")
        for at in range(0, _BLOCK, _CARD):
            card = block[at : at + _CARD].decode("latin-1")
            if card[:8] == "END     ":
                return cards
            if card[8:10] == "= ":
                cards.setdefault(card[:8].rstrip(), _value(card[10:]))
    raise RuntimeError(f"A header of the FITS file {path} is longer than {_MAX_HEADER_BLOCKS} blocks.")


def integer(cards, name, default=None):
    """A card that must be a whole number of at least 0."""
    value = cards.get(name, default)
    if type(value) is not int or value < 0:
        raise RuntimeError(f"The card {name} is {value!r}, expected a whole number of at least 0.")
    return value


def shape(cards, prefix=""):
    """The dimensions of an image, the slowest first."""
    count = integer(cards, f"{prefix}NAXIS")
    if count > _MAX_DIMENSIONS:
        raise RuntimeError(f"An image of {count} dimensions, expected at most {_MAX_DIMENSIONS}.")
    return tuple(integer(cards, f"{prefix}NAXIS{i}") for i in range(count, 0, -1))


def _bytes(cards):
    """How much data follows a header."""
    dimensions = shape(cards)
    if not dimensions:
        return 0
    if cards.get("GROUPS") is True and dimensions[-1] == 0:
        dimensions = dimensions[:-1]
    groups, more = integer(cards, "GCOUNT", 1), integer(cards, "PCOUNT", 0)
    return _type(cards["BITPIX"] if "BITPIX" in cards else None).itemsize * groups * (more + math.prod(dimensions))


def _type(bits):
    if bits not in _TYPES:
        raise RuntimeError(f"The card BITPIX is {bits!r}, expected one of {sorted(_TYPES)}.")
    return np.dtype(_TYPES[bits])


def _scaled(stored, bits, cards):
    """The numbers that are meant by those that are stored."""
    scale, zero, blank = cards.get("BSCALE", 1), cards.get("BZERO", 0), cards.get("BLANK")
    if scale == 1 and zero == 0:
        return stored.astype(stored.dtype.newbyteorder("="))
    if scale == 1 and (bits, zero) in _OTHER_SIGN:
        dtype, half = _OTHER_SIGN[bits, zero]
        unsigned = np.dtype(f"u{stored.dtype.itemsize}")
        return (stored.astype(stored.dtype.newbyteorder("=")).view(unsigned) ^ unsigned.type(half)).view(dtype)
    wide = np.float32 if bits in (8, 16, -32) else np.float64
    values = (stored.astype(np.float64) * scale + zero).astype(wide)
    if bits > 0 and blank is not None:
        values[stored == blank] = np.nan
    return values


def _image(file, path, cards, begin, size):
    is_compressed = cards.get("ZIMAGE") is True
    prefix = "Z" if is_compressed else ""
    if not is_compressed and cards.get("XTENSION", "IMAGE") != "IMAGE":
        raise RuntimeError(f"it is a {cards['XTENSION']}, expected an image")
    bits, dimensions = cards.get(f"{prefix}BITPIX"), shape(cards, prefix)
    dtype = _type(bits)
    if not dimensions:
        raise RuntimeError("it has no data")
    count = math.prod(dimensions)
    if count * dtype.itemsize > _MAX_BYTES:
        raise RuntimeError(f"an image of {count * dtype.itemsize} bytes, expected at most {_MAX_BYTES}")
    file.seek(begin)
    data = file.read(size)
    if len(data) < size:
        raise RuntimeError(f"the file ends {size - len(data)} bytes too early")
    if is_compressed:
        stored = fits_tiles.decompress(cards, data, dimensions, dtype)
    else:
        stored = np.frombuffer(data, dtype, count).reshape(dimensions)
    return _scaled(stored, bits, cards)


def images(path, indices):
    """The images of the parts (HDUs) of a file that are asked for; the first one has the number 1."""
    found, wanted = {}, set(indices)
    try:
        with storage.open_local(path) as file:
            file_size = os.fstat(file.fileno()).st_size
            if file.read(len(_MAGIC)) != _MAGIC:
                raise RuntimeError(f"{path} is no FITS file: it does not begin with `{_MAGIC.decode()}`.")
            file.seek(0)
            for number in range(1, max(wanted) + 1):
                cards = _header(file, path)
                if cards is None:
                    raise RuntimeError(
                        f"The FITS file {path} has {number - 1} parts, but part {max(wanted)} is wanted."
                    )
                begin, size = file.tell(), _bytes(cards)
                if number in wanted:
                    try:
                        found[number] = _image(file, path, cards, begin, size)
                    except RuntimeError as error:
                        raise RuntimeError(f"Part {number} of the FITS file {path}: {error}.") from None
                file.seek(min(begin + -(-size // _BLOCK) * _BLOCK, file_size))
    except OSError as error:
        raise RuntimeError(f"Could not open file {path}: {error.strerror or error}") from None
    return [found[index] for index in indices]
