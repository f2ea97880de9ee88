"""The example in C under valgrind, which also sees what the sanitizers of this library's own build cannot: reads of
memory that nothing was written to, and in the release build."""

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("GESSO_PLUGIN") or ROOT / "target" / "release" / "libtriton_gesso.so").resolve()
WRONG = 9


def recorded(folder, name):
    """Writes a recorded pipeline and its images; their paths."""
    with zipfile.ZipFile(ROOT / "tests/conformance/data/pipelines.zip") as archive:
        cases = json.loads(archive.read("index.json"))["cases"]
        case = next(case for case in cases if case["name"] == name)
        pipeline = folder / "model.dali"
        pipeline.write_bytes(archive.read(case["pipeline"]["key"]))
        images = [folder / f"{i}.jpg" for i in range(len(case["inputs"]["IMAGE"]))]
        for path, image in zip(images, case["inputs"]["IMAGE"]):
            path.write_bytes(archive.read(image["key"]))
    return pipeline, images


def test_the_example_reads_and_leaks_nothing_wrong(tmp_path):
    if shutil.which("valgrind") is None or shutil.which("cc") is None:
        pytest.skip("no valgrind or no C compiler here")
    program = tmp_path / "jpeg_to_npy"
    source = ROOT / "examples/c/jpeg_to_npy.c"
    command = ["cc", "-g", "-std=c11", f"-I{ROOT / 'include'}", source, LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}"]
    subprocess.run([*command, "-o", program], check=True)
    pipeline, images = recorded(tmp_path, "classify")
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(images[0].read_bytes()[:100])
    valgrind = ["valgrind", f"--error-exitcode={WRONG}", "--leak-check=full", "--errors-for-leak-kinds=definite"]
    ran = subprocess.run(
        [*valgrind, program, pipeline, tmp_path / "OUT", *images, broken], capture_output=True, text=True, timeout=600
    )
    assert "ERROR SUMMARY: 0 errors" in ran.stderr and ran.returncode != WRONG, ran.stderr
    assert len(list(tmp_path.glob("OUT.*.npy"))) == len(images), ran.stderr
