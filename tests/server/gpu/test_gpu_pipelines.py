"""Pipelines made for a GPU, on a GPU, through a real server."""

import numpy as np
import pytest
import tritonclient.grpc as triton
from harness import Server
from on_gpu import PIPELINES, SUFFIX, config, differences
from recorded import cases, recorded_on_gpu, write_model
from sending import INVALID, alone, infer, statistics, together

# Levels of 255 and, for normalized pixels, the same divided by their deviation. DALI's own answers on a CPU differ from
# those on a GPU where chroma is subsampled (smooth there, repeated here), which these noisy pictures make much of.
FROM_CPU = {np.dtype(np.uint8): 3.0, np.dtype(np.float32): 0.06, np.dtype(np.float16): 0.06}
# From what DALI answered on a GPU: mean, largest.
FROM_GPU = {np.dtype(np.uint8): (0.15, 16), np.dtype(np.float32): (0.003, 0.15), np.dtype(np.float16): (0.003, 0.15)}
MERGING_US = 300_000
START_OF_PROGRESSIVE = b"\xff\xc2"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    for name, case in PIPELINES.items():
        write_model(repository, name, case.pipeline, config(delay_us=MERGING_US))
    write_model(repository, "quick", PIPELINES["classify"].pipeline, config())
    write_model(repository, "pair", PIPELINES["classify"].pipeline, config(count=2, max_batch_size=1))
    with Server(repository) as server:
        yield server


@pytest.fixture(scope="module")
def client(served):
    with triton.InferenceServerClient(served.grpc_url) as connected:
        yield connected


def answered(served, name, case):
    """What the server answers to each sample, sent at once."""
    requests = [alone({n: samples[i] for n, samples in case.inputs.items()}) for i in case.samples]
    answers = together(served.grpc_url, name, requests)
    for answer in answers:
        assert not isinstance(answer, Exception), answer
    return answers


@pytest.mark.parametrize("name", PIPELINES)
def test_a_merged_batch_agrees_with_dali_on_a_cpu(served, client, name):
    case = PIPELINES[name]
    before = statistics(client, name, 0)
    answers = answered(served, name, case)
    for i, answer in enumerate(answers):
        for k, found in enumerate(answer):
            expected = case.outputs[k][i]
            _, mean = differences(found[0], expected)
            assert mean <= FROM_CPU[expected.dtype], f"sample {i} output {k}: {mean:.3g} on average"
    after = statistics(client, name, before.inference_count + len(answers))
    assert after.execution_count - before.execution_count == 1, "the requests were not merged"


@pytest.mark.parametrize("name", PIPELINES)
def test_a_merged_batch_agrees_with_dali_on_a_gpu(served, name):
    recorded = recorded_on_gpu("pipelines")
    if recorded is None:
        pytest.skip("skipped: no answers of DALI on a GPU: `record.py --gpu` makes them")
    case = recorded[name + SUFFIX]
    for i, answer in enumerate(answered(served, name, case)):
        # The engines refuse these: DALI decodes them on the chip's other cores, Gesso on the host.
        if START_OF_PROGRESSIVE in case.inputs["IMAGE"][i].tobytes()[:1000]:
            continue
        for k, found in enumerate(answer):
            largest, mean = differences(found[0], case.outputs[k][i])
            limits = FROM_GPU[found.dtype]
            assert mean <= limits[0] and largest <= limits[1], (
                f"sample {i} output {k}: {mean:.3g}, at most {largest:.3g}"
            )


def test_a_sample_has_the_same_answer_alone_and_in_a_batch(served, client):
    case = PIPELINES["classify"]
    for i, merged in enumerate(answered(served, "classify", case)):
        (found,) = infer(client, "quick", alone({"IMAGE": case.inputs["IMAGE"][i]}))
        np.testing.assert_array_equal(found, merged[0])


