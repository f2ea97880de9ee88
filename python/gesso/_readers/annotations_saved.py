"""Annotations that were read once and saved as tables, in DALI's format: `save_preprocessed_annotations` of
`fn.readers.coco`.

Each file is one table: the number of rows (32 bits; of the boxes that of numbers), then the rows. What belongs to an
image is found by an offset and a count.
"""

import os
import struct

import numpy as np

from .annotations import Image

_NAMES = "filenames.dat"
# Tables: file, type, columns.
_BOXES = ("boxes.dat", np.float32, 4)
_LABELS = ("labels.dat", np.int32, 1)
_POLYGONS = ("polygon_data.dat", np.int32, 3)
_VERTICES = ("vertices.dat", np.float32, 2)


def _counted(name, rows):
    return rows.size if name == _BOXES[0] else len(rows)


def _write(folder, name, rows):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(struct.pack("<I", _counted(name, rows)) + np.ascontiguousarray(rows).tobytes())


def _write_parts(folder, table, parts, offsets, counts, width):
    name, dtype, columns = table
    lengths = [len(part) for part in parts]
    whole = np.concatenate(parts) if parts else np.empty(0)
    _write(folder, name, whole.astype(dtype).reshape(-1, columns))
    _write(folder, offsets, np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(width))
    _write(folder, counts, np.array(lengths, width))


def save(folder, images, has_ids, has_pixels):
    """Writes the tables of `images`; with `has_ids` their numbers, with `has_pixels` what masks of pixels need."""
    if not folder:
        raise RuntimeError("`save_preprocessed_annotations` needs `save_preprocessed_annotations_dir`.")
    try:
        _save(folder, images, has_ids, has_pixels)
    except OSError as error:
        raise RuntimeError(
            f"Could not write the preprocessed annotations {folder}: {error.strerror or error}"
        ) from None


def _save(folder, images, has_ids, has_pixels):
    with open(os.path.join(folder, _NAMES), "w", encoding="utf-8") as file:
        file.writelines(f"{image.name}\n" for image in images)
    if has_ids:
        _write(folder, "original_ids.dat", np.array([image.id for image in images], np.int32))
    _write_parts(folder, _BOXES, [image.boxes for image in images], "offsets.dat", "counts.dat", np.int32)
    _write_parts(folder, _LABELS, [image.labels for image in images], "offsets.dat", "counts.dat", np.int32)
    if not has_pixels and not any(len(image.polygons) for image in images):
        return
    _write_parts(
        folder, _POLYGONS, [image.polygons for image in images], "polygon_offset.dat", "polygons_count.dat", np.int64
    )
    _write_parts(
        folder, _VERTICES, [image.vertices for image in images], "vertices_offset.dat", "vertices_count.dat", np.int64
    )
    if not has_pixels:
        return
    _write(folder, "widths.dat", np.array([image.width for image in images], np.int32))
    _write(folder, "heights.dat", np.array([image.height for image in images], np.int32))
    runs = [[number for number, _ in image.runs] for image in images]
    _write_parts(folder, ("masks_rles_idx.dat", np.int32, 1), runs, "masks_offset.dat", "mask_count.dat", np.int64)
    with open(os.path.join(folder, "masks_rles.dat"), "wb") as file:
        file.write(struct.pack("<I", sum(len(image.runs) for image in images)))
        for image in images:
            for _, counts in image.runs:
                file.write(
                    struct.pack("<QQQ", image.height, image.width, len(counts)) + np.array(counts, np.uint32).tobytes()
                )


def _read(folder, name, dtype, columns=1):
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise RuntimeError(f"Could not open the preprocessed annotations {path}: {error.strerror or error}") from None
    row_bytes = np.dtype(dtype).itemsize * columns
    count = max(len(content) - 4, 0) // row_bytes
    rows = np.frombuffer(content[4:], dtype, count * columns).reshape(count, columns)
    if len(content) < 4 or struct.unpack_from("<I", content)[0] != _counted(name, rows):
        raise RuntimeError(
            f"The preprocessed annotations {path} have {len(content)} bytes, which is not what their first number says."
        )
    return rows if columns > 1 else rows[:, 0]


def _read_parts(folder, table, offsets, counts, width, images):
    name, dtype, columns = table
    rows = _read(folder, name, dtype, columns)
    begins, lengths = _read(folder, offsets, width), _read(folder, counts, width)
    if not len(begins) == len(lengths) == len(images) or np.any(begins < 0) or np.any(begins + lengths > len(rows)):
        raise RuntimeError(
            f"The preprocessed annotations {name}, {offsets} and {counts} in {folder} do not fit one another."
        )
    return [rows[begin : begin + length] for begin, length in zip(begins, lengths)]


def load(folder):
    """The images that `save` wrote, or DALI."""
    path = os.path.join(folder, _NAMES)
    try:
        with open(path, encoding="utf-8") as file:
            names = file.read().splitlines()
    except OSError as error:
        raise RuntimeError(f"Could not open the preprocessed annotations {path}: {error.strerror or error}") from None
    ids = os.path.join(folder, "original_ids.dat")
    numbers = _read(folder, "original_ids.dat", np.int32) if os.path.exists(ids) else range(len(names))
    images = [Image(name, int(number)) for name, number in zip(names, numbers)]
    _fill(images, "boxes", _read_parts(folder, _BOXES, "offsets.dat", "counts.dat", np.int32, images))
    _fill(images, "labels", _read_parts(folder, _LABELS, "offsets.dat", "counts.dat", np.int32, images))
    if os.path.exists(os.path.join(folder, _POLYGONS[0])):
        _load_masks(folder, images)
    return images


def _fill(images, name, parts):
    for image, part in zip(images, parts):
        setattr(image, name, part)


def _load_masks(folder, images):
    _fill(
        images, "polygons", _read_parts(folder, _POLYGONS, "polygon_offset.dat", "polygons_count.dat", np.int64, images)
    )
    _fill(
        images,
        "vertices",
        _read_parts(folder, _VERTICES, "vertices_offset.dat", "vertices_count.dat", np.int64, images),
    )
    if not os.path.exists(os.path.join(folder, "masks_rles.dat")):
        return
    _fill(images, "width", _read(folder, "widths.dat", np.int32).tolist())
    _fill(images, "height", _read(folder, "heights.dat", np.int32).tolist())
    _fill(images, "pixel_vertices", [image.vertices for image in images])
    with open(os.path.join(folder, "masks_rles.dat"), "rb") as file:
        content = file.read()
    all_runs, at = [], 4
    while at < len(content):
        _, _, length = struct.unpack_from("<QQQ", content, at)
        all_runs.append(np.frombuffer(content, np.uint32, length, at + 24))
        at += 24 + 4 * length
    parts = _read_parts(
        folder, ("masks_rles_idx.dat", np.int32, 1), "masks_offset.dat", "mask_count.dat", np.int64, images
    )
    at = 0
    for image, numbers in zip(images, parts):
        image.runs = list(zip(numbers.tolist(), all_runs[at : at + len(numbers)]))
        at += len(numbers)
