"""`fn.readers.parquet`: rows of Parquet files, by the package `pyarrow`. A file is read by row groups, some of which
are kept."""

import numpy as np

from . import damage, files, rows, storage
from .source import Reader, schema

_OWN = {
    "columns": ("_STRING_VEC", None),
    "file_root": ("STRING", None),
    "file_filter": ("STRING", "*.parquet"),
    "file_list": ("STRING", None),
    "files": ("_STRING_VEC", None),
    "cache_size": ("INT32", 512),
}
_MEGABYTE = 1 << 20
# Arrow's names of types that numpy calls otherwise.
_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


class _Arrow:
    """What is asked of pyarrow: types of columns, and values as arrays."""

    def __init__(self):
        self.parquet = rows.package("pyarrow.parquet", "parquet")
        self.pyarrow = rows.package("pyarrow", "parquet")
        self.compute = rows.package("pyarrow.compute", "parquet")

    def _is_bytes(self, kind):
        types = self.pyarrow.types
        tests = (
            types.is_binary,
            types.is_large_binary,
            types.is_fixed_size_binary,
            types.is_string,
            types.is_large_string,
        )
        return any(test(kind) for test in tests)

    def _is_list(self, kind):
        types = self.pyarrow.types
        return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)

    def _is_number(self, kind):
        return kind.num_fields == 0 and (
            self.pyarrow.types.is_primitive(kind) and not self.pyarrow.types.is_temporal(kind)
        )

    def kind(self, schema, name, path):
        """The type of a column, or of a field of a column that has fields: `image.bytes`."""
        found, *inner = [name] if name in schema.names else name.split(".")
        if found not in schema.names:
            raise RuntimeError(f"{path} has no column `{name}`; it has {schema.names}.")
        kind = schema.field(found).type
        for field in inner:
            if not self.pyarrow.types.is_struct(kind) or kind.get_field_index(field) < 0:
                raise RuntimeError(f"`{name}` in {path}: `{found}` has the type {kind}, without a field `{field}`.")
            kind = kind.field(field).type
        plain = kind.value_type if self.pyarrow.types.is_dictionary(kind) else kind
        element = plain.storage_type if isinstance(plain, self.pyarrow.BaseExtensionType) else plain
        while self._is_list(element):
            element = element.value_type
        if self.pyarrow.types.is_struct(element):
            fields = ", ".join(f"`{name}.{element.field(i).name}`" for i in range(element.num_fields))
            raise RuntimeError(f"`{name}` in {path} has fields: name one of them, {fields}.")
        if not self._is_number(element) and not (element == plain and self._is_bytes(element)):
            raise RuntimeError(
                f"`{name}` in {path} has the type {kind}, expected numbers, truth values, bytes, text, or lists of numbers."
            )
        return str(plain)

    def column(self, table, name):
        """A column of a table that was read, as one array."""
        found, *inner = [name] if name in table.column_names else name.split(".")
        column = table.column(found)
        for field in inner:
            column = self.compute.struct_field(column, field)
        column = column.combine_chunks()
        return column.dictionary_decode() if self.pyarrow.types.is_dictionary(column.type) else column

    def value(self, scalar):
        """A value as an array of its own: bytes and text have one dimension, lists one more than what is in them."""
        if not scalar.is_valid:
            raise RuntimeError("the value is null")
        if isinstance(scalar, self.pyarrow.ExtensionScalar):
            return np.array(scalar.to_numpy()) if hasattr(scalar, "to_numpy") else self.value(scalar.value)
        if self._is_bytes(scalar.type):
            return np.frombuffer(scalar.as_buffer(), np.uint8).copy()
        if self._is_list(scalar.type):
            return np.array(self._nested(scalar.values))
        return np.array(scalar.as_py(), _FLOATS.get(str(scalar.type), str(scalar.type)))

    def _nested(self, values):
        if values.null_count:
            raise RuntimeError("the value has nulls in it")
        if not self._is_list(values.type):
            return values.to_numpy(zero_copy_only=False)
        lengths = set(self.compute.list_value_length(values).to_pylist())
        if len(lengths) > 1:
            raise RuntimeError(
                f"the value is a list of lists of {min(lengths)} to {max(lengths)} elements, expected equally many in each"
            )
        if not lengths:
            lengths = {values.type.list_size if self.pyarrow.types.is_fixed_size_list(values.type) else 0}
        inner = self._nested(values.flatten())
        return inner.reshape(len(values), *lengths, *inner.shape[1:])


