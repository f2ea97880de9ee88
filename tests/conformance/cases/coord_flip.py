from record import case, fn, noise, np, source, types


@case(
    inputs={
        "X": noise((5, 2), (1, 2), (7, 2), dtype=np.float32),
        "F": [np.array(v, np.int32) for v in (1, 0, 1)],
        "C": [np.array(v, np.float32) for v in (0, 0.3, 9)],
    }
)
def in_a_plane():
    x, flip, center = source("X", types.FLOAT, 2), source("F", types.INT32, 0), source("C", types.FLOAT, 0)
    return (
        fn.coord_flip(x),
        fn.coord_flip(x, flip_y=1, center_y=0.25),
        fn.coord_flip(x, layout="yx", center_x=3.0),
        fn.coord_flip(x, flip_x=0),
        fn.coord_flip(x, flip_x=flip, center_x=center),
    )


@case(inputs={"X": noise((5, 3), (1, 3), (7, 3), dtype=np.float32)})
def in_space():
    x = source("X", types.FLOAT, 2)
    return fn.coord_flip(x, flip_z=1, center_z=2.0), fn.coord_flip(x, layout="zyx", flip_y=1, center_y=7.0)
