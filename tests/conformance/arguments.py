#!/usr/bin/env python3
"""What arguments take: one value, a tuple, a list, an array, a number of numpy's, an enumeration, a `DataNode`, text.
Every argument of every operator that draw.py draws is given in all of these forms, in DALI and in Gesso: both take it
or both refuse it, and the outputs are equal.

    arguments.py [--only OPERATOR ...] [--seed S] [--show FILE]     exit status 1 when something differs that `KNOWN`
                                                                    does not name

Runs in a Python that has both packages (or Gesso's by PYTHONPATH=python and GESSO_LIBRARY). No GPU. `--show` writes
what differs as JSON."""

import argparse
import ast
import faulthandler
import json
import sys
import warnings

import draw
import draw_media  # noqa: F401  (registers what it draws)
import draw_regions  # noqa: F401
import fuzz
import gesso
import numpy as np
import nvidia.dali
from nvidia.dali._utils import dali_trace
from nvidia.dali.backend import GetSchema

ENUMS = {"DATA_TYPE": "DALIDataType", "IMAGE_TYPE": "DALIImageType", "INTERP_TYPE": "DALIInterpType"}
# Arguments of all operators, those that say how much memory to take, and those that change how many outputs there are.
LEFT_OUT = {
    "preserve",
    "name",
    "device",
    "bytes_per_sample_hint",
    "temp_buffer_hint",
    "minibatch_size",
    "seed",
    "save_attrs",
}
# What Gesso takes beyond DALI is shown, and no error.
LENIENT = "DALI refuses it"
# (kind of the argument, form) > why Gesso refuses what DALI takes.
_TEXT = "DALI makes text of everything: `['HWC']` of a list"
_COLOURS = "DALI takes numbers that are no colour space where it does not read the argument"
KNOWN = {
    ("BOOL", "text"): "DALI takes every text for true, `False` too",
    ("STRING", "list"): _TEXT,
    ("STRING", "tuple"): _TEXT,
    ("STRING", "number"): _TEXT,
    ("STRING", "bool"): _TEXT,
    ("IMAGE_TYPE", "other enumeration"): _COLOURS,
    ("IMAGE_TYPE", "unknown number"): _COLOURS,
}
# (operator, argument) > why their forms differ.
_RANGE = "a range that is empty or below 0, of which DALI draws something"
_EMPTY = "an empty list is as none to DALI"
_DEGENERATE = "of one mean and several fill values DALI reads means that are not there"
_MEANS = "DALI reads beyond means of another shape than its result has"
_AXES = "where an axis is given twice, or is not there, DALI's results are wrong"
_UNREAD = "DALI takes a tensor there and does not read it"
_WINDOW = "DALI reads beyond a picture that is smaller than the window, unless it interpolates"
_SHARE = "a share or a chance that is not between 0 and 1"
_SIZE = "a size, a length or a count below 1"
_FIRST = "of several values DALI takes the first"
_INVERSE = "the exact inverse transform is taken always"
_NARROW = "filters that are narrower than a bin, whose weights are differences of numbers that are nearly equal"
_NO_CHECK = "DALI checks it only where it resamples"
_SINGULAR = "one number as all nine of a matrix, which maps every pixel to the same one"
_FLAT = "boxes without an area, whose offsets are infinite in DALI"
KNOWN_OF = {
    ("RandomResizedCrop", "random_area"): _RANGE,
    ("RandomResizedCrop", "random_aspect_ratio"): _RANGE,
    ("RandomResizedCrop", "num_attempts"): _RANGE,
    ("RandomCropGenerator", "random_area"): _RANGE,
    ("RandomCropGenerator", "random_aspect_ratio"): _RANGE,
    ("RandomCropGenerator", "num_attempts"): _RANGE,
    ("decoders__ImageRandomCrop", "random_area"): _RANGE,
    ("decoders__ImageRandomCrop", "random_aspect_ratio"): _RANGE,
    ("decoders__ImageRandomCrop", "num_attempts"): _RANGE,
    ("SSDRandomCrop", "num_attempts"): _RANGE,
    ("ROIRandomCrop", "roi_shape"): _RANGE,
    ("Pad", "align"): _EMPTY,
    ("Pad", "shape"): _EMPTY,
    ("Erase", "fill_value"): _EMPTY,
    ("CropMirrorNormalize", "fill_values"): _DEGENERATE,
    ("reductions__StdDev", "axes"): _MEANS,
    ("reductions__Variance", "axes"): _MEANS,
    ("Erase", "axes"): _AXES,
    ("Normalize", "axes"): _AXES,
    ("Reshape", "src_dims"): _UNREAD,
    ("Reinterpret", "src_dims"): _UNREAD,
    ("Squeeze", "axes"): _UNREAD,
    ("ResizeCropMirror", "interp_type"): _WINDOW,
    ("ResizeCropMirror", "mag_filter"): _WINDOW,
    ("ResizeCropMirror", "min_filter"): _WINDOW,
    ("FastResizeCropMirror", "interp_type"): _WINDOW,
    ("FastResizeCropMirror", "mag_filter"): _WINDOW,
    ("FastResizeCropMirror", "min_filter"): _WINDOW,
    ("random__CoinFlip", "probability"): _SHARE,
    ("decoders__Image", "hw_decoder_load"): _SHARE,
    ("decoders__ImageCrop", "hw_decoder_load"): _SHARE,
    ("decoders__ImageSlice", "hw_decoder_load"): _SHARE,
    ("decoders__ImageRandomCrop", "hw_decoder_load"): _SHARE,
    ("NonsilentRegion", "window_length"): _SIZE,
    ("experimental__WarpPerspective", "size"): _SIZE,
    ("Sphere", "mask"): _FIRST,
    ("Water", "mask"): _FIRST,
    ("decoders__ImageCrop", "use_fast_idct"): _INVERSE,
    ("decoders__ImageSlice", "use_fast_idct"): _INVERSE,
    ("decoders__ImageRandomCrop", "use_fast_idct"): _INVERSE,
    ("experimental__WarpPerspective", "matrix"): _SINGULAR,
    ("BoxEncoder", "anchors"): _FLAT,
    ("MelFilterBank", "nfilter"): _NARROW,
    ("decoders__Audio", "quality"): _NO_CHECK,
}
# How long one form may take.
SECONDS = 60
# How many draws are looked through for one that DALI runs.
DRAWS = 40


