"""What DALI says of the same mistake: added to the library's message for programs that were written for DALI and may
look for its words."""

import math
import re

from ._words_tf import TENSORFLOW

_LOGICAL = "Logical expression `and`, `or` or `not` is restricted to scalar (0-d tensors) inputs{}, that are placed on CPU. Got {} in logical expression."


def _operand(match):
    dtype, ndim = match.groups()
    if ndim != "0":
        return _LOGICAL.format(" of `bool` type", f"a {ndim}-d input")
    return _LOGICAL.format(" of `bool` type", f"an input of type `{dtype}`")


def _condition(match):
    ndim = match[1].count(",") + 1
    return (
        "Conditions inside `if` statements are restricted to scalar (0-d tensors) inputs, that are placed on CPU. "
        f"Got a {ndim}-d input as a condition of the `if` statement."
    )


def _merged(match):
    """What differs between branches first, as DALI names it."""
    (dtype, ndim, layout), (other_dtype, other_ndim, other_layout) = match.groups()[:3], match.groups()[3:]
    kind = "types" if dtype != other_dtype else "sample dimensions" if ndim != other_ndim else "layouts"
    both = {
        "types": (dtype, other_dtype),
        "sample dimensions": (ndim, other_ndim),
        "layouts": (f'"{layout}"', f'"{other_layout}"'),
    }[kind]
    return (
        "Divergent data found in different branches of conditional operation. All paths in conditional operation are merged into one batch "
        f"which must have consistent type, number of dimensions, layout and other metadata. Found distinct {kind}: {both[0]} and {both[1]}."
    )


def _volumes(match):
    """Two shapes that hold different numbers of elements."""
    old, new = ([int(float(extent)) for extent in re.findall(r"-?[\d.]+", shape)] for shape in match.groups())
    if -1 in new and 0 in old:
        return f"Cannot infer the extent of dimension {new.index(-1)} when the volume of the other extents is 0. Input shape: {_by(old)}"
    return (
        "The volume of the new shape should match the one of the original shape. "
        f"Requested a shape with {math.prod(new)} elements but the original shape has {math.prod(old)} elements."
    )


def _by(shape):
    return " x ".join(map(str, shape))


def _squeezed(match):
    old, new = (math.prod(map(int, re.findall(r"\d+", shape))) for shape in match.groups())
    return f"Requested a shape with {new} elements but the original shape has {old} elements."


def _of_region(match):
    """What of a window and a region in an image is wrong first."""
    window, start, end, whole = map(int, match.groups())
    if whole < 0:
        return f"Input shape can't be negative. Got {whole}"
    if window > whole:
        return (
            f"Cropping shape can't be bigger than the input shape. Got: crop_shape[{window}] and sample_shape[{whole}]"
        )
    return f"ROI can't be out of bounds. Got roi_start[{start}], roi_end[{end}], sample_shape[{whole}]"


def _beta(match):
    name, value = ("alpha", match[1]) if not float(match[1]) > 0 else ("beta", match[2])
    return f"The `{name}` must be a positive float32, got {value}"


def _out_of_bounds(match):
    shape, anchor, whole = match.groups()
    return f"Slice can't be placed out of bounds with current policy. Got: input_shape={{{whole}}}, slice_anchor={{{anchor}}}, slice_shape={{{shape}}}"


def _window_of_image(match):
    (height, width), (top, left), whole = (re.findall(r"-?\d+", group) for group in match.groups())
    return (
        f"cropping window {left}..{int(left) + int(width)}, {top}..{int(top) + int(height)} is not valid for image dimensions "
        f"[{whole[0]}x{whole[1]}]"
    )