def test_bad_images_in_a_merged_batch_fail_alone(served, client):
    case = PIPELINES["classify"]
    good = case.inputs["IMAGE"]
    bad = {
        "truncated": good[0][: len(good[0]) // 2],
        "garbage": np.arange(2048, dtype=np.int64).astype(np.uint8),
        "empty": np.zeros(0, np.uint8),
    }
    expected = [infer(client, "quick", alone({"IMAGE": image}))[0] for image in good]
    before = statistics(client, "classify", 0)
    answers = together(served.grpc_url, "classify", [alone({"IMAGE": image}) for image in [*good, *bad.values()]])
    for i in case.samples:
        assert not isinstance(answers[i], Exception), answers[i]
        np.testing.assert_array_equal(answers[i][0], expected[i])
    for name, error in zip(bad, answers[len(good) :], strict=True):
        assert isinstance(error, Exception), f"{name} was answered"
        assert error.status() == INVALID, (name, error)
    after = statistics(
        client, "classify", before.inference_stats.success.count + before.inference_stats.fail.count + len(answers)
    )
    assert after.inference_stats.fail.count - before.inference_stats.fail.count == len(bad)
    assert after.execution_count - before.execution_count <= 2, "the requests were not merged"
    # And the next request has a clean instance.
    (found,) = infer(client, "classify", alone({"IMAGE": good[0]}))
    np.testing.assert_array_equal(found, expected[0])
    assert served.alive


def test_two_instances_on_one_gpu_answer_at_once(served, client):
    case = PIPELINES["classify"]
    assert served.model_config("pair")["instance_group"][0]["count"] == 2
    expected = [infer(client, "quick", alone({"IMAGE": image}))[0] for image in case.inputs["IMAGE"]]
    requests = [i % len(expected) for i in range(24)]
    answers = together(served.grpc_url, "pair", [alone({"IMAGE": case.inputs["IMAGE"][i]}) for i in requests])
    for i, answer in zip(requests, answers, strict=True):
        assert not isinstance(answer, Exception), answer
        np.testing.assert_array_equal(answer[0], expected[i])


ENSEMBLE = """platform: "ensemble"
max_batch_size: 8
input { name: "IMAGE" data_type: TYPE_UINT8 dims: [ -1 ] }
output { name: "PIXELS" data_type: TYPE_FP32 dims: [ -1, -1, -1 ] }
ensemble_scheduling {
  step { model_name: "decode" model_version: -1
    input_map { key: "IMAGE" value: "IMAGE" } output_map { key: "DECODED" value: "decoded" } }
  step { model_name: "normalize" model_version: -1
    input_map { key: "X" value: "decoded" } output_map { key: "PIXELS" value: "PIXELS" } }
}
"""


def test_what_goes_from_model_to_model_stays_on_the_gpu(tmp_path):
    decode = PIPELINES["decode_only"]
    normalize = cases("crop_mirror_normalize")["as_before_a_classifier" + SUFFIX]
    write_model(tmp_path, "decode", decode.pipeline, config() + 'output { name: "DECODED" }\n')
    write_model(tmp_path, "normalize", normalize.pipeline, config() + 'output { name: "PIXELS" }\n')
    (tmp_path / "both" / "1").mkdir(parents=True)
    (tmp_path / "both" / "config.pbtxt").write_text(ENSEMBLE)
    images = [alone({"IMAGE": image}) for image in decode.inputs["IMAGE"]]
    with (
        Server(tmp_path, arguments=["--log-verbose=1"]) as server,
        triton.InferenceServerClient(server.grpc_url) as client,
    ):
        for image, answer in zip(images, together(server.grpc_url, "both", images), strict=True):
            assert not isinstance(answer, Exception), answer
            (decoded,) = infer(client, "decode", image)
            (expected,) = infer(client, "normalize", {"X": decoded})
            np.testing.assert_array_equal(answer[0], expected)
        # The server's own word on where it put the tensor between the two: memory type 2 is the GPU's.
        placed = [line for line in server.log.splitlines() if "Internal response allocation: DECODED" in line]
        assert len(placed) >= len(images), "the server does not log where it puts tensors"
        assert all("memory type 2, type id 0" in line for line in placed), placed[0]
