"""Writes a stage into a model repository: the model's folder, and the ensemble with the model behind it."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from . import pbtxt
from .description import CHANNELS, ConversionError

_TYPES = {
    "float32": "TYPE_FP32",
    "float16": "TYPE_FP16",
    "float64": "TYPE_FP64",
    "uint8": "TYPE_UINT8",
    "int32": "TYPE_INT32",
    "int64": "TYPE_INT64",
}
_NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]+")
_DATA_TYPE = re.compile(r"TYPE_[A-Z0-9]+")
_STAGE_FILES = ("1/model.dali", "config.pbtxt", "preprocess.py", "README.md")
_ENSEMBLE_FILES = ("config.pbtxt",)
# What a configuration begins with that is made here; with `--overwrite` such a one is replaced.
_MADE = "# Made by `gesso from`"


@dataclass(frozen=True)
class Tensor:
    """An input or an output of a model."""

    name: str
    type: str
    dims: tuple


@dataclass(frozen=True)
class Model:
    """What an ensemble must know of a model."""

    name: str
    max_batch_size: int
    inputs: tuple
    outputs: tuple

    def pixels(self, output):
        """The input for the stage's output of that name, or the only one."""
        named = [tensor for tensor in self.inputs if tensor.name == output]
        if not named and len(self.inputs) != 1:
            raise ConversionError(
                f"model `{self.name}` has inputs {[tensor.name for tensor in self.inputs]}: expected one, or one of the name `{output}`"
            )
        return (named or self.inputs)[0]

    def options(self, output):
        """The options of a conversion that the model's input asks for."""
        tensor = self.pixels(output)
        is_last = len(tensor.dims) == 3 and tensor.dims[2] == CHANNELS and tensor.dims[0] != CHANNELS
        return {"dtype": "float16" if tensor.type == "TYPE_FP16" else "float32", "layout": "HWC" if is_last else "CHW"}


def model(repository, name):
    """A model of a repository, by its configuration."""
    check_name("--model", name)
    path = Path(repository) / name / "config.pbtxt"
    if not path.is_file():
        raise ConversionError(f"option `--model` is {name!r}: expected its configuration at `{path}`")
    fields = pbtxt.read(path)

    def tensors(kind):
        found = [each for each in fields.get(kind, []) if isinstance(each, dict)]
        try:
            return tuple(
                Tensor(_name(each["name"][0]), _data_type(each["data_type"][0]), tuple(map(int, each["dims"])))
                for each in found
            )
        except (KeyError, ValueError, TypeError) as error:
            raise ConversionError(
                f"`{path}`: expected `name`, `data_type` and `dims` of each {kind}; {error} is missing or wrong"
            ) from error

    try:
        most = int(fields.get("max_batch_size", ["0"])[0])
    except (ValueError, TypeError) as error:
        raise ConversionError(f"`{path}`: `max_batch_size` is no number") from error
    if most < 1:
        raise ConversionError(
            f"`{path}`: `max_batch_size` is {most}: expected 1 or more, so that requests have a batch"
        )
    inputs, outputs = tensors("input"), tensors("output")
    if not inputs or not outputs:
        raise ConversionError(
            f"`{path}`: expected at least one `input` and one `output`; what a server would complete is not known here"
        )
    return Model(name, most, inputs, outputs)


def _name(text):
    """A tensor's name, which is written between quotes."""
    if not isinstance(text, str) or not text or not text.isprintable() or set(text) & {'"', "'", "\\"}:
        raise ValueError(f"`name` {text!r} (expected printable characters without quotes and backslashes)")
    return text


def _data_type(text):
    if not isinstance(text, str) or not _DATA_TYPE.fullmatch(text):
        raise ValueError(f"`data_type` {text!r} (expected one such as TYPE_FP32)")
    return text


def _fits(dims, shape):
    return len(dims) == len(shape) and all(wanted in (-1, found) for wanted, found in zip(dims, shape, strict=True))


def connections(stage, behind):
    """Which output of a stage becomes which input of a model: pairs of names."""
    pixels, made, pairs = behind.pixels(stage.output), stage.outputs, []
    for tensor in behind.inputs:
        output = stage.output if tensor is pixels else tensor.name
        if output not in made:
            raise ConversionError(
                f"input `{tensor.name}` of model `{behind.name}`: the stage has no output for it, only {list(made)}"
            )
        kind, shape = made[output]
        if tensor.type != _TYPES[kind]:
            raise ConversionError(
                f"input `{tensor.name}` of model `{behind.name}` is {tensor.type}: the stage's `{output}` is {_TYPES[kind]}"
            )
        if not _fits(tensor.dims, shape):
            raise ConversionError(
                f"input `{tensor.name}` of model `{behind.name}` has dims {list(tensor.dims)}: the stage's `{output}` has {list(shape)}"
            )
        pairs.append((output, tensor.name))
    return pairs


def _tensor(kind, tensor):
    return f'{kind} {{ name: "{tensor.name}" data_type: {tensor.type} dims: [ {", ".join(map(str, tensor.dims))} ] }}'


