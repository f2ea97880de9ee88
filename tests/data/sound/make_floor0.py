"""Makes floor0.npz in this directory: Vorbis whose floors are filters (kind 0), which no encoder of today writes, and
samples of them.

    python make_floor0.py     (needs numpy, soundfile)

The streams are put together here, bit by bit; samples are those of libsndfile 1.2.2 (libvorbis 1.3.7), from soundfile
0.14.0.

Writes
    floor0.npz    name -> Ogg, 1-D uint8;  name + "_samples" -> its samples, float32
"""

import io
import os
import struct

import numpy as np


class Bits:
    """The lowest bit of a byte first."""

    def __init__(self):
        self.bits = []

    def put(self, *pairs):
        for value, count in pairs:
            self.bits += [value >> i & 1 for i in range(count)]

    def code(self, value, count):
        self.bits += [value >> count - 1 - i & 1 for i in range(count)]

    def bytes(self):
        return np.packbits(np.array(self.bits, np.uint8), bitorder="little").tobytes()


def real(number):
    exponent, mantissa = (788, abs(number)) if number == int(number) else (768, abs(number) * 2**20)
    return round(mantissa) | exponent << 21 | int(number < 0) << 31


def book(bits, dimensions, entries, length, vectors=None):
    bits.put((0x564342, 24), (dimensions, 16), (entries, 24), (0, 2), *[(length - 1, 5)] * entries)
    if vectors is None:
        bits.put((0, 4))
        return
    least, step, sums, values = vectors
    bits.put((2, 4), (real(least), 32), (real(step), 32), (3, 4), (sums, 1), *[(int(value), 4) for value in values])


def checksum(data):
    rest = 0
    for byte in data:
        rest ^= byte << 24
        for _ in range(8):
            rest = (rest << 1 ^ 0x104C11DB7) if rest & 0x80000000 else rest << 1
    return rest


def page(packets, position, number, flags):
    lengths = b"".join(b"\xff" * (len(packet) // 255) + bytes([len(packet) % 255]) for packet in packets)
    head = b"OggS\0" + bytes([flags]) + struct.pack("<qIII", position, 7, number, 0) + bytes([len(lengths)]) + lengths
    data = head + b"".join(packets)
    return data[:22] + struct.pack("<I", checksum(data)) + data[26:]


def stream(order, rate, steps, amplitude, offset, side, cut=None):
    """24 blocks of 2^side samples; `cut` is the number of one that is short, and its bytes."""
    rng, half = np.random.default_rng(order + steps), 1 << side - 1
    first = b"\x01vorbis" + struct.pack("<IBIiii", 0, 1, rate, 0, 0, 0) + bytes([side << 4 | side, 1])
    second = b"\x03vorbis" + bytes(8) + b"\1"
    bits = Bits()
    bits.put((2, 8))
    apart = np.pi / (order + 1)
    book(bits, 2, 16, 4, (0.9 * apart, 0.2 * apart / 16, 1, rng.integers(0, 16, 32)))
    book(bits, 1, 2, 1)
    book(bits, 2, 16, 4, (-8.0, 1.0, 0, rng.integers(0, 16, 32)))
    # Times; a floor of one book; a residue of one class; a mapping; a mode.
    bits.put((0, 22), (0, 22), (order, 8), (rate, 16), (steps, 16), (amplitude, 6), (offset, 8), (0, 4), (0, 8))
    bits.put((0, 6), (1, 16), (0, 24), (half, 24), (15, 24), (0, 6), (1, 8), (1, 4), (2, 8))
    bits.put((0, 50), (0, 47), (1, 1))
    third, packets = b"\x05vorbis" + bits.bytes(), []
    for number in range(24):
        bits, level = Bits(), 0 if number % 7 == 5 else int(rng.integers(1, 1 << amplitude))
        bits.put((0, 1), (level, amplitude))
        if level:
            bits.put((0, 1))
            for _ in range((order + 1) // 2):
                bits.code(int(rng.integers(0, 16)), 4)
            for _ in range(half // 16):
                bits.code(0, 1)
                for _ in range(8):
                    bits.code(int(rng.integers(0, 16)), 4)
        packets.append(bits.bytes()[: cut[1] if cut and cut[0] == number else None])
    return page([first], 0, 0, 2) + page([second, third], 0, 1, 0) + page(packets, 23 * half, 2, 4)


def main():
    import soundfile

    arrays = {}
    for name, file in {
        "even": stream(8, 44100, 256, 6, 40, 8),
        "odd": stream(5, 8000, 30, 6, 40, 8),
        "two": stream(2, 44100, 128, 4, 20, 7),
        "many": stream(16, 44100, 512, 12, 60, 9),
        "short_in_floor": stream(8, 44100, 256, 6, 40, 8, (9, 3)),
        "short_in_residue": stream(8, 44100, 256, 6, 40, 8, (9, 40)),
    }.items():
        arrays[name] = np.frombuffer(file, np.uint8)
        arrays[f"{name}_samples"] = soundfile.read(io.BytesIO(file), dtype="float32")[0]
    np.savez_compressed(os.path.join(os.path.dirname(os.path.abspath(__file__)), "floor0.npz"), **arrays)
    print(
        {name: (array.shape, float(np.abs(array).max())) for name, array in arrays.items() if name.endswith("_samples")}
    )


if __name__ == "__main__":
    main()
