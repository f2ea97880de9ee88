"""Triton's features of a model's life and of models together: a cache, warm-up, loading over the network, ensembles,
and models that ask others."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from contract_models import CASES, CLASSIFY, X, config
from feature_models import ONE_CORE, ONE_INSTANCE, PLUS_ONE
from harness import Server, wait_until
from protocols import Client
from recorded import cases, write_model
from test_contract_statistics import metric
from tritonclient.utils import InferenceServerException

IMAGES = CLASSIFY.inputs["IMAGE"]
ROW = np.array([[1, 2, 3]], np.float32)
COUNTED = {"path": "cpu", "version": "1"}


@pytest.fixture(params=["http", "grpc"])
def client(request, features):
    with Client(request.param, features) as connected:
        yield connected


def assert_pixels(answer, i):
    assert abs(answer.as_numpy("PIXELS")[0] - CLASSIFY.outputs[0][i]).max() <= CLASSIFY.tol


def decoded(server, model):
    return metric(server, "gesso_images_decoded_total", model=model, **COUNTED)


def test_a_request_that_came_before_is_answered_from_the_cache(features, client):
    image = IMAGES[0][None]
    first = client.infer("cached", {"IMAGE": image})
    before, hits = decoded(features, "cached"), metric(features, "nv_cache_num_hits_per_model", model="cached")
    second = client.infer("cached", {"IMAGE": image})
    np.testing.assert_array_equal(second.as_numpy("PIXELS"), first.as_numpy("PIXELS"))
    assert_pixels(second, 0)
    assert_pixels(client.infer("cached", {"IMAGE": IMAGES[1][None]}), 1)
    wait_until(lambda: metric(features, "nv_cache_num_hits_per_model", model="cached") > hits, "the hit is counted")
    assert decoded(features, "cached") <= before + 1, "the first image was decoded once"


def test_a_model_is_warmed_up_before_it_is_ready(features):
    """With a file of an image in both samples, and with numbers."""
    assert decoded(features, "warm") == 2
    assert metric(features, "nv_inference_exec_count", model="warm_numbers") == 2
    assert metric(features, "nv_inference_count", model="warm_numbers") == 8


def test_a_model_comes_over_the_network_with_its_files(client):
    """Its configuration, two versions and the image of its warm-up are in the request; nothing is in the repository."""
    settings = {
        "backend": "gesso",
        "max_batch_size": 4,
        "instance_group": [{"kind": "KIND_CPU", "count": 1}],
        "version_policy": {"all": {}},
    }
    files = {f"file:{v}/model.dali": CASES[f"plus_{name}"].pipeline for v, name in ((1, "one"), (2, "two"))}
    client.connected.load_model("sent", config=json.dumps(settings), files=files)
    try:
        for version in (1, 2):
            answer = client.infer("sent", {"X": ROW}, model_version=str(version))
            np.testing.assert_array_equal(answer.as_numpy("SUM"), ROW + version)
    finally:
        client.connected.unload_model("sent")


def test_a_file_of_the_warm_up_may_come_over_the_network(features, client):
    photo = IMAGES[0]
    warmup = {
        "name": "photo",
        "batch_size": 1,
        "inputs": {"IMAGE": {"data_type": "TYPE_UINT8", "dims": [photo.size], "input_data_file": "photo.jpg"}},
    }
    settings = {"backend": "gesso", "max_batch_size": 4, "model_warmup": [warmup]}
    files = {"file:1/model.dali": CLASSIFY.pipeline, "file:warmup/photo.jpg": photo.tobytes()}
    client.connected.load_model("sent_warm", config=json.dumps(settings), files=files)
    assert decoded(features, "sent_warm") == 1
    # One that is no image: the model does not load, and says why.
    files["file:warmup/photo.jpg"] = bytes(photo.size)
    client.connected.unload_model("sent_warm")
    with pytest.raises(InferenceServerException) as refused:
        client.connected.load_model("sent_bad", config=json.dumps(settings), files=files)
    assert "format" in str(refused.value), refused.value


def test_a_model_in_python_asks_a_model_of_gesso(features, client):
    for i, image in enumerate(IMAGES):
        assert_pixels(client.infer("caller", {"IMAGE": image[None]}), i)
    with pytest.raises(InferenceServerException, match="JPEG"):
        client.infer("caller", {"IMAGE": IMAGES[0][None, :400]})


def test_an_ensemble_answers_with_the_outputs_that_a_client_wants(client):
    """One step makes two outputs of an image, two steps behind one another a third."""
    case = cases("pipelines")["two_outputs"]
    sent = {"IMAGE": case.inputs["IMAGE"][0][None], "X": ROW}
    whole = client.infer("chain", sent)
    assert abs(whole.as_numpy("SMALL")[0].astype(int) - case.outputs[0][0]).max() <= case.tol
    assert abs(whole.as_numpy("PIXELS")[0] - case.outputs[1][0]).max() <= case.tol
    np.testing.assert_array_equal(whole.as_numpy("SUM"), ROW + 2)
    some = client.infer("chain", sent, ["SMALL", "SUM"])
    np.testing.assert_array_equal(some.as_numpy("SMALL"), whole.as_numpy("SMALL"))
    np.testing.assert_array_equal(some.as_numpy("SUM"), ROW + 2)
    assert some.as_numpy("PIXELS") is None


def test_an_ensemble_gives_on_the_error_of_its_step(client):
    """Of one without steps beside each other: Triton before 26.04 crashes if a step fails while another one runs."""
    with pytest.raises(InferenceServerException, match="JPEG"):
        client.infer("unsized", {"IMAGE": IMAGES[0][None, :400]})


def test_a_model_of_an_ensemble_may_have_an_optional_input(client):
    """The ensemble does not map it: the model takes its default."""
    case = CASES["sized"]
    answer = client.infer("unsized", {"IMAGE": case.inputs["IMAGE"][0][None]})
    assert answer.as_numpy("PIXELS").shape == (1, 18, 22, 3)


def test_clients_may_see_another_shape(client):
    answer = client.infer("reshaped", {"X": ROW[..., None]})
    np.testing.assert_array_equal(answer.as_numpy("SUM"), ROW[..., None] + 1)


def test_a_configuration_is_chosen_by_its_name(features, client):
    assert features.model_config("named")["max_batch_size"] == 2
    np.testing.assert_array_equal(client.infer("named", {"X": ROW}).as_numpy("SUM"), ROW + 1)


def test_the_threads_of_an_instance_stay_on_its_cores(features):
    """Those of one model may run on one core only."""
    bound = 0
    for task in Path(f"/proc/{features.pid}/task").iterdir():
        cores = re.search(r"^Cpus_allowed_list:\s*(\S+)", (task / "status").read_text(), re.MULTILINE)[1]
        bound += (task / "comm").read_text().startswith("gesso-") and cores == str(ONE_CORE)
    assert bound >= 1


def test_a_file_that_changes_is_served(tmp_path):
    """The server looks at the folder every second; a model that is written there later comes, too."""
    lines = ["max_batch_size: 4", X, ONE_INSTANCE]
    write_model(tmp_path, "kept", PLUS_ONE, config(*lines))
    arguments = ["--model-control-mode=poll", "--repository-poll-secs=1"]
    with Server(tmp_path, arguments=arguments) as server, Client("grpc", server) as client:
        np.testing.assert_array_equal(client.infer("kept", {"X": ROW}).as_numpy("SUM"), ROW + 1)
        written = tmp_path / "kept" / "1" / "new"
        written.write_bytes(CASES["plus_two"].pipeline)
        written.rename(written.with_name("model.dali"))

        def changed():
            return (client.infer("kept", {"X": ROW}).as_numpy("SUM") == ROW + 2).all()

        wait_until(changed, "the new file is served")
