"""Compressed images of FITS files: tiles, each in a row of a table. GZIP, RICE and tiles that are not compressed."""

import math
import re
import struct
import zlib

import numpy as np

_RANDOM_COUNT = 10000
_METHODS = ("RICE_1", "GZIP_1", "GZIP_2", "NOCOMPRESS")
_WIDTHS = {"L": 1, "B": 1, "I": 2, "J": 4, "K": 8, "A": 1, "E": 4, "D": 8, "P": 8, "Q": 16}
# Of RICE, by bytes of a pixel: bits of a block's code, the code of pixels that are stored as they are.
_RICE = {1: (3, 6), 2: (4, 14), 4: (5, 25)}
# With dithering, the number that stands for exactly 0.
_ZERO = -2147483646


class _Table:
    """The rows of a table, and the heap behind them that holds what has no fixed length."""

    def __init__(self, cards, data):
        self.width, self.rows = cards["NAXIS1"], cards["NAXIS2"]
        self._data = data
        self._heap = cards.get("THEAP", self.width * self.rows)
        self._columns, at = {}, 0
        for i in range(1, cards.get("TFIELDS", 0) + 1):
            match = re.match(r"(\d*)([A-Z])", str(cards.get(f"TFORM{i}", "")))
            if match is None or match[2] not in _WIDTHS:
                raise RuntimeError(f"the column {i} has an unknown format")
            self._columns[cards.get(f"TTYPE{i}")] = (at, match[2])
            at += int(match[1] or 1) * _WIDTHS[match[2]]
        if at > self.width:
            raise RuntimeError(f"columns of {at} bytes in rows of {self.width}")

    def has(self, name):
        """Whether there is a column of that name."""
        return name in self._columns

    def bytes(self, name, row):
        """What a row has in a column of no fixed length."""
        at, kind = self._columns.get(name, (0, None))
        if kind not in ("P", "Q"):
            return b""
        count, offset = struct.unpack_from(">II" if kind == "P" else ">QQ", self._data, row * self.width + at)
        begin = self._heap + offset
        if begin + count > len(self._data):
            raise RuntimeError("a tile lies behind the end of the table")
        return self._data[begin : begin + count]

    def number(self, name, row):
        """What a row has in a column of doubles."""
        return struct.unpack_from(">d", self._data, row * self.width + self._columns[name][0])[0]


def _gunzipped(data, size):
    try:
        found = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(data, size + 1)
    except zlib.error as error:
        raise RuntimeError(f"a tile is damaged: {error}") from None
    if len(found) != size:
        raise RuntimeError(f"a tile has not {size} bytes")
    return found


def _rice(data, count, width, block):
    """`count` integers of `width` bytes: differences in blocks, each with as many low bits as suit it."""
    code_bits, literal = _RICE[width]
    bits = bin(int.from_bytes(b"\1" + data, "big"))[3:]
    at, last = 8 * width, int.from_bytes(data[:width], "big")
    values = []
    try:
        while len(values) < count:
            low = int(bits[at : at + code_bits], 2) - 1
            at += code_bits
            here = min(block, count - len(values))
            if low < 0:
                values += [last] * here
                continue
            for _ in range(here):
                if low == literal:
                    step = int(bits[at : at + 8 * width], 2)
                    at += 8 * width
                else:
                    one = bits.index("1", at)
                    step = one - at << low | int(bits[one + 1 : one + 1 + low] or "0", 2)
                    at = one + 1 + low
                # Even steps go up, odd ones down.
                last += ~(step >> 1) if step & 1 else step >> 1
                values.append(last)
    except ValueError:
        raise RuntimeError("a tile of RICE ends too early") from None
    # Sums wrap around at the width.
    return np.array([value & (1 << 8 * width) - 1 for value in values], f"u{width}")


