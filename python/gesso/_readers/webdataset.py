"""`fn.readers.webdataset`: samples in tar archives. Files whose names are equal up to the first dot are the components
of one sample."""

import os

import numpy as np

from .._tensors.enums import DALIDataType, to_numpy_type
from . import storage
from .source import Reader, schema

_BLOCK = 512
_FILES = (b"0", b"\0", b"7")
_LONG_NAME, _EXTENDED = b"L", b"x"
# Bytes of a long name or of a header of the pax kind. Those that are longer are no names.
_MAX_NAME_BYTES = 1 << 20
_MAX_DIGITS = 8
_VERSIONS = ("v1.1", "v1.2")
_MISSING = ("", "empty", "skip", "error")


def split_name(path):
    """(name of the sample, extension): a path is cut at the first dot behind its last slash."""
    dot = path.find(".", path.rfind("/") + 1)
    return (path, "") if dot < 0 else (path[:dot], path[dot + 1 :])


def _number(field):
    if field[0] & 0x80:
        # Of base 256; the second bit is the sign.
        return -1 if field[0] & 0x40 else int.from_bytes(bytes([field[0] & 0x3F]) + field[1:], "big")
    text = field.split(b"\0")[0].strip()
    try:
        return int(text, 8) if text else 0
    except ValueError:
        return -1


def _extended(content):
    """(path, size) as a header of the pax kind gives them, or None for each. Each record begins with its own length."""
    at, path, size = 0, None, None
    while at < len(content):
        blank = content.find(b" ", at, at + _MAX_DIGITS + 1)
        length = content[at:blank] if blank > at else b""
        # What is shorter than its length and the blank would be read again for ever.
        if not length.isdigit() or at + int(length) <= blank + 1:
            break
        name, _, value = content[blank + 1 : at + int(length)].rstrip(b"\n").partition(b"=")
        if name == b"path":
            path = value.decode("utf-8", "surrogateescape")
        elif name == b"size":
            size = int(value) if value.isdigit() else None
        at += int(length)
    return path, size


