"""The readers that the library has, with their arguments: those of files, archives, records and databases."""

import dataclasses
import json
import math

from .. import _context
from .._authoring.arguments import TypedValue
from .._tensors.enums import DALIDataType
from ..tfrecord import Feature, float32, int64, string
from .library import OfLibrary
from .source import schema

_IMAGES_AND_SOUND = (
    "*.jpg *.jpeg *.png *.bmp *.tif *.tiff *.pnm *.ppm *.pgm *.pbm *.jp2 *.webp *.flac *.ogg *.wav".split()
)
_FILE = {
    "file_root": ("STRING", None),
    "file_list": ("STRING", None),
    "files": ("_STRING_VEC", None),
    "labels": ("_INT32_VEC", None),
    "file_filters": ("_STRING_VEC", _IMAGES_AND_SOUND),
    "dir_filters": ("_STRING_VEC", None),
    "case_sensitive_filter": ("BOOL", False),
}
_CAFFE = {"path": ("_STRING_VEC", None), "image_available": ("BOOL", True), "label_available": ("BOOL", True)}
_COCO = {
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
_CSV = {
    "file_list": ("STRING", None),
    "file_root": ("STRING", None),
    "path_column": ("STRING", None),
    "label_columns": ("_STRING_VEC", None),
    "delimiter": ("STRING", ","),
    "dtype": ("DATA_TYPE", None),
}
_RECORDS = {"path": ("_STRING_VEC", None), "index_path": ("_STRING_VEC", None), "use_o_direct": ("BOOL", False)}
_SEQUENCE = {
    "file_root": ("STRING", None),
    "sequence_length": ("INT32", None),
    "step": ("INT32", 1),
    "stride": ("INT32", 1),
    "image_type": ("IMAGE_TYPE", 0),
}
_NEMO_ASR = {
    "manifest_filepaths": ("_STRING_VEC", None),
    "read_sample_rate": ("BOOL", True),
    "read_text": ("BOOL", True),
    "read_idxs": ("BOOL", False),
    "sample_rate": ("FLOAT", -1.0),
    "quality": ("FLOAT", 50.0),
    "downmix": ("BOOL", True),
    "dtype": ("DATA_TYPE", DALIDataType.FLOAT),
    "min_duration": ("FLOAT", 0.0),
    "max_duration": ("FLOAT", 0.0),
    "normalize_text": ("BOOL", None),
}
_NUMPY = {
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
# The types of features, as files number them.
_FEATURES = (int64, string, float32)
# Those that may have a value for each sample.
_REGION = ("roi_start", "rel_roi_start", "roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape")
# What `label_type` of Caffe2's databases says.
_SINGLE, _SPARSE, _DENSE, _WEIGHTED_SPARSE, _NO_LABEL = range(5)


class File(OfLibrary):
    """Reads files: from folders whose order gives the labels, from a list of paths and labels, or as they are given.

    Outputs: the files' bytes, and the labels.
    """

    schema_name = "readers__File"
    schema = named_schema = schema("readers__File", "Reads files and labels.", _FILE)

    def expected(self, node):
        """Of folders: that files lie in folders of their own."""
        get = node.values_of
        if get("files") is not None or get("file_list") is not None:
            return ""
        return f": expected in `{get('file_root')}` a folder for each label, with files that match in it"


class Webdataset(OfLibrary):
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
    shuffles_files = True


class TFRecord(OfLibrary):
    """Reads `Example`s of TFRecord files; `features` names the outputs: feature > what it is."""

    schema_name = "readers__TFRecord"
    named_schema = schema(
        "readers__TFRecord", "Reads features of TFRecord files.", _RECORDS, required=("path", "index_path")
    )
    # The name that DALI's files have.
    schema = dataclasses.replace(named_schema, alias="readers___TFRecord")
    shuffles_all = False
    shuffles_files = True

    def __init__(self, path, index_path=None, features=None, **keywords):
        super().__init__(path=path, index_path=index_path, **keywords)
        self.features = features or {}
        for name, feature in self.features.items():
            if not isinstance(feature, Feature):
                raise TypeError(
                    f'Expected `{_context.package}.tfrecord.Feature` for the "{name}", but got {type(feature)}. Use '
                    f"`{_context.package}.tfrecord.FixedLenFeature` or `{_context.package}.tfrecord.VarLenFeature` to define the features to "
                    "extract."
                )
        self.values["feature_names"] = TypedValue("string", True, list(self.features))
        self.values["features"] = TypedValue("TFRecord", True, [_told(one) for one in self.features.values()])

    def __call__(self, *inputs, **keywords):
        outputs = super().__call__(*inputs, **keywords)
        outputs = outputs if isinstance(outputs, list) else [outputs]
        return dict(zip(self.features, outputs))

    def output_count(self, node):
        return len(self.features)


def _told(feature):
    """A feature as the library tells it: an object of JSON, with a list for each of its parts."""
    kind, shape = _FEATURES.index(feature.dtype), feature.shape
    parts = {"type": [kind], "has_shape": [shape is not None], "shape": _extents(shape)}
    if feature.partial_shape is not None:
        parts["partial_shape"] = _extents(feature.partial_shape)
    default = (int, str, float)[kind](feature.default or (0, "", 0.0)[kind])
    # JSON has no other numbers.
    is_told_as_text = isinstance(default, float) and not math.isfinite(default)
    parts["default_value"] = [str(default) if is_told_as_text else default]
    return json.dumps(parts)


def _extents(shape):
    return [int(extent) for extent in ([shape] if isinstance(shape, int) else shape or ())]


class MXNet(OfLibrary):
    """Reads RecordIO files. Outputs: images, and labels."""

    schema_name = "readers__MXNet"
    schema = named_schema = schema(
        "readers__MXNet", "Reads images and labels of RecordIO files.", _RECORDS, required=("path", "index_path")
    )
    shuffles_all = False
    shuffles_files = True


class Caffe(OfLibrary):
    """Reads Caffe's LMDB databases. Outputs: images, and labels."""

    schema_name = "readers__Caffe"
    schema = named_schema = schema(
        "readers__Caffe", "Reads images and labels of Caffe's databases.", _CAFFE, required=("path",)
    )
    shuffles_all = False


class Caffe2(OfLibrary):
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


class COCO(OfLibrary):
    """Reads images with their boxes and classes. Outputs: the files' bytes, boxes `[n, 4]`, classes `[n]`, then what
    was asked for."""

    schema_name = "readers__COCO"
    schema = named_schema = schema("readers__COCO", "Reads images with boxes, classes and masks.", _COCO, outputs=3)


class Csv(OfLibrary):
    """Reads the files that a CSV file names in a column, with labels of other columns. The first line names the
    columns.

    `file_list`: the CSV file. `file_root`: where its paths begin, if not in its own folder. `path_column`: the column
    of paths, else the first. `label_columns`: columns of numbers, else all others. `delimiter`: what is between
    columns. `dtype`: the type of the labels.

    Outputs: the files' bytes, and their labels: int32 where all labels of the file are whole numbers, else float32.
    """

    schema_name = "readers__Csv"
    schema = named_schema = schema(
        "readers__Csv", "Reads files that a CSV file names, and labels.", _CSV, required=("file_list",)
    )


class Sequence(OfLibrary):
    """Reads sequences of images, decoded: `[frames, height, width, channels]`."""

    schema_name = "readers__Sequence"
    schema = named_schema = schema(
        "readers__Sequence",
        "Reads sequences of images.",
        _SEQUENCE,
        required=("file_root", "sequence_length"),
        outputs=1,
    )

    def known_layouts(self):
        """Those of all batches."""
        return ["FHWC"]


class NemoAsr(OfLibrary):
    """Reads speech. Outputs: audio, and what was asked for of its sample rate, its text and its number."""

    schema_name = "readers__NemoAsr"
    schema = named_schema = schema(
        "readers__NemoAsr", "Reads speech that NeMo's manifests list.", _NEMO_ASR, required=("manifest_filepaths",)
    )


class Numpy(OfLibrary):
    """Reads arrays from `.npy` files, whole or a region."""

    schema_name = "readers__Numpy"
    schema = named_schema = schema(
        "readers__Numpy", "Reads arrays from `.npy` files.", _NUMPY, outputs=1, tensors=_REGION
    )
