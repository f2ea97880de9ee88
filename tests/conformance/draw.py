"""What fuzz.py draws: for every operator a function that makes a small random pipeline around it. A pipeline is plain
data, so that it can be made smaller and written down:

    {"inputs": [{"dtype", "layout", "shapes", "seed", "low", "high"}], "steps": [{"op", "inputs", "args", "outputs"}]}

An input with "files" is of encoded ones: {"format", ...} for each sample, and "shapes" are those of what is in them. A
value is named by a number: inputs first, then the outputs of the steps in order. In "args", {"value": n} is a tensor
argument."""

import numpy as np

BATCH = 3
NUMBERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
TYPES = dict(
    uint8=0, uint16=1, uint32=2, uint64=3, int8=4, int16=5, int32=6, int64=7, float16=8, float32=9, float64=10, bool=11
)
DRAWS = {}


def draws(*names):
    """Registers a function that draws pipelines around the operators `names`, which it takes as its second argument."""

    def register(function):
        DRAWS.update({name: function for name in names})
        return function

    return register


class Drawing:
    """A pipeline while it is drawn."""

    def __init__(self, rng):
        self.rng, self.inputs, self.steps, self.values = rng, [], [], 0

    def pick(self, *choices):
        return choices[int(self.rng.integers(len(choices)))]

    def whole(self, low, high):
        """A number from `low` to `high`."""
        return int(self.rng.integers(low, high + 1))

    def real(self, low, high):
        return float(np.float32(self.rng.uniform(low, high)))

    def chance(self, probability):
        return bool(self.rng.random() < probability)

    def dtype(self, *others):
        return self.pick(*NUMBERS, "float32", *others)

    def ints(self, count, low, high):
        return [self.whole(low, high) for _ in range(count)]

    def input(self, dtype, shapes, layout="", low=None, high=None):
        """An input of the pipeline; `shapes`: one for each sample."""
        assert not self.steps, "inputs come first"
        self.inputs.append(
            dict(
                dtype=dtype,
                layout=layout,
                shapes=[list(map(int, s)) for s in shapes],
                seed=self.whole(0, 10**6),
                low=low,
                high=high,
            )
        )
        self.values += 1
        return self.values - 1

    def files(self, formats, shapes):
        """An input of encoded samples; `formats`: a format and its options for each."""
        value = self.input("uint8", shapes)
        self.inputs[-1]["files"] = formats
        return value

    def boxes(self, shapes):
        """An input of boxes within 0 to 1: where they begin, then where they end."""
        value = self.input("float32", shapes, "", 0, 1)
        self.inputs[-1]["boxes"] = True
        return value

    def op(self, name, *inputs, outputs=1, **args):
        """A step; arguments that are None are not given."""
        args = {k: v for k, v in args.items() if v is not None}
        self.steps.append(dict(op=name, inputs=list(inputs), args=args, outputs=outputs))
        first, self.values = self.values, self.values + outputs
        return first if outputs == 1 else list(range(first, self.values))

    def shapes(self, ndim, low=1, high=7):
        return [self.ints(ndim, low, high) for _ in range(BATCH)]

    def tensor(self, *others, ndim=None, low=1):
        """An input of any rank; its layout has as many letters or none."""
        ndim = self.whole(1, 4) if ndim is None else ndim
        layout = self.pick("", "ABCD"[:ndim])
        return self.input(self.dtype(*others), self.shapes(ndim, low), layout), ndim, layout

    def image(self, *dtypes, low=1, high=14, channels=None):
        channels = channels or self.whole(1, 4)
        shapes = [[*self.ints(2, low, high), channels] for _ in range(BATCH)]
        return self.input(self.pick(*(dtypes or ("uint8", "uint8", "int16", "float32"))), shapes, "HWC")

    def per_sample(self, dtype, count, low, high):
        """A tensor argument: a list of `count` numbers a sample, or a scalar when that is None."""
        return {"value": self.input(dtype, [[] if count is None else [count]] * BATCH, "", low, high)}

    def all_or_each(self, count, low, high, dtype="float32"):
        """A value for each of `count` axes, or one for all: fixed, in a list, as a scalar for each sample or a list for
        each."""
        kind = int if dtype == "int32" else float
        each = lambda: [kind(n) for n in self.ints(count, low, high)]
        return self.pick(
            each,
            each,
            lambda: each()[0],
            lambda: each()[:1],
            lambda: self.per_sample(dtype, None, low, high),
            lambda: self.per_sample(dtype, count, low, high),
        )()


