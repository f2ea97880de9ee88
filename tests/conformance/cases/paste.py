from record import case, fn, noise, np, source, types

IMAGES = {"X": noise((5, 7, 3), (4, 6, 3), (1, 9, 3))}


def x():
    return source("X", layout="HWC")


@case(inputs=IMAGES)
def places():
    p = fn.paste
    return (
        p(x(), ratio=1.5, fill_value=[7, 8, 9]),
        p(x(), ratio=1.9, fill_value=[300, -2, 3], paste_x=0.0, paste_y=1.0),
        p(x(), ratio=1.0, fill_value=5),
        p(x(), ratio=1.1, fill_value=[1, 2, 3], min_canvas_size=8.9, paste_x=0.3),
    )


@case(inputs={"X": noise((5, 7, 4), (4, 6, 4), (1, 9, 4))})
def four_channels():
    return fn.paste(x(), ratio=2.25, fill_value=[1, 2, 3, 4], n_channels=4), fn.paste(
        x(), ratio=2.0, fill_value=6, n_channels=4
    )


@case(
    inputs=IMAGES
    | {"R": [np.array(v, np.float32) for v in (1, 2.5, 3.3)], "P": [np.array(v, np.float32) for v in (0, 0.7, 1)]}
)
def per_sample():
    return fn.paste(x(), ratio=source("R", types.FLOAT, 0), fill_value=[1, 2, 3], paste_x=source("P", types.FLOAT, 0))
