"""The installed wheel: what it asks of a machine, what it holds, and its program."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
from gesso._native import library as _library

OLDEST_GLIBC = (2, 28)
# As it lies on a disk; zipped, `scripts/wheel` lets it have 13 MiB.
MAX_UNPACKED_BYTES = 40_000_000


def distribution():
    """The wheel as it is installed, if `gesso` comes from it; else the test is skipped."""
    try:
        found = importlib.metadata.distribution("gesso-pipelines")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed: `scripts/wheel` makes it")
    if not Path(_library.__file__).is_relative_to(Path(found.locate_file("")).resolve()) or os.environ.get(
        "GESSO_LIBRARY"
    ):
        pytest.skip("the package comes from a source tree")
    return found


def test_the_readme_says_how_large_it_is():
    """Within what a build without optimisation across libraries adds; the wheel holds hardly anything but the
    library."""
    distribution()
    readme = Path(__file__).resolve().parents[2] / "README.md"
    unpacked, zipped = map(
        int,
        re.search(r"library of (\d+) MB, which a wheel of (\d+) MB holds", readme.read_text(encoding="utf-8")).groups(),
    )
    library = Path(_library.path()).read_bytes()
    assert abs(len(library) / 1e6 - unpacked) < 5 and abs(len(zlib.compress(library, 9)) / 1e6 - zipped) < 1


def test_the_wheel_asks_for_no_newer_glibc_than_it_says():
    found = distribution()
    tag = re.search(r"^Tag: py3-none-manylinux_(\d+)_(\d+)_", found.read_text("WHEEL"), re.MULTILINE)
    says = int(tag[1]), int(tag[2])
    asked = re.findall(rb"GLIBC_(\d+)\.(\d+)", Path(_library.path()).read_bytes())
    assert max((int(major), int(minor)) for major, minor in asked) <= says
    if says != OLDEST_GLIBC:
        pytest.skip(
            f"a wheel for this machine's glibc {says}: `scripts/wheel` without words makes one for {OLDEST_GLIBC}"
        )


def test_the_wheel_holds_one_library_and_no_second_program():
    files = [str(path) for path in distribution().files]
    assert [path for path in files if path.endswith(".so")] == ["gesso/libtriton_gesso.so"]
    assert not any(path.startswith("gesso/bin") for path in files)
    assert (
        sum(path.stat().st_size for path in map(Path, map(distribution().locate_file, files)) if path.exists())
        < MAX_UNPACKED_BYTES
    )
    assert any(path == "gesso/fn/__init__.pyi" for path in files) and "gesso/py.typed" in files
    library = _library.library()
    for name in ("gesso_main", "gesso_instance_run", "TRITONBACKEND_ModelInstanceExecute"):
        assert hasattr(library, name), name


def test_the_library_exports_its_own_names_only_and_has_a_name():
    """So that a program that links it and others besides calls each one's own, from any folder."""
    if os.environ.get("GESSO_LIBRARY") is None:
        distribution()
    library = _library.path()
    try:
        listed = subprocess.run(
            ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
        ).stdout
        dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip("no binutils here")
    names = [line.split()[-1] for line in listed.splitlines()]
    assert "gesso_version" in names
    assert [name for name in names if not name.startswith(("gesso_", "TRITONBACKEND_"))] == []
    assert "[libtriton_gesso.so]" in dynamic


def test_the_wheel_says_what_it_holds_and_under_which_terms():
    found = distribution()
    assert found.metadata["License-Expression"] == "Apache-2.0"
    assert found.metadata.get_all("License-File") == ["LICENSE", "THIRD-PARTY.txt"]
    assert {"torch", "jax", "cloud", "hf"} <= set(found.metadata.get_all("Provides-Extra"))
    assert "libjpeg-turbo" in found.read_text("licenses/THIRD-PARTY.txt")
    assert json.loads(found.read_text("sboms/gesso.cdx.json"))["metadata"]["component"]["version"] == found.version


def program(*words, **options):
    folder = Path(sys.executable).parent
    return subprocess.run([str(folder / "gesso"), *words], capture_output=True, text=True, timeout=60, **options)


def test_the_program_starts_quickly_and_without_numpy(tmp_path):
    distribution()
    (tmp_path / "numpy.py").write_text("raise ImportError('the program imports numpy')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    assert re.match(r"gesso \d", program("--version", env=environment).stdout)
    took = []
    for _ in range(5):
        began = time.perf_counter()
        program("--version", env=environment)
        took.append(time.perf_counter() - began)
    # A tenth of a second here, of which most is Python's; what a loaded machine takes is not the program's.
    assert min(took) < 1.0, took


def test_the_program_says_what_the_library_says(tmp_path):
    distribution()
    assert "Usage: gesso" in program("--help").stdout and program("--help").returncode == 0
    wrong = program("nonsense")
    assert wrong.returncode == 2 and "unrecognized subcommand" in wrong.stderr
    missing = program("inspect", str(tmp_path / "none.dali"))
    assert missing.returncode == 1 and "none.dali" in missing.stderr
    script = tmp_path / "model.py"
    head = "from gesso import fn, pipeline_def\n@pipeline_def(batch_size=2, num_threads=1)\n"
    script.write_text(head + "def model():\n    return fn.external_source(name='x') + 1\n")
    assert program("serialize", str(script), "-o", str(tmp_path / "model.dali")).returncode == 0
    assert "add" in program("inspect", str(tmp_path / "model.dali")).stdout
    broken = tmp_path / "broken.py"
    broken.write_text("raise ValueError('mine')\n")
    failed = program("serialize", str(broken), "-o", str(tmp_path / "x.dali"))
    assert failed.returncode == 1 and "mine" in failed.stderr and "broken.py" in failed.stderr


def test_the_program_installs_its_own_library(tmp_path):
    distribution()
    (tmp_path / "backends").mkdir()
    assert program("install", str(tmp_path)).returncode == 0
    assert (tmp_path / "backends/gesso/libtriton_gesso.so").read_bytes() == Path(_library.path()).read_bytes()


def test_a_model_in_python_is_checked_by_the_package_that_has_the_program(tmp_path):
    distribution()
    version = tmp_path / "models" / "own" / "1"
    version.mkdir(parents=True)
    (version.parent / "config.pbtxt").write_text('backend: "gesso"\nmax_batch_size: 2\n')
    (version / "pipeline.py").write_text(
        "from gesso import fn, pipeline_def, types\nfrom gesso.triton import autoserialize\n@autoserialize\n"
        "@pipeline_def(batch_size=2, num_threads=1, device_id=0)\ndef model():\n    return fn.external_source(name='x', ndim=1, dtype=types.FLOAT) + 1\n"
    )
    done = program("check", str(tmp_path / "models"))
    assert done.returncode == 0, done.stdout + done.stderr
