from record import case, fn, np, source, types


def picture(*shape, seed=0):
    y, x = np.mgrid[0 : shape[-3], 0 : shape[-2]]
    plain = np.broadcast_to((3 * y + 2 * x)[..., None] + np.array([0, 30, 60]), shape)
    return (plain + np.random.default_rng(seed).integers(0, 20, shape)).clip(0, 255).astype(np.uint8)


IMAGES = {"X": [picture(37, 50, 3), picture(16, 16, 3), picture(1, 9, 3)]}


@case(inputs=IMAGES)
def qualities():
    x = source("X", layout="HWC")
    return tuple(fn.jpeg_compression_distortion(x, quality=q) for q in (1, 20, 95, 96, 100)) + (
        fn.jpeg_compression_distortion(x),
    )


@case(inputs=IMAGES | {"Q": [np.array(q, np.int32) for q in (5, 50, 99)]})
def per_sample():
    return fn.jpeg_compression_distortion(source("X", layout="HWC"), quality=source("Q", types.INT32, 0))


@case(inputs={"X": [picture(2, 20, 30, 3), picture(1, 8, 9, 3), picture(3, 17, 5, 3)]})
def frames():
    return fn.jpeg_compression_distortion(source("X", layout="FHWC"), quality=30)


@case(inputs={"X": [picture(80, 120, 3), picture(33, 47, 3), picture(200, 17, 3)]}, devices=True)
def on_a_device(device):
    x = source("X", layout="HWC")
    x = x.gpu() if device == "gpu" else x
    return tuple(fn.jpeg_compression_distortion(x, quality=q) for q in (1, 10, 60, 100))
