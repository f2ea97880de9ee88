"""`gesso run` gives what the server answers, bit for bit, and `gesso check` says of a model what the server does with
it."""

import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton
from google.protobuf import text_format
from harness import Server, plugin_path
from recorded import cases, write_model
from sending import alone, infer
from tritonclient.grpc import model_config_pb2

CASES = {name: case for name, case in cases("pipelines").items() if name != "passed_through"}


def gesso(*arguments):
    """Runs the program: `$GESSO_PROGRAM`, or that of the release build beside the plugin."""
    program = Path(os.environ.get("GESSO_PROGRAM") or plugin_path().with_name("gesso"))
    if not program.is_file():
        pytest.skip(f"no program `{program}`: GESSO_PROGRAM names one")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    for case in CASES.values():
        write_model(made, case.name, case.pipeline)
    return made


@pytest.fixture(scope="module")
def connected(repository):
    with Server(repository) as server, triton.InferenceServerClient(server.grpc_url) as client:
        client.completed = {name: server.model_config(name) for name in CASES}
        yield client


def check_run(model, case, client, outputs, folder, *options):
    """Compares what `gesso run` writes of a recorded case with the server's answers."""
    # Sample by sample, as the server gets them: where numbers are random, a batch has others.
    arguments = ["run", model, "--batch", "1", "--out", folder / "out", "--json", *options]
    for name, samples in case.inputs.items():
        files = []
        for i, sample in enumerate(samples):
            encoded = sample.dtype == np.uint8 and sample.ndim == 1
            files.append(folder / f"{name}{i}.{'jpg' if encoded else 'npy'}")
            files[-1].write_bytes(sample.tobytes()) if encoded else np.save(files[-1], sample)
        arguments += ["--input", f"{name}={','.join(map(str, files))}"]
    ran = gesso(*arguments)
    assert ran.returncode == 0, ran.stderr
    written = {(entry["output"], entry["sample"]): entry["file"] for entry in json.loads(ran.stdout)["outputs"]}
    assert len(written) == len(outputs) * len(case.samples)
    for i in case.samples:
        answers = infer(client, case.name, alone({n: samples[i] for n, samples in case.inputs.items()}), outputs)
        for output, answer in zip(outputs, answers):
            array = np.load(written[output, i])
            assert array.dtype == answer.dtype and array.shape == answer.shape[1:]
            assert array.tobytes() == answer.tobytes(), (output, i)


@pytest.mark.parametrize("name", CASES)
def test_runs_equal_the_servers_answers_bit_for_bit(repository, connected, tmp_path, name):
    outputs = [output["name"] for output in connected.completed[name]["output"]]
    check_run(repository / name / "1" / "model.dali", CASES[name], connected, outputs, tmp_path)


def test_a_check_completes_configurations_as_the_server_does(repository, connected):
    checked = gesso("check", "--json", repository)
    assert checked.returncode == 0, checked.stdout
    reports = {report["model"]: report for report in json.loads(checked.stdout)}
    for name, served in connected.completed.items():
        config = reports[name]["config"]
        assert config["max_batch_size"] == served["max_batch_size"]
        assert ("dynamic_batching" in config) == ("dynamic_batching" in served)
        for role in ("input", "output"):
            facts = [[t.get(key, False) for key in ("name", "data_type", "allow_ragged_batch")] for t in config[role]]
            assert facts == [
                [t.get(key, False) for key in ("name", "data_type", "allow_ragged_batch")] for t in served[role]
            ]
            assert [[int(n) for n in t["dims"]] for t in config[role]] == [
                [int(n) for n in t["dims"]] for t in served[role]
            ]


# Every kind of map that a model of Gesso's may have, and what is easily written wrongly.
EVERYTHING = """
max_batch_size: 8
metric_tags { key: "team" value: "\\"b\\"\\\\c\\t\\303\\251" }
metric_tags { key: "floor" value: "2" }
parameters { key: "num_threads" value { string_value: "1" } }
parameters { key: "formats" value { string_value: "jpeg,png" } }
instance_group [ {
  name: "g" kind: KIND_CPU count: 1 rate_limiter { resources [ { name: "a" count: 1 }, { name: "b" count: 2 } ] }
} ]
dynamic_batching {
  priority_levels: 2 default_priority_level: 2 preferred_batch_size: [ 2, 4 ]
  priority_queue_policy {
    key: 1 value { max_queue_size: 4 timeout_action: DELAY default_timeout_microseconds: 9000000 }
  }
  priority_queue_policy { key: 2 value { max_queue_size: 4294967295 } }
}
model_warmup [ {
  name: "first" batch_size: 1
  inputs { key: "IMAGE" value { data_type: TYPE_UINT8 dims: [ %d ] input_data_file: "photo" } }
}, {
  name: "second" batch_size: 2
  inputs { key: "IMAGE" value { data_type: TYPE_UINT8 dims: %d input_data_file: "photo" } }
} ]
"""


