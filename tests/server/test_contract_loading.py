"""How a model gets from a directory to a server, and what is said when it does not: one test a rule."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from contract_models import CASES, CLASSIFY, X, config, parameter, tensor
from harness import ROOT, Server, wait_until
from protocols import Client
from recorded import write_model
from tritonclient.utils import InferenceServerException

PLUS_ONE = CASES["plus_one"].pipeline
# Made by `tests/plugin/models/make.py`.
SMALL = {
    name: (ROOT / "tests/plugin/models" / name / "1/model.dali").read_bytes()
    for name in ("classify", "declared", "through")
}
ONE_ROW = np.array([[1, 2, 3]], np.float32)

SCRIPT = """
import nvidia.dali as dali
from nvidia.dali.plugin.triton import autoserialize

print("what a model prints is not its pipeline")

@autoserialize
@dali.pipeline_def(batch_size=5, num_threads=2, device_id=None)
def made_in_python():
    x = dali.fn.external_source(device="cpu", name="X", dtype=dali.types.FLOAT, ndim=1)
    return dali.fn.cast(x + 1.0, dtype=dali.types.FLOAT, name="SUM")
"""


def python_with_dali():
    """An interpreter that has DALI: `$GESSO_DALI_PYTHON`, this one, or the system's."""
    for candidate in filter(None, (os.environ.get("GESSO_DALI_PYTHON"), sys.executable, shutil.which("python3"))):
        if subprocess.run([candidate, "-c", "import nvidia.dali"], capture_output=True).returncode == 0:
            return candidate
    return pytest.skip("no Python with nvidia.dali here: set GESSO_DALI_PYTHON to one")


def reasons(client):
    """What the server says of each model that it did not load."""
    index = client.connected.get_model_repository_index().models
    return {model.name: model.reason for model in index if model.state != "READY"}


def write_python(folder, name, script, lines=(), filename="dali.py"):
    return write_model(folder, name, script.encode(), lines and config(*lines), filename=filename)


def test_pipelines_in_python_are_serialized(tmp_path):
    python = python_with_dali()
    write_python(tmp_path, "beside", SCRIPT, ["max_batch_size: 7"])
    write_python(tmp_path, "chosen", SCRIPT, ['default_model_filename: "my model.py"'], "my model.py")
    write_python(tmp_path, "no_config.dali", SCRIPT, None)
    write_python(tmp_path, "behind_garbage", SCRIPT, ["max_batch_size: 7"])
    (tmp_path / "behind_garbage" / "1" / "model.dali").write_text("not a pipeline")
    # Without a GPU DALI refuses to build it.
    write_python(tmp_path, "for_a_gpu", SCRIPT.replace("device_id=None", "device_id=0"), ["max_batch_size: 7"])
    write_python(tmp_path, "two", SCRIPT + SCRIPT.replace("made_in_python", "once_more"), ["max_batch_size: 7"])
    write_python(tmp_path, "none", "import nvidia.dali", ["max_batch_size: 7"])
    write_python(tmp_path, "raises", "raise ValueError('of \u00fcmlauts')", ["max_batch_size: 7"])
    arguments = [f"--backend-config=dali,python={python}"]
    with Server(tmp_path, arguments=arguments, strict=False) as server, Client("grpc", server) as client:
        for name in ("beside", "chosen", "no_config.dali", "behind_garbage", "for_a_gpu"):
            np.testing.assert_array_equal(client.infer(name, {"X": ONE_ROW}).as_numpy("SUM"), ONE_ROW + 1)
        assert server.model_config("beside")["max_batch_size"] == 7
        assert server.model_config("chosen")["max_batch_size"] == 5
        said = reasons(client)
    assert set(said) == {"two", "none", "raises"}
    assert "Found 2" in said["two"] and "Found none" in said["none"]
    assert "ValueError: of \u00fcmlauts" in said["raises"] and "raises/1/dali.py" in said["raises"]
    left = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert set(left) <= {"config.pbtxt", "dali.py", "model.dali", "my model.py"}, "a file was left behind"


