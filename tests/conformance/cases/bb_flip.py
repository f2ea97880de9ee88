from record import case, fn, np, source, types

BOXES = {"X": [np.random.default_rng(n).uniform(0, 0.5, (n, 4)).astype(np.float32) for n in (1, 5, 3)]}


@case(inputs=BOXES | {"H": [np.array(v, np.int32) for v in (1, 0, 1)]})
def boxes():
    x = source("X", types.FLOAT, 2)
    return (
        fn.bb_flip(x),
        fn.bb_flip(x, ltrb=True),
        fn.bb_flip(x, horizontal=0, vertical=1),
        fn.bb_flip(x, vertical=1, ltrb=True),
        fn.bb_flip(x, horizontal=source("H", types.INT32, 0), vertical=source("H", types.INT32, 0)),
        fn.bb_flip(x, horizontal=0),
    )
