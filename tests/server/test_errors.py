"""One bad sample fails one request, and nothing else."""

import io
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tritonclient.grpc as triton
from contract_models import config, filled, parameter
from harness import ROOT, Server, assemble_backends
from PIL import Image
from recorded import cases, write_model
from sending import INVALID, alone, infer, statistics, together

sys.path.insert(0, str(ROOT / "scripts"))
import load

CASE = cases("pipelines")["classify"]
MERGING = 'backend: "gesso"\nmax_batch_size: 32\ndynamic_batching { max_queue_delay_microseconds: 500000 }\n'
# What `broken` makes, and one that is empty.
BROKEN = 4
# Allowed growth of the server's memory over the last 8,000 of 10,000 requests; noise of the allocator is a few MB, and
# an image that is kept 49 KB.
GROWTH_BYTES = 48e6


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    write_model(repository, "merging", CASE.pipeline, config(*filled(len(CASE.samples) + BROKEN), backend="gesso"))
    write_model(repository, "quick", CASE.pipeline)
    write_model(
        repository,
        "no_jpeg",
        CASE.pipeline,
        config("max_batch_size: 8", parameter("formats", "-jpeg"), backend="gesso"),
    )
    with Server(repository) as server:
        yield server


def broken(good):
    """Name to bytes and a part of the error that each must get."""
    good = good.tobytes()
    return {
        "truncated": (good[: len(good) // 2], "JPEG"),
        "garbage": (bytes(range(7, 256)) * 8, "format"),
        "huge": (load.with_size(good, 60_000), "60000 x 60000"),
    }


def test_bad_images_in_a_merged_batch_fail_alone(served):
    good = CASE.inputs["IMAGE"]
    bad = {name: (np.frombuffer(data, np.uint8), text) for name, (data, text) in broken(good[0]).items()}
    bad["empty"] = (np.zeros(0, np.uint8), "empty")
    requests = [*good, *(data for data, _ in bad.values())]
    answers = together(served.grpc_url, "merging", [alone({"IMAGE": image}) for image in requests])
    for i in CASE.samples:
        assert not isinstance(answers[i], Exception), answers[i]
        assert abs(answers[i][0][0] - CASE.outputs[0][i]).max() <= CASE.tol
    for (name, (_, text)), error in zip(bad.items(), answers[len(good) :], strict=True):
        assert isinstance(error, Exception), f"{name} was answered"
        assert error.status() == INVALID, (name, error)
        assert text in error.message(), (name, error.message())
    with triton.InferenceServerClient(served.grpc_url) as client:
        counted = statistics(client, "merging", len(requests))
        assert counted.execution_count == 1, "the requests were not merged"
        assert counted.inference_stats.success.count == len(good)
        assert counted.inference_stats.fail.count == len(bad)
        (answer,) = infer(client, "quick", alone({"IMAGE": good[0]}))
        assert abs(answer[0] - CASE.outputs[0][0]).max() <= CASE.tol
    assert served.alive


def test_a_format_that_is_switched_off_is_refused(served):
    photo = CASE.inputs["IMAGE"][0]
    assert photo[:2].tobytes() == b"\xff\xd8"
    png = io.BytesIO()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(png, "PNG")
    with triton.InferenceServerClient(served.grpc_url) as client:
        error = infer(client, "no_jpeg", alone({"IMAGE": photo}))
        assert error.status() == "StatusCode.UNIMPLEMENTED", error
        assert "format `jpeg` is switched off by parameter `formats`" in error.message()
        (answer,) = infer(client, "no_jpeg", alone({"IMAGE": np.frombuffer(png.getvalue(), np.uint8)}))
        assert answer.size
    assert served.alive


def test_one_bad_sample_fails_its_request_of_several(served):
    good = CASE.inputs["IMAGE"][0]
    pair = np.stack([good, good])
    pair[1, :100] = 0
    with triton.InferenceServerClient(served.grpc_url) as client:
        error = infer(client, "quick", {"IMAGE": pair})
    assert error.status() == INVALID
    assert "sample 1" in error.message()


def test_memory_stays_flat_over_ten_thousand_requests(served):
    good = [load.sample(f"good {i}", image.tobytes()) for i, image in enumerate(CASE.inputs["IMAGE"])]
    bad = [load.sample(name, data, name) for name, (data, _) in broken(CASE.inputs["IMAGE"][0]).items()]
    expected = {f"good {i}": CASE.outputs[0][i][None] for i in CASE.samples}

    def send(count):
        items = load.schedule(good, bad, count, 0.1)
        outcomes, _ = load.run(served.grpc_url, "quick", "PIXELS", items, expected, 8, CASE.tol)
        assert len(outcomes) == count
        wrong = [(o.sample.name, o.fault) for o in outcomes if o.fault]
        assert not wrong, wrong[:5]

    send(2_000)
    early = served.rss
    send(8_000)
    assert served.rss - early < GROWTH_BYTES, f"{early / 1e6:.0f} MB became {served.rss / 1e6:.0f} MB"


@pytest.fixture(scope="module")
def faulty_plugin(tmp_path_factory):
    """A plugin with one more operator, that panics when it is told to."""
    build = [
        "cargo",
        "build",
        "--locked",
        "-p",
        "triton-gesso",
        "--lib",
        "--features",
        "fault-injection",
        "--message-format=short",
        # Its pixels are few: it is built in less time than it saves.
        "--config=profile.dev.package.gesso.opt-level=0",
    ]
    subprocess.run(build, cwd=ROOT, check=True)
    target = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version=1"], cwd=ROOT, check=True, capture_output=True
    )
    import json

    built = json.loads(target.stdout)["target_directory"]
    plugin = tmp_path_factory.mktemp("faulty") / "libtriton_gesso.so"
    shutil.copy(f"{built}/debug/libtriton_gesso.so", plugin)
    return plugin


@pytest.mark.parametrize("batches", [1, 2], ids=["caller", "lanes"])
@pytest.mark.parametrize("stage", [1, 2], ids=["run", "setup"])
def test_a_panic_in_an_operator_is_an_error_and_the_next_request_works(faulty_plugin, tmp_path, stage, batches):
    flip = cases("flip")["default_is_horizontal"]
    merging = MERGING + f'parameters {{ key: "max_batches_in_flight" value {{ string_value: "{batches}" }} }}\n'
    write_model(tmp_path / "models", "panics", flip.pipeline.replace(b"\x0a\x04Flip", b"\x0a\x04Boom"), merging)
    backends = assemble_backends(tmp_path / "backends", faulty_plugin)
    calm = np.full((2, 2, 3), 7, np.uint8)
    loud = np.full((2, 2, 3), stage, np.uint8)
    with Server(tmp_path / "models", backends=backends) as server:
        first, second = together(server.grpc_url, "panics", [alone({"X": calm}), alone({"X": loud})])
        assert isinstance(second, Exception)
        assert second.status() == "StatusCode.INTERNAL"
        assert "fault of the program" in second.message()
        assert "boom" not in second.message(), "what is inside is nobody's business"
        assert (first[0] == calm).all(), "a panic in one sample is not another's"
        (answer,) = infer_alone(server, calm)
        assert (answer == calm).all()
        assert server.alive


def infer_alone(server, array):
    with triton.InferenceServerClient(server.grpc_url) as client:
        return infer(client, "panics", alone({"X": array}))
