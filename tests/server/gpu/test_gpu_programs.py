"""What is not the server, on a GPU: the command line beside it, and a library with operators of its own."""

import json

import numpy as np
import pytest
import tritonclient.grpc as triton
from harness import Server
from on_gpu import PIPELINES, config
from recorded import write_model
from sending import alone, infer
from test_command_line import check_run, gesso
from test_custom_operators import FRAMES, darkened, library, pipeline

__all__ = ["library"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    for case in PIPELINES.values():
        write_model(made, case.name, case.pipeline, config())
    return made


def test_runs_equal_the_servers_answers_bit_for_bit(repository, tmp_path):
    with Server(repository) as server, triton.InferenceServerClient(server.grpc_url) as client:
        for name, case in PIPELINES.items():
            outputs = [output["name"] for output in server.model_config(case.name)["output"]]
            (tmp_path / name).mkdir()
            check_run(
                repository / case.name / "1" / "model.dali", case, client, outputs, tmp_path / name, "--device", "gpu"
            )


def test_models_for_a_gpu_are_checked_there(repository):
    checked = gesso("check", "--json", repository)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_benchmark_has_a_row_for_each_setting(repository, tmp_path):
    (tmp_path / "0.jpg").write_bytes(PIPELINES["classify"].inputs["IMAGE"][0].tobytes())
    arguments = [
        "--input",
        f"IMAGE={tmp_path / '0.jpg'}",
        "--batch",
        "1,8",
        "--seconds",
        "0.2",
        "--device",
        "gpu",
        "--json",
    ]
    measured = gesso("bench", repository / PIPELINES["classify"].name / "1" / "model.dali", *arguments)
    assert measured.returncode == 0, measured.stderr
    assert [row["batch"] for row in json.loads(measured.stdout)] == [1, 8]


def test_an_operator_of_a_library_runs_on_the_gpu(tmp_path, library):
    # Both devices have names of three letters.
    write_model(tmp_path, "dark", pipeline().replace(b"cpu", b"gpu"), config())
    with Server(tmp_path, arguments=[f"--backend-config=gesso,plugin_libs={library}"]) as server:
        assert "has no form for a GPU" not in server.log
        with triton.InferenceServerClient(server.grpc_url) as client:
            outputs = [output["name"] for output in server.model_config("dark")["output"]]
            for image, expected in zip(FRAMES.inputs["X"], FRAMES.outputs[0]):
                first, second = infer(client, "dark", alone({"X": image}), outputs)
                np.testing.assert_allclose(first[0], expected, atol=1)
                np.testing.assert_allclose(second[0], darkened(image, 0.3), atol=0.51)
