"""Files of a few bytes or megabytes that take a server long to decode. Nothing here knows a server."""

import io
import struct
import zlib

import numpy as np
from PIL import Image

# As many pixels as an image may have.
SIDE = 11_585


class _Bits:
    """Bits of a WebP: the lowest of a byte first."""

    def __init__(self):
        self.number, self.count = 0, 0

    def put(self, value, count):
        self.number |= value << self.count
        self.count += count

    def bytes(self):
        return self.number.to_bytes((self.count + 7) // 8, "little")


def webp(width=SIDE, height=SIDE, color=(10, 200, 30)):
    """A lossless WebP of one colour: each of its five codes has one symbol, which takes no bits, so it has no data at
    all."""
    bits = _Bits()
    bits.put(0x2F, 8)
    bits.put(width - 1, 14)
    bits.put(height - 1, 14)
    # No alpha, version 0, no transform, no colour cache, no meta codes.
    for count in (1, 3, 1, 1, 1):
        bits.put(0, count)
    red, green, blue = color
    for symbol in (green, red, blue, 255, 0):
        # A simple code of one symbol of 8 bits.
        bits.put(1, 1)
        bits.put(0, 1)
        bits.put(1, 1)
        bits.put(symbol, 8)
    data = bits.bytes()
    data += b"\0" * (len(data) % 2)
    chunk = b"VP8L" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


def _png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width=SIDE, height=SIDE):
    """A PNG of 16-bit red, green, blue and alpha, all zero, with rows that follow from the ones above."""
    row = b"\2" + bytes(8 * width)
    packed = zlib.compressobj(9)
    data = b"".join(packed.compress(row) for _ in range(height)) + packed.flush()
    header = struct.pack(">IIBBBBB", width, height, 16, 6, 0, 0, 0)
    chunks = _png_chunk(b"IHDR", header) + _png_chunk(b"IDAT", data) + _png_chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def noise(width, height, grain=1):
    """Tiles of noise, each of whose grains has so many pixels across: one does not compress well, many do."""
    small = np.random.default_rng(7).integers(0, 256, (512 // grain, 512 // grain, 3), dtype=np.uint8)
    tile = np.asarray(Image.fromarray(small).resize((512, 512)))
    rows, columns = -(-height // 512), -(-width // 512)
    return Image.fromarray(np.tile(tile, (rows, columns, 1))[:height, :width])


def jpeg(width=SIDE, height=SIDE, grain=16, quality=50):
    """A sequential JPEG of noise."""
    file = io.BytesIO()
    noise(width, height, grain).save(file, "JPEG", quality=quality)
    return file.getvalue()


def _segment(marker, data):
    return bytes([0xFF, marker]) + struct.pack(">H", 2 + len(data)) + data


def _stuffed(bits):
    """Bits as a scan has them: filled up with ones, no 255 without a zero behind it."""
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")


def progressive(width=SIDE, height=SIDE):
    """A gray progressive JPEG of 127 scans: the mean of each block, then nine bands of coefficients, each in fourteen
    scans of a bit. All coefficients are zero, which takes a few bits for 32,767 blocks; a decoder goes over all of them
    in each scan."""
    blocks = -(-width // 8) * -(-height // 8)
    empty, left = "", blocks
    while left:
        # A run of 2^n blocks and what n bits more say; n is the code, too.
        run = min(left, 2**15 - 1)
        n = run.bit_length() - 1
        empty += f"{n:04b}" + (f"{run - 2**n:0{n}b}" if n else "")
        left -= run
    means = b"\xff\xc4" + struct.pack(">HB", 2 + 1 + 16 + 1, 0x00) + bytes([1] + [0] * 15) + b"\0"
    runs = b"\xff\xc4" + struct.pack(">HB", 2 + 1 + 16 + 15, 0x10)
    runs += bytes([0, 0, 0, 15] + [0] * 12) + bytes(n << 4 for n in range(15))
    file = b"\xff\xd8" + _segment(0xDB, b"\0" + bytes([1] * 64))
    file += _segment(0xC2, struct.pack(">BHHB", 8, height, width, 1) + b"\1\x11\0") + means + runs
    file += _segment(0xDA, b"\1\1\0" + b"\0\0\0") + bytes(-(-blocks // 8))
    for first in range(1, 64, 7):
        for low in range(13, -1, -1):
            high = 0 if low == 13 else low + 1
            file += _segment(0xDA, b"\1\1\0" + bytes([first, first + 6, high << 4 | low])) + _stuffed(empty)
    return file + b"\xff\xd9"


def png_chunks(count=500_000):
    """A PNG of 8 x 8 pixels with so many chunks of no data."""
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    data = _png_chunk(b"IDAT", b"") * count + _png_chunk(b"IDAT", zlib.compress(bytes(200)))
    return b"\x89PNG\r\n\x1a\n" + _png_chunk(b"IHDR", header) + data + _png_chunk(b"IEND", b"")


def gif_codes(count=500_000):
    """A GIF of 8 x 8 pixels whose codes reset their table again and again, and mean no pixel."""
    codes = bytes([0x24, 0x49, 0x92]) * count
    blocks = b"".join(bytes([len(codes[i : i + 255])]) + codes[i : i + 255] for i in range(0, len(codes), 255))
    screen = struct.pack("<HHBBB", 8, 8, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    return b"GIF89a" + screen + b"\x2c" + struct.pack("<HHHHB", 0, 0, 8, 8, 0) + b"\2" + blocks + b"\0;"


def tiff_strips(count=20_000, length=100_000):
    """A TIFF of one column whose strips are all the same bytes, which mean one pixel each."""
    strip = b"\x80" * length + b"\0\0"
    offsets = 8 + len(strip)
    lengths = offsets + 4 * count
    directory = lengths + 4 * count
    fields = [(256, 4, 1, 1), (257, 4, 1, count), (258, 3, 1, 8), (259, 3, 1, 32773), (262, 3, 1, 1), (273, 4, count, offsets),
              (277, 3, 1, 1), (278, 4, 1, 1), (279, 4, count, lengths)]  # fmt: skip
    table = b"".join(struct.pack("<HHII", *field) for field in fields)
    tables = struct.pack(f"<{count}I", *[8] * count) + struct.pack(f"<{count}I", *[len(strip)] * count)
    return b"II*\0" + struct.pack("<I", directory) + strip + tables + struct.pack("<H", len(fields)) + table + bytes(4)


def jpeg_2000(side=300):
    """A gray JPEG 2000 that is cut into tiles of two samples, without any data."""
    size = struct.pack(">HIIIIIIIIH", 0, side, side, 0, 0, 2, 1, 0, 0, 1) + bytes([7, 1, 1])
    style = bytes([0, 0, 0, 1, 0, 0, 4, 4, 0, 1])
    head = b"\xff\x51" + struct.pack(">H", 2 + len(size)) + size
    head += (
        b"\xff\x52"
        + struct.pack(">H", 2 + len(style))
        + style
        + b"\xff\x5c"
        + struct.pack(">H", 4)
        + bytes([0x40, 8 << 3])
    )
    tiles = -(-side // 2) * side
    data = b"".join(b"\xff\x90" + struct.pack(">HHIBB", 10, tile, 15, 0, 1) + b"\xff\x93\0" for tile in range(tiles))
    return b"\xff\x4f" + head + data + b"\xff\xd9"


def _remainder(data, polynomial, width):
    """The cyclic redundancy check of FLAC, of so many bits."""
    sum_, top, mask = 0, 1 << width - 1, (1 << width) - 1
    for byte in data:
        sum_ ^= byte << width - 8
        for _ in range(8):
            sum_ = (sum_ << 1 ^ polynomial if sum_ & top else sum_ << 1) & mask
    return sum_


def flac(frames=127, rate=655_350):
    """A FLAC of 65,535 equal samples a frame, each of which takes a dozen bytes."""
    block = 65_535
    about = rate << 44 | 15 << 36 | frames * block
    head = struct.pack(">HH", block, block) + bytes(6) + about.to_bytes(8, "big") + bytes(16)
    file = [b"fLaC", bytes([0x80, 0, 0, len(head)]), head]
    for number in range(frames):
        frame = b"\xff\xf8\x70\x08" + bytes([number]) + struct.pack(">H", block - 1)
        frame += bytes([_remainder(frame, 0x07, 8)]) + bytes(3)
        file.append(frame + struct.pack(">H", _remainder(frame, 0x8005, 16)))
    return b"".join(file)
