"""Ultralytics' letterbox for prediction: `imgsz`, with `rect` or without."""

from . import description as steps
from . import sizes
from .description import Stage
from .fields import Fields

LOADS = "cv2.imread(path)"
_GRAY = (114, 114, 114)
_NOTES = (
    "Files of 8 bits, RGB or gray, are read as OpenCV reads them.",
    "Values of 16 bits, which OpenCV cuts to 8 and the stage rounds, and of inks (CMYK) differ by a level or two.",
    "Boxes of the model are in the letterbox; `original_sizes` has the image's height and width, which take them back to the image.",
)


def stage(imgsz=640, rect=False, stride=32):
    """The stage of what `model.predict(imgsz=..., rect=...)` does with a file."""
    fields = Fields({"imgsz": imgsz, "rect": rect, "stride": stride}, "Ultralytics' prediction")
    height, width = fields.sides("imgsz")
    stride = fields.side("stride")
    if height % stride or width % stride:
        fields.fail(
            "imgsz", f"expected multiples of the model's stride, {stride}: Ultralytics would take the next larger ones"
        )
    resize = steps.Resize(sizes.Within(height, width, "even"), "linear", "opencv")
    if fields.flag("rect"):
        border = steps.PadToMultiple(height, width, stride, _GRAY)
    else:
        border = steps.CenterCrop(height, width, "truncate", _GRAY)
    made = (steps.Decode(is_turned=True, arithmetic="dali"), resize, border, steps.Floats("divide"))
    words = f"Ultralytics' letterbox, imgsz {height} x {width}" + (f", rect with stride {stride}" if rect else "")
    return Stage(words, LOADS, made, "images", ("original_sizes",), notes=_NOTES)


def reference(imgsz=640, rect=False, stride=32):
    """Ultralytics' own answer to a file."""
    import cv2
    import numpy as np
    from ultralytics.data.augment import LetterBox

    letterbox = LetterBox(list(imgsz) if isinstance(imgsz, (list, tuple)) else imgsz, auto=rect, stride=stride)

    def answer(path):
        image = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
        pixels = letterbox(image=image).transpose(2, 0, 1)[::-1]
        return [pixels.astype(np.float32) / np.float32(255), np.array(image.shape[:2])]

    return answer
