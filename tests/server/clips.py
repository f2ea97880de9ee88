"""Videos for decoupled models, made of the clips in tests/data."""

import struct

import numpy as np
from harness import ROOT

CLIPS = ROOT / "tests" / "data" / "video"
DECOUPLED = "max_batch_size: 0\nmodel_transaction_policy { decoupled: true }\n"


def long_video(frames, damaged=None):
    """The clip in VP9 over and over: an IVF file is a header and frames, each behind its length and time. One may be
    `damaged`."""
    file = (CLIPS / "vp9.ivf").read_bytes()
    head, rest, packets = file[:32], file[32:], []
    while rest:
        (length,) = struct.unpack_from("<I", rest)
        packets.append(rest[12 : 12 + length])
        rest = rest[12 + length :]
    chosen = [packets[i % len(packets)] for i in range(frames)]
    if damaged is not None:
        chosen[damaged] = b"\xff" * len(chosen[damaged])
    return np.frombuffer(
        head + b"".join(struct.pack("<IQ", len(one), i) + one for i, one in enumerate(chosen)), np.uint8
    )
