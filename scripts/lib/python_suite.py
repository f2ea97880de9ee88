#!/usr/bin/env python3
"""DALI's own Python tests: runs them, with DALI or with Gesso in its place, and writes docs/reports/python-suite.md
from two such runs.

    python_suite.py run DALI/dali/test/python --dali --json dali.json [--extra FOLDER]     what real DALI passes
    python_suite.py run DALI/dali/test/python [MODULE...] --json gesso.json [--extra FOLDER] [--like dali.json]
    python_suite.py page dali.json gesso.json [--earlier PAGE]                             the page, on standard output

The tests are in DALI's repository and not in this one. It needs nose2 and numpy; modules that need scipy, librosa, lz4
or jax count as not run without them. FOLDER is a copy of DALI_extra, or files that stand for it. `--like` takes the
modules in which the other run passed something. A module runs in a process of its own, and what is there of --json is
kept: modules that are run again replace theirs; MODULE.CASE, or MODULE.CLASS, replaces these alone, where the others
end the process or never end. With `--earlier`, modules that were not run keep what that page says of them."""

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Tests of plugins that are not installed, and those that DALI itself leaves out of a quick run.
FILTER = "!slow,!pytorch,!cupy,!numba"
PLUGINS = ["nose2_attrib_generators", "nose2.plugins.attrib", "nose2.plugins.printhooks", "recorder"]
SHOWN = 600
# Parts of what a failure says > why the case does not pass. The first that is found counts.
REASONS = [
    (("PyFunc is stateful",), "a checkpoint of TensorFlow does not hold a data set of Gesso's"),
    (("elements, expected 1",), "a tensor of several elements is neither true nor false here"),
    (("experimental.dynamic", "ndd"), "needs `experimental.dynamic`"),
    (("not raised", "did not raise"), "accepted here"),
    (("does not match", "not found in", "doesn't match"), "other words of an error"),
    (("is not defined for operator", "unexpected keyword", "no argument"), "an argument is not there"),
    (
        ("has no operator", "no such operator", "module 'nvidia.dali.fn", "module `gesso.fn", "nvidia.dali.ops"),
        "no such operator",
    ),
    (("No such file", "cannot open", "Could not find", "No files"), "data missing in this run"),
    (("ImportError", "ModuleNotFoundError", "AttributeError"), "DALI's private names"),
]


def without_gpu(module):
    """Pipelines for a GPU are made for the CPU, as DALI refuses the first where there is none, and ends the process
    for a data set of TensorFlow's."""
    from nvidia.dali import pipeline

    on_the_cpu(pipeline.Pipeline, 2)
    if "_tf_" in module:
        from nvidia.dali.plugin import tf

        on_the_cpu(tf.DALIDataset)
        on_the_cpu(tf.experimental.DALIDatasetWithInputs)


def on_the_cpu(kind, place=None):
    """The constructor of a class gets None for `device_id`, by name or at a place among its arguments."""
    import inspect

    first = kind.__init__

    def init(self, *positional, **named):
        if place is not None and len(positional) > place:
            positional = (*positional[:place], None, *positional[place + 1 :])
        elif place is None or "device_id" in named:
            named["device_id"] = None
        return first(self, *positional, **named)

    init.__signature__ = inspect.signature(first)
    kind.__init__ = init


def work(tests, module, found_file, is_dali, attributes):
    """Runs one module in this process, and writes a line for each case: what ran is known even if the process ends."""
    folder = module_of(Path(tests), module).rpartition(".")[0]
    # A folder of the name of a package, as `torchvision` is, is hidden by it: its modules run within the folder.
    if folder and Path(tests, folder).is_dir() and is_hidden(Path(tests, folder)):
        sys.path.insert(1, tests)
        os.chdir(Path(tests, folder))
        begin, module = f"{folder}.", module.removeprefix(f"{folder}.")
    else:
        begin = ""
        os.chdir(tests)
    # Not this script's folder, whose `coverage.py` would hide the package of that name.
    sys.path[0] = os.getcwd()
    if is_dali:
        without_gpu(module)
    else:
        import gesso.as_dali  # noqa: F401
    import nose2.events
    from nose2.main import PluggableTestProgram

    class Recorder(nose2.events.Plugin):
        configSection = "recorder"
        alwaysOn = True

        def testOutcome(self, event):
            text = f"{event.exc_info[0].__name__}: {event.exc_info[1]}"[:SHOWN] if event.exc_info else ""
            name = begin + event.test.id().split("\n")[0]
            with open(found_file, "a") as file:
                print(json.dumps([name, event.outcome, event.reason or text]), file=file)

    sys.modules["recorder"] = type(sys)("recorder")
    sys.modules["recorder"].Recorder = Recorder
    command = ["nose2", *(f"--plugin={name}" for name in PLUGINS), "-A", attributes, module]
    PluggableTestProgram(module=None, exit=False, argv=command)