OWN_SCRIPT = """
from gesso import fn, pipeline_def, types
from gesso.triton import autoserialize

@autoserialize
@pipeline_def(batch_size=5, num_threads=2, device_id=0)
def made_in_python():
    x = fn.external_source(name="X", dtype=types.FLOAT, ndim=1)
    return fn.cast(x.gpu() + 1.0, dtype=types.FLOAT, name="SUM")
"""


def test_pipelines_in_python_are_written_by_our_own_package(tmp_path):
    pytest.importorskip("gesso", reason="the package is not installed: `scripts/wheel` makes it")
    # An interpreter in which DALI cannot be imported, whatever else it has.
    python = tmp_path / "python"
    blocked = "import sys\nsys.modules['nvidia.dali.backend_impl'] = None\n"
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "sitecustomize.py").write_text(blocked)
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}/first:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    models = tmp_path / "models"
    write_python(models, "own", OWN_SCRIPT, ["max_batch_size: 7"], "pipeline.py")
    write_python(models, "alone.gesso", OWN_SCRIPT, None, "pipeline.py")
    write_python(models, "dalis", SCRIPT.replace("device_id=None", "device_id=0"), ["max_batch_size: 7"])
    write_python(models, "lacking", SCRIPT.replace("dali.fn.cast(", "dali.fn.no_such("), ["max_batch_size: 7"])
    arguments = [f"--backend-config={name},python={python}" for name in ("dali", "gesso")]
    with Server(models, arguments=arguments, strict=False) as server, Client("grpc", server) as client:
        for name in ("own", "alone.gesso", "dalis"):
            np.testing.assert_array_equal(client.infer(name, {"X": ONE_ROW}).as_numpy("SUM"), ONE_ROW + 1)
        said = reasons(client)
    assert set(said) == {"lacking"} and "no_such" in said["lacking"], said
    # What the program `gesso serialize` writes is the same.
    (tmp_path / "my.py").write_text(OWN_SCRIPT)
    program = [sys.executable, "-m", "gesso", "serialize", str(tmp_path / "my.py"), "-o", str(tmp_path / "model.dali")]
    subprocess.run(program, check=True, capture_output=True)
    write_model(tmp_path / "written", "written", (tmp_path / "model.dali").read_bytes(), config("max_batch_size: 7"))
    with Server(tmp_path / "written") as server, Client("grpc", server) as client:
        np.testing.assert_array_equal(client.infer("written", {"X": ONE_ROW}).as_numpy("SUM"), ONE_ROW + 1)


def test_a_pipeline_in_python_where_dali_is_not_is_told_what_to_do(tmp_path):
    empty = tmp_path / "empty python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(empty)], check=True)
    write_python(tmp_path / "models", "no_dali", SCRIPT, ["max_batch_size: 7"])
    arguments = [f"--backend-config=dali,python={empty}/bin/python3"]
    with Server(tmp_path / "models", arguments=arguments, strict=False) as server, Client("grpc", server) as client:
        said = reasons(client)["no_dali"]
    for word in ("neither Gesso's package nor DALI", "No module named", "nvidia-dali", "model.dali", "dali.py"):
        assert word in said, said
    with Server(tmp_path / "models", arguments=["--backend-config=dali,python=nothing"], strict=False) as server:
        with Client("grpc", server) as client:
            assert "cannot be run" in reasons(client)["no_dali"]


def test_a_path_of_any_characters(tmp_path):
    name = "a model+@=\u00e9\u6a21$(touch owned);'"
    folder = tmp_path / 'models "with" spaces & \u00fcmlauts'
    write_model(folder, "plain", PLUS_ONE, config(f'default_model_filename: "{name}"'), filename=name)
    with Server(folder) as server, Client("http", server) as client:
        np.testing.assert_array_equal(client.infer("plain", {"X": ONE_ROW}).as_numpy("SUM"), ONE_ROW + 1)


def test_a_zero_that_is_written_is_kept(contract):
    for model in ("unbatched", "unbatched_listed", "unbatched_images", "scalars_unbatched"):
        found = contract.model_config(model)
        assert found["max_batch_size"] == 0 and "dynamic_batching" not in found
    assert contract.model_config("unbatched")["input"][0]["dims"] == [-1, -1]
    assert contract.model_config("two_outputs")["max_batch_size"] == 3, "absent: that of the pipeline"


