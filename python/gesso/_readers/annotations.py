"""COCO's annotation files (`instances.json`) as images with their objects. Knows nothing of readers."""

import json

import numpy as np

from . import damage, masks, storage


class Image:
    """One image with its objects. `polygons`: rows of (object, first vertex, behind the last one); `runs`: pairs of
    (object, runs of pixels)."""

    __slots__ = ("name", "id", "width", "height", "boxes", "labels", "polygons", "vertices", "pixel_vertices", "runs")

    def __init__(self, name, number, width=0, height=0):
        self.name, self.id, self.width, self.height = name, number, width, height
        self.boxes: np.ndarray = np.empty((0, 4), np.float32)
        self.labels: np.ndarray = np.empty(0, np.int32)
        self.polygons = np.empty((0, 3), np.int32)
        self.vertices: np.ndarray = np.empty((0, 2), np.float32)
        self.pixel_vertices, self.runs = self.vertices, []


def load(get):
    """The images that the arguments of a reader ask for, in the order of their numbers or as `images` lists them."""
    path = get("annotations_file")
    with damage.named(f"the annotation file {path}"):
        return _images(json.loads(storage.text(path)), get)


def _images(content, get):
    kinds = sorted(category["id"] for category in content.get("categories", ()))
    classes = {kind: kind if get("avoid_class_remapping") else i for i, kind in enumerate(kinds, 1)}
    by_image = {}
    for annotation in content.get("annotations", ()):
        by_image.setdefault(annotation["image_id"], []).append(annotation)
    infos = sorted(content["images"], key=lambda info: info["id"])
    given = get("images")
    if given:
        by_name = {info["file_name"]: info for info in infos}
        infos = [by_name[name] for name in given if name in by_name]
    wanted = _Wanted(get)
    found = [wanted.image(info, by_image.get(info["id"], ()), classes) for info in infos]
    return [image for image in found if len(image.boxes) or not get("skip_empty")]


class _Wanted:
    """What of an image's annotations is wanted, and how."""

    def __init__(self, get):
        self._threshold = get("size_threshold", 0.1)
        self._has_crowds = get("include_iscrowd", True)
        self._corners, self._ratio = get("ltrb"), get("ratio")
        self._polygons = get("polygon_masks") or get("masks") or get("pixelwise_masks")
        self._pixels = get("pixelwise_masks")

    def image(self, info, annotations, classes):
        """The image with those of its objects that are wanted."""
        image = Image(info["file_name"], info["id"], info["width"], info["height"])
        kept = [one for one in annotations if self._keeps(one)]
        if not kept:
            return image
        image.labels = np.array([classes[one["category_id"]] for one in kept], np.int32)
        boxes = np.array([one["bbox"] for one in kept], np.float32)
        if self._corners:
            boxes[:, 2:] += boxes[:, :2]
        size = np.array([image.width, image.height], np.float32)
        image.boxes = boxes / np.tile(size, 2) if self._ratio else boxes
        if self._polygons:
            self._add_masks(image, kept)
            image.vertices = image.pixel_vertices / size if self._ratio else image.pixel_vertices
        return image

    def _keeps(self, annotation):
        _, _, width, height = annotation["bbox"]
        is_large = np.float32(width) >= self._threshold and np.float32(height) >= self._threshold
        return is_large and (self._has_crowds or not annotation.get("iscrowd"))

    def _add_masks(self, image, kept):
        polygons, vertices, count = [], [], 0
        for number, annotation in enumerate(kept):
            shape = annotation.get("segmentation")
            if isinstance(shape, list):
                for polygon in shape:
                    points = np.array(polygon, np.float32).reshape(-1, 2)
                    polygons.append((number, count, count + len(points)))
                    vertices.append(points)
                    count += len(points)
            elif shape and self._pixels:
                counts = shape["counts"]
                image.runs.append((number, masks.runs_of_text(counts) if isinstance(counts, str) else counts))
        if polygons:
            image.polygons, image.pixel_vertices = np.array(polygons, np.int32), np.concatenate(vertices)