def is_hidden(folder):
    """Whether a package that is installed has the name of a folder of tests, which is none itself."""
    found = importlib.util.find_spec(folder.name) if not (folder / "__init__.py").exists() else None
    return found is not None and found.origin is not None


def module_of(tests, name):
    """The module of tests that a case, a class, or the module itself is in."""
    while "." in name and not tests.joinpath(*name.split(".")).with_suffix(".py").exists():
        name = name.rpartition(".")[0]
    return name


def cases_of(found_file):
    """{name of a case: (outcome, what it said)}; a second case of the same name has a mark."""
    found = {}
    for line in found_file.read_text().splitlines() if found_file.exists() else []:
        name, outcome, text = json.loads(line)
        found[name + ("#" if name in found else "")] = (outcome, text)
    return found


def modules_of(tests):
    """Every module of tests, but for those of DALI's copy of AutoGraph."""
    for path in sorted(tests.rglob("test_*.py")):
        name = ".".join(path.relative_to(tests).with_suffix("").parts)
        if not name.startswith("autograph"):
            yield name


def passed(run):
    """{module: names of the cases that passed} of a run; lists of names are taken as they are."""
    return {
        module: sorted(cases)
        if isinstance(cases, list)
        else sorted(name for name, (outcome, _) in cases.items() if outcome == "passed")
        for module, cases in run.items()
    }