class _Groups:
    """The rows of all files, in their order; the row groups that were read last are kept."""

    def __init__(self, paths, names, megabytes):
        if megabytes < 1:
            raise RuntimeError(f"`cache_size` is {megabytes}, expected at least 1 megabyte.")
        self._arrow = _Arrow()
        self._paths, self._names, self._limit = paths, names, megabytes * _MEGABYTE
        self._metadata, self._places, counts, kinds = [], [], [], None
        for number, path in enumerate(paths):
            with damage.named(path), self._file(path) as file:
                own = [self._arrow.kind(file.schema_arrow, name, path) for name in names]
                self._metadata.append(file.metadata)
                self._places += [(number, group) for group in range(file.num_row_groups)]
                counts += [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            kinds = kinds or own
            rows.require_same(names, kinds, own, paths[0], path)
        self._ends = rows.ends(counts)
        self.size = int(self._ends[-1]) if counts else 0
        # `shuffle_after_epoch` shuffles row groups.
        self.groups = [list(range(end - count, end)) for end, count in zip(self._ends.tolist(), counts)]
        self._kept, self._bytes = {}, 0

    def _file(self, path, metadata=None):
        try:
            source = storage.stream(path) if storage.is_remote(path) else path
            return self._arrow.parquet.ParquetFile(source, metadata=metadata, pre_buffer=True)
        except (OSError, self._arrow.pyarrow.ArrowException) as error:
            raise RuntimeError(f"Could not open file {path}: {error}") from None

    def _columns(self, place):
        """The columns of a row group, or why it cannot be read. Groups used longest ago are forgotten."""
        columns, size = self._kept.pop(place, (None, 0))
        if columns is None:
            number, group = place
            try:
                with self._file(self._paths[number], self._metadata[number]) as file:
                    table = file.read_row_group(group, self._names)
                columns = [self._arrow.column(table, name) for name in self._names]
                size = sum(column.nbytes for column in columns)
            except Exception as error:
                columns = str(error)
            self._bytes += size
        self._kept[place] = columns, size
        while self._bytes > self._limit and len(self._kept) > 1:
            self._bytes -= self._kept.pop(next(iter(self._kept)))[1]
        return columns

    def read(self, index):
        at = int(np.searchsorted(self._ends, index, "right"))
        number, group = self._places[at]
        path, row = self._paths[number], index - self.groups[at][0]
        columns = self._columns((number, group))
        where = f"{path} row {row} of row group {group}"
        if isinstance(columns, str):
            raise RuntimeError(f"Could not read {where}: {columns}")
        found = []
        for name, column in zip(self._names, columns):
            with damage.named(f"`{name}` in {where}"):
                found.append(self._arrow.value(column[row]))
        return found, where


class Parquet(Reader):
    """Reads rows of Parquet files. `columns`: one for each output; `image.bytes` is the field `bytes` of the column
    `image`. `cache_size`: megabytes of row groups that are kept in memory."""

    schema_name = "readers__Parquet"
    schema = named_schema = schema(
        "readers__Parquet", "Reads rows of Parquet files.", _OWN, required=("columns",), outputs=1
    )
    shuffles_all = False
    in_files = False

    def output_count(self, node):
        return len(node.values_of("columns"))

    def begin(self, node):
        """Finds the files, and counts their rows."""
        get = node.values_of
        return _Groups(files.of_arguments(get, "*.parquet"), get("columns"), get("cache_size", 512))
