"""`fn.io.file.read`: the bytes of the files that the input names."""

from .._authoring.operator import Operator
from .._authoring.schema import Argument, Schema
from .._tensors.enums import DALIDataType
from .._tensors.feeding import Batch
from . import storage

_NAME = "io__file__Read"
_ARGUMENTS = {
    name: Argument(name, kind, default)
    for name, kind, default in (
        ("dont_use_mmap", "BOOL", False),
        ("use_o_direct", "BOOL", False),
        ("preserve", "BOOL", False),
        ("bytes_per_sample_hint", "_INT32_VEC", None),
    )
}


class Read(Operator):
    """Reads files. The input has their paths, as bytes of text."""

    schema_name = _NAME
    schema = named_schema = Schema(_NAME, ("cpu",), 1, 1, 1, _ARGUMENTS, doc="Reads the files that its input names.")

    def run_python(self, node, inputs, batch_size):
        """The files of a batch."""
        paths = [_path(array) for array in inputs[0].arrays]
        return [Batch([storage.read(path) for path in paths], DALIDataType.UINT8, "", paths)]


def _path(array):
    if array.ndim != 1 or array.itemsize != 1:
        raise RuntimeError(
            f"A path must be one-dimensional text of bytes, got an array of shape {array.shape} and type {array.dtype}."
        )
    return array.tobytes().rstrip(b"\0").decode("utf-8", "surrogateescape")
