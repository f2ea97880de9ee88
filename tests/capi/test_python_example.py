"""The Python example against the plugin under test, on recorded pipelines; its arrays are DALI's answers."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "server"), str(ROOT / "examples" / "python")]

from ctypes_without_the_package import GessoError, Pipeline  # noqa: E402
from harness import plugin_path  # noqa: E402
from recorded import cases  # noqa: E402


@pytest.fixture
def files(tmp_path):
    """The path of a serialized pipeline, and what was recorded of it."""
    case = cases("pipelines")["two_outputs"]
    path = tmp_path / "model.dali"
    path.write_bytes(case.pipeline)
    return path, case


def test_arrays_share_the_librarys_memory_and_outlive_it(files):
    path, case = files
    with Pipeline(path, plugin_path()) as pipeline:
        outputs = pipeline.run([image.tobytes() for image in case.inputs["IMAGE"]])
    gc.collect()
    for i, arrays in enumerate(outputs):
        for k, array in enumerate(arrays):
            assert not array.flags.owndata
            expected = case.outputs[k][i]
            assert array.dtype == expected.dtype and array.shape == expected.shape
            np.testing.assert_allclose(array.astype(np.float64), expected.astype(np.float64), rtol=0, atol=case.tol)


def test_an_error_is_the_images_own(files):
    path, case = files
    with Pipeline(path, plugin_path()) as pipeline:
        good = case.inputs["IMAGE"][0].tobytes()
        first, second = pipeline.run([b"no image", good])
        assert isinstance(first, GessoError) and len(second) == 2
        with pytest.raises(GessoError, match="a batch of 0 samples"):
            pipeline.run([])
    with pytest.raises(GessoError, match="not a serialized DALI pipeline"):
        (path.parent / "x.dali").write_bytes(b"\xff\xff")
        Pipeline(path.parent / "x.dali", plugin_path())


def test_it_runs_as_a_program(files, tmp_path):
    path, case = files
    image = tmp_path / "a.jpg"
    image.write_bytes(case.inputs["IMAGE"][0].tobytes())
    program = [sys.executable, ROOT / "examples" / "python" / "ctypes_without_the_package.py", path, image]
    ran = subprocess.run(
        program, env=os.environ | {"GESSO_LIBRARY": str(plugin_path())}, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[0].startswith(f"{image} IMAGE_OUT uint8 (48, 56, 3) mean ")
