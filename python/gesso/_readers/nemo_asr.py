"""`fn.readers.nemo_asr`: speech with its texts, as NeMo's manifests list them: a JSON object a line."""

import json
import math

import numpy as np

from .. import fn
from .._tensors.enums import DALIDataType
from .._tensors.feeding import Batch
from ..math import floor
from ..math import min as minimum
from . import storage
from .source import Reader, schema

_OWN = {
    "manifest_filepaths": ("_STRING_VEC", None),
    "read_sample_rate": ("BOOL", True),
    "read_text": ("BOOL", True),
    "read_idxs": ("BOOL", False),
    "sample_rate": ("FLOAT", -1.0),
    "quality": ("FLOAT", 50.0),
    "downmix": ("BOOL", True),
    "dtype": ("DATA_TYPE", DALIDataType.FLOAT),
    "min_duration": ("FLOAT", 0.0),
    "max_duration": ("FLOAT", 0.0),
    "normalize_text": ("BOOL", None),
}


class _Speech:
    """One line of a manifest."""

    __slots__ = ("path", "text", "offset", "duration", "number")

    def __init__(self, line):
        self.number = 0
        self.path = line["audio_filepath"]
        self.text = line.get("text", "")
        self.offset = float(line.get("offset", 0))
        self.duration = float(line.get("duration", 0))


def _lines(path):
    for number, line in enumerate(storage.text(path).split("\n"), 1):
        if line.strip():
            try:
                yield _Speech(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise RuntimeError(
                    f"Line {number} of the manifest {path} is not an object with `audio_filepath`: {error!r}"
                ) from None


class _Manifests:
    def __init__(self, get):
        longest, shortest = np.array([get("max_duration", 0.0), get("min_duration", 0.0)], np.float32).tolist()
        self.found = []
        for path in get("manifest_filepaths"):
            first = len(self.found)
            for speech in _lines(path):
                if not (0 < longest < speech.duration or 0 < speech.duration < shortest):
                    speech.number = len(self.found) - first
                    self.found.append(speech)
        self.size = len(self.found)
        self.is_remote = any(storage.is_remote(speech.path) for speech in self.found)

    def read(self, index):
        speech = self.found[index]
        text = np.frombuffer(speech.text.encode(), np.uint8)
        window = np.array([speech.offset, speech.duration if speech.duration > 0 else math.inf], np.float64)
        return (storage.read(speech.path), window, text, np.array([speech.number], np.int64)), speech.path


class _Decoder:
    """Decodes files and cuts out what a manifest says; a second pipeline resamples those that have another rate than
    wanted."""

    def __init__(self, node):
        get = node.values_of
        self._wanted = get("sample_rate", -1.0)
        self._plain = _pipeline(node, None)
        self._resampling = _pipeline(node, self._wanted) if self._wanted > 0 else None

    def run(self, encoded, windows, paths):
        """(audio, type, rates of the files)"""
        audio, rates = _run(self._plain, encoded, windows, paths)
        arrays, dtype = list(audio.arrays), audio.dtype
        if self._resampling is not None:
            others = [i for i, rate in enumerate(rates.arrays) if rate != self._wanted]
            if others:
                found, _ = _run(self._resampling, *([each[i] for i in others] for each in (encoded, windows, paths)))
                for i, array in zip(others, found.arrays):
                    arrays[i] = array
        return arrays, dtype, rates


def _run(pipeline, encoded, windows, paths):
    pipeline.feed_input("encoded", encoded)
    pipeline.feed_input("offset", [window[0] for window in windows])
    pipeline.feed_input("duration", [window[1] for window in windows])
    outputs = pipeline.run()
    for i, text in sorted(pipeline.errors.items()):
        raise RuntimeError(f"Could not read {paths[i]}: {text}")
    return outputs


def _pipeline(node, wanted):
    """Decodes, cuts and, if a rate is `wanted`, resamples."""
    get = node.values_of
    pipeline = node.pipeline.for_operator(node.pipeline.max_batch_size)
    dtype = DALIDataType(get("dtype", DALIDataType.FLOAT))
    exact, whole = DALIDataType.FLOAT64, DALIDataType.INT64
    with pipeline:
        encoded = fn.external_source(name="encoded", dtype=DALIDataType.UINT8, ndim=1)
        offset, duration = (fn.external_source(name=name, dtype=exact, ndim=0) for name in ("offset", "duration"))
        audio, rate = fn.decoders.audio(
            encoded, dtype=dtype if wanted is None else DALIDataType.FLOAT, downmix=get("downmix", True)
        )
        start = floor(offset * fn.cast(rate, dtype=exact))
        left = fn.cast(fn.shapes(audio)[0], dtype=exact) - start
        count = minimum(floor(duration * fn.cast(rate, dtype=exact)), left)
        audio = fn.slice(audio, fn.cast(start, dtype=whole), fn.cast(count, dtype=whole), axes=[0])
        if wanted is not None:
            audio = fn.audio_resample(audio, in_rate=rate, out_rate=wanted, quality=get("quality", 50.0), dtype=dtype)
        pipeline.set_outputs(audio, rate)
    return pipeline


class NemoAsr(Reader):
    """Reads speech. Outputs: audio, and what was asked for of its sample rate, its text and its number."""

    schema_name = "readers__NemoAsr"
    schema = named_schema = schema(
        "readers__NemoAsr", "Reads speech that NeMo's manifests list.", _OWN, required=("manifest_filepaths",)
    )

    def begin(self, node):
        """Reads the manifests."""
        node.decoder = None
        return _Manifests(node.values_of)

    def run_python(self, node, inputs, batch_size):
        """The next batch: what was read, decoded."""
        encoded, windows, texts, numbers = self.read_batch(node, batch_size, 4)
        get = node.values_of
        if node.decoder is None:
            node.decoder = _Decoder(node)
        arrays, dtype, rates = node.decoder.run(encoded.arrays, windows.arrays, encoded.infos)
        outputs = [Batch(arrays, dtype, "", encoded.infos)]
        if get("read_sample_rate", True):
            outputs.append(Batch(rates.arrays, rates.dtype, "", encoded.infos))
        if get("read_text", True):
            outputs.append(texts)
        if get("read_idxs", False):
            outputs.append(numbers)
        return outputs
