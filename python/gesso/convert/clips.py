"""Videos that are made for a proof: pictures as JPEGs in a file of the format AVI."""

import io
import struct


def avi(pictures, rate):
    """A file of JPEGs, one a frame; `rate` is frames by seconds, two whole numbers."""
    from PIL import Image

    frames = []
    for pixels in pictures:
        made = io.BytesIO()
        Image.fromarray(pixels).save(made, "JPEG", quality=90)
        frames.append(made.getvalue() + b"\0" * (made.tell() % 2))
    height, width = pictures[0].shape[:2]
    number, seconds = rate
    main = struct.pack(
        "<14I", seconds * 1_000_000 // number, 0, 0, 0x10, len(frames), 0, 1, 0, width, height, 0, 0, 0, 0
    )
    stream = b"vidsMJPG" + struct.pack("<10I4H", 0, 0, 0, seconds, number, 0, len(frames), 0, 0, 0, 0, 0, width, height)
    form = struct.pack("<IiiHH4s5I", 40, width, height, 1, 24, b"MJPG", width * height * 3, 0, 0, 0, 0)
    streams = _list(b"strl", _chunk(b"strh", stream) + _chunk(b"strf", form))
    index, place = b"", 4
    for frame in frames:
        index += b"00dc" + struct.pack("<3I", 0x10, place, len(frame))
        place += 8 + len(frame)
    movie = _list(b"movi", b"".join(_chunk(b"00dc", frame) for frame in frames))
    header = _list(b"hdrl", _chunk(b"avih", main) + streams)
    return _list(b"AVI ", header + movie + _chunk(b"idx1", index), b"RIFF")


def _chunk(name, data):
    return name + struct.pack("<I", len(data)) + data


def _list(name, data, kind=b"LIST"):
    return kind + struct.pack("<I", 4 + len(data)) + name + data