def optional(d, probability, value):
    return value() if d.chance(probability) else None


@draws("Cast", "CastLike", "Copy", "Shapes", "ZerosLike", "OnesLike")
def elementwise(d, name):
    x, ndim, _ = d.tensor("float16", "float64", "bool", ndim=d.whole(0, 4), low=0)
    if name == "Cast":
        return d.op("cast", x, dtype=TYPES[d.dtype("float16", "float64", "bool")])
    if name == "CastLike":
        return d.op("cast_like", x, d.op("cast", x, dtype=TYPES[d.dtype("float16", "float64", "bool")]))
    if name == "Copy":
        return d.op("copy", x)
    if name == "Shapes":
        return d.op(
            "_shape",
            x,
            dtype=optional(d, 0.5, lambda: TYPES[d.pick("int32", "uint32", "int64", "uint64", "float32", "float64")]),
        )
    name = "zeros_like" if name == "ZerosLike" else "ones_like"
    return d.op(name, x, dtype=optional(d, 0.5, lambda: TYPES[d.dtype("float16", "float64", "bool")]))


@draws("Zeros", "Ones", "Full", "FullLike")
def fill(d, name):
    shape = d.per_sample("int32", d.whole(1, 3), 0, 4) if d.chance(0.4) else d.ints(d.whole(0, 3), 0, 4)
    if name in ("Zeros", "Ones"):
        return d.op(
            name.lower(), shape=shape, dtype=optional(d, 0.5, lambda: TYPES[d.dtype("float16", "float64", "bool")])
        )
    if name == "Full":
        v, _, _ = (
            d.tensor("bool", ndim=0)
            if isinstance(shape, dict)
            else (d.input(d.dtype(), [[s if d.chance(0.6) else 1 for s in shape]] * BATCH), 0, "")
        )
        return d.op("full", v, shape=shape)
    x, ndim, _ = d.tensor(low=1, ndim=2)
    return d.op("full_like", x, d.op("reductions.min", x, axes=[0], keep_dims=True))


@draws("Reshape", "Reinterpret")
def reshape(d, name):
    ndim = d.whole(1, 4)
    shape = [2 * n for n in d.ints(ndim, 1, 4)]
    x = d.input(d.dtype(), [shape] * BATCH, d.pick("", "ABCD"[:ndim]))
    dims = list(shape)
    d.rng.shuffle(dims)
    if d.chance(0.4):
        dims[d.whole(0, ndim - 1)] = -1
    elif ndim > 1 and d.chance(0.5):
        dims = [dims[0] * dims[1], *dims[2:]]
    if name == "Reshape":
        how = d.whole(0, 3)
        if how == 0:
            return d.op("reshape", x, shape=dims)
        if how == 1:
            return d.op(
                "reshape",
                x,
                rel_shape=[1.0] * (ndim - 1) + [d.pick(-1.0, 0.5, 1.0)] + ([-1.0] if d.chance(0.3) else []),
            )
        if how == 2:
            order = [int(n) for n in d.rng.permutation(ndim)]
            return d.op("reshape", x, src_dims=order + [-1] * d.whole(0, 1))
        return d.op("reshape", x, layout="WXYZ"[:ndim])
    return d.op("reinterpret", x, dtype=TYPES[d.dtype("float64")], shape=optional(d, 0.4, lambda: [-1, d.pick(1, 2)]))


