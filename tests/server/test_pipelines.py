"""Recorded pipelines through a real server: what a client gets is what DALI computed."""

import numpy as np
import pytest
import tritonclient.grpc as triton
from contract_models import config, filled
from harness import Server
from recorded import cases, write_model
from sending import alone, infer, statistics, strings, together

CASES = cases("pipelines")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    repository = tmp_path_factory.mktemp("models with spaces and \u00fcmlauts")
    for case in CASES.values():
        # Two outputs of one name can only be served under two names.
        names = 'output { name: "A" }\noutput { name: "B" }\n' if case.name == "passed_through" else ""
        write_model(repository, case.name, case.pipeline, config(*filled(len(case.samples)), backend="gesso") + names)
    write_model(repository, "alone", CASES["two_outputs"].pipeline)
    with Server(repository) as server:
        yield server


@pytest.fixture(scope="module")
def connected(served):
    with triton.InferenceServerClient(served.grpc_url) as client:
        yield client


def close(found, expected, tol):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=0, atol=tol)


@pytest.mark.parametrize("name", CASES)
def test_requests_of_different_sizes_merge_and_agree_with_dali(served, connected, name):
    case = CASES[name]
    requests = [alone({n: samples[i] for n, samples in case.inputs.items()}) for i in case.samples]
    before = statistics(connected, name, 0)
    answers = together(served.grpc_url, name, requests)
    for i, answer in enumerate(answers):
        assert not isinstance(answer, Exception), answer
        for k, found in enumerate(answer):
            close(found[0], case.outputs[k][i], case.tol)
    after = statistics(connected, name, before.inference_count + len(requests))
    assert after.inference_count - before.inference_count == len(requests)
    assert after.execution_count - before.execution_count == 1, "the requests were not merged"


def test_a_request_may_hold_several_samples_zero_padded(connected):
    case = CASES["classify"]
    longest = max(len(image) for image in case.inputs["IMAGE"])
    padded = np.stack([np.pad(image, (0, longest - len(image))) for image in case.inputs["IMAGE"]])
    (answer,) = infer(connected, "classify", {"IMAGE": padded})
    assert answer.shape == (3, 3, 64, 64)
    for i in case.samples:
        close(answer[i], case.outputs[0][i], case.tol)


def test_samples_of_one_request_must_end_up_with_one_shape(connected):
    images = CASES["decode_only"].inputs["IMAGE"]
    longest = max(len(image) for image in images)
    padded = np.stack([np.pad(image, (0, longest - len(image))) for image in images])
    error = infer(connected, "decode_only", {"IMAGE": padded})
    assert error.status() == "StatusCode.INVALID_ARGUMENT"
    assert "[120, 160, 3]" in error.message() and "[183, 121, 3]" in error.message()


def test_a_client_may_ask_for_some_of_the_outputs(connected):
    case = CASES["two_outputs"]
    image = alone({"IMAGE": case.inputs["IMAGE"][0]})
    (found,) = infer(connected, "alone", image, ["PIXELS"])
    close(found[0], case.outputs[1][0], case.tol)
    (found,) = infer(connected, "alone", image, ["IMAGE_OUT"])
    close(found[0], case.outputs[0][0], case.tol)


def test_strings_hold_one_file_each(tmp_path):
    case = CASES["classify"]
    files = 'input { name: "IMAGE" data_type: TYPE_STRING dims: [ 1 ] }'
    write_model(tmp_path, "strings", case.pipeline, config("max_batch_size: 8", files, backend="gesso"))
    with Server(tmp_path) as server, triton.InferenceServerClient(server.grpc_url) as client:
        answer = client.infer("strings", [strings("IMAGE", [image.tobytes() for image in case.inputs["IMAGE"]])])
        for i in case.samples:
            close(answer.as_numpy("PIXELS")[i], case.outputs[0][i], case.tol)
