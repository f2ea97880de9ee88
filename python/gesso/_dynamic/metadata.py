"""What is known of an operator's outputs before it runs: type, rank and layout. Only what is certain; the rest is
asked of the result."""

from .._tensors.enums import DALIDataType

# Operators whose output is as their input, but for a `dtype`; without a layout they take the input for a picture.
_PICTURES = {
    *("Flip", "Crop", "Hsv", "Hue", "Saturation", "ColorTwist", "Brightness", "Contrast", "BrightnessContrast"),
    *("GaussianBlur", "Water", "Sphere", "Jitter", "JpegCompressionDistortion", "Resize", "Rotate"),
    "RandomResizedCrop",
}
# The same of data of any kind.
_ALIKE = {"Cast", "Copy", "Pad", "Erase", "Slice", "BbFlip", "CoordFlip"}
_RANDOM = {
    "random__CoinFlip": DALIDataType.INT32,
    "random__Uniform": DALIDataType.FLOAT,
    "random__Normal": DALIDataType.FLOAT,
}


def of(schema, fixed, index, inputs):
    """Name > value of what is known of output `index`."""
    name = schema.target
    if name in _RANDOM:
        shape = fixed.get("shape", ())
        rank = len(shape) if isinstance(shape, tuple) else 1
        return {"dtype": fixed.get("dtype", _RANDOM[name]), "layout": "", "ndim": rank}
    if not inputs:
        return {}
    if index == 0 and len(inputs) == 1 and name in _PICTURES | _ALIKE:
        facts = _like(inputs[0], fixed)
        if not facts["layout"] and name in _PICTURES:
            del facts["layout"]
        return facts
    rule = _RULES.get(name)
    return rule(fixed, index, inputs) if rule is not None else {}


def _like(source, fixed):
    return {"dtype": fixed.get("dtype", source.dtype.type_id), "ndim": source.ndim, "layout": source.layout or ""}


def _crop_mirror_normalize(fixed, _index, inputs):
    source = inputs[0]
    if source.layout not in ("HWC", "CHW"):
        return {}
    return {"dtype": fixed.get("dtype", DALIDataType.FLOAT), "ndim": 3, "layout": fixed.get("output_layout", "CHW")}


def _with_axes(source, axes, names):
    """As `source`, with new axes; `names` are their letters, if they have some."""
    layout = list(source.layout or "")
    if names and len(names) == len(axes) and (layout or not source.ndim):
        for axis, letter in zip(axes, names):
            layout.insert(axis, letter)
    else:
        layout = []
    return {"dtype": source.dtype.type_id, "ndim": source.ndim + len(axes), "layout": "".join(layout)}


def _stack(fixed, _index, inputs):
    axis = fixed.get("axis", 0)
    source = inputs[0]
    axis = axis + source.ndim + 1 if axis < 0 else axis
    if "axis_name" not in fixed:
        return {"dtype": source.dtype.type_id, "ndim": source.ndim + 1}
    return _with_axes(source, [axis], fixed["axis_name"])


def _expand_dims(fixed, _index, inputs):
    axes = fixed.get("axes", ())
    axes = axes if isinstance(axes, tuple) else (axes,)
    source = inputs[0]
    facts = _with_axes(source, list(axes), fixed.get("new_axis_names", ""))
    if source.layout and not fixed.get("new_axis_names"):
        del facts["layout"]
    return facts


def _random_bbox_crop(_fixed, index, inputs):
    if index == 2:
        return _like(inputs[0], {})
    return {"dtype": DALIDataType.FLOAT, "ndim": 1, "layout": ""} if index < 2 else {}


def _reshape(fixed, _index, inputs):
    # Only another layout is given.
    return {**_like(inputs[0], {}), "layout": fixed["layout"]} if fixed.keys() == {"layout"} else {}


_RULES = {
    "CropMirrorNormalize": _crop_mirror_normalize,
    "ExpandDims": _expand_dims,
    "RandomBBoxCrop": _random_bbox_crop,
    "Reshape": _reshape,
    "Stack": _stack,
}
