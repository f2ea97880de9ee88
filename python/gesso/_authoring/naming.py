"""Names of operators: from the schema's (`decoders__ImageRandomCrop`) to those of modules, classes and functions."""

_SPECIAL = (("b_box", "bbox"), ("mx_net", "mxnet"), ("tf_record", "tfrecord"))


def split(schema_name):
    """`decoders__Image` > (["decoders"], "Image"). Leading underscores belong to the first part."""
    stripped = schema_name.lstrip("_")
    *modules, name = stripped.split("__")
    lead = schema_name[: len(schema_name) - len(stripped)]
    if lead:
        if modules:
            modules[0] = lead + modules[0]
        else:
            name = lead + name
    return modules, name


def snake_case(name):
    """`ImageRandomCrop` > `image_random_crop`, `BBoxPaste` > `bbox_paste`, `MFCC` > `mfcc`, `PythonFunction1D` >
    `python_function1d`."""
    words, start = [], 0
    for i in range(1, len(name) + 1):
        if i == len(name):
            words.append(name[start:i])
        elif name[i].isupper() and name[i - 1].islower():
            words.append(name[start:i])
            start = i
        elif name[i].islower() and name[i - 1].isupper() and i - 1 > start:
            words.append(name[start : i - 1])
            start = i - 1
    joined = "_".join(word.strip("_").lower() for word in words if word.strip("_"))
    for wrong, right in _SPECIAL:
        joined = joined.replace(wrong, right)
    return ("_" if name.startswith("_") else "") + joined + ("_" if name.endswith("_") else "")