def numbers(kind, value):
    """{form: what makes it of a package} for an argument of numbers; `value`: one that works, a number or a list."""
    listed = value if isinstance(value, list) else [value]
    one = listed[0] if listed else 1
    forms = {
        "as it is": lambda p: value,
        "one int": lambda p: int(one),
        "one float": lambda p: float(one),
        "one fraction": lambda p: float(one) + 0.5,
        "one bool": lambda p: bool(one),
        "negative": lambda p: -abs(one) - 1,
        "text": lambda p: str(one),
        "numpy int": lambda p: np.int64(one),
        "numpy byte": lambda p: np.uint8(abs(int(one)) % 256),
        "numpy float": lambda p: np.float32(one),
        "numpy double": lambda p: np.float64(one),
        "numpy bool": lambda p: np.bool_(one),
        "array of no dimension": lambda p: np.array(one),
        "array of one": lambda p: np.array([one]),
        "array of two": lambda p: np.array([one, one]),
        "array of floats": lambda p: np.array(listed, np.float64),
        "array of float32": lambda p: np.array(listed, np.float32),
        "array of ints": lambda p: np.array(listed).astype(np.int32),
        "array of 64-bit ints": lambda p: np.array(listed).astype(np.int64),
        "array of bytes": lambda p: np.abs(np.array(listed)).astype(np.uint8),
        "array in an array": lambda p: np.array([listed]),
        "list of one": lambda p: [one],
        "tuple of one": lambda p: (one,),
        "list of two": lambda p: [one, one],
        "tuple of two": lambda p: (one, one),
        "list of three": lambda p: [one] * 3,
        "list of four": lambda p: [one] * 4,
        "list of floats": lambda p: [float(n) for n in listed],
        "list of numpy numbers": lambda p: [np.float32(n) if kind == "FLOAT" else np.int32(n) for n in listed],
        "list in a list": lambda p: [listed],
        "empty list": lambda p: [],
        "empty array": lambda p: np.array([], np.float32),
        "tuple": lambda p: tuple(listed),
        "range": lambda p: range(len(listed)),
        "scalar constant": lambda p: p.types.Constant(one),
        "constant of one": lambda p: p.types.Constant([one]),
        "constant": lambda p: p.types.Constant(np.array(listed, np.float32 if kind == "FLOAT" else np.int32)),
        "constant of floats": lambda p: p.types.Constant(np.array(listed, np.float32)),
        "constant of no dimension": lambda p: p.types.Constant(
            np.array(one, np.float32 if kind == "FLOAT" else np.int32)
        ),
        "node": lambda p: p.fn.cast(node(p, one), dtype=p.types.FLOAT if kind == "FLOAT" else p.types.INT32),
        "node of bytes": lambda p: p.fn.cast(node(p, abs(one)), dtype=p.types.UINT8),
        "node of 64 bits": lambda p: p.fn.cast(node(p, one), dtype=p.types.INT64),
        "node of doubles": lambda p: p.fn.cast(node(p, one), dtype=p.types.FLOAT64),
        "node of bools": lambda p: p.fn.cast(node(p, one), dtype=p.types.BOOL),
        "list of nodes": lambda p: [node(p, n) for n in listed],
        "list with a node": lambda p: [node(p, one), *listed[1:]],
        "enumeration": lambda p: p.types.INT32,
        "None": lambda p: None,
    }
    return forms


