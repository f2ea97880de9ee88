"""A library with operators of its own, in a real server and on the command line: the example in C, built as a user does
it."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from contract_models import config
from harness import Server
from protocols import Client
from recorded import cases, write_model
from test_command_line import gesso

ROOT = Path(__file__).parents[2]
FRAMES = cases("brightness_contrast")["frames"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or pytest.skip("no cc here")
    path = tmp_path_factory.mktemp("operators") / "libvignette.so"
    source = ROOT / "examples/c/vignette_operator.c"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-I", ROOT / "include", source, "-o", path, "-ldl", "-lpthread"], check=True
    )
    return path


def pipeline():
    """The recorded pipeline with `Vignette` in the place of `Contrast`, which is as long: DALI records no operator of
    ours."""
    renamed = re.sub(rb"(?<![A-Za-z])Contrast", b"Vignette", FRAMES.pipeline)
    return re.sub(rb"(?<![A-Za-z])contrast", b"strength", renamed)


def darkened(image, strength):
    *_, height, width, _ = image.shape
    y, x = np.mgrid[:height, :width] + 0.5
    far = ((y - height / 2) ** 2 + (x - width / 2) ** 2) / (height**2 / 4 + width**2 / 4)
    return image * (1 - strength * far[..., None])


def test_models_use_the_operators_of_a_library(tmp_path, library):
    write_model(tmp_path, "dark", pipeline(), config())
    arguments = [f"--backend-config=dali,plugin_libs=/none/libnone.so:{library}"]
    image = FRAMES.inputs["X"][0]
    with Server(tmp_path, arguments=arguments) as server, Client("grpc", server) as client:
        first, second = client.outputs("dark")
        answer = client.infer("dark", {"X": image[None]})
        np.testing.assert_allclose(answer.as_numpy(first)[0], FRAMES.outputs[0][0], atol=1)
        np.testing.assert_allclose(answer.as_numpy(second)[0], darkened(image, 0.3), atol=0.51)
        log = server.log
    assert "operators are loaded" in log and "Vignette" in log, log
    assert "library `/none/libnone.so`" in log, "what cannot be loaded is said, and the server serves"


def test_the_command_line_loads_a_library(tmp_path, library):
    path = tmp_path / "dark.dali"
    path.write_bytes(pipeline())
    without = gesso("inspect", path)
    assert "not known" in without.stdout + without.stderr
    told = gesso("inspect", "--plugin-lib", library, path)
    assert told.returncode == 0 and "Vignette" in told.stdout and "runs on the CPU" in told.stdout, told
    refused = gesso("--plugin-lib", ROOT / "README.md", "inspect", path)
    assert refused.returncode == 1 and "README.md" in refused.stderr, refused
