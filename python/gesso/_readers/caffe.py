"""`fn.readers.caffe` and `fn.readers.caffe2`: images and labels in LMDB databases. The library reads them."""

from .library import Samples
from .source import Reader, schema

_OWN = {"path": ("_STRING_VEC", None), "image_available": ("BOOL", True), "label_available": ("BOOL", True)}
_SINGLE, _SPARSE, _DENSE, _WEIGHTED_SPARSE, _NO_LABEL = range(5)


class Caffe(Reader):
    """Reads Caffe's LMDB databases. Outputs: images, and labels."""

    schema_name = "readers__Caffe"
    schema = named_schema = schema(
        "readers__Caffe", "Reads images and labels of Caffe's databases.", _OWN, required=("path",)
    )
    shuffles_all = False

    def begin(self, node):
        """Opens the databases."""
        return Samples(node)


class Caffe2(Reader):
    """Reads Caffe2's LMDB databases. Outputs: images, and what `label_type` says of labels.

    Sparse labels are two outputs: a label for each of `num_labels` classes, and the classes that are there.
    """

    schema_name = "readers__Caffe2"
    schema = named_schema = schema(
        "readers__Caffe2",
        "Reads images and labels of Caffe2's databases.",
        {
            "path": ("_STRING_VEC", None),
            "image_available": ("BOOL", True),
            "label_type": ("INT32", 0),
            "num_labels": ("INT32", 1),
            "additional_inputs": ("INT32", 0),
            "bbox": ("BOOL", False),
        },
        required=("path",),
    )
    shuffles_all = False

    def output_count(self, node):
        get = node.values_of
        labels = {_NO_LABEL: 0, _SPARSE: 2, _WEIGHTED_SPARSE: 2}.get(get("label_type", _SINGLE), 1)
        return bool(get("image_available", True)) + labels + get("additional_inputs", 0) + bool(get("bbox"))

    def begin(self, node):
        """Opens the databases."""
        return Samples(node)
