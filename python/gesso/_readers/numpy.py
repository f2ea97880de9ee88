"""`fn.readers.numpy`: arrays in `.npy` files, or regions of them."""

import io

import numpy as np

from .. import _storage
from . import damage, files
from .source import Reader, schema

_OWN = {
    "file_root": ("STRING", None),
    "file_filter": ("STRING", "*.npy"),
    "file_list": ("STRING", None),
    "files": ("_STRING_VEC", None),
    "cache_header_information": ("BOOL", False),
    "register_buffers": ("BOOL", True),
    "use_o_direct": ("BOOL", False),
    **{f"roi_{part}": ("_INT64_VEC", None) for part in ("start", "end", "shape")},
    **{f"rel_roi_{part}": ("_FLOAT_VEC", None) for part in ("start", "end", "shape")},
    "roi_axes": ("_INT32_VEC", []),
    "out_of_bounds_policy": ("STRING", "error"),
    "fill_value": ("FLOAT", 0.0),
}
_REGION = ("roi_start", "rel_roi_start", "roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape")
_POLICIES = ("error", "pad", "trim_to_shape")


class _Region:
    """The part of each array that is wanted."""

    def __init__(self, get):
        self.given = {name: get(name) for name in _REGION if get(name) is not None}
        self.axes = get("roi_axes") or []
        self.policy = get("out_of_bounds_policy", "error")
        self.fill = get("fill_value", 0.0)
        for one, other in (("roi_start", "rel_roi_start"), ("roi_end", "rel_roi_end"), ("roi_shape", "rel_roi_shape")):
            if one in self.given and other in self.given:
                raise RuntimeError(f"`{one}` and `{other}` are mutually exclusive")
        ends = [name for name in self.given if "start" not in name]
        if len(ends) > 1:
            raise RuntimeError("`roi_end`, `rel_roi_end`, `roi_shape`, and `rel_roi_shape` are mutually exclusive")
        if self.policy not in _POLICIES:
            raise RuntimeError(f"`out_of_bounds_policy` must be one of {_POLICIES}, got {self.policy!r}.")

    def bounds(self, shape, fed):
        """(start, end) in each dimension."""
        given = {**self.given, **fed}
        axes = [axis + len(shape) if axis < 0 else axis for axis in self.axes] or range(len(shape))
        bounds = [(0, extent) for extent in shape]
        for k, axis in enumerate(axes):
            extent = shape[axis]

            def value(name):
                found = given.get(name)
                return None if found is None or not found else found[k]

            def scaled(number):
                return int(np.floor(np.float32(number) * extent + 0.5))

            start, end = value("roi_start"), extent
            rel_start = value("rel_roi_start")
            start = scaled(rel_start) if rel_start is not None else 0 if start is None else start
            if value("roi_end") is not None:
                end = value("roi_end")
            elif value("rel_roi_end") is not None:
                end = scaled(value("rel_roi_end"))
            elif value("roi_shape") is not None:
                end = start + value("roi_shape")
            elif value("rel_roi_shape") is not None:
                end = start + scaled(value("rel_roi_shape"))
            bounds[axis] = (start, end)
        return bounds

    def is_part(self, fed):
        """Whether less than the whole array may be wanted."""
        return bool(fed) or any(self.given.values())

    def of(self, array, path, fed):
        """The part of an array."""
        if not self.is_part(fed):
            return array
        bounds = self.bounds(array.shape, fed)
        inside = tuple(slice(max(a, 0), min(max(b, max(a, 0)), n)) for (a, b), n in zip(bounds, array.shape))
        out = any(a < 0 or b > n for (a, b), n in zip(bounds, array.shape))
        if not out or self.policy == "trim_to_shape":
            return array[inside]
        if self.policy == "error":
            raise RuntimeError(
                f"The region {bounds} is out of bounds of the array of shape {array.shape} in {path}. "
                '`out_of_bounds_policy` may be "pad" or "trim_to_shape".'
            )
        whole = np.full([b - a for a, b in bounds], self.fill, array.dtype)
        part = array[inside]
        place = tuple(slice(s.start - a, s.start - a + n) for s, (a, _), n in zip(inside, bounds, part.shape))
        whole[place] = part
        return whole


class _Arrays:
    def __init__(self, paths, region):
        self.paths = paths
        self.size = len(paths)
        self.is_remote = any(map(_storage.is_remote, paths))
        self.region = region

    def read(self, index, fed=None):
        path = self.paths[index]
        with damage.named(f"the array file {path}"):
            if self.is_remote:
                array = np.load(io.BytesIO(_storage.read(path)), allow_pickle=False)
            else:
                # A file that is mapped and then cut off by others ends the program: only parts are read so, and copied at once.
                array = np.load(path, mmap_mode="r" if self.region.is_part(fed) else None, allow_pickle=False)
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise RuntimeError(f"Unknown Numpy type string: {array.dtype.str} in {path}")
        part = self.region.of(array, path, fed or {})
        dense = np.array(part, order="C") if isinstance(part, np.memmap) else np.ascontiguousarray(part).reshape(part.shape)
        return (dense,), path


class Numpy(Reader):
    """Reads arrays from `.npy` files, whole or a region."""

    schema_name = "readers__Numpy"
    schema = named_schema = schema("readers__Numpy", "Reads arrays from `.npy` files.", _OWN, outputs=1, tensors=_REGION)

    def begin(self, node):
        """Finds the files."""
        return _Arrays(files.of_arguments(node.values_of, "*.npy"), _Region(node.values_of))

    def run_python(self, node, inputs, batch_size):
        """The next batch."""
        batches = super().run_python(node, inputs, batch_size)
        arrays = batches[0].arrays
        for array, info in zip(arrays, batches[0].infos):
            if array.dtype != arrays[0].dtype:
                raise RuntimeError(
                    f"Inconsistent data type in the batch: {_name(array)} in {info}, {_name(arrays[0])} in {batches[0].infos[0]}."
                )
            if array.ndim != arrays[0].ndim:
                raise RuntimeError(
                    f"Inconsistent data dimensionality in the batch: {array.ndim} in {info}, {arrays[0].ndim} in {batches[0].infos[0]}."
                )
        return batches


def _name(array):
    return {"float32": "float", "float64": "double"}.get(array.dtype.name, array.dtype.name)