def test_a_configuration_over_the_network_counts_instead_of_the_file(tmp_path):
    write_model(tmp_path, "model", PLUS_ONE, config("max_batch_size: 0"))
    with Server(tmp_path, models=["model"]) as server, Client("grpc", server) as client:
        assert server.model_config("model")["max_batch_size"] == 0
        client.connected.load_model("model", config='{"backend": "dali", "max_batch_size": 6}')
        assert server.model_config("model")["max_batch_size"] == 6
        np.testing.assert_array_equal(client.infer("model", {"X": ONE_ROW}).as_numpy("SUM"), ONE_ROW + 1)


WITHOUT_COMPLETION = [
    "max_batch_size: 8",
    tensor("input", "IMAGE", "UINT8", -1),
    tensor("output", "PIXELS", "FP32", 3, 64, 64),
]


def test_configurations_are_checked_where_completion_is_turned_off(tmp_path):
    write_model(tmp_path, "complete", CLASSIFY.pipeline, config(*WITHOUT_COMPLETION))
    wrong = [WITHOUT_COMPLETION[0], tensor("input", "IMAGE", "FP16", -1), WITHOUT_COMPLETION[2]]
    write_model(tmp_path, "wrong", CLASSIFY.pipeline, config(*wrong))
    with Server(tmp_path, arguments=["--disable-auto-complete-config"], strict=False) as server:
        with Client("grpc", server) as client:
            said = reasons(client)
            answer = client.infer("complete", {"IMAGE": CLASSIFY.inputs["IMAGE"][0][None]})
    assert answer.as_numpy("PIXELS").shape == (1, 3, 64, 64)
    for word in ("IMAGE", "TYPE_FP16", "TYPE_UINT8"):
        assert word in said["wrong"]


def test_config_validation_names_the_tensor_and_both_values(tmp_path):
    """The faults of DALI's own QA and a few more: what a user looks for in the message."""
    image, size = tensor("input", "LEFT", "UINT8", -1), "max_batch_size: 8"
    faults = {
        "input_type": ([size, tensor("input", "LEFT", "FP32", -1)], ["LEFT", "TYPE_FP32", "TYPE_UINT8"]),
        "input_rank": ([size, tensor("input", "LEFT", "UINT8", -1, 3)], ["LEFT", "2 dimensions", "1"]),
        "output_type": ([size, tensor("output", "L", "FP32", 32, 40, 3)], ["`L`", "TYPE_FP32", "TYPE_UINT8"]),
        "output_rank": ([size, tensor("output", "L", "UINT8", 32, 40)], ["`L`", "2 dimensions", "the pipeline has 3"]),
        "unknown_input": ([size, tensor("input", "MIDDLE", "UINT8", -1)], ["MIDDLE", "LEFT", "RIGHT"]),
        "more_outputs": ([size, *(f'output {{ name: "{n}" }}' for n in "ABC")], ["3 outputs", "has 2"]),
        "unnamed": (
            [size, *(f'output {{ name: "{n}" }}' for n in "AB")],
            ["2 outputs", "has 1 (an unnamed one of `CropMirrorNormalize`)"],
        ),
        "wrong_threads": ([size, parameter("num_threads", "many")], ["num_threads", "many"]),
        "no_default": ([size, image, parameter("default.LEFT", "1")], ["default.LEFT", "optional"]),
        "flat_split": ([size, parameter("split_along_outer_axis", "SUM")], ["`SUM`", "2 dimensions", "has 1"]),
    }
    pipelines = {"flat_split": PLUS_ONE, "unnamed": SMALL["classify"]}
    pipelines |= dict.fromkeys(("output_type", "output_rank"), SMALL["declared"])
    for name, (lines, _) in faults.items():
        write_model(tmp_path, name, pipelines.get(name, CASES["two_inputs"].pipeline), config(*lines))
    write_model(tmp_path, "outside", PLUS_ONE, config('default_model_filename: "../1/model.dali"'))
    write_model(tmp_path, "missing", PLUS_ONE, config(), filename="other.dali")
    write_model(tmp_path, "good", PLUS_ONE, config())
    expected = {name: words for name, (_, words) in faults.items()}
    expected |= {"outside": ["../1/model.dali"], "missing": ["1/model.dali", "1/dali.py"]}
    with Server(tmp_path, strict=False) as server, Client("grpc", server) as client:
        said = reasons(client)
        assert set(said) == set(expected), "a broken model takes no other with it"
        for name in expected:
            lines = [line for line in server.log.splitlines() if line.startswith("E") and f"model `{name}`" in line]
            assert len(lines) == 1, "a failure is an error of the log once"
        np.testing.assert_array_equal(client.infer("good", {"X": ONE_ROW}).as_numpy("SUM"), ONE_ROW + 1)
    for name, words in expected.items():
        for word in words:
            assert word in said[name], (name, said[name])