@draws("Squeeze", "ExpandDims", "Transpose", "Pad")
def dimensions(d, name):
    ndim = d.whole(1, 4)
    if name == "Squeeze":
        shapes = [[d.pick(1, 1, 5)] * ndim] * BATCH
        ones = [i for i in range(ndim) if d.chance(0.5)]
        shapes = [[1 if i in ones else d.whole(1, 5) for i in range(ndim)] for _ in range(BATCH)]
        x = d.input(d.dtype(), shapes, "ABCD"[:ndim])
        return (
            d.op("squeeze", x, axes=ones)
            if d.chance(0.6)
            else d.op("squeeze", x, axis_names="".join("ABCD"[i] for i in ones))
        )
    x, ndim, layout = d.tensor("float16", ndim=ndim, low=0 if name == "Transpose" else 1)
    if name == "ExpandDims":
        count = d.whole(1, 2)
        axes = [int(a) for a in d.rng.permutation(ndim + count)[:count]]
        return d.op(
            "expand_dims", x, axes=axes, new_axis_names=optional(d, 0.5, lambda: "XY"[:count]) if layout else None
        )
    if name == "Transpose":
        return d.op("transpose", x, perm=[int(a) for a in d.rng.permutation(ndim)])
    axes = sorted(int(a) for a in d.rng.permutation(ndim)[: d.whole(1, ndim)])
    return d.op(
        "pad",
        x,
        axes=optional(d, 0.7, lambda: axes),
        fill_value=optional(d, 0.5, lambda: d.real(0, 100)),
        align=optional(d, 0.4, lambda: [d.whole(1, 4)]),
        shape=optional(d, 0.4, lambda: [d.pick(-1, d.whole(1, 9))]),
    )


@draws("Cat", "Stack")
def join(d, name):
    ndim, dtype = d.whole(0 if name == "Stack" else 1, 4), d.dtype("float16", "bool")
    shapes, layout = d.shapes(ndim, 0), d.pick("", "ABCD"[:ndim])
    axis = d.whole(0, ndim if name == "Stack" else ndim - 1)
    inputs = []
    for _ in range(d.whole(1, 4)):
        own = [list(s) for s in shapes]
        if name == "Cat":
            for s in own:
                s[axis] = d.whole(0, 5)
        inputs.append(d.input(dtype, own, layout))
    if name == "Cat" and layout and d.chance(0.3):
        return d.op("cat", *inputs, axis_name=layout[axis])
    dims = ndim + (name == "Stack")
    return d.op(
        name.lower(),
        *inputs,
        axis=axis - dims if d.chance(0.3) else axis,
        axis_name="N" if name == "Stack" and layout and d.chance(0.4) else None,
    )


@draws("TensorSubscript", "SubscriptDimCheck")
def subscript(d, _):
    ndim = d.whole(1, 4)
    indices = []
    per_sample = d.per_sample("int32", None, -3, 2) if d.chance(0.4) else None
    x = d.input(d.dtype("float16", "bool"), d.shapes(ndim, 3), "ABCD"[:ndim])
    for _ in range(d.whole(1, ndim)):
        if d.chance(0.4):
            indices.append(["at", per_sample if per_sample and d.chance(0.5) else d.whole(-3, 2)])
        else:
            end = lambda: per_sample if per_sample and d.chance(0.3) else optional(d, 0.6, lambda: d.whole(-9, 9))
            indices.append(["range", end(), end(), optional(d, 0.4, lambda: d.pick(-3, -2, -1, 1, 2, 3))])
    return d.op("subscript", x, indices=indices)


