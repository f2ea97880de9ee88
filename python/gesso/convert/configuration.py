"""Files of configurations, as users have them: their fields."""

import json
from pathlib import Path

from .description import ConversionError

# A configuration is some hundred bytes.
_LARGEST_FILE = 1 << 20
_FILE, _NESTED_FILE = "preprocessor_config.json", "processor_config.json"
_VIDEO_FILE = "video_preprocessor_config.json"


def read(path):
    """The fields of a configuration: of a file, or of a folder that has one. Of a folder it is what transformers 5
    takes: `image_processor` or `feature_extractor` of `processor_config.json` comes first, that of videos last."""
    path = Path(path)
    if not path.is_dir():
        values = _json(path)
        nested = _nested(values)
        return values if nested is None else nested
    if (path / _NESTED_FILE).is_file() and (nested := _nested(_json(path / _NESTED_FILE))) is not None:
        return nested
    if not (path / _FILE).is_file():
        if (path / _VIDEO_FILE).is_file():
            return _json(path / _VIDEO_FILE)
        raise ConversionError(f"`{path}` has neither {_FILE} nor {_NESTED_FILE} with `image_processor`")
    return _json(path / _FILE)


def read_around(path):
    """The fields beside the image processor's: those of `processor_config.json` in a folder, or of a file that has an
    image processor in it. Empty without one."""
    path = Path(path)
    file = path / _NESTED_FILE if path.is_dir() else path
    values = _json(file) if file.is_file() else {}
    return values if path.is_dir() and isinstance(values, dict) or _nested(values) is not None else {}


def _nested(values):
    """The part of a processor's configuration that is of images or sounds, if there is one."""
    if not isinstance(values, dict):
        return None
    parts = [values.get(part) for part in ("image_processor", "feature_extractor")]
    return next((part for part in parts if part is not None), None)


def _json(path):
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ConversionError(f"cannot read `{path}`: {error.strerror}") from error
    if len(data) > _LARGEST_FILE:
        raise ConversionError(f"`{path}` has more than {_LARGEST_FILE} bytes: no configuration of an image processor")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConversionError(f"`{path}` is no JSON: {error}") from error


def fields_of(config, named=None):
    """The fields of what a user gives to the other converters: fields, a path, or a name that `named` knows."""
    if isinstance(config, dict):
        return config
    if not isinstance(config, (str, Path)):
        raise ConversionError(f"a `{type(config).__name__}` is given: expected fields with names, or a path")
    if named is not None and not Path(config).exists():
        return named(str(config))
    return read(config)
