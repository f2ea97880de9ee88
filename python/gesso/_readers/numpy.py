"""`fn.readers.numpy`: arrays in `.npy` files, or regions of them."""

import io
import math
import os
import threading

import numpy as np

from . import damage, files, storage
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
        axes = self._axes_of(len(shape))
        values = {name: _spread(name, found, len(axes)) for name, found in given.items() if len(found)}
        bounds = [(0, extent) for extent in shape]
        for k, axis in enumerate(axes):
            bounds[axis] = _ends({name: found[k] for name, found in values.items()}, shape[axis])
        return bounds

    def _axes_of(self, ndim):
        axes = [axis + ndim if axis < 0 else axis for axis in self.axes] or list(range(ndim))
        if len(set(axes)) < len(axes) or any(axis not in range(ndim) for axis in axes):
            raise RuntimeError(f"`roi_axes` is {self.axes}, expected different dimensions of an array that has {ndim}")
        return axes

    def of(self, array, path, fed):
        """The part of an array, which may be in memory or a `_File`."""
        if not fed and not any(self.given.values()):
            return array if isinstance(array, np.ndarray) else array.whole()
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


def _spread(name, values, count):
    """A value for each of `count` axes; one alone serves for all."""
    if len(values) not in (1, count):
        raise RuntimeError(f"`{name}` has {len(values)} values, expected one, or one for each of {count} axes")
    return values * count if len(values) == 1 else values


def _ends(values, extent):
    """Start and end in a dimension. Both are rounded, so that the extent depends on the start. Products are of 32 bits,
    unless a relative shape is added to a relative start: so DALI rounds."""

    def scaled(name):
        return float(np.float32(values[name]) * np.float32(extent))

    start, end = values.get("roi_start", 0), extent
    if "rel_roi_start" in values:
        start = scaled("rel_roi_start")
    size = values.get("roi_shape", values.get("rel_roi_shape", 0))
    if "roi_end" in values:
        end = values["roi_end"]
    elif "rel_roi_end" in values:
        end = scaled("rel_roi_end")
    elif "roi_shape" in values:
        end = start + size
    elif "rel_roi_shape" in values and "rel_roi_start" in values:
        end = (float(np.float32(values["rel_roi_start"])) + float(np.float32(size))) * extent
    elif "rel_roi_shape" in values:
        end = start + scaled("rel_roi_shape")
    if size < 0 or end < start:
        raise RuntimeError(f"end coordinates can't be before start coordinates. Got: start={start} end={end}")
    return _rounded(start), _rounded(end)


def _rounded(value):
    """The nearest whole number, of two the one that is farther from 0."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


# CPython 3.11 counts the depth of its parser, which reads headers, for all threads together: two at a time may fail.
_PARSING = threading.Lock()


class _File:
    """An array in a local file, of which the rows are read that a slice is in. Not mapped: who cuts a mapped file short
    ends the process."""

    def __init__(self, file, size):
        first, later = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        # The third differs from the second in names of fields, which arrays of numbers do not have.
        read_header = {1: first, 2: later, 3: later}
        version, _ = np.lib.format.read_magic(file)
        if version not in read_header:
            raise ValueError(f"a file of version {version}, expected 1 to 3")
        with _PARSING:
            self.shape, self._is_reversed, self.dtype = read_header[version](file)
        self.ndim, self._file, self._start = len(self.shape), file, file.tell()
        if self.dtype.hasobject or math.prod(self.shape) * self.dtype.itemsize > size - self._start:
            raise ValueError(f"an array of shape {self.shape} and type {self.dtype} does not fit into {size} bytes")

    def __getitem__(self, inside):
        if not self.shape:
            return self._elements(0, 1).reshape(())
        order = slice(None, None, -1 if self._is_reversed else 1)
        shape, inside = self.shape[order], inside[order]
        row, rows = math.prod(shape[1:]), max(inside[0].stop - inside[0].start, 0)
        found = self._elements(inside[0].start * row, rows * row).reshape(rows, *shape[1:])
        inside_rows = (slice(None), *inside[1:])
        found = found[inside_rows]
        return found.T if self._is_reversed else found

    def _elements(self, first, count):
        self._file.seek(self._start + first * self.dtype.itemsize)
        found = np.fromfile(self._file, self.dtype, count)
        if found.size < count:
            raise ValueError("the file was cut short meanwhile")
        return found

    def whole(self):
        """All of it."""
        return self[tuple(slice(0, extent) for extent in self.shape)]


class _Arrays:
    def __init__(self, paths, region, base="", is_found=False):
        self.paths = paths
        self._base, self._is_found = base, is_found
        self.size = len(paths)
        self.is_remote = any(map(storage.is_remote, paths))
        self.region = region

    def read(self, index, fed=None):
        path = self.paths[index]
        with damage.named(f"the array file {path}"):
            if self.is_remote:
                part = self._part(np.load(io.BytesIO(storage.read(path)), allow_pickle=False), path, fed)
            else:
                with storage.open_local(path) as file:
                    part = self._part(_File(file, os.fstat(file.fileno()).st_size), path, fed)
        return (np.ascontiguousarray(part).reshape(part.shape),), self._named(path)

    def _named(self, path):
        """A path as DALI names it: what is found in the folder itself is `./` and its name."""
        name = files.relative(self._base, path)
        return f"./{name}" if self._is_found and "/" not in name else name

    def _part(self, array, path, fed):
        if array.dtype.byteorder == ">":
            raise RuntimeError(f"Big Endian files are not supported: {path}")
        if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise RuntimeError(f"Unknown Numpy type string: {array.dtype.str} in {path}")
        return self.region.of(array, path, fed or {})


class Numpy(Reader):
    """Reads arrays from `.npy` files, whole or a region."""

    schema_name = "readers__Numpy"
    # The library reads whole arrays.
    interpreted = (*_REGION, "roi_axes", "out_of_bounds_policy", "fill_value")
    schema = named_schema = schema(
        "readers__Numpy", "Reads arrays from `.npy` files.", _OWN, outputs=1, tensors=_REGION
    )

    def begin(self, node):
        """Finds the files."""
        get = node.values_of
        root, listed = get("file_root"), get("file_list")
        base = files.base_of(listed, root) if listed is not None else root
        return _Arrays(files.of_arguments(get, "*.npy"), _Region(get), base, listed is None and get("files") is None)
