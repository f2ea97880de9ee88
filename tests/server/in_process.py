#!/usr/bin/env python3
"""Runs the plugin in Triton's core alone, in this process, and checks the contract: any `libtritonserver.so` will do,
of a server that is installed, of a wheel, or of one's own build.

    tests/server/in_process.py                                the core of the server that the tests use
    tests/server/in_process.py --core PATH/libtritonserver.so
    tests/server/in_process.py --core ... --row               a line for docs/guides/triton-versions.md

A line a check, then the versions and how many passed. Answers are compared with those that DALI recorded. What a core
has no function for is `not offered`, neither passed nor failed. `GESSO_PLUGIN` names another plugin than the release
build's. The exit status is 1 when a check failed.
"""

import argparse
import ctypes
import os
import sys
import tempfile
import traceback
from pathlib import Path

from core_checks import CHECKS, NotOffered, ends_with_requests_under_way, starts_again, write_models
from harness import ServerError, plugin_path, wheel_path
from triton_core import Core, CoreError


class Report:
    """What came of each check."""

    def __init__(self, quiet):
        self.passed, self.failed, self.missing, self.quiet = [], [], [], quiet

    def run(self, words, function, *arguments):
        try:
            function(*arguments)
        except NotOffered as lacking:
            self.missing.append(str(lacking))
            self.say("not offered", f"{words}: this core has no {lacking}")
        except Exception as error:
            self.failed.append(words)
            self.say("FAILED", f"{words}: {type(error).__name__}: {error}")
            traceback.print_exc()
        else:
            self.passed.append(words)
            self.say("passed", words)

    def say(self, outcome, words):
        if not self.quiet:
            print(f"{outcome:12} {words}", flush=True)

    @property
    def summary(self):
        text = f"{len(self.passed)} of {len(self.passed) + len(self.failed)}"
        return f"{text}; not offered: {', '.join(self.missing)}" if self.missing else text


def wheel_core():
    """The core of the server that the tests use."""
    wheel = wheel_path()
    found = sorted((wheel.parents[1] / "nvidia_pytriton.libs").glob("libtritonserver*.so"))
    if not found:
        raise ServerError(f"no libtritonserver.so beside `{wheel}`")
    return found[0]


def find_libraries_beside(path):
    """Starts this program anew with the core's folder in the loader's path: there its own libraries are, in a wheel."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    folder = str(path.resolve().parent)
    if folder not in folders:
        variables = dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join(filter(None, [folder, *folders])))
        os.execve(sys.executable, [sys.executable, *sys.argv], variables)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--core", type=Path, help="libtritonserver.so; that of the tests' server by default")
    parser.add_argument("--row", action="store_true", help="print a line of the page's table and nothing else")
    parser.add_argument("--local", action="store_true", help="load the core as Python loads its extension modules")
    given = parser.parse_args()
    path, scope = given.core or wheel_core(), ctypes.RTLD_LOCAL if given.local else ctypes.RTLD_GLOBAL
    find_libraries_beside(path)
    report = Report(given.row)
    with tempfile.TemporaryDirectory(prefix="gesso-core-") as scratch:
        folder, backends = write_models(Path(scratch) / "models"), Path(scratch) / "backends"
        for name in ("gesso", "dali"):
            (backends / name).mkdir(parents=True)
            (backends / name / f"libtriton_{name}.so").symlink_to(plugin_path())
        try:
            core = Core(path, folder, backends, scope=scope).__enter__()
        except (OSError, CoreError) as error:
            parser.exit(1, f"error: {error}\n")
        version, api = core.json("ServerMetadata")["version"], core.api
        for words, function in CHECKS:
            report.run(words, function, core)
        report.run("the server ends with requests under way", ends_with_requests_under_way, core)
        report.run("another server starts in the same process", starts_again, path, folder, backends, scope)
    if given.row:
        print(f"| {version} | {api[0]} | {api[1]} | {report.summary} |")
    else:
        print(f"core {version}, server API {api[0]}, backend API {api[1]}: {report.summary}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
