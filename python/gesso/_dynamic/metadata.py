"""What is known of an operator's outputs before it runs: type, rank and layout. Only what is certain; the rest is
asked of the result."""

from .._tensors.enums import DALIDataType

# Operators whose output has the type, rank and layout of their input, unless `dtype` says otherwise.
_LIKE_INPUT = {
    *("Flip", "Crop", "Cast", "Hsv", "Hue", "Saturation", "ColorTwist", "Brightness", "Contrast", "BrightnessContrast"),
    *("Copy", "GaussianBlur", "Erase", "Pad", "Paste", "Water", "Sphere", "Jitter", "JpegCompressionDistortion"),
    *("RandomResizedCrop", "RandomCrop", "Slice", "BbFlip", "CoordFlip"),
}
_LIKE = {*("Resize", "WarpAffine", "Rotate")}
_RANDOM = {"random__CoinFlip": DALIDataType.INT32, "random__Uniform": DALIDataType.FLOAT, "random__Normal": DALIDataType.FLOAT}


def of(schema, fixed, index, inputs):
    """Name > value of what is known of output `index`."""
    name, facts = schema.target, {}
    if name in _RANDOM:
        facts = {"dtype": fixed.get("dtype", _RANDOM[name]), "layout": ""}
        if "shape" not in fixed:
            facts["ndim"] = 0
    elif name in _LIKE_INPUT and inputs and index == 0:
        source = inputs[0]
        facts = {"dtype": fixed.get("dtype", source.dtype.type_id), "ndim": source.ndim, "layout": source.layout or ""}
        if not facts["layout"]:
            # An operator may take the layout for a picture's.
            del facts["layout"]
    elif name in _LIKE and inputs and index == 0:
        facts = {"ndim": inputs[0].ndim}
        if inputs[0].layout:
            facts["layout"] = inputs[0].layout
    return facts
