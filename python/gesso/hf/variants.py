"""A processor with the fields of one call: its stage, and what runs it."""

import threading

from ..convert import conversion, from_hf, from_hf_multimodal, hf_classes
from ..convert import description as steps
from ..convert.description import ConversionError
from ..convert.fields import Fields
from .engines import LARGEST_BATCH, Engines
from .joining import CONSTANTS, PADDING, ways

CLASSES = {
    **hf_classes.CLASSES,
    **{name: row for name, row in from_hf_multimodal.CLASSES.items() if name.endswith("ImageProcessor")},
}
# A field that a processor has for speed alone. Others without effect are no arguments of a call.
_FOR_SPEED = "disable_grouping"


class Variant:
    """One set of fields. `name` is the class's name without an ending, `stage` what is done with a file, `makes_rgb`
    whether images of other colours become RGB, `ways` what joins each output of the images of a call, `constants`
    outputs that are one number for each image, `is_bfloat16` whether pixels are bfloat16's."""

    def __init__(self, values, backend, pillow, num_threads):
        self._values, self._backend, self._pillow, self._num_threads = values, backend, pillow, num_threads
        self.name, _ = from_hf.name_and_backend(values, backend, CLASSES)
        self.stage = self._described(pillow)
        if self.stage.takes_frames:
            raise ConversionError(f"`{self.name}` takes clips, expected a processor of images")
        fields = Fields(values, self.name, CLASSES[self.name][1], null_is_default=False)
        self.makes_rgb = fields.flag("do_convert_rgb", False)
        is_padded = self.name in PADDING and fields.flag("do_pad", False)
        pads = is_padded or any(isinstance(step, steps.PadToLargest) for step in self.stage.steps)
        self.ways = ways(self.stage, pads)
        known = CONSTANTS.get(self.name, {})
        self.constants = {name: value for name, value in known.items() if name not in self.stage.extras}
        self.is_bfloat16 = any(
            isinstance(step, steps.Floats) and step.scaling == "bfloat16" for step in self.stage.steps
        )
        self._engines, self._lock = {}, threading.Lock()

    def _described(self, pillow):
        reader = from_hf if from_hf_multimodal.class_of(self._values) is None else from_hf_multimodal
        return reader.stage(self._values, self._backend, pillow)

    def definition(self, takes_files=True, device="cpu"):
        """The pipeline, of files or of pixels: what is decoded already begins behind the decoder."""

        def described(pillow):
            made = self._described(pillow)
            return made if takes_files else made.changed(steps=(steps.TakePixels(), *made.steps[1:]))

        options = {"pillow": self._pillow, "device": device, "batch_size": LARGEST_BATCH}
        return conversion.make(described, lambda: from_hf.reference(self._values, self._backend), **options)

    def run(self, images, gpu):
        """The outputs of each image, in the order of the stage's; a `ValueError` names the image that fails."""
        made = [None] * len(images)
        for takes_files in (True, False):
            places = [place for place, image in enumerate(images) if image.is_file is takes_files]
            if not places:
                continue
            engines = self._engines_of(takes_files, gpu)
            outputs, errors = engines.run(self.stage.input, [images[place].data for place in places])
            if errors:
                first = min(errors)
                raise ValueError(f"image {places[first]}: {errors[first]}")
            for place, each in zip(places, outputs, strict=True):
                made[place] = each
        return made

    def _engines_of(self, takes_files, gpu):
        with self._lock:
            key = takes_files, gpu
            if key not in self._engines:
                made = self.definition(takes_files, "cpu" if gpu is None else "mixed")
                self._engines[key] = Engines(made().serialize(), gpu=gpu, num_threads=self._num_threads)
            return self._engines[key]


def check_arguments(names):
    """Refuses arguments of a call that are fields of configurations, and none that change what is made of an image."""
    for name in names:
        if name in from_hf.WITHOUT_EFFECT and name != _FOR_SPEED:
            raise ConversionError(
                f"argument `{name}` is not known: expected a field of the processor that changes its outputs"
            )
