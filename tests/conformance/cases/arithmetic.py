"""Functions of one and three operands, constants, broadcasting, and values at the edges. `arithmetic_types` has the
pairs."""

from nvidia.dali import math, ops
from record import case, fn, np, source, types

TYPES = dict(
    u8=types.UINT8,
    u16=types.UINT16,
    u32=types.UINT32,
    u64=types.UINT64,
    i8=types.INT8,
    i16=types.INT16,
    i32=types.INT32,
    i64=types.INT64,
    f32=types.FLOAT,
    f64=types.FLOAT64,
)
NUMPY = dict(
    u8=np.uint8,
    u16=np.uint16,
    u32=np.uint32,
    u64=np.uint64,
    i8=np.int8,
    i16=np.int16,
    i32=np.int32,
    i64=np.int64,
    f32=np.float32,
    f64=np.float64,
)
INTEGERS = [t for t in TYPES if t[0] != "f"]
SIGNED = [t for t in TYPES if t[0] == "i"]


def op(description, *inputs, integers=None, reals=None):
    return ops._ArithmeticGenericOp(
        device="cpu", expression_desc=description, integer_constants=integers, real_constants=reals
    )(*inputs)


def edges(t):
    info = np.iinfo(NUMPY[t])
    return np.array(
        [info.min, info.max, info.max - 1, info.max // 3, 0, 1, 2, 100] + ([-1, -77] if t[0] == "i" else []), NUMPY[t]
    )


def small(t):
    values = np.array([1, 2, 3, 7, 0, 1, 2, 100])
    return values.astype(NUMPY[t]) * (-1 if t[0] in "if" else 1)


REALS = [-np.inf, -1e30, -2.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 2.5, 5.0, 80.0, 1e30, np.inf, np.nan]
ONE = {f"X{t}": [small(t)] for t in TYPES} | {"Xf32": [np.array(REALS, np.float32)], "Xf64": [np.array(REALS)]}


def unary(functions, tol=0.0, only=tuple(TYPES)):
    def register(name):
        def pipeline():
            return tuple(op(f"{f}(&0)", source(f"X{t}", TYPES[t], 1)) for f in functions for t in only)

        pipeline.__name__ = name
        case(inputs={name: ONE[name] for name in (f"X{t}" for t in only)}, tol=tol)(pipeline)

    return register


unary("plus minus abs fabs floor ceil sqrt".split())("exact_functions")
# Not bit for bit: DALI's inverse square root is an estimate, and C libraries differ in the last digit.
unary("rsqrt cbrt log log2 log10".split(), tol=1e-5)("roots_and_logarithms")
unary("sin cos tan asin acos atan tanh asinh acosh atanh".split(), tol=2e-5)("angles")
unary("exp sinh cosh".split(), tol=1e-6, only=("i8", "u64"))("exponentials_of_integers")


@case(inputs={"X": [np.array([-20.0, -1, -0.0, 0.5, 3, 9])]}, tol=1e-2)
def exponentials():
    x = source("X", types.FLOAT64, 1)
    y = fn.cast(x, dtype=types.FLOAT)
    return tuple(f(v) for f in (math.exp, math.sinh, math.cosh) for v in (x, y))


@case(inputs={f"X{t}": [edges(t)] for t in INTEGERS})
def integers_wrap_around():
    out = []
    for t in INTEGERS:
        x = source(f"X{t}", TYPES[t], 1)
        own = lambda value: types.Constant(value, dtype=TYPES[t])
        out += [
            -x,
            abs(x),
            ~x,
            x + x,
            x - own(101),
            x * x,
            x * own(3),
            x ** own(2),
            x ** own(7),
            x << own(1),
            x >> own(3),
            x // own(7),
            x % own(7),
            own(3) - x,
        ]
    return tuple(out)


@case(inputs={f"X{t}": [edges(t)] for t in ("u8", "u32", "u64", "i16", "i64")})
def extremes_meet():
    pairs = [
        ("u64", "i8"),
        ("u32", "i32"),
        ("i16", "u16"),
        ("u64", "f32"),
        ("i64", "f32"),
        ("i64", "f64"),
        ("u8", "i8"),
    ]
    out = []
    for a, b in pairs:
        x = source(f"X{a}", TYPES[a], 1)
        y = fn.cast(x, dtype=TYPES[b])
        for f in "add sub mul min max fdiv".split():
            out += [op(f"{f}(&0 &1)", x, y), op(f"{f}(&1 &0)", x, y)]
    return tuple(out)


@case(inputs={f"X{t}": [np.array([-7, -6, 7, 6, -128, 127, 5], NUMPY[t])] for t in SIGNED})
def division_goes_towards_zero():
    return tuple(
        f
        for t in SIGNED
        for x in [source(f"X{t}", TYPES[t], 1)]
        for f in (x // 3, x // -3, x % 3, x % -3, x / 2, 100 // x, 100 % x, x // types.Constant(2, dtype=TYPES[t]))
    )


@case(
    inputs={
        "X": [np.array([2, -2, -1, 1, 3, 7, 0, 0, 5, -1], np.int32)],
        "Y": [np.array([31, -1, -1, -5, 40, -2, 0, -1, 0, 3], np.int32)],
    }
)
def powers_of_integers():
    x, y = source("X", types.INT32, 1), source("Y", types.INT32, 1)
    return x**y, fn.cast(x, dtype=types.INT8) ** y, x ** fn.cast(y, dtype=types.BOOL), op("fpow(&0 &1)", x, y)


GRID = np.array([-np.inf, -7.5, -2, -1, -0.0, 0.0, 0.5, 3, np.inf, np.nan], np.float32)


@case(inputs={"X": [GRID[:, None]], "Y": [GRID]})
def reals_at_the_edges():
    x, y = source("X", types.FLOAT, 2), source("Y", types.FLOAT, 1)
    both = "add sub mul div fdiv mod min max eq neq lt leq gt geq".split()
    return tuple(op(f"{f}(&0 &1)", x, y) for f in both) + tuple(
        op(f"{f}(&0 &1)", fn.cast(x, dtype=types.FLOAT64), y) for f in both
    )


@case(inputs={"X": [GRID[:, None]], "Y": [GRID]}, tol=1e-5)
def powers_and_angles_at_the_edges():
    x, y = source("X", types.FLOAT, 2), source("Y", types.FLOAT, 1)
    return tuple(
        op(f"{f}(&0 &1)", a, y) for f in ("pow", "fpow", "atan2") for a in (x, fn.cast(x, dtype=types.FLOAT64))
    )


@case(
    inputs={"X": [np.array([7.5, 1e10, 3e38, -16777217.0], np.float32)], "Y": [np.array([2, 2**53 + 1, 16777217, 10])]}
)
def remainders_across_types():
    x, y = source("X", types.FLOAT, 1), source("Y", types.INT64, 1)
    return x % y, y % x, fn.cast(x, dtype=types.FLOAT64) % y


@case(inputs={"X": [np.arange(-70, 70, 5, np.int64)]})
def shifts_of_any_amount():
    x = source("X", types.INT64, 1)
    out = []
    for t in INTEGERS:
        amount = fn.cast(x, dtype=TYPES[t])
        one = types.Constant(77, dtype=TYPES[t])
        out += [one << amount, one >> amount]
        if t[0] == "i":
            out += [types.Constant(-77, dtype=TYPES[t]) << amount, types.Constant(-77, dtype=TYPES[t]) >> amount]
    return tuple(out)


@case(
    inputs={
        "B": [np.array([True, False, True, False])],
        "C": [np.array([True, True, False, False])],
        "X": [np.array([0, 1, 2, 255], np.uint8)],
    }
)
def truth_values():
    b, c, x = source("B", types.BOOL, 1), source("C", types.BOOL, 1), source("X", types.UINT8, 1)
    return (
        b & c,
        b | c,
        b ^ c,
        ~b,
        b * c,
        b << c,
        b >> c,
        b == c,
        b < c,
        b * x,
        x + b,
        x & b,
        b / x,
        x**b,
        b == x,
        b & True,
        b ^ False,
        x * True,
        x == True,  # noqa: E712  the operator of the graph
        (x > 1) & (x < 255),
        op("clamp(&0 $0:bool $1:bool)", x, integers=[0, 1]),
    )


VALUES = {
    "U": [np.array([0, 1, 200, 255], np.uint8)],
    "I": [np.array([-100, -1, 0, 100], np.int16)],
    "F": [np.array([-1.5, 0.0, 2.25, np.nan], np.float32)],
}


@case(inputs=VALUES)
def constants_in_python():
    u, i, f = source("U", types.UINT8, 1), source("I", types.INT16, 1), source("F", types.FLOAT, 1)
    return tuple(
        e
        for x in (u, i, f)
        for e in (
            x + 2,
            2 - x,
            x * 2.5,
            2.5 / x,
            x / 255.0,
            x // 3,
            x - 128,
            x > 1,
            x <= -1,
            0.5 < x,
            x == -1,
            x != 0.0,
            x == -1.0,
        )
    )


@case(inputs=VALUES)
def constants_of_every_type():
    u, i, f = source("U", types.UINT8, 1), source("I", types.INT16, 1), source("F", types.FLOAT, 1)
    out = [
        op(f"add(&0 $0:{t})", x, integers=[100])
        for x in (u, i, f)
        for t in "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64".split()
    ]
    out += [op(f"sub($0:{t} &0)", x, reals=[0.1]) for x in (u, i, f) for t in ("float32", "float64")]
    out += [
        op("clamp(&0 $0:int32 $0:float32)", u, integers=[-5], reals=[99.5]),
        op("add(&0 $0:int64)", u, integers=[2**62]),
        op("mul(&0 $0:uint64)", u, integers=[2**62]),
    ]
    return tuple(out)


@case(inputs=VALUES)
def clamp():
    u, i, f = source("U", types.UINT8, 1), source("I", types.INT16, 1), source("F", types.FLOAT, 1)
    return (
        math.clamp(u, 5, 100),
        math.clamp(f, -1.0, 1),
        math.clamp(f, 2.0, 1.5),
        math.clamp(i, u, u),
        math.clamp(u, i, f),
        op("clamp(&0 &1 &2)", fn.cast(u, dtype=types.UINT64), i, fn.cast(i, dtype=types.INT8)),
        op("clamp(&0 $0:uint8 $1:uint8)", u, integers=[1, 200]),
    )


SHAPES = [
    ((), (3,)),
    ((1,), (2, 3)),
    ((2, 1), (1, 3)),
    ((2, 3, 4), (4,)),
    ((3, 4), (2, 1, 4)),
    ((2, 3, 1), (1, 4)),
    ((1, 1, 1), (5,)),
    ((), ()),
    ((2, 1, 2, 1, 2), (1, 3, 1, 3, 1)),
]


@case(
    inputs={f"X{k}": [np.arange(np.prod(a), dtype=np.uint8).reshape(a)] for k, (a, _) in enumerate(SHAPES)}
    | {f"Y{k}": [np.arange(10, 10 + np.prod(b), dtype=np.float32).reshape(b)] for k, (_, b) in enumerate(SHAPES)}
)
def broadcasting():
    out = []
    for k, (a, b) in enumerate(SHAPES):
        x, y = source(f"X{k}", types.UINT8, len(a)), source(f"Y{k}", types.FLOAT, len(b))
        out += [x - y, y / (x + 1), math.clamp(x, y, 50)]
    return tuple(out)


@case(
    inputs={
        "X": [np.arange(n, dtype=np.uint8).reshape(s) for n, s in ((24, (2, 4, 3)), (6, (1, 2, 3)), (0, (0, 5, 3)))],
        "S": [np.array(v, np.float32) for v in (2, 0, 3)],
    }
)
def samples_differ():
    x, s = source("X", layout="HWC"), source("S", types.FLOAT, 0)
    return (x * 2 + 1) / 255.0, x / s, -x, x > s, x + x


LONG = np.arange(3 * 41 * 53) % 200


@case(
    inputs={
        "X": [LONG.astype(np.uint8).reshape(41, 53, 3)],
        "C": [np.array([0.5, 1, 2], np.float32)],
        "R": [np.arange(41, dtype=np.int32).reshape(41, 1, 1)],
        "P": [np.arange(53, dtype=np.int32).reshape(53, 1)],
    }
)
def longer_than_a_stretch():
    x, c = source("X", ndim=3), source("C", types.FLOAT, 1)
    r, p = source("R", types.INT32, 3), source("P", types.INT32, 2)
    return x - c, x + r, r * p, x > 99, x * 2


@case(inputs={"X": [np.arange(24, dtype=np.uint8).reshape(2, 4, 3)], "C": [np.array([1, 2, 3], np.uint8)]})
def layouts_stay():
    # Only a flip of an image with a layout tells whether the sum has one.
    x, c = source("X", layout="HWC"), source("C", layout="C")
    planes = fn.transpose(x, perm=[2, 0, 1])
    return (
        fn.flip(x + c),
        fn.flip(c * x, horizontal=0, vertical=1),
        fn.flip(planes + 1, vertical=1),
        fn.flip(fn.cast(x > c, dtype=types.UINT8)),
    )


@case(inputs={"X": [np.array([1, 2, 3], np.uint8)], "Y": [np.array([1.5, 2.5], np.float32)]})
def inputs_that_nobody_names():
    x, y = source("X", types.UINT8, 1), source("Y", types.FLOAT, 1)
    return op("plus(&1)", x, y), op("mul(&0 &0)", x, y)


@case()
def without_inputs():
    c = types.Constant(np.array([1, 2, 300], np.int32))
    return c * 2, fn.constant(fdata=[0.5], shape=[]) + fn.constant(idata=[1, 2], dtype=types.UINT8)