def test_the_server_reads_the_configuration_that_a_check_prints(tmp_path):
    photo = CASES["classify"].inputs["IMAGE"][0]
    config = 'backend: "gesso"\n' + EVERYTHING % (photo.size, photo.size)
    served = []
    for turn in ("written", "printed"):
        folder = write_model(tmp_path / turn, "m", CASES["classify"].pipeline, config)
        (folder / "warmup").mkdir()
        (folder / "warmup" / "photo").write_bytes(photo.tobytes())
        checked = gesso("check", "--config", tmp_path / turn)
        assert checked.returncode == 0, checked.stdout
        with Server(tmp_path / turn) as server:
            served.append(server.model_config("m"))
        lines = re.findall("^ {9}(?!note: )(.*)$", checked.stdout, re.MULTILINE)
        config = "\n".join(lines) + "\n"
        # The server's own parser is protobuf's.
        text_format.Parse(config, model_config_pb2.ModelConfig())
    assert served[0] == served[1]
    assert served[1]["metric_tags"] == {"team": '"b"\\c\té', "floor": "2"}
    assert [list(warmup["inputs"]) for warmup in served[1]["model_warmup"]] == [["IMAGE"], ["IMAGE"]]


def test_a_check_asks_a_running_server(tmp_path):
    """It fails where a model does not answer, although the server is ready."""
    for name in ("classify", "two_outputs", "decode_only"):
        write_model(tmp_path, name, CASES[name].pipeline)
    strings = 'backend: "gesso"\ninput { name: "IMAGE" data_type: TYPE_STRING dims: [ 1 ] }\n'
    write_model(tmp_path, "strings", CASES["classify"].pipeline, strings)
    few = 'backend: "gesso"\nparameters { key: "max_pixels" value { string_value: "%d" } }\n'
    few_pixels = write_model(tmp_path, "few_pixels", CASES["classify"].pipeline, few % 100_000_000)
    with Server(tmp_path, models=["*"]) as server:
        checked = gesso("check", "--server", server.http_url, tmp_path)
        assert checked.returncode == 0, checked.stdout
        # The picture that a check makes has 3 million pixels; the limit does not count in this program.
        (few_pixels / "config.pbtxt").write_text(few % 1_000)
        with triton.InferenceServerClient(server.grpc_url) as client:
            client.load_model("few_pixels")
            client.unload_model("strings")
        checked = gesso("check", "--server", f"http://{server.http_url}", "--json", tmp_path)
        assert checked.returncode == 1
    reports = {report["model"]: report for report in json.loads(checked.stdout)}
    failed = {name: report["error"] for name, report in reports.items() if report["status"] == "failed"}
    assert set(failed) == {"few_pixels", "strings"}
    assert "larger than the model's limit of 1000 pixels" in failed["few_pixels"] and "status " in failed["strings"]
    checked = gesso("check", "--server", server.http_url, tmp_path)
    assert checked.returncode == 1 and checked.stdout.count(f"server `{server.http_url}`") == 5, "nobody listens"


BAD = {
    "outputs": 'output [ { name: "A" }, { name: "B" }, { name: "C" } ]',
    "dtype": 'input { name: "IMAGE" data_type: TYPE_FP32 dims: [ -1 ] }',
    "threads": 'parameters { key: "num_threads" value { string_value: "many" } }',
    "optional": 'parameters { key: "default.NO" value { string_value: "1" } }',
}


def test_a_check_gives_the_servers_errors(tmp_path):
    for name, config in BAD.items():
        write_model(tmp_path, name, CASES["classify"].pipeline, f'backend: "gesso"\n{config}\n')
    write_model(tmp_path, "broken", CASES["classify"].pipeline[:300])
    checked = gesso("check", "--json", tmp_path)
    assert checked.returncode == 1
    reports = {report["model"]: report for report in json.loads(checked.stdout)}
    with Server(tmp_path, strict=False) as server:
        for name, report in reports.items():
            assert report["status"] == "failed" and not server.model_ready(name)
            error = re.sub(r"^`[^`]*/([^/`]*)`", r"\1", report["error"])
            assert error in server.log or error.split(": ", 1)[-1] in server.log, f"{name}: {error}"
    assert [reports[name]["config_pbtxt_line"] for name in ("dtype", "threads")] == [2, 2]
