"""Writes a stage into a model repository: the model's folder, and the ensemble with the model behind it."""

import re
from dataclasses import dataclass
from pathlib import Path

from . import pbtxt
from .description import CHANNELS, ConversionError

_TYPES = {"float32": "TYPE_FP32", "float16": "TYPE_FP16", "uint8": "TYPE_UINT8", "int32": "TYPE_INT32", "int64": "TYPE_INT64"}
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


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
    path = Path(repository) / name / "config.pbtxt"
    if not _NAME.fullmatch(name) or not path.is_file():
        raise ConversionError(f"model `{name}`: expected its configuration at `{path}`")
    fields = pbtxt.read(path)

    def tensors(kind):
        found = [each for each in fields.get(kind, []) if isinstance(each, dict)]
        try:
            return tuple(Tensor(each["name"][0], each["data_type"][0], tuple(map(int, each["dims"]))) for each in found)
        except (KeyError, ValueError, TypeError) as error:
            raise ConversionError(
                f"`{path}`: expected `name`, `data_type` and `dims` of each {kind}; {error} is missing or wrong"
            ) from error

    try:
        most = int(fields.get("max_batch_size", ["0"])[0])
    except (ValueError, TypeError) as error:
        raise ConversionError(f"`{path}`: `max_batch_size` is no number") from error
    if most < 1:
        raise ConversionError(f"`{path}`: `max_batch_size` is {most}: expected 1 or more, so that requests have a batch")
    inputs, outputs = tensors("input"), tensors("output")
    if not inputs or not outputs:
        raise ConversionError(f"`{path}`: expected at least one `input` and one `output`; what a server would complete is not known here")
    return Model(name, most, inputs, outputs)


def _fits(dims, shape):
    return len(dims) == len(shape) and all(wanted in (-1, found) for wanted, found in zip(dims, shape, strict=True))


def connections(stage, behind):
    """Which output of a stage becomes which input of a model: pairs of names."""
    pixels, made, pairs = behind.pixels(stage.output), stage.outputs, []
    for tensor in behind.inputs:
        output = stage.output if tensor is pixels else tensor.name
        if output not in made:
            raise ConversionError(f"input `{tensor.name}` of model `{behind.name}`: the stage has no output for it, only {list(made)}")
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
        f"# Made by `gesso from`: {stage.title}, then the model `{behind.name}`.",
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


def write(made, folder, readme, batch_size, overwrite=False):
    """Writes the folder of a converted pipeline."""
    folder = Path(folder)
    if (folder / "config.pbtxt").exists() and not overwrite:
        raise ConversionError(f"`{folder}` has a model: give another folder, or `--overwrite`")
    (folder / "1").mkdir(parents=True, exist_ok=True)
    made().serialize(filename=str(folder / "1" / "model.dali"))
    config = f'# Made by `gesso from`. Inputs, outputs, types and shapes come from the pipeline (1/model.dali).\nbackend: "gesso"\nmax_batch_size: {batch_size}\n'
    (folder / "config.pbtxt").write_text(config, encoding="utf-8")
    (folder / "preprocess.py").write_text(made.source, encoding="utf-8")
    (folder / "README.md").write_text(readme, encoding="utf-8")


def write_ensemble(text, folder, overwrite=False):
    """Writes the folder of an ensemble."""
    folder = Path(folder)
    if (folder / "config.pbtxt").exists() and not overwrite:
        raise ConversionError(f"`{folder}` has a model: give `--ensemble` another name, or `--overwrite`")
    # A version without files: Triton asks for one.
    (folder / "1").mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text(text, encoding="utf-8")
