"""Films the photos of a folder, one after the other with a camera that moves across, and writes the video: H.264 in
MP4.

python scripts/lib/make_clip.py .cache/photos .cache/clips/photos.mp4
"""

import sys
from pathlib import Path

import av
import numpy as np
from PIL import Image

WIDTH, HEIGHT, RATE = 320, 240, 25
FRAMES_OF_A_PHOTO = 24
# How much larger than a frame a photo is made: the room that the camera has.
ROOM = 1.15


def film(photo):
    """Frames of one photo."""
    image = Image.open(photo).convert("RGB")
    scale = ROOM * max(WIDTH / image.width, HEIGHT / image.height)
    image = image.resize((round(image.width * scale), round(image.height * scale)))
    pixels = np.asarray(image)
    for part in np.linspace(0, 1, FRAMES_OF_A_PHOTO):
        left, top = round(part * (image.width - WIDTH)), round(part * (image.height - HEIGHT))
        yield np.ascontiguousarray(pixels[top : top + HEIGHT, left : left + WIDTH])


def main():
    photos, target = sorted(Path(sys.argv[1]).glob("*.jpg")), Path(sys.argv[2])
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".part.mp4")
    with av.open(str(partial), "w") as clip:
        stream = clip.add_stream("libx264", rate=RATE)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for photo in photos:
            for pixels in film(photo):
                clip.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        clip.mux(stream.encode())
    partial.rename(target)


if __name__ == "__main__":
    main()
