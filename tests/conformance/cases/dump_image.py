from record import case, fn, noise, source


@case(inputs={"X": noise((5, 4, 3), (1, 2, 3), (3, 3, 3))})
def dumped():
    return fn.dump_image(source("X", layout="HWC"), suffix="recorded")