def node(package, number):
    return package.fn.constant(fdata=[float(number)], shape=[])


def enums(kind, value):
    """The same for an argument of an enumeration."""

    def member(p, number=value):
        return getattr(p.types, ENUMS[kind])(number)

    forms = {
        "as it is": member,
        "number": lambda p: value,
        "numpy int": lambda p: np.int64(value),
        "float": lambda p: float(value),
        "name": lambda p: member(p).name,
        "list": lambda p: [member(p)],
        "tuple": lambda p: (member(p),),
        "array": lambda p: np.array(value),
        "constant": lambda p: p.types.Constant(member(p)),
        "array of one": lambda p: p.types.Constant([member(p)]),
        "node": lambda p: p.fn.constant(idata=[value], shape=[], dtype=p.types.INT32),
        "other enumeration": lambda p: p.types.RGB if kind != "IMAGE_TYPE" else p.types.FLOAT,
        "unknown number": lambda p: 77,
        "bool": lambda p: True,
        "None": lambda p: None,
    }
    if kind == "DATA_TYPE":
        forms |= {
            "numpy type": lambda p: np.float32,
            "numpy dtype": lambda p: np.dtype("float32"),
            "Python type": lambda p: float,
        }
        forms |= {"name of numpy's": lambda p: "float32"}
    return forms


def texts(kind, value):
    """The same for an argument of text."""
    listed = value if isinstance(value, list) else [value]
    one = listed[0] if listed else ""
    return {
        "as it is": lambda p: value,
        "text": lambda p: one,
        "bytes": lambda p: one.encode(),
        "numpy text": lambda p: np.str_(one),
        "list": lambda p: [one],
        "tuple": lambda p: (one,),
        "list of letters": lambda p: list(one),
        "array": lambda p: np.array(listed),
        "empty text": lambda p: "",
        "empty list": lambda p: [],
        "number": lambda p: 1,
        "bool": lambda p: True,
        "constant of bytes": lambda p: p.types.Constant(np.frombuffer(one.encode() or b"x", np.uint8)),
        "unknown text": lambda p: "no such thing",
        "None": lambda p: None,
    }


def kind_of(schema, name):
    """(kind of one value, whether there may be several)"""
    full = str(schema.GetArgumentType(name)).rpartition(".")[2]
    plain = full.removeprefix("_").removesuffix("_VEC")
    return {"UINT8": "INT32", "UINT32": "INT32", "INT64": "INT32", "TENSOR_LAYOUT": "STRING"}.get(
        plain, plain
    ), full.endswith("_VEC")


def usual(schema, name, kind):
    """A value that the argument can have: its default, else one of its kind."""
    if schema.HasArgumentDefaultValue(name):
        try:
            found = ast.literal_eval(schema.GetArgumentDefaultValueString(name))
            if kind == "STRING" or found not in ("", [], ()):
                return list(found) if isinstance(found, tuple) else found
        except (SyntaxError, ValueError):
            pass
    return {"BOOL": True, "FLOAT": 1.0, "STRING": ""}.get(kind, 1)


def forms_of(spec, name):
    """{form: maker} for one argument of the last step."""
    schema = schema_of(spec)
    kind, _ = kind_of(schema, name)
    value = spec["steps"][-1]["args"].get(name)
    if kind in ENUMS:
        return enums(
            kind, value if isinstance(value, int) else {"DATA_TYPE": 9, "IMAGE_TYPE": 0, "INTERP_TYPE": 1}[kind]
        )
    if (
        value is None
        or isinstance(value, dict)
        or isinstance(value, list)
        and any(not isinstance(v, (int, float, str)) for v in value)
    ):
        value = usual(schema, name, kind)
    return texts(kind, value) if kind == "STRING" else numbers(kind, value)


def function_of(spec, package):
    found = package.fn
    for part in spec["steps"][-1]["op"].split("."):
        found = getattr(found, part)
    return found


def schema_of(spec):
    return GetSchema(function_of(spec, nvidia.dali)._schema_name)


def outcome(spec, package, argument, maker):
    """The outputs when the last step has `argument` in another form; a text when it is refused."""
    try:
        pipe = package.Pipeline(
            batch_size=draw.BATCH, num_threads=1, device_id=None, prefetch_queue_depth=1, seed=spec["seed"]
        )
        with pipe:
            whole = fuzz.authored(
                dict(spec, steps=spec["steps"]), package=Within(package, pipe, argument, maker, len(spec["steps"]))
            )
        del whole
        return fuzz.outputs_of(pipe, fuzz.inputs_of(spec, pipe.serialize()))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class Within:
    """A package whose pipelines are `pipe`, and whose last operator is given `argument` anew."""

    def __init__(self, package, pipe, argument, maker, steps):
        self._package, self.types, self.math = package, package.types, package.math
        self.fn = Functions(package, package.fn, argument, maker, [steps])
        self.Pipeline = lambda **_: pipe


