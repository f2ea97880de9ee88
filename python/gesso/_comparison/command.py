"""`gesso compare`: the command line of `gesso.compare`. Ends with 0 when nothing differs, 1 when something does, 2 when
there was an error."""

import argparse
import glob
import math
import os
import sys

from .words import of_user, printable, said

_SAME, _DIFFERENT, _FAILED = 0, 1, 2
# How the names of images end in a folder; a name without an ending may be one.
_ENDINGS = {
    "",
    *".jpg .jpeg .jpe .jfif .mpo .png .apng .bmp .gif .tif .tiff .webp .avif .heic .heif .hif .jp2 .j2k .j2c .jpc .jpx .jxl .pnm .ppm .pgm .pbm".split(),
}


def _list_of(kind):
    return lambda text: [kind(part) for part in text.split(",")]


def _one_or_two(text):
    sizes = _list_of(int)(text)
    return sizes[0] if len(sizes) == 1 else sizes


def _tolerance(text):
    number = float(text)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no tolerance: expected a number from 0 on")
    return number


def parser():
    """What the command takes."""
    made = argparse.ArgumentParser(
        prog="gesso compare",
        description="Runs a pipeline beside what was done in training and tells how far they are apart.",
        epilog="The exit status is 0 when no element differs by more than the tolerance and type and order of dimensions are the same, "
        "1 when something differs, 2 when there was an error.",
    )
    made.add_argument("pipeline", help="a serialized pipeline, or a Python program with one")
    made.add_argument("files", nargs="+", help="encoded images; folders stand for the images in them and below")
    made.add_argument(
        "--reference",
        required=True,
        metavar="REFERENCE",
        help="pillow, torchvision, opencv, or module:function: a path becomes an array",
    )
    made.add_argument("--output", type=int, default=0, metavar="N", help="the number of the pipeline's output [0]")
    made.add_argument(
        "--tolerance",
        type=_tolerance,
        default=0.0,
        metavar="MOST",
        help="the largest difference that counts as none [0]",
    )
    made.add_argument(
        "--values-only", action="store_true", help="another type or order of dimensions is told, but does not count"
    )
    made.add_argument(
        "--picture",
        metavar="FILE.png",
        help="write where the worst file differs: the pipeline's, the reference's, the difference",
    )
    of_library = made.add_argument_group("what pillow, torchvision or opencv does, in this order")
    of_library.add_argument("--resize", type=_one_or_two, metavar="SIZE", help="the shorter side, or HEIGHT,WIDTH")
    of_library.add_argument("--filter", help="nearest, linear, cubic, lanczos, box, hamming or area [linear]")
    of_library.add_argument(
        "--crop", type=_one_or_two, metavar="SIZE", help="a window in the middle: one size, or HEIGHT,WIDTH"
    )
    of_library.add_argument(
        "--mean", type=_list_of(float), metavar="A,B,C", help="subtracted from values between 0 and 1"
    )
    of_library.add_argument("--std", type=_list_of(float), metavar="A,B,C", help="they are divided by it")
    return made


def files_of(paths):
    """The files, with the images of folders in order."""
    found = []
    for path in paths:
        if not os.path.isdir(path):
            found.append(path)
            continue
        inside = [
            file for file in glob.glob(os.path.join(glob.escape(path), "**"), recursive=True) if os.path.isfile(file)
        ]
        images = sorted(file for file in inside if os.path.splitext(file)[1].lower() in _ENDINGS)
        if len(images) < len(inside):
            print(
                printable(f"{path}: {len(inside) - len(images)} files are left out: their names end like no image"),
                file=sys.stderr,
            )
        found += images
    if not found:
        raise ValueError(f"there is no image in {', '.join(f'`{path}`' for path in paths)}")
    return found


def main(arguments):
    """Runs the command; returns the exit status."""
    options = parser().parse_args(arguments)
    from .._authoring.autoserialize import of_script
    from .compare import compare

    try:
        pipeline = options.pipeline
        if pipeline.endswith(".py"):
            with of_user(pipeline):
                pipeline = of_script(pipeline)
        of_library = {name: getattr(options, name) for name in ("resize", "filter", "crop", "mean", "std")}
        found = compare(pipeline, files_of(options.files), options.reference, output=options.output, **of_library)
        print(printable(found))
        if options.picture:
            found.save_picture(options.picture)
            print(printable(f"{options.picture}: {found.worst.path}"))
    except (Exception, SystemExit) as error:
        print(f"error: {printable(said(error))}", file=sys.stderr)
        return _FAILED
    return _SAME if found.within(options.tolerance, options.values_only) else _DIFFERENT
