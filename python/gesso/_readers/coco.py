"""`fn.readers.coco`: images with boxes, classes and masks."""

import os

import numpy as np

from . import annotations, annotations_saved, masks, storage
from .library import OfLibrary
from .source import schema

_OWN = {
    "file_root": ("STRING", None),
    "annotations_file": ("STRING", ""),
    "preprocessed_annotations": ("STRING", ""),
    "save_preprocessed_annotations": ("BOOL", False),
    "save_preprocessed_annotations_dir": ("STRING", ""),
    "images": ("_STRING_VEC", None),
    "ltrb": ("BOOL", False),
    "ratio": ("BOOL", False),
    "skip_empty": ("BOOL", False),
    "size_threshold": ("FLOAT", 0.1),
    "include_iscrowd": ("BOOL", True),
    "avoid_class_remapping": ("BOOL", False),
    "image_ids": ("BOOL", False),
    "save_img_ids": ("BOOL", False),
    "polygon_masks": ("BOOL", False),
    "pixelwise_masks": ("BOOL", False),
    "masks": ("BOOL", False),
}
# What only makes sense when annotations are read from COCO's own file.
_OF_FILE = ("skip_empty", "ratio", "ltrb", "size_threshold")


class _Annotated:
    """What a reader has to read."""

    def __init__(self, get):
        saved = get("preprocessed_annotations")
        self.images = annotations_saved.load(saved) if saved else annotations.load(get)
        self.size = len(self.images)
        self._root = get("file_root") or ""
        self.is_remote = storage.is_remote(self._root)
        self._has_pixels = get("pixelwise_masks")
        self._has_polygons = get("polygon_masks") or get("masks")
        self._counts = "coordinates" if get("masks") else "vertices"
        self._has_ids = get("image_ids") or get("save_img_ids")

    def read(self, index):
        image = self.images[index]
        path = os.path.join(self._root, image.name)
        outputs = [storage.read(path), image.boxes, image.labels]
        if self._has_polygons:
            scale = [1, 2, 2] if self._counts == "coordinates" else 1
            outputs += [image.polygons * np.array(scale, np.int32), image.vertices]
        elif self._has_pixels:
            outputs.append(pixels(image))
        if self._has_ids:
            outputs.append(np.array([image.id], np.int32))
        return outputs, image.name


def pixels(image):
    """The class of each pixel, `[height, width, 1]`: 0 outside of all objects, and the highest where some overlap.

    As in DALI, masks of runs count only for classes without polygons, and only the last one of each class.
    """
    shape = image.height, image.width
    found = np.zeros(image.height * image.width, np.int32)
    parts = {}
    for number, start, end in image.polygons:
        mask = masks.of_polygon(image.pixel_vertices[start:end], *shape)
        parts.setdefault(image.labels[number], []).append(mask)
    runs_of = {image.labels[number]: runs for number, runs in image.runs}
    parts = {**{label: [masks.of_runs(runs, *shape)] for label, runs in runs_of.items()}, **parts}
    for label in sorted(parts):
        found[np.logical_or.reduce(parts[label])] = label
    return np.ascontiguousarray(found.reshape(image.width, image.height).T)[..., None]


class COCO(OfLibrary):
    """Reads images with their boxes and classes. Outputs: the files' bytes, boxes `[n, 4]`, classes `[n]`, then what
    was asked for."""

    schema_name = "readers__COCO"
    schema = named_schema = schema("readers__COCO", "Reads images with boxes, classes and masks.", _OWN, outputs=3)

    def begin(self, node):
        """Reads the annotations."""
        get = node.values_of
        saved = get("preprocessed_annotations")
        if not get("annotations_file") and not saved:
            raise RuntimeError("`annotations_file` or `preprocessed_annotations` must be provided")
        if saved:
            for name in _OF_FILE:
                if name in node.values:
                    raise RuntimeError(
                        f"`{name}` cannot be given together with `preprocessed_annotations`: those are as they were saved."
                    )
        if get("pixelwise_masks") and (get("polygon_masks") or get("masks")):
            raise RuntimeError("`pixelwise_masks` and `polygon_masks` are mutually exclusive")
        if get("polygon_masks") and get("masks"):
            raise RuntimeError("`masks` and `polygon_masks` are mutually exclusive; `masks` is the deprecated one")
        found = _Annotated(get)
        if get("save_preprocessed_annotations"):
            has_ids = get("image_ids") or get("save_img_ids")
            annotations_saved.save(
                get("save_preprocessed_annotations_dir"), found.images, has_ids, get("pixelwise_masks")
            )
        return found