@draws("OneHot", "LookupTable", "Erase")
def tables(d, name):
    if name == "OneHot":
        ndim = d.whole(0, 2)
        shapes = [[1] * ndim] * BATCH if d.chance(0.2) else d.shapes(ndim)
        x = d.input(d.pick(*NUMBERS, "float32"), shapes, "", 0, 6)
        return d.op(
            "one_hot",
            x,
            num_classes=d.whole(1, 5),
            axis=optional(d, 0.5, lambda: d.whole(-1, ndim)),
            dtype=optional(d, 0.5, lambda: TYPES[d.dtype("float16")]),
            on_value=optional(d, 0.5, lambda: d.real(0, 9)),
            off_value=optional(d, 0.5, lambda: d.real(0, 9)),
        )
    if name == "LookupTable":
        x = d.input(d.pick(*NUMBERS), d.shapes(d.whole(1, 3)), "", 0, 40)
        keys = d.ints(d.whole(0, 20), 0, 40)
        return d.op(
            "lookup_table",
            x,
            keys=keys,
            values=[d.real(-300, 300) for _ in keys],
            default_value=optional(d, 0.5, lambda: d.real(-9, 300)),
            dtype=optional(d, 0.5, lambda: TYPES[d.dtype("float16")]),
        )
    regions, per_sample = d.whole(1, 2), d.chance(0.3)
    anchor = d.per_sample("float32", 2 * regions, -3, 9) if per_sample else [d.real(-3, 9) for _ in range(2 * regions)]
    shape = d.per_sample("float32", 2 * regions, 0, 9) if per_sample else [d.real(0, 9) for _ in range(2 * regions)]
    x = d.image("uint8", "int16", "float32", channels=3)
    normalized = d.chance(0.2) and not per_sample
    if normalized:
        anchor, shape = [d.real(-0.2, 1) for _ in anchor], [d.real(0, 1) for _ in shape]
    return d.op(
        "erase",
        x,
        anchor=anchor,
        shape=shape,
        axis_names=d.pick(None, "HW", "WH"),
        normalized=normalized or None,
        centered_anchor=optional(d, 0.3, lambda: True),
        fill_value=d.pick(None, [d.real(0, 200)], [1.0, 2.5, 100.0]),
    )


@draws("ElementExtract", "PermuteBatch", "SequenceRearrange", "GetProperty")
def frames(d, name):
    if name == "GetProperty":
        x, _, _ = d.tensor("bool", low=0)
        return d.op("get_property", x, key=d.pick("layout", "layout", "source_info"))
    if name == "SequenceRearrange":
        ndim, count = d.whole(2, 4), d.whole(1, 6)
        order = d.per_sample("int32", count, 0, 2) if d.chance(0.4) else d.ints(count, 0, 2)
        return d.op(
            "sequence_rearrange",
            d.input(d.dtype("bool"), d.shapes(ndim, 3), d.pick("", "FABC"[:ndim])),
            new_order=order,
        )
    x = d.input(d.dtype(), d.shapes(d.whole(1, 3), 3), "")
    if name == "ElementExtract":
        frames = d.ints(d.whole(1, 3), 0, 2)
        return d.op("element_extract", x, element_map=frames, outputs=len(frames))
    return d.op("permute_batch", x, indices=d.ints(BATCH, 0, BATCH - 1))