def test_what_the_pipelines_author_did_not_declare_is_not_enforced(tmp_path):
    """Models of DALI's examples, smaller: `multi_input`, whose configuration has another type, `rn50`, whose has other
    extents, and `resnet50_trt`, whose input says nothing of itself."""
    raw = tensor("input", "raw", "UINT8", -1, more="allow_ragged_batch: true")
    outputs = [tensor("output", "pixels", "UINT8", -1, -1, -1), tensor("output", "same", "INT32", -1)]
    write_model(tmp_path, "multi_input", SMALL["through"], config("max_batch_size: 4", raw, *outputs))
    encoded = tensor("input", "encoded", "UINT8", -1)
    write_model(
        tmp_path,
        "rn50",
        SMALL["classify"],
        config("max_batch_size: 4", encoded, tensor("output", "OUT", "FP32", 16, 16, 3)),
    )
    write_model(tmp_path, "one_line", SMALL["classify"], config())
    image = np.arange(6, dtype=np.uint8).reshape(1, 1, 2, 3)
    sent = {"image": image, "raw": np.array([[7, 8, 9]], np.uint8)}
    photo = CLASSIFY.inputs["IMAGE"][0][None]
    with Server(tmp_path) as server, Client("grpc", server) as client:
        for _ in range(2):
            answer = client.infer("multi_input", sent)
            np.testing.assert_array_equal(answer.as_numpy("pixels"), image[:, :, ::-1])
            same = answer.get_output("same")
            assert (same.datatype, same.shape) == ("UINT8", [1, 3])
            np.testing.assert_array_equal(answer.as_numpy("same"), sent["raw"])
        assert client.infer("rn50", {"encoded": photo}).as_numpy("OUT").shape == (1, 3, 16, 16)
        (found,) = server.model_config("one_line")["output"]
        assert (found["data_type"], found["dims"]) == ("TYPE_FP32", [3, 16, 16])
        answer = client.infer("one_line", {"encoded": photo})
        assert answer.as_numpy(found["name"]).shape == (1, 3, 16, 16)
        assert server.log.count("output `same` has data_type `TYPE_INT32`") == 1, "said once"
        assert server.log.count("output `OUT` has dims [16, 16, 3]") == 1, "said once"


def test_an_operator_that_there_is_not_is_refused_by_name(tmp_path):
    video = CLASSIFY.pipeline.replace(b"decoders__Image", b"inputs__MyVideo")
    assert video != CLASSIFY.pipeline
    write_model(tmp_path, "video", video, config("max_batch_size: 4"))
    with Server(tmp_path, strict=False) as server, Client("grpc", server) as client:
        said = reasons(client)
    assert "operator `inputs__MyVideo` (`__Image_0`): this operator is not known" in said["video"]


