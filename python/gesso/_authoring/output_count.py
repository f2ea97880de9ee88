"""How many outputs an operator has, where its arguments or inputs decide."""


def _flags(base, **names):
    """`base` outputs, and more for each flag that is set: name=(how many more, the flag's default)."""

    def count(values, inputs):
        return base + sum(more for name, (more, default) in names.items() if values.get(name, default))

    return count


def _random_object(values, inputs):
    corners = 1 if values.get("format", "anchor_shape") == "box" else 2
    return corners + bool(values.get("output_class", False))


def _length_of(name):
    return lambda values, inputs: len(values.get(name) or ())


_COCO = _flags(
    3,
    polygon_masks=(2, False),
    masks=(2, False),
    pixelwise_masks=(1, False),
    image_ids=(1, False),
    save_img_ids=(1, False),
)
_CAFFE = _flags(0, image_available=(1, True), label_available=(1, True), annotation_available=(1, False))
_NEMO = _flags(1, read_sample_rate=(1, True), read_text=(1, True), read_idxs=(1, False))


# DALI takes truth values of `enable_frame_num`, too.
_NO_FRAME_NUM = ("none", "False", "")


def _video(values, inputs):
    has_labels = "labels" in values or bool(values.get("file_list")) or bool(values.get("file_root"))
    is_numbered = str(values.get("enable_frame_num", "none")) not in _NO_FRAME_NUM
    return 1 + has_labels + is_numbered + bool(values.get("enable_timestamps", False))


_RULES = {
    "ElementExtract": _length_of("element_map"),
    "readers__Webdataset": _length_of("ext"),
    "readers__TFRecord": _length_of("feature_names"),
    "RandomBBoxCrop": lambda values, inputs: 3 + (inputs - 1) + bool(values.get("output_bbox_indices", False)),
    "BBoxRotate": lambda values, inputs: inputs,
    "segmentation__RandomObjectBBox": _random_object,
    "segmentation__SelectMasks": lambda values, inputs: 2 + 0 * inputs,
    "readers__COCO": _COCO,
    "COCOReader": _COCO,
    "readers__Caffe": _CAFFE,
    "CaffeReader": _CAFFE,
    "readers__Caffe2": _CAFFE,
    "Caffe2Reader": _CAFFE,
    "readers__NemoAsr": _NEMO,
    "NemoAsrReader": _NEMO,
    "readers__Video": _video,
    "readers__VideoResize": _video,
    "experimental__readers__Video": _video,
}


def count(schema, values, inputs):
    """The outputs of `schema` with these scalar arguments and that many inputs."""
    rule = _RULES.get(schema.target)
    return rule(values, inputs) if rule is not None else schema.outputs