@draws("Flip", "Crop", "Slice", "CropMirrorNormalize")
def windows(d, name):
    flags = (
        {k: d.per_sample("int32", None, 0, 1) if d.chance(0.3) else d.whole(0, 1) for k in ("horizontal", "vertical")}
        if name == "Flip"
        else {}
    )
    per_sample = (
        d.per_sample("float32", None, 0, 1) if d.chance(0.3) and name in ("Crop", "CropMirrorNormalize") else None
    )
    x = d.image(
        *(
            ["uint8", "int16", "uint16", "int32", "float32", "float16"]
            if name == "CropMirrorNormalize"
            else [d.dtype("float16")]
        ),
        low=4,
    )
    position = dict(
        crop_pos_x=per_sample or optional(d, 0.5, lambda: d.real(0, 1)),
        crop_pos_y=optional(d, 0.5, lambda: d.real(0, 1)),
        rounding=d.pick(None, None, "truncate"),
    )
    policy = d.pick("pad", "trim_to_shape")
    if name == "Flip":
        return d.op("flip", x, **flags)
    if name == "Crop":
        policy = d.pick("pad", "trim_to_shape", "reflect_101", "reflect_1001", "wrap", "clamp")
        return d.op(
            "crop",
            x,
            crop=[float(n) for n in d.ints(2, 1, 9)],
            out_of_bounds_policy=policy,
            fill_values=optional(d, 0.5, lambda: [d.real(0, 99)]),
            **position,
        )
    if name == "Slice":
        if d.chance(0.3):
            return d.op(
                "slice",
                x,
                start=d.all_or_each(2, -2, 3, "int32"),
                shape=d.all_or_each(2, 1, 6, "int32"),
                axes=[0, 1],
                out_of_bounds_policy=d.pick("const", "101", "1001", "edge"),
            )
        start, kind = [d.whole(-3, 4) for _ in range(2)], d.pick("end", "shape")
        other = [s + d.whole(1, 6) for s in start] if kind == "end" else d.ints(2, 1, 6)
        return d.op(
            "slice",
            x,
            start=start,
            **{kind: other},
            axis_names=d.pick(None, "HW", "WH"),
            out_of_bounds_policy=policy,
            fill_values=optional(d, 0.5, lambda: [d.real(0, 99)]),
        )
    return d.op(
        "crop_mirror_normalize",
        x,
        crop=[float(n) for n in d.ints(2, 1, 9)],
        mirror=optional(d, 0.5, lambda: 1),
        out_of_bounds_policy="pad",
        mean=optional(d, 0.6, lambda: [d.real(-9, 200)]),
        std=optional(d, 0.6, lambda: [d.real(0.5, 70)]),
        output_layout=d.pick(None, "HWC", "CHW"),
        dtype=TYPES[d.pick("float32", "float32", "float16", "uint8", "int8")],
        pad_output=optional(d, 0.3, lambda: True),
        scale=optional(d, 0.3, lambda: d.real(0.1, 3)),
        shift=optional(d, 0.3, lambda: d.real(-9, 9)),
        fill_values=optional(d, 0.3, lambda: [d.real(0, 99)]),
        **position,
    )


def volumes(d):
    """Volumes that are resized."""
    x = d.input(d.pick("uint8", "int16", "float32"), [[*d.ints(3, 1, 12), d.whole(1, 3)] for _ in range(BATCH)], "DHWC")
    size = [float(n) for n in d.ints(3, 1, 12)]
    if d.chance(0.4):
        region = dict(roi_start=d.all_or_each(3, 0, 2), roi_end=d.all_or_each(3, 0, 9)) if d.chance(0.4) else {}
        return d.op(
            "resize",
            x,
            size=d.all_or_each(3, 1, 12),
            mode=d.pick(None, "stretch", "not_larger", "not_smaller"),
            max_size=d.pick(None, 9.0, [8.0], [0.0, 7.0, 9.0]),
            **region,
        )
    how = d.pick(
        dict(size=size),
        dict(size=size, mode=d.pick("stretch", "not_larger", "not_smaller")),
        dict(resize_x=size[0]),
        dict(resize_z=size[0], resize_y=size[1]),
        dict(resize_longer=size[0]),
        dict(size=size, roi_start=[0.2, 0.1, 0.8], roi_end=[0.9, 0.7, 0.1], roi_relative=True),
    )
    return d.op(
        "resize",
        x,
        interp_type=optional(d, 0.8, lambda: d.whole(0, 5)),
        antialias=optional(d, 0.3, lambda: False),
        **how,
    )