def test_an_instance_on_a_gpu_that_is_not_there_is_refused_by_the_server(tmp_path):
    """What `docs/guides/troubleshooting.md` says of it is what the server says."""
    lines = ["max_batch_size: 4", "instance_group [ { kind: KIND_GPU } ]"]
    write_model(tmp_path, "on_gpu", PLUS_ONE, config(*lines))
    with (
        Server(tmp_path, strict=False, environment={"CUDA_VISIBLE_DEVICES": ""}) as server,
        Client("grpc", server) as client,
    ):
        said = reasons(client)
    assert "has kind KIND_GPU but" in said["on_gpu"], said


def test_options_on_the_command_line(tmp_path):
    write_model(tmp_path, "model", PLUS_ONE, config())
    write_model(tmp_path, "own", PLUS_ONE, config(parameter("max_batches_in_flight", "2")))
    options = {
        "max_batches_in_flight": 3,
        "num_threads": 2,
        "release_after_unload": "TRUE",
        "plugin_libs": "/a.so",
        "pace": 1,
    }
    arguments = [f"--backend-config=dali,{key}={value}" for key, value in options.items()]
    with Server(tmp_path, arguments=arguments) as server:
        log = server.log
    assert "instance=model_0 device=host batches_in_flight=3" in log, log
    assert "instance=own_0 device=host batches_in_flight=2" in log, log
    assert "library `/a.so`" in log and "unknown backend option `pace`" in log, log


def test_num_threads_is_the_number_of_threads(contract):
    """Three for the model that asks for them, beside those of its neighbours."""
    with Client("grpc", contract) as client:
        before = threads_named(contract.pid, "gesso-2")
        client.connected.unload_model("threads")
        wait_until(lambda: threads_named(contract.pid, "gesso-2") == before - 1, "its third thread has gone")
        client.connected.load_model("threads")
        # A thread names itself when it runs first.
        wait_until(lambda: threads_named(contract.pid, "gesso-2") == before, "it is there again")


def threads_named(pid, name):
    found = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/comm") as comm:
                found += comm.read().strip() == name
        except FileNotFoundError:
            continue
    return found


def test_an_instance_on_the_host_touches_no_gpu(tmp_path):
    """A pipeline made for a GPU, with every device hidden: it must not even ask for one."""
    lines = ["instance_group [ { kind: KIND_CPU } ]", "max_batch_size: 4"]
    write_model(tmp_path, "hosted", CASES["identity_made_for_gpu"].pipeline, config(*lines, X))
    with Server(tmp_path, environment={"CUDA_VISIBLE_DEVICES": ""}) as server, Client("grpc", server) as client:
        assert client.infer("hosted", {"X": ONE_ROW}) is not None
        assert "device is open" not in server.log


def test_instances_load_and_work_side_by_side(tmp_path):
    write_model(
        tmp_path, "many", PLUS_ONE, config("max_batch_size: 4", "instance_group [ { kind: KIND_CPU count: 4 } ]")
    )
    with Server(tmp_path) as server, Client("grpc", server) as client:
        assert server.log.count("instance is ready model=many") == 4
        assert server.log.count("plan of `") == 1, "the pipeline is planned once"
        for _ in range(8):
            np.testing.assert_array_equal(client.infer("many", {"X": ONE_ROW}).as_numpy("SUM"), ONE_ROW + 1)


def test_unloading_gives_memory_back(tmp_path):
    """A batch of 200 MB, then the model goes: so does nearly all that it took."""
    write_model(tmp_path, "large", CASES["plus_one"].pipeline, config("max_batch_size: 64", X))
    sent = np.zeros((64, 400_000), np.float32)
    with Server(tmp_path, models=["large"]) as server, Client("http", server) as client:
        client.infer("large", {"X": ONE_ROW})
        client.connected.unload_model("large")
        wait_gone(client, "large")
        idle = server.rss
        for _ in range(3):
            client.connected.load_model("large")
            client.infer("large", {"X": sent})
            client.connected.unload_model("large")
            wait_gone(client, "large")
        wait_until(
            lambda: server.rss - idle < 0.5 * sent.nbytes, f"no more than {idle / 1e6:.0f} MB and a part are used"
        )


def wait_gone(client, model):
    def gone():
        try:
            client.connected.get_model_config(model)
        except InferenceServerException:
            return True
        return False

    wait_until(gone, f"`{model}` is unloaded")
