"""Encodes some photos of the package `scikit-image` as JPEGs, in colour and grey, into the folder given.

python scripts/lib/make_photos.py .cache/photos
"""

import sys
from importlib.util import find_spec
from pathlib import Path

from PIL import Image

PHOTOS = ["astronaut.png", "camera.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg"]
QUALITY = 90


def main():
    target = Path(sys.argv[1])
    # Its files are all that is wanted: importing the package would need its dependencies.
    spec = find_spec("skimage")
    if spec is None:
        raise SystemExit("package `scikit-image` is not installed: run scripts/demo, which installs it")
    source = Path(spec.submodule_search_locations[0]) / "data"
    target.mkdir(parents=True, exist_ok=True)
    for name in PHOTOS:
        image = Image.open(source / name)
        image = image if image.mode == "L" else image.convert("RGB")
        image.save(target / f"{Path(name).stem.removesuffix('_left')}.jpg", quality=QUALITY)


if __name__ == "__main__":
    main()
