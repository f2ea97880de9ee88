"""Pictures that tests of image formats write, and what Gesso makes of files."""

import numpy as np
from gesso import Pipeline, fn, types
from PIL import Image


def decoded(files, output_type, **options):
    """Of each file its pixels, and what `peek_image_shape` says of it."""
    pipe = Pipeline(len(files), 2, None)
    with pipe:
        encoded = fn.external_source(
            source=lambda: [np.frombuffer(file, np.uint8) for file in files], dtype=types.UINT8, ndim=1
        )
        pipe.set_outputs(
            fn.decoders.image(encoded, output_type=output_type, **options),
            fn.peek_image_shape(encoded, image_type=output_type),
        )
    pipe.build()
    images, shapes = pipe.run()
    return [np.array(images[i]) for i in range(len(files))], [np.array(shapes[i]).tolist() for i in range(len(files))]


def picture(width, height, channels=3, seed=7):
    """Ramps, a disc of other colours and a little noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = [
        x * 255 / max(width - 1, 1),
        y * 255 / max(height - 1, 1),
        (x + y) * 255 / max(width + height - 2, 1),
        255 - x * y % 256,
    ]
    pixels = np.stack(planes[:channels], -1) + rng.normal(0, 4, (height, width, channels))
    disc = (x - width / 2) ** 2 + (y - height / 2) ** 2 < (min(width, height) / 4) ** 2
    pixels[disc] = 255 - pixels[disc]
    pixels = np.clip(pixels + 0.5, 0, 255).astype(np.uint8)
    return Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)
