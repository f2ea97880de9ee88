"""`gesso from`: the command line of `gesso.convert`. Ends with 0, with 1 when `--require-equal` is not met, with 2 when
there was an error."""

import argparse
import contextlib
import os
import shlex
import sys
import tempfile

from .. import convert
from .._comparison.command import files_of
from .._comparison.words import printable, said
from . import proof, repository
from .ahead import Ahead

_DONE, _UNEQUAL, _FAILED = 0, 1, 2


def _side_or_sides(text):
    sides = [int(part) for part in text.split(",")]
    return sides[0] if len(sides) == 1 else sides


def parser():
    """What the command takes."""
    made = argparse.ArgumentParser(
        prog="gesso from",
        description="Makes a served stage of preprocessing that you have, and proves that the two are equal.",
    )
    kinds = made.add_subparsers(dest="kind", required=True, metavar="hf|timm|torchvision|ultralytics|open_clip")
    each = {
        "hf": "an image processor of Hugging Face transformers",
        "timm": "timm's evaluation",
        "torchvision": "torchvision's transforms",
        "ultralytics": "Ultralytics' letterbox",
        "open_clip": "open_clip's evaluation",
    }
    kinds = {
        kind: kinds.add_parser(kind, help=text, description=f"Makes a served stage of {text}.")
        for kind, text in each.items()
    }
    kinds["hf"].add_argument(
        "source", help="a folder, or a file: preprocessor_config.json, video_preprocessor_config.json"
    )
    kinds["hf"].add_argument(
        "--backend",
        choices=("torchvision", "pil"),
        help="what transformers resizes with [as the class says, else torchvision]",
    )
    kinds["timm"].add_argument("source", help="a file with a data_config or a pretrained_cfg, or the name of a model")
    kinds["torchvision"].add_argument(
        "source", help="weights (ResNet50_Weights.IMAGENET1K_V2), or file.py:name of a transform"
    )
    kinds["torchvision"].add_argument(
        "--takes", choices=("pil", "tensor"), default="pil", help="what the transforms are given [pil]"
    )
    kinds["torchvision"].add_argument(
        "--train",
        metavar="FOLDER",
        help="a folder of images by class: print a pipeline that reads it, with random transforms",
    )
    kinds["ultralytics"].add_argument(
        "--imgsz", type=_side_or_sides, default=640, metavar="SIZE", help="one size, or HEIGHT,WIDTH [640]"
    )
    kinds["ultralytics"].add_argument(
        "--rect", action="store_true", help="the smallest rectangle, not the whole square"
    )
    kinds["ultralytics"].add_argument("--stride", type=int, default=32, help="the model's stride [32]")
    kinds["open_clip"].add_argument("source", help="open_clip_config.json")
    for one in kinds.values():
        _common(one)
    return made


def _common(made):
    made.add_argument("-o", "--output", metavar="FOLDER", help="the model's folder in a model repository")
    made.add_argument(
        "--model",
        metavar="NAME",
        help="a model of that repository: also write the ensemble of the stage and this model",
    )
    made.add_argument("--ensemble", metavar="NAME", help="the ensemble's name [NAME_from_images]")
    made.add_argument("--overwrite", action="store_true", help="replace what `gesso from` wrote there")
    made.add_argument("--print", action="store_true", dest="prints", help="print the pipeline as plain Python")
    made.add_argument(
        "--arithmetic",
        choices=("exact", "dali"),
        default="exact",
        help="dali: a file that DALI runs, too; its difference is printed [exact]",
    )
    made.add_argument(
        "--dtype", choices=("float32", "float16"), help="of the output [what the model takes, else float32]"
    )
    made.add_argument("--layout", choices=("CHW", "HWC"), help="of the output [what the model takes, else CHW]")
    made.add_argument(
        "--device",
        choices=("cpu", "mixed"),
        default="cpu",
        help="mixed: decodes and computes on a GPU, where the model has one [cpu]",
    )
    made.add_argument(
        "--pillow", choices=("pillow", "pillow13"), help="whose Pillow: before 13, or 13 [the installed one]"
    )
    made.add_argument("--batch-size", type=int, default=64, metavar="N", help="the largest batch [64]")
    made.add_argument("--photos", metavar="FOLDER", help="photos of yours for the proof [photos that are made]")
    made.add_argument(
        "--count", type=int, default=100, metavar="N", help="how many photos are made for the proof [100]"
    )
    made.add_argument("--no-proof", action="store_true", help="do not compare with the library")
    made.add_argument("--require-equal", action="store_true", help="end with 1 unless every value is equal")