@draws("Resize", "ResizeCropMirror", "FastResizeCropMirror", "RandomResizedCrop")
def resize(d, name):
    if name == "Resize" and d.chance(0.3):
        return volumes(d)
    x = d.image("uint8", "int16", "uint16", "float32", low=2, high=30)
    filters = dict(
        interp_type=optional(d, 0.8, lambda: d.whole(0, 5)),
        antialias=optional(d, 0.3, lambda: False),
        dtype=optional(d, 0.3, lambda: TYPES["float32"]),
    )
    size = [float(n) for n in d.ints(2, 1, 30)]
    if name == "RandomResizedCrop":
        return d.op(
            "random_resized_crop",
            x,
            size=d.pick([int(n) for n in size], int(size[0]), [int(size[0])]),
            random_area=optional(d, 0.5, lambda: [0.3, 0.8]),
            **filters,
        )
    ways = [
        dict(size=size),
        dict(resize_x=size[0]),
        dict(resize_y=size[1]),
        dict(resize_shorter=size[0], max_size=[40.0]),
        dict(resize_longer=size[0]),
        dict(size=size, mode=d.pick("stretch", "not_larger", "not_smaller")),
        dict(size=size, roi_start=[0.2, 0.1], roi_end=[0.9, 0.7], roi_relative=True),
    ]
    if d.chance(0.4):
        # Beyond the picture DALI's nearest neighbour reads memory that is not the picture's.
        most = (1, 2) if filters["interp_type"] == 0 else (4, 9)
        region = (
            dict(roi_start=d.all_or_each(2, 0, most[0]), roi_end=d.all_or_each(2, 0, most[1])) if d.chance(0.4) else {}
        )
        ways = [
            dict(
                size=d.all_or_each(2, 1, 30),
                mode=d.pick(None, "stretch", "not_larger", "not_smaller"),
                max_size=d.pick(None, 25.0, [20.0], [0.0, 22.0]),
                **region,
            )
        ]
    if name == "Resize":
        return d.op("resize", x, **d.pick(*ways), subpixel_scale=optional(d, 0.2, lambda: False), **filters)
    size, crop = d.pick([20.0, 20.0], 20.0, [20.0]), [float(n) for n in d.ints(2, 1, d.pick(20, 30))]
    if filters["interp_type"] == 0:
        # Beyond the resized picture DALI gives pixels of the nearest neighbour that are of another sample.
        crop = [min(n, 20.0) for n in crop]
    return d.op(
        "fast_resize_crop_mirror" if name.startswith("Fast") else "resize_crop_mirror",
        x,
        size=size,
        crop=crop,
        mirror=d.whole(0, 3),
        crop_pos_x=d.real(0, 1),
        **filters,
    )


REDUCTIONS = {
    "reductions__" + n: f
    for n, f in dict(Sum="sum", Mean="mean", MeanSquare="mean_square", RMS="rms", Min="min", Max="max").items()
}


@draws(*REDUCTIONS, "reductions__StdDev", "reductions__Variance", "Normalize")
def reductions(d, name):
    low, high = (0, 200) if name.endswith(("RMS", "MeanSquare", "Mean", "Dev", "Variance")) else (None, None)
    ndim = d.whole(1, 4)
    x = d.input(d.dtype(), d.shapes(ndim), layout := "ABCD"[:ndim], low, high)
    axes = sorted(int(a) for a in d.rng.permutation(ndim)[: d.whole(1, ndim)])
    which = d.pick({}, dict(axes=axes), dict(axis_names="".join(layout[a] for a in axes)))
    if name == "Normalize":
        return d.op(
            "normalize",
            x,
            **which,
            batch=optional(d, 0.2, lambda: True) if len(which.get("axes", [])) == ndim else None,
            epsilon=optional(d, 0.3, lambda: 0.5),
            shift=optional(d, 0.3, lambda: d.real(-9, 9)),
            scale=optional(d, 0.3, lambda: d.real(0.5, 9)),
        )
    which["keep_dims"] = optional(d, 0.4, lambda: True)
    if name in REDUCTIONS:
        return d.op("reductions." + REDUCTIONS[name], x, **which)
    mean = d.op("reductions.mean", x, **which)
    return d.op(
        "reductions." + ("std_dev" if name.endswith("StdDev") else "variance"),
        x,
        mean,
        ddof=optional(d, 0.3, lambda: -1),
        **which,
    )