class Functions:
    def __init__(self, package, found, argument, maker, left):
        self._package, self._found, self._argument, self._maker, self._left = package, found, argument, maker, left

    def __getattr__(self, name):
        return Functions(self._package, getattr(self._found, name), self._argument, self._maker, self._left)

    def __call__(self, *inputs, **arguments):
        if self._found is not self._package.fn.external_source:
            self._left[0] -= 1
            if self._left[0] == 0:
                arguments[self._argument] = self._maker(self._package)
        return self._found(*inputs, **arguments)


def differ(spec, theirs, ours):
    """How the outcomes differ, or None."""
    if isinstance(theirs, str) and isinstance(ours, str):
        return None
    if isinstance(theirs, str):
        return f"{LENIENT}: {shortened(theirs)}"
    if isinstance(ours, str):
        return f"Gesso refuses it: {shortened(ours)}"
    limit, _ = fuzz.tolerance(spec, theirs)
    for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        for a, b in zip(one, other, strict=True):
            if a.dtype != b.dtype or a.shape != b.shape:
                return f"output {i} is {a.dtype}{a.shape}, in DALI {b.dtype}{b.shape}"
            with np.errstate(all="ignore"):
                apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
            apart = apart[~(np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))) & (a != b)]
            if apart.size and not apart.max() <= limit:
                return f"output {i} is off by {apart.max():.3g}"
    return None


def shortened(text):
    lines = [
        line
        for line in text.splitlines()
        if line.strip() and not line.startswith(("[/opt", "Stacktrace", "Current pipeline"))
    ]
    error = next((line for line in lines if line.startswith("Error ")), "")
    return f"{lines[0][:160]} {error and lines[-1][:160]}".strip() if lines else ""


def compared(item):
    """How DALI and Gesso differ where one argument has one form; an empty text if they do not."""
    spec, name = item["spec"], item["argument"]
    maker = forms_of(spec, name)[item["form"]]
    # DALI may end the process or wait for ever.
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        return differ(spec, outcome(spec, nvidia.dali, name, maker), outcome(spec, gesso, name, maker)) or ""
    finally:
        faulthandler.cancel_dump_traceback_later()


def is_known(item):
    kind, _ = kind_of(schema_of(item["spec"]), item["argument"])
    return (kind, item["form"]) in KNOWN or (item["operator"], item["argument"]) in KNOWN_OF


def runs(spec):
    """Whether DALI takes the pipeline; its last step is an operator called by name."""
    fuzz.answers(spec)
    return True


def bases(names, seed):
    """A pipeline for each operator that DALI runs."""
    for name in names:
        specs = [fuzz.drawn(number, seed, [name]) for number in range(DRAWS)]
        specs = [
            spec
            for spec in specs
            if spec["steps"][-1]["op"] not in ("_shape", "subscript", "arithmetic", "permute_batch")
        ]
        for spec, good in zip(specs[:6], fuzz.in_children(specs[:6], runs)):
            if good:
                yield spec
                break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    dali_trace.set_tracing(enabled=False)
    items = []
    for spec in bases(options.only or list(draw.DRAWS), options.seed):
        for name in schema_of(spec).GetArgumentNames():
            if name not in LEFT_OUT and not name.startswith("_") and not schema_of(spec).IsDeprecatedArg(name):
                items += [
                    dict(spec=spec, operator=spec["operator"], steps=[], argument=name, form=form)
                    for form in forms_of(spec, name)
                ]
    shown, lenient, known, ended = [], 0, 0, 0
    for item, how in zip(items, fuzz.in_children(items, compared)):
        if how == "":
            continue
        if how is None:
            ended += 1
            continue
        shown.append({name: item[name] for name in ("operator", "argument", "form")} | {"how": how})
        if how.startswith(LENIENT):
            lenient += 1
        elif is_known(item):
            known += 1
        else:
            print("{operator}({argument}={form}): {how}".format(**shown[-1]))
    if options.show:
        with open(options.show, "w") as file:
            json.dump(shown, file, indent=1)
    count = len({(item["operator"], item["argument"]) for item in items})
    print(
        f"{count} arguments in {len(items)} forms: {len(shown) - lenient - known} differ, {known} as is known; Gesso takes {lenient} more; "
        f"DALI ended or hung in {ended}"
    )
    sys.exit(len(shown) > lenient + known)


if __name__ == "__main__":
    main()