def _stored(table, row, method, count, dtype, settings):
    """The numbers of a tile, as they are stored."""
    data = table.bytes("COMPRESSED_DATA", row)
    if not data:
        # A tile that could not be made smaller in the usual way.
        data = table.bytes("GZIP_COMPRESSED_DATA", row)
        if data:
            return np.frombuffer(_gunzipped(data, count * dtype.itemsize), dtype), False
        data, method = table.bytes("UNCOMPRESSED_DATA", row), "NOCOMPRESS"
    kind = dtype if dtype.kind != "f" or not table.has("ZSCALE") else np.dtype(">i4")
    if method == "RICE_1":
        width = settings.get("BYTEPIX", 4)
        if width not in _RICE or kind.kind == "f":
            raise RuntimeError(f"RICE for {width} bytes a pixel")
        return _rice(data, count, width, max(int(settings.get("BLOCKSIZE", 32)), 1)).view(
            "u1" if width == 1 else f"i{width}"
        ), True
    size = count * kind.itemsize
    data = data if method == "NOCOMPRESS" else _gunzipped(data, size)
    if len(data) != size:
        raise RuntimeError(f"a tile has {len(data)} bytes, expected {size}")
    if method == "GZIP_2":
        # First the highest bytes of all pixels, then the next ones.
        data = np.frombuffer(data, np.uint8).reshape(kind.itemsize, count).T.tobytes()
    return np.frombuffer(data, kind), True


def _random_numbers():
    """The numbers that floats are dithered with."""
    state, numbers = 1, []
    for _ in range(_RANDOM_COUNT):
        state = state * 16807 % 2147483647
        numbers.append(state / 2147483647)
    return np.array(numbers, np.float32)


class _Floats:
    """Floats that were made integers, tile by tile: `number * scale + zero`."""

    def __init__(self, cards):
        self._dither = cards.get("ZQUANTIZ", "NO_DITHER")
        if self._dither not in ("NO_DITHER", "NONE", "SUBTRACTIVE_DITHER_1", "SUBTRACTIVE_DITHER_2"):
            raise RuntimeError(f"quantized by {self._dither}")
        self._first = cards.get("ZDITHER0", 1)
        self._blank = cards.get("ZBLANK")
        self._numbers = _random_numbers() if "DITHER_" in self._dither and self._dither != "NO_DITHER" else None

    def _random(self, row, count):
        seed = (row + self._first - 1) % _RANDOM_COUNT
        parts, length = [], 0
        while length < count:
            part = self._numbers[int(self._numbers[seed] * 500) :]
            parts.append(part)
            length += len(part)
            seed = (seed + 1) % _RANDOM_COUNT
        return np.concatenate(parts)[:count].astype(np.float64)

    def of(self, integers, row, scale, zero):
        """The floats of a tile."""
        values = integers.astype(np.float64)
        if self._numbers is not None:
            values = values - self._random(row, len(values)) + 0.5
        values = values * scale + zero
        if self._dither == "SUBTRACTIVE_DITHER_2":
            values[integers == _ZERO] = 0.0
        if self._blank is not None:
            values[integers == self._blank] = np.nan
        return values


def decompress(cards, data, dimensions, dtype):
    """The stored numbers of a compressed image."""
    method = cards.get("ZCMPTYPE")
    if method not in _METHODS:
        raise RuntimeError(f"it is compressed by {method}, expected one of {_METHODS}")
    table = _Table(cards, data)
    rank = len(dimensions)
    tile = [cards.get(f"ZTILE{i}", dimensions[-1] if i == 1 else 1) for i in range(rank, 0, -1)]
    if any(type(extent) is not int or extent < 1 for extent in tile):
        raise RuntimeError(f"tiles of the shape {tile}")
    grid = [-(-whole // part) for whole, part in zip(dimensions, tile)]
    if math.prod(grid) != table.rows:
        raise RuntimeError(f"{table.rows} tiles, expected {math.prod(grid)}")
    settings = {cards.get(f"ZNAME{i}"): cards.get(f"ZVAL{i}") for i in range(1, 10)}
    floats = _Floats(cards) if dtype.kind == "f" and table.has("ZSCALE") else None
    image = np.empty(dimensions, dtype.newbyteorder("="))
    for row, place in enumerate(np.ndindex(*grid)):
        part = tuple(slice(i * n, min((i + 1) * n, whole)) for i, n, whole in zip(place, tile, dimensions))
        extents = [s.stop - s.start for s in part]
        stored, is_quantized = _stored(table, row, method, math.prod(extents), dtype, settings)
        if floats is not None and is_quantized:
            stored = floats.of(stored, row, table.number("ZSCALE", row), table.number("ZZERO", row))
        image[part] = stored.reshape(extents)
    return image