# An operator's name in files, and what the library says, as a pattern > what DALI says.
_OF_OPERATORS = (
    ("decoders__Numpy", r"has (\d+) bytes of data, expected (\d+)", r"Expected data numpy size \2, got \1"),
    ("decoders__Numpy", "not a file of numpy", "Got bad magic string for numpy header"),
    (
        "decoders__Numpy",
        r"an array of (\w+) with (\d+) dimensions in a batch of (\w+) with (\d+)",
        lambda match: (
            "All samples in the dataset must have the same "
            + ("number of dimensions" if match[2] != match[4] else f"data type. Got {match[1]} and {match[3]}")
        ),
    ),
    (
        "Zeros|Ones|Full",
        r"layout `(\w+)` does not fit (\d+) dimensions",
        lambda match: f"Layout '{match[1]}' has {len(match[1])} dimensions but output shape has {match[2]}",
    ),
    ("ExpandDims", "is put into a tensor of", "Data has not enough dimensions to add new axes at specified indices."),
    ("ExpandDims", r"axis -\d+, expected 0", "Axis value can't be negative"),
    (
        "ExpandDims",
        r"`new_axis_names` is `(\w*)`, expected (\d+) letters",
        lambda match: (
            f"Specified {match[2]} new dimensions, but layout contains only {len(match[1])} new dimension names"
        ),
    ),
    (
        "ExpandDims",
        "given for an input without a layout",
        "Specifying ``new_axis_names`` requires an input with a proper layout.",
    ),
    (
        "MultiPaste",
        r"images of \d+ and \d+ channels",
        "All regions pasted into given output sample must have the same number of channels",
    ),
    (
        "MultiPaste",
        "without an `output_size`",
        "If the `output_size` is not specified, all the input samples must have the same shape.",
    ),
    (
        r"Crop\w*",
        r"a crop window is placed at ([^\s,]+), expected 0 to 1",
        r"Anchor for dimension 1 (or 0) \1 is out of range [0.0, 1.0]",
    ),
    ("Pad", r"argument `align` is", "Values of `align` argument must be positive."),
    ("MFCC", r"axis (-?\d+) of a sample with (\d+) dimensions", r"Axis \1 is out of bounds [0,\2)"),
    ("MFCC", r"argument `axis` is -", "Provided axis cannot be negative"),
    ("MFCC", r"argument `dct_type` is (\d+), expected", r"Unsupported DCT type: \1. Supported types are: 1, 2, 3, 4"),
    ("MFCC", "argument `normalize` is set, which", "Ortho-normalization is not supported for DCT type I"),
    (
        r"\w+",
        r"axis (-?\d+) of a sample with (\d+) dimensions",
        lambda match: (
            f"Axis {match[1]} out of range. Expected range is [-{match[2]}, {int(match[2]) - 1}] for a {match[2]}D input"
        ),
    ),
    ("Paste", "argument `min_canvas_size` is", "min_canvas_size_ of less than 0 is not supported"),
    (
        "Paste",
        r"images of type (\w+), expected uint8",
        lambda match: f"requested type: uint8 current buffer type: {_DALIS.get(match[1], match[1])}",
    ),
    (
        "Slice",
        r"both an end and a shape are given|arguments `\w+` and `\w+` are both given",
        '"end", "rel_end", "shape", and "rel_shape" arguments are mutually exclusive; "start" and "rel_start" are, too',
    ),
    (r"decoders__\w+", r"a window of \[(.*?)\] from \[(.*?)\] on leaves a sample of shape \[(.*?)\]", _window_of_image),
    (r"\w+", r"a window of \[(.*?)\] from \[(.*?)\] on leaves a sample of shape \[(.*?)\]", _out_of_bounds),
    ("decoders__Image", "`[A-Z0-9 ]+` image: ", "Failed to decode the image."),
    ("random__Beta", r"parameters \[(.*?), (.*?)\], expected positive", _beta),
    ("random__Beta", r"argument `dtype` is (\w+), expected", r"Data type \1 is not supported"),
    (
        "random__Choice",
        r"the probability (\S+) at (\d+) is",
        r"Probabilities must be in range [0, 1], but got: \1 for sample: 0 at index \2.",
    ),
    (
        "random__Choice",
        r"probabilities with the sum (\S+), expected",
        r"Sum of probabilities must be 1.0, but got \1 for sample: 0.",
    ),
    (
        "random__Choice",
        r"(-?\d+) things to choose from",
        r"Expected positive number of elements for sampling, got: \1 for sample: 0.",
    ),
    (
        "random__Choice",
        r"a limit of type (\w+), expected an integer",
        lambda match: (
            f"Data type {_DALIS.get(match[1], match[1])} is not supported for 0D inputs. Supported types are: uint8, uint16, uint32, "
            "uint64, int8, int16, int32, int64"
        ),
    ),
    (
        "random__Choice",
        r"(\d+) probabilities for (\d+) choices",
        r'Unexpected shape for argument "p". Expected {\2}, but got {\1}',
    ),
    (
        "SequenceRearrange",
        r"frame (-?\d+) of a sequence of (\d+)",
        r"new_order[i] must be between 0 and input_sequence_length = \2 for sample 0, but it is: \1",
    ),
    (
        "SequenceRearrange",
        "argument `new_order` is empty",
        "Empty result sequences are not allowed. Empty `new_order` for sample 0 is not allowed",
    ),
    (
        "SequenceRearrange",
        r"layout `(\w+)`, expected frames",
        r'Expected sequence as the input, where outermost dimension represents frames dimension `F`, got data with layout = "\1"',
    ),
    ("Squeeze", r"a sample of shape \[(.*?)\] would become one of \[(.*?)\]", _squeezed),
    ("Squeeze", r"layout `\w*` has no dimension `(\w)`", r"Axis '\1' is not present in the input layout"),
    ("Squeeze", "expected either `axes` or `axis_names`", "Provided both ``axes`` and ``axis_names`` arguments"),
    ("Squeeze", "is given twice", "Specified at least twice same dimension to remove."),
    (
        "Reshape|Reinterpret",
        r"`rel_shape` has (\d+) factors for an input of (\d+) dimensions",
        r"`rel_shape` has more elements (\1) than there are dimensions in the input (\2). To reorder or repeat dimensions, use `src_dims`.",
    ),
    (
        "Reshape|Reinterpret",
        r"`rel_shape` has (\d+) factors, expected (\d+) as",
        r"`src_dims` and `rel_shape` have different lengths: \2 vs \1",
    ),
    ("Reshape|Reinterpret", r"dimension (\d+) is wanted of", r"The source dimension \1 is out of bounds"),
    ("Reshape|Reinterpret", r"a sample of shape \[(.*?)\] does not fit the shape \[(.*?)\]", _volumes),
    ("Spectrogram", r"a signal of shape \[0\]", "Spectogram does not support empty (0-volume) samples"),
    ("Spectrogram", r"a signal of \d+ samples is shorter", "Signal is too short"),
    (
        "PermuteBatch",
        r"index (-?\d+) in a batch of (\d+)",
        r"Sample index out of range. \1 is not a valid index for an input batch of \2 tensors.",
    ),
    (
        "ROIRandomCrop",
        r"a window of (-?\d+) and a region from (-?\d+) to (-?\d+), expected both within (-?\d+)",
        _of_region,
    ),
    ("ROIRandomCrop", r"a window of (-\d+) and a region", r"Crop shape can't be negative. Got \1"),
    (
        "ROIRandomCrop",
        "`in_shape` and an input exclude",
        "``in_shape`` argument is incompatible with providing an input.",
    ),
    (
        "ROIRandomCrop",
        "one of the arguments `roi_shape` and `roi_end`",
        "Either ROI end or ROI shape should be defined, but not both",
    ),
    (
        "segmentation__RandomObjectBBox",
        r"the background, (-?\d+), is one of",
        r"Class label \1 coincides with background label",
    ),
    (
        "segmentation__RandomObjectBBox",
        r"(\d+) weights for (\d+) classes",
        "If both ``classes`` and ``class_weights`` are provided, their shapes must match. Got:\n  classes.shape = {\\2}\n  weights.shape = {\\1}",
    ),
    (
        "segmentation__RandomObjectBBox",
        "argument `ignore_class` excludes",
        "Class-related arguments ``classes``, ``class_weights`` and ``output_class`` cannot be used when ``ignore_class`` is True",
    ),
    ("segmentation__RandomObjectBBox", r"argument `k_largest` is (-?\d+)", r"``k_largest`` must be at least 1; got \1"),
    (
        "segmentation__RandomObjectBBox",
        r"argument `threshold` has (\d+) values for (\d+) dimensions",
        r"""Argument "threshold" expected shape \2 but got \1 values, which can't be interpreted as the expected shape.""",
    ),
    (
        "segmentation__SelectMasks",
        r"mask (-?\d+) is selected, which has no polygon",
        r"Selected mask_id \1 is not present in the input.",
    ),
    (
        "segmentation__SelectMasks",
        r"of shapes \[.*?\], \[\d+, (\d+)\] and",
        r"``polygons`` is expected to contain 2D tensors with 3 columns: ``mask_id, start_idx, end_idx``. Got \1 columns.",
    ),
    (
        "segmentation__SelectMasks",
        r"vertices (-?\d+) to (-?\d+) of (\d+)",
        r"Vertex index range for mask id [\1, \2) is out of bounds. Expected to be within the range of available vertices [0, \3).",
    ),
    (
        "Debayer",
        r"an image of shape \[\d+, \d+, (?!1\]).*?\]",
        " The debayer operator expects grayscale (i.e. single channel) images",
    ),
    ("Debayer", "expected an even height and width", "The height and width of the image to debayer must be even"),
    (
        "Debayer",
        r"a sample without a layout has (\d+) dimensions",
        r"The number of dimensions \1 does not match any of the allowed layouts of the debayer operator",
    ),
    ("Debayer", "argument `blue_position` is", "The `blue_position` position must lie within 2x2 tile"),
    ("Debayer", "argument `algorithm` is `default_npp`", "default_npp algorithm is not supported on CPU."),
    (
        "conditional__Merge",
        r"one makes (\w+) of (\d+) dimensions with layout `(\w*)`, the other (\w+) of (\d+) dimensions with layout `(\w*)`",
        _merged,
    ),
)
_DALIS = {"float32": "float", "float64": "double"}
_UNEQUAL = (
    "Encountered inconsistent outputs out of the `if/else` control flow statement. Variables need to be initialized in every code path "
    "(both `if` branches)."
)
_GENERAL = (
    (r"function `(\w+)` takes integers or bools", r"Inputs to bitwise operator `\1` must be of integral type."),
    (
        r"function `(\w+)` takes at least one number",
        r"Inputs to arithmetic operator `\1` cannot be booleans. Consider using bitwise operators `&`, `|`, `^`.",
    ),
    (r"an operand of `and` or `or` is (\w+) of (\d+) dimensions", _operand),
    (r"a condition of shape `?\[(.*?)\]`?, expected a scalar", _condition),
    (r"a scalar has no frames", "Cannot mark zero-dimensional input as a sequence."),
    (
        r"expected frames \(`F`\) first",
        "Per-frame argument input must be a sequence. The input layout should start with 'F'.",
    ),
    (r"operands of shapes (.*) do not fit", r"Can't broadcast shapes: \1"),
    (r"operands have layouts `(\w*)` and `(\w*)`", r"They must be equal or one must be a suffix of the other: \1, \2"),
    (r"argument `axis_name` is not one letter", "Unsupported axis_name value"),
    (
        "a `DataNode` was asked whether it is true",
        '"DataNode" was used in conditional context - it might have been used in truth evaluation for `if` statement, logical expression or cast to a '
        "boolean. To use conditional execution via `if` statements you need to specify `enable_conditionals=True` in `@nvidia.dali.pipeline_def` "
        "decorator. You can read more about conditional execution in specific section of the Pipeline documentation. Bool conversion can be achieved "
        "with the `cast` operator.",
    ),
    ("the checkpoint does not hold where the source", "DALI doesn't capture state of such 'source'."),
    (
        "the pipeline cannot save a checkpoint",
        "Cannot save the checkpoint. The `enable_checkpointing` was not specified when creating the pipeline",
    ),
    (
        "the pipeline cannot go on from a checkpoint",
        "Cannot restore checkpoint. The `enable_checkpointing` was not specified when creating the pipeline",
    ),
    (
        r"the external source `(\w+)` has a `source`, which feeds it",
        r"Cannot use `feed_input` on the external source '\1' with a `source` argument specified.",
    ),
    (
        r"output (\d+) is a sequence with `DataNode`s in it",
        r"Illegal pipeline output type. The output \1 contains a nested `DataNode`. Missing list/tuple expansion (*) is the likely cause.",
    ),
    (
        r"output (\d+) is a `(<class .*?>)`, expected",
        r"Illegal output type. The output \1 is a `\2`. Allowed types are `DataNode` and constants.",
    ),
    (
        r"support checkpointing, as these of its operators .*?\n\[(.*?)\]",
        r"The pipeline does not support checkpointing because it contains operator \1 outside the pipeline.",
    ),
    ("arrays of JAX have one shape", "JAX iterator does not support partial last batch policy."),
    (
        "without a size and a reader's name there must be one pipeline",
        "Negative size is supported only for a single pipeline",
    ),
    (
        "no checkpoint while a batch is peeked at",
        "Checkpointing is not supported for peekable iterators with peeked data.",
    ),
    (
        "a variable has a value from one branch alone.*There is no `return` in the branch `(.*?)`",
        rf"{_UNEQUAL} The `\1` branch must also have a return statement.",
    ),
    (
        "a variable has a value from one branch alone.*`(.*?)` has none in the branch `(.*?)`",
        rf"{_UNEQUAL} Variable '\1' must also be initialized in the `\2` branch.",
    ),
    (
        "`n`, how many augmentations an image gets",
        "The number of operations to apply `n` must be a non-negative integer",
    ),
    (
        r"a `\w+` of (.*) has no place in",
        r"Failed to serialize object as C-like structure. Tried to populate following fields: \1",
    ),
    (
        r"The number of input samples: \d+, needs to be at least",
        'Assert on "num_shards_ <= Size()" failed: The number of input samples:',
    ),
    (
        "an external source has `parallel=True`, and `py_num_workers` is",
        "The external source cannot run in parallel mode without Python workers pool",
    ),
    (
        "a source with `parallel=True` takes one argument.* takes none",
        "Callable passed to External Source in parallel mode (when `parallel=True`) must accept exactly one argument. Got a callable that does "
        "not accept arguments instead.",
    ),
    (
        "A `source` that is called takes nothing, or one argument.* takes more",
        "The `source` callable must accept either 0 or 1 positional arguments to indicate whether it accepts the batch or sample indexing "
        "information. Found more than one positional argument, which is not allowed.",
    ),
    (
        "a parallel source that is (.*) gives whole batches",
        r"Parallel external source with \1 must be run in a batch mode",
    ),
    (
        "`num_outputs` needs a `source`",
        "The parameter ``num_outputs`` is only valid when using ``source`` to provide data.",
    ),
    (
        "all inputs of a batch need the same number of samples",
        "External source must return outputs with consistent batch size.",
    ),
    (r"`(\w+)` is given together with `(\w+)`", r'"\1" and "\2" arguments are mutually exclusive'),
)
_COMPILED = [(re.compile(pattern), words) for pattern, words in (*_GENERAL, *TENSORFLOW)]
_COMPILED_OF_OPERATORS = [
    (re.compile(rf"operator `(?:{name})` .*?{pattern}", re.DOTALL), words) for name, pattern, words in _OF_OPERATORS
]


def added(message):
    """The message, and behind it DALI's words where they are known."""
    said = []
    for compiled in (_COMPILED_OF_OPERATORS, _COMPILED):
        for pattern, words in compiled:
            match = pattern.search(message)
            if match:
                said.append(words(match) if callable(words) else match.expand(words))
                break
    return f"{message}\nDALI says: {' '.join(said)}" if said else message