def run(options):
    tests = options.tests.resolve()
    kept = json.loads(options.json.read_text()) if options.json.exists() else {}
    wanted = passed(json.loads(options.like.read_text())) if options.like else {}
    modules = options.modules or [name for name, cases in wanted.items() if cases] or list(modules_of(tests))
    environment = dict(os.environ)
    if not options.dali:
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(ROOT / "python"), *filter(None, [environment.get("PYTHONPATH")])]
        )
    if options.extra:
        environment["DALI_EXTRA_PATH"] = str(options.extra.resolve())
    for module in modules:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found_file = Path(folder) / "found"
            command = [
                sys.executable,
                __file__,
                "work",
                str(tests),
                module,
                str(found_file),
                f"--attributes={options.attributes}",
                *(["--dali"] if options.dali else []),
            ]
            try:
                subprocess.run(
                    command,
                    env=environment,
                    timeout=options.seconds,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            except subprocess.TimeoutExpired:
                pass
            found, whole = cases_of(found_file), module_of(tests, module)
            kept[whole] = found if whole == module else {**kept.get(whole, {}), **found}
        options.json.write_text(json.dumps(kept, indent=0))
        good = set(passed({module: found})[module])
        cases = wanted.get(module, list(found))
        print(
            f"{module:55} {len(good.intersection(cases)):5} of {len(cases):5} {time.monotonic() - began:7.1f} s",
            flush=True,
        )
        for name in [name for name in cases if name not in good][: options.failures]:
            print("     ", name[:90], "|", found.get(name, ("", "not run"))[1][:140].replace("\n", " "), flush=True)


def reason(text):
    if not text:
        return "not run to its end"
    return next(
        (why for parts, why in REASONS if any(part in text for part in parts)), "results or limits of an operator"
    )


def earlier_rows(page):
    """{module, or the beginning of several and a star: (cases that passed, why not all)} of the table of a page."""
    found = (
        re.findall(r"^\| `([\w.*-]+)`(?: \(\d+ modules\))? \| (\d+) of \d+ \| (.*) \|$", page.read_text(), re.MULTILINE)
        if page
        else []
    )
    return {module: (int(good), why) for module, good, why in found}


def rows(wanted, found, earlier):
    """(module, cases that pass, all cases, why not) of modules in which not all pass."""
    for module, cases in sorted(wanted.items()):
        mine = found.get(module)
        if mine is None and earlier is not None:
            row = earlier.get(module) or earlier.get(module.rpartition(".")[0] + ".*")
            if row:
                yield module, row[0], len(cases), row[1]
            continue
        mine = mine or {}
        missed = [name for name in cases if mine.get(name, ("",))[0] != "passed"]
        if missed:
            # What a module that cannot be imported says stands for all its cases.
            failed = next((found for name, found in mine.items() if "LoadTestsFailure" in name), ("", ""))
            counts = Counter(reason(mine.get(name, failed)[1]) for name in missed).most_common()
            why = ", ".join(f"{text} ({count})" for text, count in counts) if len(counts) > 1 else counts[0][0]
            yield module, len(cases) - len(missed), len(cases), why


def page(options):
    wanted = {module: cases for module, cases in passed(json.loads(options.dali.read_text())).items() if cases}
    found = json.loads(options.gesso.read_text())
    missed = list(rows(wanted, found, earlier_rows(options.earlier) if options.earlier else None))
    not_run = len(wanted.keys() - found.keys())
    kept = f"\n{not_run} modules were not run this time and keep the counts of an earlier run." if not_run else ""
    total = sum(map(len, wanted.values()))
    lost = sum(cases - good for _, good, cases, _ in missed)
    dynamic = sum(
        cases - good for module, good, cases, _ in missed if module.startswith(("experimental_mode", "ndd_vs_fn"))
    )
    whole = len(wanted) - len(missed)
    print(
        f"""# DALI's own Python tests

DALI's repository has tests of its Python layer. Of these, real DALI passes {total:,} cases on a host without a GPU. With Gesso in its place
(`gesso.as_dali`), {total - lost:,} of them pass. Of those that do not, {dynamic} are tests of `experimental.dynamic`.

`scripts/lib/python_suite.py` runs the tests and writes this page. The tests are not part of this project: give it DALI's repository.
DALI_extra, the data that the tests read, was replaced by small files that stand for it in both runs.{kept}

Tests of PyTorch are counted in `experimental_mode`, `torchvision` and `test_dali_proxy`, those of TensorFlow in `test_dali_tf_*` and
`checkpointing.test_dali_checkpointing_tf_plugin`, with DALI's own plugin for TensorFlow. That plugin ends the process without a GPU in
cases of `test_dali_tf_dataset_eager` that are outside its classes: of that module the classes are counted.

Why a case does not pass:

- **Other words of an error**: Gesso refuses the same with words of its own. Under `gesso.as_dali` DALI's words are added where programs
  are likely to look for them.
- **Accepted here**: DALI refuses it, and Gesso gives a result.
- **No such operator, or no such argument**: [operators](../reference/operators.md#what-is-missing) lists them.
- **DALI's private names**: its queues, pools, lists of all its operators.
- **Results or limits of an operator**: the answer differs, or a limit is smaller.

In {whole} of {len(wanted)} modules all cases pass. The others:

| module | passes | why not all |
| --- | --- | --- |"""
    )
    for module, good, cases, why in missed:
        print(f"| `{module}` | {good} of {cases} | {why} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("tests", type=Path)
    one.add_argument("modules", nargs="*")
    one.add_argument("--json", type=Path, required=True)
    one.add_argument("--dali", action="store_true")
    one.add_argument("--extra", type=Path)
    one.add_argument("--like", type=Path)
    one.add_argument("--attributes", default=FILTER, help="which cases, by their attributes, as nose2 has it")
    one.add_argument("--seconds", type=int, default=300)
    one.add_argument("--failures", type=int, default=5)
    one.set_defaults(act=run)
    two = commands.add_parser("page")
    two.add_argument("dali", type=Path)
    two.add_argument("gesso", type=Path)
    two.add_argument("--earlier", type=Path)
    two.set_defaults(act=page)
    three = commands.add_parser("work")
    three.add_argument("tests")
    three.add_argument("module")
    three.add_argument("found")
    three.add_argument("--dali", action="store_true")
    three.add_argument("--attributes", default=FILTER)
    three.set_defaults(
        act=lambda options: work(options.tests, options.module, options.found, options.dali, options.attributes)
    )
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
