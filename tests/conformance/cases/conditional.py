"""Conditionals: both branches, empty ones, nested ones, `and`, `or`, `not`."""

from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((4, 6, 3), (2, 12, 3), (8, 4, 3))}
FLAGS = {"P": [np.array(v) for v in (True, False, True)], "Q": [np.array(v) for v in (False, False, True)]}


def image(device):
    x = source("X", layout="HWC")
    return x.gpu() if device == "gpu" else x


@case(inputs=IMAGES | {"P": FLAGS["P"]}, devices=True, enable_conditionals=True)
def branches(device):
    x = image(device)
    if source("P", types.BOOL, 0):
        y = fn.flip(x)
    else:
        y = fn.crop(x, crop=(2, 3))
    return y, fn.cast(y, dtype=types.FLOAT)


@case(inputs=IMAGES | {"P": [np.array(v) for v in (False, False, False)]}, devices=True, enable_conditionals=True)
def one_branch_is_empty(device):
    x = image(device)
    if source("P", types.BOOL, 0):
        y = fn.normalize(fn.cast(fn.resize(x, size=[3, 3]), dtype=types.FLOAT), batch=True)
        y = fn.pad(fn.transpose(y, perm=[2, 0, 1]))
    else:
        y = x + 1
    return y


@case(inputs=IMAGES | FLAGS, devices=True, enable_conditionals=True)
def nested(device):
    x, p, q = image(device), source("P", types.BOOL, 0), source("Q", types.BOOL, 0)
    y = x
    if p:
        if q:
            y = fn.flip(x, horizontal=0, vertical=1)
        else:
            y = x * fn.constant(idata=2, dtype=types.UINT8)
    elif q:
        y = x - 7
    z = y
    if q:
        z = fn.flip(y)
    return y, z


@case(inputs=IMAGES | FLAGS, enable_conditionals=True)
def logic():
    x, p, q = source("X", layout="HWC"), source("P", types.BOOL, 0), source("Q", types.BOOL, 0)
    a = p and not q
    b = p or q
    if p and not q:
        x = fn.flip(x)
    elif p or (q and a):
        x = fn.cast(x // 2, dtype=types.UINT8)
    else:
        x = fn.cast(x + 100, dtype=types.UINT8)
    return x, a, b, not p


@case(
    inputs={"P": [np.array(v, np.float32) for v in (0.3, 0, np.nan)], "N": [np.array(v, np.int64) for v in (0, 5, -1)]},
    enable_conditionals=True,
)
def numbers_are_conditions():
    p, n = source("P", types.FLOAT, 0), source("N", types.INT64, 0)
    if p:
        a = n + 1
    else:
        a = n * 2
    if n:
        b = p
    else:
        b = p + 1
    return a, b


@case(inputs=IMAGES | {"P": FLAGS["P"]}, enable_conditionals=True)
def made_in_a_branch():
    x = source("X", layout="HWC")
    if source("P", types.BOOL, 0):
        y = fn.constant(idata=[1, 2, 3], dtype=types.UINT8, layout="C")
        z = 5
    else:
        y = x[0, 0]
        z = fn.cast(x[0, 0, 0], dtype=types.INT32)
    return y, z


@case(inputs={"P": FLAGS["P"], "X": [np.full(2, i, np.float32) for i in range(3)]}, enable_conditionals=True)
def branches_of_other_types_where_one_is_empty():
    x = source("X", types.FLOAT, 1)
    if source("P", types.BOOL, 0) or fn.constant(idata=1, shape=[], dtype=types.BOOL):
        y = x
    else:
        y = fn.cast(fn.expand_dims(x, axes=[0]), dtype=types.INT8)
    return y
