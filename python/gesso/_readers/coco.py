"""`fn.readers.coco`: images with boxes and classes, as COCO's annotation files have them."""

import json
import os

import numpy as np

from .file import read_bytes
from .source import Reader, schema

_OWN = {
    "file_root": ("STRING", None),
    "annotations_file": ("STRING", ""),
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
_MASKS = ("pixelwise_masks", "masks")


class _Image:
    """One image with its objects."""

    __slots__ = ("path", "id", "boxes", "labels", "polygons", "vertices")

    def __init__(self, path, number):
        self.path, self.id = path, number
        self.boxes, self.labels, self.polygons, self.vertices = [], [], [], []


def _boxes(annotations, image, get):
    width, height = image["width"], image["height"]
    for annotation in annotations:
        x, y, w, h = annotation["bbox"]
        if w < get("size_threshold", 0.1) or h < get("size_threshold", 0.1):
            continue
        if annotation.get("iscrowd") and not get("include_iscrowd", True):
            continue
        box = np.array([x, y, x + w, y + h] if get("ltrb") else [x, y, w, h], np.float32)
        if get("ratio"):
            box /= np.array([width, height, width, height], np.float32)
        yield annotation, box


def _load(get):
    with open(get("annotations_file"), encoding="utf-8") as file:
        content = json.load(file)
    classes = {category["id"]: i for i, category in enumerate(content["categories"], 1)}
    by_image = {}
    for annotation in content["annotations"]:
        by_image.setdefault(annotation["image_id"], []).append(annotation)
    infos = {image["file_name"]: image for image in content["images"]}
    names = get("images") or sorted(infos, key=lambda name: infos[name]["id"])
    found = []
    for name in names:
        info = infos.get(name)
        if info is None:
            raise RuntimeError(f"The image `{name}` is not in the annotation file {get('annotations_file')}.")
        image = _Image(os.path.join(get("file_root"), name), info["id"])
        for annotation, box in _boxes(by_image.get(info["id"], ()), info, get):
            image.boxes.append(box)
            kind = annotation["category_id"]
            image.labels.append(kind if get("avoid_class_remapping") else classes[kind])
            _add_polygons(image, annotation, info, get)
        if image.boxes or not get("skip_empty"):
            found.append(image)
    return found


def _add_polygons(image, annotation, info, get):
    if not get("polygon_masks") or not isinstance(annotation.get("segmentation"), list):
        return
    scale = np.array([info["width"], info["height"]], np.float32) if get("ratio") else 1
    for polygon in annotation["segmentation"]:
        vertices = np.array(polygon, np.float32).reshape(-1, 2) / scale
        start = sum(map(len, image.vertices))
        image.polygons.append([len(image.boxes) - 1, start, start + len(vertices)])
        image.vertices.append(vertices)


class _Annotated:
    def __init__(self, get):
        self.images = _load(get)
        self.size = len(self.images)
        self._with_polygons = get("polygon_masks")
        self._with_ids = get("image_ids") or get("save_img_ids")

    def read(self, index):
        image = self.images[index]
        outputs = [
            read_bytes(image.path),
            np.array(image.boxes, np.float32).reshape(-1, 4),
            np.array(image.labels, np.int32),
        ]
        if self._with_polygons:
            outputs.append(np.array(image.polygons, np.int32).reshape(-1, 3))
            outputs.append(np.concatenate(image.vertices or [np.empty((0, 2))]).astype(np.float32))
        if self._with_ids:
            outputs.append(np.array([image.id], np.int32))
        return outputs, image.path


class COCO(Reader):
    """Reads images with their boxes and classes. Outputs: the files' bytes, boxes `[n, 4]`, classes `[n]`, then what was asked for."""

    schema_name = "readers__COCO"
    schema = named_schema = schema("readers__COCO", "Reads images with boxes and classes.", _OWN, outputs=3)

    def begin(self, node):
        """Reads the annotations."""
        for name in _MASKS:
            if node.values_of(name):
                raise RuntimeError(f"`{self.display}` cannot make `{name}`; it can make `polygon_masks`.")
        if not node.values_of("annotations_file"):
            raise RuntimeError("`annotations_file` or `preprocessed_annotations` must be provided")
        return _Annotated(node.values_of)
