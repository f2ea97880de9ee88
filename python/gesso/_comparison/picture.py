"""Pictures of differences, and PNG files of them: this package needs no other one for it."""

import struct
import zlib

import numpy as np

_GAP = 4


def side_by_side(ours, theirs, far):
    """The pipeline's image, the reference's and their difference, which is scaled so that the largest is white."""
    finite = np.asarray(theirs, np.float64)[np.isfinite(theirs)]
    is_bytes = theirs.dtype == np.uint8 or not finite.size
    low, high = (0, 255) if is_bytes else (finite.min(), finite.max())
    most = far[np.isfinite(far)].max(initial=0)
    images = [_scaled(ours, low, high), _scaled(theirs, low, high), _scaled(far, 0, most)]
    gap = np.full((images[0].shape[0], _GAP, 3), 128, np.uint8)
    return np.concatenate([images[0], gap, images[1], gap, images[2]], axis=1)


def _scaled(values, low, high):
    """Colours of an array: of the first image, if there are several, and of its first three channels."""
    values = np.nan_to_num(np.asarray(values, np.float64), nan=high, posinf=high, neginf=low)
    while values.ndim > 3:
        values = values[0]
    if values.ndim < 3:
        values = np.atleast_2d(values)[..., None]
    if values.shape[0] <= 4 < values.shape[2]:
        values = values.transpose(1, 2, 0)
    values = values[..., :3] if values.shape[2] >= 3 else values[..., :1].repeat(3, axis=2)
    return np.clip((values - low) * (255 / max(high - low, 1e-30)), 0, 255).astype(np.uint8)


def png(pixels):
    """The bytes of a PNG file of colours (height, width, 3)."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + chunk(b"IEND", b"")
    )
