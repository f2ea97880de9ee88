"""Requests that a server records, and `gesso replay`, which compares what is answered to them now. And the server's log
as JSON."""

import json
import re
import shutil

import numpy as np
import pytest
import tritonclient.grpc as triton
from contract_models import CASES, CLASSIFY, X, config, parameter, tensor
from gesso import fn, pipeline_def, types
from harness import Server, wait_until
from recorded import write_model
from sending import alone, infer, strings
from sending import tensor as sent
from test_command_line import gesso

PLUS_ONE = CASES["plus_one"].pipeline
PHOTOS = CLASSIFY.inputs["IMAGE"]
RECORDED = re.compile(r"^gesso_recorded_requests_total\{([^}]*)\} (\d+)", re.MULTILINE)


@pipeline_def(batch_size=8, num_threads=1, device_id=None)
def plus(number, ndim=1):
    x = fn.external_source(name="X", dtype=types.FLOAT, ndim=ndim)
    return fn.cast(x + number, dtype=types.FLOAT, name="SUM")


def recorded(server, model, outcome="written"):
    """How many requests of a model were recorded, by the metrics port."""
    found = {labels: int(count) for labels, count in RECORDED.findall(server.metrics)}
    return sum(n for labels, n in found.items() if f'"{model}"' in labels and f'outcome="{outcome}"' in labels)


def replay(folder, *arguments):
    ran = gesso("replay", folder, "--json", *arguments)
    assert ran.returncode in (0, 1), ran.stderr
    found = json.loads(ran.stdout)
    return ran.returncode, {name: n for name, n in found["counts"].items() if n}, found["requests"]


@pytest.fixture(scope="module")
def traffic(tmp_path_factory):
    """A server with models that record, and a copy of the folder of the records."""
    root = tmp_path_factory.mktemp("recording")
    records, models = root / "records", root / "models"
    records.mkdir()

    def write(name, pipeline, *lines):
        record = parameter("record_requests", name)
        write_model(models, name, pipeline, config(*lines, record, backend="gesso"))

    write("sum", PLUS_ONE, "max_batch_size: 8", X)
    write("image", CLASSIFY.pipeline, "max_batch_size: 8")
    write("text", CLASSIFY.pipeline, "max_batch_size: 8", tensor("input", "IMAGE", "STRING", 1))
    shape = "dims: [ 3, 1 ] reshape { shape: [ 3 ] }"
    reshaped = [
        f'{role} {{ name: "{name}" data_type: TYPE_FP32 {shape} }}'
        for role, name in (("input", "X"), ("output", "SUM"))
    ]
    write("reshaped", PLUS_ONE, "max_batch_size: 8", *reshaped)
    write("crops", CASES["crops"].pipeline, parameter("split_along_outer_axis", "EACH"))
    write("few", PLUS_ONE, "max_batch_size: 8", X, parameter("record_max_count", "2"))
    write_model(models, "silent", PLUS_ONE, config("max_batch_size: 8", X, backend="gesso"))
    write_model(models, "next", plus(1.25).serialize(), config("max_batch_size: 8", X, backend="gesso"))
    write_model(models, "wider", plus(1.0, ndim=2).serialize(), config("max_batch_size: 8", backend="gesso"))

    counts = {}
    with (
        Server(models, arguments=[f"--backend-config=gesso,record_folder={records}"]) as server,
        triton.InferenceServerClient(server.grpc_url) as client,
    ):

        def send(model, arrays, fails=False):
            answer = infer(client, model, arrays)
            assert isinstance(answer, Exception) == fails, answer
            counts[model] = counts.get(model, 0) + 1

        for n in (1, 2, 3):
            for model in ("sum", "few", "silent"):
                send(model, {"X": np.arange(3 * n, dtype=np.float32).reshape(n, 3)})
            send("reshaped", {"X": np.arange(3 * n, dtype=np.float32).reshape(n, 3, 1)})
        for photo in PHOTOS[:3]:
            send("image", alone({"IMAGE": photo}))
            client.infer("text", [strings("IMAGE", [photo.tobytes()] * 2)], request_id="two of them")
            counts["text"] = counts.get("text", 0) + 1
        send("image", alone({"IMAGE": PHOTOS[0][:1000]}), fails=True)
        crops = CASES["crops"]
        send("crops", alone({name: samples[0] for name, samples in crops.inputs.items()}))
        for model in ("sum", "image", "text", "reshaped", "crops"):
            wait_until(lambda: recorded(server, model) == counts[model], f"requests of `{model}` are written")
        yield server, shutil.copytree(records, root / "copied")


def test_what_is_recorded_is_the_requests_and_their_answers(traffic):
    server, records = traffic
    files = {folder.name: sorted(folder.iterdir()) for folder in records.iterdir()}
    assert {name: len(found) for name, found in files.items()} == {
        "sum": 3, "image": 4, "text": 3, "reshaped": 3, "crops": 1, "few": 2,
    }  # fmt: skip
    assert recorded(server, "few", "dropped") == 0 and "recording has ended" in server.log
    line, data = files["sum"][1].read_bytes().split(b"\n", 1)
    header = json.loads(line)
    assert header["model"] == "sum" and header["version"] == "1"
    assert header["inputs"] == [{"name": "X", "datatype": "FP32", "shape": [2, 3], "bytes": 24}]
    x = np.arange(6, dtype=np.float32)
    assert data == x.tobytes() + (x + 1).tobytes()
    assert json.loads(files["text"][0].read_bytes().split(b"\n", 1)[0])["id"] == "two of them"
    assert "error" in json.loads(files["image"][3].read_bytes().split(b"\n", 1)[0])