def _converted(options, **more):
    common = {name: getattr(options, name) for name in ("arithmetic", "device", "pillow", "batch_size")} | more
    if options.kind == "hf":
        return convert.transformers(options.source, backend=options.backend, **common)
    if options.kind == "torchvision":
        return convert.torchvision(options.source, takes=options.takes, train=options.train, **common)
    if options.kind == "ultralytics":
        return convert.ultralytics(options.imgsz, rect=options.rect, stride=options.stride, **common)
    return getattr(convert, options.kind)(options.source, **common)


def _proven(made, options):
    """What was measured, and in words."""
    if made.stage.is_training:
        return None, "not compared: it is for training, and random"
    try:
        found = _compared(made, options)
    except ImportError as error:
        return None, f"not compared: the library is not installed ({error})"
    words = str(found)
    if options.arithmetic == "dali":
        words += (
            "\nthe difference is DALI's arithmetic, which was asked for: without `--arithmetic dali` the stage is exact"
        )
    return found, words


def _compared(made, options):
    """The proof; the library is imported while photos are made."""
    with contextlib.ExitStack() as stack:
        given_of, library = proof.given_of(made.stage), None
        if Ahead.is_worth_it():
            library = stack.enter_context(Ahead(made, given_of))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        made_here = proof.made_for(made.stage)
        paths = _photos_of(options.photos) if options.photos else made_here(folder, options.count)
        if library is not None:
            library.files(paths)
        return proof.prove(made, paths, reference=library)


def _photos_of(folder):
    if not os.path.isdir(folder):
        raise convert.ConversionError(f"option `--photos` is {folder!r}: expected a folder of images")
    try:
        return files_of([folder])
    except ValueError as error:
        raise convert.ConversionError(f"option `--photos` is {folder!r}: {error}") from error


def _readme(made, words, arguments):
    stage = made.stage
    notes = [f"- {note}" for note in stage.notes]
    lines = [
        f"# {stage.title}",
        "",
        f"Made by `gesso from {shlex.join(arguments)}`.",
        "",
        f"{'Frames become' if stage.takes_frames else 'A file becomes'} `{stage.output}`, {stage.type}, {list(stage.shape)}.",
        f"Beside the library's answer to `{stage.loads}`:",
        "",
        *(f"    {line}" for line in words.splitlines()),
        "",
        *([*notes, ""] if notes else []),
        "`preprocess.py` is the pipeline as plain Python: change it, then `gesso serialize preprocess.py -o 1/model.dali`.",
        "",
    ]
    return "\n".join(lines)


def _run(options, arguments):
    behind, places, more = None, None, {}
    for name in ("model", "ensemble"):
        if getattr(options, name) and not options.output:
            raise convert.ConversionError(
                f"option `--{name}` is given without `--output`: expected the stage's folder beside the model's"
            )
    if options.output:
        places = repository.Places.of(options.output, options.model, options.ensemble)
        places.check(options.overwrite)
    if options.model:
        behind = repository.model(places.stage.parent, options.model)
        more = behind.options(_converted(options).stage.output)
    if getattr(options, "train", None) and (options.output or not options.prints):
        raise convert.ConversionError(
            "option `--train` is for a program of yours: expected `--print`, and no `--output`"
        )
    more |= {name: getattr(options, name) for name in ("dtype", "layout") if getattr(options, name)}
    made = _converted(options, **more)
    if options.prints:
        print(made.source)
    ensemble = None
    if behind is not None:
        ensemble = repository.ensemble(made.stage, places.stage.name, behind, options.batch_size)
    found, words = (None, "not compared: `--no-proof`") if options.no_proof else _proven(made, options)
    # What is printed to the standard output is the program alone.
    print(printable(words), file=sys.stderr if options.prints else sys.stdout)
    if options.output:
        repository.write(made, places.stage, _readme(made, words, arguments), options.batch_size)
        print(printable(f"{options.output}: {made.stage.title}"))
        if ensemble is not None:
            repository.write_ensemble(ensemble, places.ensemble)
            print(printable(f"{os.path.relpath(places.ensemble)}: the ensemble with `{options.model}`"))
    return _UNEQUAL if options.require_equal and not (found and found.is_equal) else _DONE


def main(arguments):
    """Runs the command; returns the exit status."""
    options = parser().parse_args(arguments)
    if not options.output and not options.prints and options.no_proof:
        print("error: nothing is asked for: expected `--output`, `--print` or a proof", file=sys.stderr)
        return _FAILED
    try:
        return _run(options, arguments)
    except (Exception, SystemExit) as error:
        print(f"error: {printable(said(error))}", file=sys.stderr)
        return _FAILED
