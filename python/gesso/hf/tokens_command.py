"""`gesso tokens`: the command line of `TokenCounter`. Ends with 0, with 2 when there was an error."""

import argparse
import sys

from .._comparison.command import files_of
from .._comparison.words import printable, said
from .token_counter import TokenCounter

_DONE, _FAILED = 0, 2


def parser():
    """What the command takes."""
    made = argparse.ArgumentParser(
        prog="gesso tokens",
        description="Prints how many tokens images become for a vision-language model, from their headers.",
    )
    made.add_argument("files", nargs="*", metavar="FILE", help="an image, or a folder of images")
    made.add_argument(
        "--for", required=True, dest="config", metavar="CONFIG", help="the model's folder, or processor_config.json"
    )
    made.add_argument("-o", "--output", metavar="MODEL.DALI", help="also write the counter, for Triton and for C")
    return made


def _run(options):
    counter = TokenCounter(options.config)
    if options.output:
        with open(options.output, "wb") as file:
            file.write(counter.serialize())
    status = _DONE
    for path in files_of(options.files) if options.files else []:
        try:
            print(f"{counter(path):8} {printable(path)}")
        except (OSError, ValueError) as error:
            print(f"error: {printable(f'{path}: {said(error)}')}", file=sys.stderr)
            status = _FAILED
    return status


def main(arguments):
    """Runs the command; returns the exit status."""
    options = parser().parse_args(arguments)
    if not options.files and not options.output:
        print("error: nothing is asked for: expected files, or `--output`", file=sys.stderr)
        return _FAILED
    try:
        return _run(options)
    except (Exception, SystemExit) as error:
        print(f"error: {printable(said(error))}", file=sys.stderr)
        return _FAILED
