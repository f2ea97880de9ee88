"""`ImageProcessor`: in this process what an image processor of transformers is, by the stage that `gesso.convert` makes
of it."""

import json
import threading

import numpy as np

from .. import _extras
from ..convert import conversion, from_hf, from_hf_multimodal
from ..convert.description import ConversionError
from . import joining
from .engines import gpu_of
from .images import Reader, counts_of
from .variants import CLASSES, Variant, check_arguments

# So many sets of fields are kept, as calls are alike.
_MOST_VARIANTS = 16
_OPTIONS = ("backend", "pillow", "num_threads")


class ImageProcessor:
    """Stands where an image processor of transformers stands: the same call, the same keys, types and values.

    Made of a folder or a file with a configuration, of its fields, or of a processor of transformers. `backend` is
    `"torchvision"` or `"pil"`, and `pillow` whose Pillow, as in `gesso.convert.transformers`. `num_threads` threads
    work on one call, at most 4 by default. Several threads may call at the same time.

    Fields of the configuration are attributes."""

    def __init__(self, processor, *, backend=None, pillow=None, num_threads=None):
        values, backend, _ = from_hf.given(processor, backend)
        name = from_hf_multimodal.class_of(values)
        if name is not None and name not in CLASSES:
            raise ConversionError(f"`{name}` is served alone, expected one of {', '.join(sorted(CLASSES))}")
        _, self.backend = from_hf.name_and_backend(values, backend, CLASSES)
        self._values, self._lock, self._variants = values, threading.Lock(), {}
        self._pillow, self._num_threads = pillow or conversion.installed_pillow(), num_threads
        self._own = self._variant({})

    @classmethod
    def from_pretrained(cls, folder, **options):
        """The processor of a folder with `preprocessor_config.json` or `processor_config.json`. `options` are those of
        the class; all others are fields in place of the folder's. Nothing is downloaded."""
        own = {name: options.pop(name) for name in _OPTIONS if name in options}
        values, backend, _ = from_hf.given(folder, own.pop("backend", None))
        return cls(values | options, backend=backend, **own)

    def __call__(self, images, *, return_tensors=None, device=None, input_data_format=None, **fields):
        """A `BatchFeature` of one image or several: images of Pillow, arrays or tensors of uint8, paths, or bytes of
        files, one or a list.

        `return_tensors` is `"pt"` or `"np"`. `device` is a device of torch: on a GPU files are decoded there, too, and
        pixels stay there. Other arguments are fields of the processor for this call; one that it does not have is an
        error. A file becomes what transformers' `load_image` makes of it. An image that fails is a `ValueError` that
        says which one it is."""
        kind, gpu = joining.kind_of(return_tensors), gpu_of(device)
        variant = self._variant(fields)
        given = Reader(variant.makes_rgb, self.backend, input_data_format).read(images)
        counts, outputs = counts_of(images), zip(*variant.run(given, gpu), strict=True)
        joined = {
            name: way(kind, name, arrays, counts)
            for (name, way), arrays in zip(variant.ways.items(), outputs, strict=True)
        }
        if variant.is_bfloat16:
            joined[variant.stage.output] = kind.bfloat16(joined[variant.stage.output])
        for name, value in variant.constants.items():
            joined[name] = kind.of(np.full(len(given), value, np.int64))
        utils = _extras.needed("transformers.image_processing_utils", "`gesso.hf.ImageProcessor`", "hf")
        return utils.BatchFeature(joined)

    preprocess = __call__

    def fetch_images(self, images):
        """The images as they are: processors of text and images ask for them before they call."""
        return images

    @property
    def source(self):
        """The program of the stage that files go through, plain Python."""
        return self._own.definition().source

    def __getattr__(self, name):
        values = self.__dict__.get("_values", {})
        found = values.get(name)
        if found is None and "_own" in self.__dict__:
            found = CLASSES[self._own.name][1].get(name)
        if found is None:
            raise AttributeError(f"`{type(self).__name__}` has no `{name}`, and its configuration has no such field")
        return found

    def __reduce__(self):
        return _made, (self._values, self.backend, self._pillow, self._num_threads)

    def __repr__(self):
        return f"{type(self).__name__}({self._own.stage.title})"

    def _variant(self, fields):
        """The processor with some fields of a call in place of its own."""
        key = json.dumps(fields, sort_keys=True, default=_refuse)
        with self._lock:
            if key not in self._variants:
                check_arguments(fields)
                values = self._values | json.loads(key)
                made = Variant(values, self.backend, self._pillow, self._num_threads)
                if len(self._variants) >= _MOST_VARIANTS:
                    self._variants.pop(next(iter(self._variants)))
                self._variants[key] = made
            return self._variants[key]


def _made(values, backend, pillow, num_threads):
    return ImageProcessor(values, backend=backend, pillow=pillow, num_threads=num_threads)


def _refuse(value):
    kind = type(value)
    raise ConversionError(f"a field is a `{kind.__module__}.{kind.__name__}`: expected what a configuration may hold")