def members(file):
    """(path, offset, size) of the regular files in a tar archive."""
    at, given, told = 0, None, None
    while True:
        file.seek(at)
        header = file.read(_BLOCK)
        if not header or header == bytes(_BLOCK):
            return
        if len(header) < _BLOCK:
            raise RuntimeError(f"The archive ends within a header, at byte {at + len(header)}.")
        size, kind = _number(header[124:136]), header[156:157]
        if size < 0:
            raise RuntimeError(f"There is no header of a tar archive at byte {at}.")
        if kind in (_LONG_NAME, _EXTENDED):
            if size > _MAX_NAME_BYTES:
                raise RuntimeError(f"A header at byte {at} has {size} bytes, expected at most {_MAX_NAME_BYTES}.")
            content = file.read(size)
            if kind == _LONG_NAME:
                given = content.rstrip(b"\0").decode("utf-8", "surrogateescape")
            else:
                given, told = _extended(content)
        else:
            size = size if told is None else told
            if kind in _FILES:
                path = header[:100].split(b"\0")[0].decode("utf-8", "surrogateescape")
                prefix = header[345:500].split(b"\0")[0].decode("utf-8", "surrogateescape")
                if prefix and header[257:262] == b"ustar":
                    path = f"{prefix}/{path}"
                yield given or path, at + _BLOCK, size
            given = told = None
        at += _BLOCK + -(-size // _BLOCK) * _BLOCK


def of_archive(path):
    """The samples of an archive: lists of (extension, offset, size)."""
    samples, last = [], None
    archive = storage.open_file(path)
    with archive.stream() as file:
        try:
            found = list(members(file))
        except RuntimeError as error:
            raise RuntimeError(f"Error reading from {path}: {error}") from None
    if found and found[-1][1] + found[-1][2] > archive.size:
        name, offset, size = found[-1]
        raise RuntimeError(
            f"Error reading from {path}: the archive ends within {name}, {offset + size - archive.size} bytes too early."
        )
    for name, offset, size in found:
        stem, extension = split_name(name)
        if not os.path.basename(stem):
            continue
        if stem != last:
            samples.append([])
            last = stem
        samples[-1].append((extension, offset, size))
    return samples


def of_index(path):
    """The samples that an index file lists: a line with the version and the number of samples, then a line for each."""
    lines = storage.text(path).splitlines()
    head = lines[0].split() if lines else []
    if len(head) < 2 or head[0] not in _VERSIONS:
        raise RuntimeError(
            f"Unsupported version of the index file ({head[0] if head else 'empty'}): {path}; expected one of {_VERSIONS}."
        )
    if len(lines) - 1 < int(head[1]) or int(head[1]) <= 0:
        raise RuntimeError(f'Malformed index file at "{path}": {len(lines) - 1} lines of samples, expected {head[1]}.')
    width = 4 if head[0] == "v1.2" else 3
    samples = []
    for number, line in enumerate(lines[1 : int(head[1]) + 1], 2):
        words = line.split()
        if not words or len(words) % width:
            raise RuntimeError(
                f'Malformed index file at "{path}" line {number}: {len(words)} words, expected a multiple of {width}.'
            )
        parts = [(words[k], int(words[k + 1]), int(words[k + 2])) for k in range(0, len(words), width)]
        if any(offset < _BLOCK or size < 0 for _, offset, size in parts):
            raise RuntimeError(f'Malformed index file at "{path}" line {number}: no file can be there.')
        if any(offset % _BLOCK for _, offset, _ in parts):
            raise RuntimeError(
                f'Malformed index file at "{path}" line {number}: tar offset is not a multiple of tar block size ({_BLOCK}).'
            )
        samples.append(parts)
    return samples


class _Archives:
    """Samples: (archive, for each output where it is or None)."""

    def __init__(self, get):
        paths, indices = get("paths"), get("index_paths")
        if indices and len(indices) != len(paths):
            raise RuntimeError(
                f"The number of index files, if any, must match the number of archives in the dataset: {len(indices)} and {len(paths)}."
            )
        self._fold = (lambda text: text) if get("case_sensitive_extensions", True) else str.lower
        self._outputs = {}
        for output, group in enumerate(get("ext")):
            for extension in filter(None, group.split(";")):
                self._outputs.setdefault(self._fold(extension), []).append(output)
        self._count = len(get("ext"))
        self._dtypes = [DALIDataType(dtype) for dtype in get("dtypes") or [DALIDataType.UINT8] * self._count]
        if len(self._dtypes) != self._count:
            raise RuntimeError(
                f"Number of extensions does not match the number of types: {self._count} and {len(self._dtypes)}."
            )
        self._missing = get("missing_component_behavior", "")
        if self._missing not in _MISSING:
            raise RuntimeError(
                f"Invalid value for missing_component_behavior '{self._missing}'; expected one of {_MISSING[1:]}."
            )
        self.paths, self.samples, self.groups = paths, [], []
        for number, path in enumerate(paths):
            first = len(self.samples)
            found = of_index(indices[number]) if indices else of_archive(path)
            for parts in found:
                self._add(number, parts)
            self.groups.append(list(range(first, len(self.samples))))
        self.size = len(self.samples)
        self._files = {}
        self.is_remote = any(map(storage.is_remote, paths))

    def _add(self, number, parts):
        places = [None] * self._count
        for extension, offset, size in parts:
            for output in self._outputs.get(self._fold(extension), ()):
                places[output] = places[output] or (offset, size)
        if None in places and self._missing == "skip":
            return
        if None in places and self._missing == "error":
            raise RuntimeError(
                f'Underful sample detected at "{self.paths[number]}" offset {parts[0][1]}: it has no component for output {places.index(None)}.'
            )
        self.samples.append((number, places))

    def close(self):
        """Closes the archives."""
        for file in self._files.values():
            file.close()

    def read(self, index):
        number, places = self.samples[index]
        if number not in self._files:
            self._files[number] = storage.open_file(self.paths[number])
        first = min((place[0] for place in places if place), default=0)
        where = f"{self.paths[number]} at index {first}"
        found = [self._component(number, place, dtype, where) for place, dtype in zip(places, self._dtypes)]
        return [component for component, _ in found], [info for _, info in found]

    def _component(self, number, place, dtype, where):
        dtype = np.dtype(to_numpy_type(dtype))
        if place is None:
            return np.empty(0, dtype), ""
        offset, size = place
        if size % dtype.itemsize:
            raise RuntimeError(
                f"Error in index file at {where}: component size and dtype incompatible: {size} bytes of {dtype}."
            )
        # The header in front of it says how long a file is.
        data = self._files[number].read_at(offset - _BLOCK, size + _BLOCK)
        if len(data) != size + _BLOCK:
            raise RuntimeError(f"Error reading from {where}: the archive ends within a component of {size} bytes.")
        if _number(data[124:136]) != size:
            raise RuntimeError(
                f"Error reading from {where}: no file of {size} bytes begins there. Does the index belong to this archive?"
            )
        name = data[:100].split(b"\0")[0].decode("utf-8", "replace")
        if data[257:262] == b"ustar" and (prefix := data[345:500].split(b"\0")[0]):
            name = f"{prefix.decode('utf-8', 'replace')}/{name}"
        return np.frombuffer(data, dtype, offset=_BLOCK), f"{self.paths[number]}:{offset}:{name}"


class Webdataset(Reader):
    """Reads samples of tar archives. `ext`: for each output the extension of its component, or several with `;` between
    them."""

    schema_name = "readers__Webdataset"
    schema = named_schema = schema(
        "readers__Webdataset",
        "Reads samples of tar archives: files whose names are equal up to the first dot.",
        {
            "paths": ("_STRING_VEC", None),
            "ext": ("_STRING_VEC", None),
            "index_paths": ("_STRING_VEC", None),
            "case_sensitive_extensions": ("BOOL", True),
            "missing_component_behavior": ("STRING", ""),
            "dtypes": ("_DATA_TYPE_VEC", None),
        },
        required=("paths", "ext"),
    )
    shuffles_all = False

    def begin(self, node):
        """Reads the indices, or makes them."""
        return _Archives(node.values_of)
