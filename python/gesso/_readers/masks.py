"""Masks of objects as COCO has them: polygons and runs of pixels, column after column. Knows arrays, no files."""

import numpy as np

_FINE = 5
_DIGIT_BITS, _FIRST_DIGIT = 5, 48


def of_polygon(vertices, height, width):
    """The pixels inside of a polygon (`[n, 2]`, x and y), a flat array of truth values in columns.

    The outline is drawn five times as fine; where it crosses the middle of a column, inside and outside change.
    """
    corners = np.trunc(vertices.astype(np.float64) * _FINE + 0.5).astype(np.int64)
    along_x, along_y = zip(*(_line(corners[k], corners[(k + 1) % len(corners)]) for k in range(len(corners))))
    x, y = np.concatenate(along_x), np.concatenate(along_y)
    moves = x[1:] != x[:-1]
    column = (np.minimum(x[1:], x[:-1])[moves] + 0.5) / _FINE - 0.5
    row = np.ceil(np.clip((np.minimum(y[1:], y[:-1])[moves] + 0.5) / _FINE - 0.5, 0, height)).astype(np.int64)
    inside = (np.floor(column) == column) & (column >= 0) & (column <= width - 1)
    changes = np.bincount(column[inside].astype(np.int64) * height + row[inside], minlength=height * width + 1)
    return (np.cumsum(changes)[: height * width] & 1).astype(bool)


def _line(start, end):
    """The points of a line, both ends included."""
    (x0, y0), (x1, y1) = start, end
    dx, dy = abs(x1 - x0), abs(y1 - y0)
    is_flat = dx >= dy
    is_turned = x0 > x1 if is_flat else y0 > y1
    if is_turned:
        x0, y0, x1, y1 = x1, y1, x0, y0
    steps = np.arange(max(dx, dy) + 1)
    if is_turned:
        steps = steps[::-1]
    if is_flat:
        slope = (y1 - y0) / dx if dx else 0.0
        return steps + x0, np.trunc(y0 + slope * steps + 0.5).astype(np.int64)
    slope = (x1 - x0) / dy
    return np.trunc(x0 + slope * steps + 0.5).astype(np.int64), steps + y0


def of_runs(counts, height, width):
    """The pixels of runs: outside and inside in turn, a flat array of truth values in columns."""
    values = np.arange(len(counts)) % 2 == 1
    mask = np.repeat(values, counts)
    if len(mask) != height * width:
        raise RuntimeError(f"The runs of a mask have {len(mask)} pixels, but its image has {height * width}.")
    return mask


def runs_of_text(text):
    """Runs as numbers, of COCO's compressed text: digits of 5 bits; from the third on the difference to the one before
    the last."""
    runs, at = [], 0
    while at < len(text):
        value = shift = 0
        while True:
            digit = ord(text[at]) - _FIRST_DIGIT
            at += 1
            value |= (digit & 0x1F) << shift
            shift += _DIGIT_BITS
            if not digit & 0x20:
                break
            if at == len(text):
                raise RuntimeError("A compressed mask ends within a number.")
        if digit & 0x10:
            value -= 1 << shift
        runs.append(value + runs[-2] if len(runs) > 2 else value)
    return runs
