"""The images of these benchmarks: JPEGs like photographs, which it makes in .cache/bench."""

import pathlib

import numpy as np
from PIL import Image

IMAGES = pathlib.Path(__file__).resolve().parents[2] / ".cache" / "bench"
SIZES = {"500x375": (500, 375), "1920x1080": (1920, 1080)}
QUALITIES = (85, 90, 95)


def make():
    """Gradients, edges and grain: about 0.35 bytes a pixel, as photographs have at these qualities."""
    for name, (width, height) in SIZES.items():
        folder = IMAGES / name
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(12):
            path = folder / f"{i:02}.jpg"
            if path.exists():
                continue
            rng = np.random.default_rng(i)
            y, x = np.mgrid[0:height, 0:width].astype(np.float32)
            coarse = rng.normal(0, 40, (height // 12 + 1, width // 12 + 1, 3)).clip(-120, 120)
            coarse = np.asarray(Image.fromarray((coarse + 128).astype(np.uint8)).resize((width, height), Image.BICUBIC))
            wave = 30 * np.sin(x * rng.uniform(0.02, 0.2) + y * rng.uniform(0.02, 0.2))
            pixels = coarse + wave[..., None] + rng.normal(0, 7 if width < 1000 else 3, (height, width, 1))
            image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
            image.save(path, "JPEG", quality=QUALITIES[i % 3])


def files(name, batch):
    """So many files of a size, some of them more than once."""
    make()
    found = [path.read_bytes() for path in sorted((IMAGES / name).glob("*.jpg"))]
    return [found[i % len(found)] for i in range(batch)]