BINARY = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and",
    "or",
    "xor",
    "max",
    "min",
    "atan2",
    "pow",
    "mod",
]
UNARY = [
    "neg",
    "pos",
    "sqrt",
    "exp",
    "log",
    "sin",
    "cos",
    "tan",
    "abs",
    "floor",
    "ceil",
    "tanh",
    "asin",
    "atan",
    "sinh",
    "cosh",
    "rsqrt",
    "cbrt",
    "log2",
    "log10",
    "invert",
]


@draws("ArithmeticGenericOp")
def arithmetic(d, _):
    ndim = d.whole(0, 3)
    shapes = d.shapes(ndim, 2)
    # DALI 2.4 reads the wrong elements in a batch of which only some samples are broadcast.
    ones = [d.chance(0.3) for _ in range(ndim)]
    small = [[1 if one else s for s, one in zip(shape, ones)] for shape in shapes]
    dtypes = [d.pick(*NUMBERS, "float32", "float64", "bool") for _ in range(2)]
    x, y = (
        d.input(t, s, "", 1, 1 if t == "bool" else 9)
        for t, s in zip(dtypes, (shapes, small if d.chance(0.5) else shapes))
    )
    for _ in range(d.whole(1, 3)):
        if d.chance(0.35):
            x = d.op("arithmetic", x, function=d.pick(*UNARY))
        elif d.chance(0.3):
            x = d.op(
                "arithmetic",
                x,
                function=d.pick(*BINARY),
                constant=d.pick(d.whole(1, 9), d.real(1, 9), True),
                left=d.chance(0.5),
            )
        else:
            x = d.op("arithmetic", *d.pick((x, y), (y, x)), function=d.pick(*BINARY))
    return x


@draws("Constant")
def constant(d, _):
    shape = d.ints(d.whole(0, 3), 0, 3)
    count = int(np.prod(shape)) if d.chance(0.7) else 1
    data = (
        dict(fdata=[d.real(-300, 300) for _ in range(count)])
        if d.chance(0.5)
        else dict(idata=d.ints(count, -(10**4), 10**4))
    )
    return d.op("constant", **data, shape=shape, dtype=optional(d, 0.7, lambda: TYPES[d.dtype("float16", "bool")]))


@draws("random__Uniform", "random__Normal", "random__CoinFlip", "random__Choice")
def random(d, name):
    shape = d.pick(None, [d.whole(0, 40)], d.ints(2, 0, 6), "per sample")
    if shape == "per sample":
        shape = d.per_sample("int32", d.whole(1, 3), 0, 5)
    dtype = optional(d, 0.6, lambda: TYPES[d.pick(*NUMBERS, "float32", "float64")])
    seed = optional(d, 0.3, lambda: d.whole(0, 2**50))
    if name == "random__Uniform":
        # Without a range it is -1 to 1, whose lower end no unsigned number holds.
        how = d.pick(
            {} if dtype not in (0, 1, 2, 3) else dict(range=[0.0, 9.0]),
            dict(range=[d.real(0, 5), d.real(7, 100)]),
            dict(values=[d.real(0, 100) for _ in range(d.whole(1, 9))]),
        )
        return d.op("random.uniform", shape=shape, dtype=dtype, seed=seed, **how)
    if name == "random__Normal":
        return d.op("random.normal", shape=shape, dtype=dtype, seed=seed, mean=d.real(50, 100), stddev=d.real(0, 9))
    if name == "random__CoinFlip":
        return d.op(
            "random.coin_flip",
            shape=shape,
            dtype=optional(d, 0.5, lambda: TYPES[d.pick("bool", "uint8", "int32")]),
            seed=seed,
            probability=d.real(0, 1),
        )
    if d.chance(0.4) and not isinstance(shape, dict):
        x = d.input(d.dtype(), [[d.whole(1, 5), *d.ints(d.whole(0, 1), 1, 3)]] * BATCH)
        return d.op("random.choice", x, shape=shape, seed=seed)
    weights = d.rng.integers(1, 9, d.whole(1, 9))
    p = [float(np.float32(w)) for w in weights / weights.sum()]
    return d.op("random.choice", shape=shape, seed=seed, a=len(p), p=optional(d, 0.5, lambda: p))


