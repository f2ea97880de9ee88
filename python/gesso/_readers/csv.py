"""`fn.readers.csv`: files that a CSV file names, with numbers of its columns as labels. The library reads them."""

from .library import Samples, require_local
from .source import Reader, schema

_OWN = {
    "file_list": ("STRING", None),
    "file_root": ("STRING", None),
    "path_column": ("STRING", None),
    "label_columns": ("_STRING_VEC", None),
    "delimiter": ("STRING", ","),
    "dtype": ("DATA_TYPE", None),
}


class Csv(Reader):
    """Reads the files that a CSV file names in a column, with labels of other columns. The first line names the
    columns.

    `file_list`: the CSV file. `file_root`: where its paths begin, if not in its own folder. `path_column`: the column
    of paths, else the first. `label_columns`: columns of numbers, else all others. `delimiter`: what is between
    columns. `dtype`: the type of the labels.

    Outputs: the files' bytes, and their labels: int32 where all labels of the file are whole numbers, else float32.
    """

    schema_name = "readers__Csv"
    schema = named_schema = schema(
        "readers__Csv", "Reads files that a CSV file names, and labels.", _OWN, required=("file_list",)
    )

    def begin(self, node):
        """Reads the table."""
        require_local(node, "file_list", "file_root")
        return Samples(node)