def ensemble(stage, name, behind, batch_size):
    """The configuration of an ensemble: stage `name`, then the model."""
    taken = Tensor(stage.input, "TYPE_UINT8", (-1, -1, -1, CHANNELS) if stage.takes_frames else (-1,))
    pairs, made = connections(stage, behind), stage.outputs
    # What the model does not take of the stage, such as sizes of images, is an answer beside the model's.
    used = {output for output, _ in pairs} | {tensor.name for tensor in behind.outputs}
    beside = [Tensor(extra, _TYPES[made[extra][0]], made[extra][1]) for extra in stage.extras if extra not in used]
    first = [_map("input", stage.input, stage.input)]
    first += [_map("output", output, f"stage.{output}") for output, _ in pairs] + [
        _map("output", tensor.name, tensor.name) for tensor in beside
    ]
    second = [_map("input", tensor, f"stage.{output}") for output, tensor in pairs]
    second += [_map("output", tensor.name, tensor.name) for tensor in behind.outputs]
    lines = [
        f"{_MADE}: {stage.title}, then the model `{behind.name}`.",
        'platform: "ensemble"',
        f"max_batch_size: {min(batch_size, behind.max_batch_size)}",
        _tensor("input", taken),
        *(_tensor("output", tensor) for tensor in (*behind.outputs, *beside)),
        "ensemble_scheduling {",
        *_step(name, first),
        *_step(behind.name, second),
        "}",
        "",
    ]
    return "\n".join(lines)


def _map(kind, key, value):
    return f'{kind}_map {{ key: "{key}" value: "{value}" }}'


def _step(name, maps):
    return ["  step {", f'    model_name: "{name}"', "    model_version: -1", *(f"    {line}" for line in maps), "  }"]


def check_name(option, name):
    """Refuses what cannot be a model's name."""
    if not _NAME.fullmatch(name):
        raise ConversionError(
            f"option `{option}` is {name!r}: expected a model's name of letters, digits, `_`, `.` and `-`"
        )


@dataclass(frozen=True)
class Places:
    """The folders that are written: the stage's, and the ensemble's where there is a model behind the stage."""

    stage: Path
    ensemble: Path = None

    @classmethod
    def of(cls, output, model=None, ensemble=None):
        """Those of the options of these names."""
        stage = Path(output).absolute()
        check_name("--output", stage.name)
        if not model:
            if ensemble:
                raise ConversionError("option `--ensemble` is given without `--model`: expected both")
            return cls(stage)
        check_name("--model", model)
        name = ensemble or f"{model}_from_images"
        check_name("--ensemble", name)
        for option, one, others in (("--output", stage.name, [model]), ("--ensemble", name, [model, stage.name])):
            if one in others:
                raise ConversionError(
                    f"option `{option}` is {one!r}, as the model or the stage is named: expected another name"
                )
        return cls(stage, stage.parent / name)

    def check(self, overwrite):
        """Refuses what cannot be written; this comes before anything is."""
        _check_folder(self.stage, _STAGE_FILES, "--output", overwrite)
        if self.ensemble is not None:
            _check_folder(self.ensemble, _ENSEMBLE_FILES, "--ensemble", overwrite)


def _check_folder(folder, files, option, overwrite):
    paths = [folder, folder / "1", *(folder / file for file in files)]
    for path in paths:
        if path.is_symlink():
            raise ConversionError(
                f"option `{option}`: `{path}` is a symbolic link, through which nothing is written; expected a folder"
            )
    for path in paths[:2]:
        if path.exists() and not path.is_dir():
            raise ConversionError(f"option `{option}`: `{path}` is no folder")
    found = [path for path in paths[2:] if path.exists()]
    if found and not overwrite:
        raise ConversionError(
            f"option `{option}`: `{found[0]}` is there already; expected another folder, or `--overwrite`"
        )
    if found and not _is_made_here(folder):
        raise ConversionError(
            f"option `{option}`: `{found[0]}` is there, and `{folder}` was not made by `gesso from`; expected another folder"
        )
    newer = sorted(path.name for path in folder.glob("*") if path.name.isdecimal() and int(path.name) > 1)
    if newer:
        raise ConversionError(
            f"option `{option}`: `{folder}` has version `{newer[0]}`, which a server takes before 1; expected no other version"
        )


def _is_made_here(folder):
    try:
        with open(folder / "config.pbtxt", "rb") as file:
            return file.read(len(_MADE)) == _MADE.encode()
    except OSError:
        return False


def write(made, folder, readme, batch_size):
    """Writes the folder of a converted pipeline."""
    config = f'{_MADE}. Inputs, outputs, types and shapes come from the pipeline (1/model.dali).\nbackend: "gesso"\nmax_batch_size: {batch_size}\n'
    texts = {"config.pbtxt": config, "preprocess.py": made.source, "README.md": readme}
    _write(folder, {"1/model.dali": made().serialize()} | {name: text.encode() for name, text in texts.items()})


def write_ensemble(text, folder):
    """Writes the folder of an ensemble."""
    _write(folder, {"config.pbtxt": text.encode()})


def _write(folder, files):
    # An ensemble's version has no files: Triton asks for the folder.
    (folder / "1").mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        # A new file takes the place of the old one: what is a link meanwhile is not followed.
        new = folder / f"{name}.{os.getpid()}.new"
        with open(new, "xb") as file:
            file.write(data)
        os.replace(new, folder / name)
