"""Every function of two operands for every pair of types: what type comes out, and what it holds."""

from nvidia.dali import ops
from record import case, np, source, types

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
    b=types.BOOL,
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
    b=np.bool_,
)
LEFT, RIGHT = [1, 2, 7, 100, 3, 5], [2, 3, 2, 7, 1, 4]
INTEGERS = [t for t in TYPES if t[0] != "f"]
FUNCTIONS = "add sub mul div fdiv mod min max pow fpow atan2".split()
COMPARISONS = "eq neq lt leq gt geq".split()
BITS = "bitand bitor bitxor lshift rshift".split()


def operand(values, t):
    values = np.array(values)
    if t[0] in "if":
        values[-2:] *= -1
    return np.ones(6, bool) if t == "b" else values.astype(NUMPY[t])


def extremes(t):
    if t == "b":
        return np.array([False, True])
    if t[0] == "f":
        return np.array([-np.inf, -1, -0.0, 0.5, 1, 2**24 + 2, np.inf, np.nan], NUMPY[t])
    info = np.iinfo(NUMPY[t])
    return np.array([info.min, info.max, 0, 1] + ([-1] if t[0] == "i" else []), NUMPY[t])


def call(function, left, right):
    return ops._ArithmeticGenericOp(device="cpu", expression_desc=f"{function}(&0 &1)")(left, right)


def every_pair(function, names, tol=0.0):
    inputs = {f"L{t}": [operand(LEFT, t)] for t in names} | {f"R{t}": [operand(RIGHT, t)] for t in names}

    def pipeline():
        both_bool_allowed = function == "mul" or function in BITS
        return tuple(
            call(function, source(f"L{a}", TYPES[a], 1), source(f"R{b}", TYPES[b], 1))
            for a in names
            for b in names
            if both_bool_allowed or (a, b) != ("b", "b")
        )

    pipeline.__name__ = function
    case(inputs=inputs, tol=tol)(pipeline)


def every_comparison(function):
    inputs = {f"L{t}": [extremes(t)[:, None]] for t in TYPES} | {f"R{t}": [extremes(t)] for t in TYPES}

    def pipeline():
        return tuple(
            call(function, source(f"L{a}", TYPES[a], 2), source(f"R{b}", TYPES[b], 1)) for a in TYPES for b in TYPES
        )

    pipeline.__name__ = function
    case(inputs=inputs)(pipeline)


for name in FUNCTIONS:
    # Angles and powers come from the C library, which may differ in the last digit.
    every_pair(name, TYPES, tol=1e-6 if name == "atan2" else 0.0)
for name in BITS:
    every_pair(name, INTEGERS)
for name in COMPARISONS:
    every_comparison(name)