@draws("random__Beta", "noise__Shot", "BatchPermutation")
def libraries(d, name):
    if name == "BatchPermutation":
        return d.op(
            "batch_permutation",
            seed=d.whole(0, 2**40),
            allow_repetitions=optional(d, 0.4, lambda: True),
            no_fixed_points=optional(d, 0.4, lambda: True),
        )
    if name == "noise__Shot":
        return d.op(
            "noise.shot",
            d.image("uint8", "int16", "float32"),
            factor=d.pick(d.real(0, 1), d.real(0, 60), 0.0),
            seed=d.whole(0, 2**40),
        )
    return d.op(
        "random.beta",
        alpha=d.real(1, 9),
        beta=d.real(0.1, 9),
        shape=d.ints(2, 0, 6),
        dtype=d.pick(None, TYPES["float64"]),
        seed=d.whole(0, 2**40),
    )


@draws("noise__Gaussian", "noise__SaltAndPepper", "RandomCropGenerator")
def noise(d, name):
    if name == "RandomCropGenerator":
        x = d.input("int32", [[2]] * BATCH, "", 1, 900)
        return d.op(
            "random_crop_generator",
            x,
            outputs=2,
            random_area=optional(d, 0.5, lambda: [d.real(0.1, 0.3), d.real(0.4, 1)]),
            random_aspect_ratio=optional(d, 0.5, lambda: [d.real(0.1, 0.9), d.real(1, 4)]),
            num_attempts=optional(d, 0.5, lambda: d.whole(1, 4)),
        )
    x = d.image("uint8", "int16", "float32")
    if name == "noise__Gaussian":
        return d.op("noise.gaussian", x, stddev=d.real(0, 50), mean=optional(d, 0.5, lambda: d.real(-9, 9)))
    return d.op(
        "noise.salt_and_pepper",
        x,
        prob=d.real(0, 1),
        salt_vs_pepper=optional(d, 0.5, lambda: d.real(0, 1)),
        per_channel=optional(d, 0.5, lambda: True),
    )


@draws("conditional__Split", "conditional__Merge", "conditional__Not_", "conditional__ValidateLogical")
def conditional(d, name):
    p = d.input("bool" if name.endswith("Logical") else d.pick("bool", "uint8"), [[]] * BATCH, "", 0, 1)
    x = d.image("uint8")
    if name.endswith("Logical"):
        p = d.op(
            "_conditional.validate_logical",
            p,
            expression_name=d.pick("and", "or"),
            expression_side=d.pick("left", "right"),
        )
    if d.chance(0.3):
        p = d.op("_conditional.not_", p) if d.inputs[0]["dtype"] == "bool" else p
    yes, no = d.op("_conditional.split", x, predicate={"value": p}, _if_stmt=True, outputs=2)
    yes = d.op("flip", yes, horizontal=d.whole(0, 1), vertical=1)
    if d.chance(0.5):
        q, _ = d.op("_conditional.split", p, predicate={"value": p}, _if_stmt=True, outputs=2)
        a, b = d.op("_conditional.split", yes, predicate={"value": q}, _if_stmt=True, outputs=2)
        yes = d.op("_conditional.merge", d.op("noise.salt_and_pepper", a, prob=0.5), b, predicate={"value": q})
    no = d.op("crop", no, crop=[3.0, 3.0], out_of_bounds_policy="pad") if d.chance(0.5) else no
    return d.op("_conditional.merge", yes, no, predicate={"value": p})