@pytest.mark.parametrize("model", ["sum", "image", "text", "reshaped", "crops", "few"])
def test_the_same_version_answers_the_same(traffic, model):
    server, records = traffic
    count = len(list((records / model).iterdir()))
    expected = {"equal": count} if model != "image" else {"equal": 3, "fail_as_before": 1}
    target = ["--server", f"http://{server.http_url}"]
    assert replay(records / model, *target)[:2] == (0, expected)
    assert replay(records / model, *target, "--model", model, "--version", 1)[:2] == (0, expected)
    file = server.repository / model / "1" / "model.dali"
    assert replay(records / model, "--pipeline", file)[:2] == (0, expected)


def test_another_version_differs_within_the_tolerance_or_beyond(traffic, tmp_path):
    server, records = traffic
    after = tmp_path / "next.dali"
    after.write_bytes(plus(1.25).serialize())
    for target in (["--server", server.http_url, "--model", "next"], ["--pipeline", after]):
        code, counts, requests = replay(records / "sum", *target)
        assert (code, counts) == (1, {"beyond_the_tolerance": 3})
        [output] = requests[1]["outputs"]
        assert output == {"output": "SUM", "result": "values", "most": 0.25, "differ": 6, "elements": 6}
        assert replay(records / "sum", *target, "--tolerance", 0.25)[:2] == (0, {"within_the_tolerance": 3})
    code, counts, requests = replay(records / "sum", "--server", server.http_url, "--model", "wider")
    assert (code, counts) == (1, {"fail_now": 3})
    assert "unexpected shape for input 'X'" in requests[0]["error"]
    shown = gesso("replay", records / "sum", "--pipeline", after)
    assert shown.returncode == 1
    assert "SUM     differs by at most 0.25 in 3 of 3 elements" in shown.stdout, shown.stdout
    assert shown.stdout.endswith("3 requests: 3 beyond the tolerance\n")


def test_records_that_are_damaged_are_named_and_the_rest_is_replayed(traffic, tmp_path):
    server, records = traffic
    for path in (records / "sum").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    [first, second, third] = sorted(tmp_path.iterdir())
    first.write_bytes(first.read_bytes()[:-1])
    second.write_bytes(second.read_bytes().replace(b"[2,3]", b"[2,9999999999999999999]", 1))
    code, counts, requests = replay(tmp_path, "--server", server.http_url, "--model", "silent")
    assert (code, counts) == (1, {"equal": 1, "damaged": 2})
    errors = {request["request"]: request.get("error", "") for request in requests}
    assert "the file ends: expected 12 bytes, found 11" in errors[first.name]
    assert "`shape` is no shape" in errors[second.name]
    nobody = gesso("replay", tmp_path, "--server", "127.0.0.1:9")
    assert nobody.returncode == 1 and "server `127.0.0.1:9`" in nobody.stderr
    (tmp_path / "none").mkdir()
    nothing = gesso("replay", tmp_path / "none", "--server", server.http_url)
    assert nothing.returncode == 1 and "there is no `.request` file" in nothing.stderr


def test_no_model_records_where_it_may_not(tmp_path):
    models, records = tmp_path / "models", tmp_path / "records"
    (records / "elsewhere").mkdir(parents=True)
    (records / "linked").symlink_to(records / "elsewhere")
    for model, folder in (("up", "../up"), ("deep", "a/b"), ("linked", "linked")):
        lines = ["max_batch_size: 8", X, parameter("record_requests", folder)]
        write_model(models, model, PLUS_ONE, config(*lines, backend="gesso"))
    with Server(models, strict=False, arguments=[f"--backend-config=gesso,record_folder={records}"]) as server:
        assert not any(server.model_ready(model) for model in ("up", "deep", "linked"))
        assert "expected the name of a folder" in server.log and "is no folder that can be opened" in server.log
    assert sorted(path.name for path in tmp_path.iterdir()) == ["models", "records"]
    assert not any((records / "elsewhere").iterdir())
    with Server(models, models=[], strict=False) as server, triton.InferenceServerClient(server.grpc_url) as client:
        (models / "linked" / "config.pbtxt").write_text(config(X, parameter("record_requests", "a"), backend="gesso"))
        with pytest.raises(triton.InferenceServerException, match="the backend allows no folder for records"):
            client.load_model("linked")


def test_lines_of_the_log_are_objects_of_json(tmp_path):
    write_model(tmp_path, "m", CLASSIFY.pipeline, config("max_batch_size: 8", parameter("pace", "1"), backend="gesso"))
    with (
        Server(tmp_path, arguments=["--backend-config=gesso,log-format=json", "--log-verbose=1"]) as server,
        triton.InferenceServerClient(server.grpc_url) as client,
    ):
        with pytest.raises(triton.InferenceServerException):
            client.infer("m", [sent("IMAGE", PHOTOS[0][None, :1000])], request_id="seven")
        lines = [line for line in server.log.splitlines() if '"level"' in line or '\\"level\\"' in line]
    objects = []
    for line in lines:
        text = line[line.index("] ") + 2 :]
        found = json.loads(text)
        objects.append(json.loads(found) if isinstance(found, str) else found)
    by_message = {found["message"]: found for found in objects}
    assert by_message["model is loaded"] == {
        "level": "info", "message": "model is loaded", "model": "m", "version": 1,
    }  # fmt: skip
    ready = by_message["instance is ready"]
    assert ready["instance"] == "m_0" and isinstance(ready["batches_in_flight"], int)
    [warning] = [found for found in objects if "`pace`" in found["message"]]
    assert warning["level"] == "warning" and warning["model"] == "m"
    [failed] = [found for found in objects if found["message"].startswith("request failed: ")]
    fields = {key: failed[key] for key in ("level", "model", "version", "request")}
    assert fields == {"level": "verbose", "model": "m", "version": 1, "request": "seven"}
