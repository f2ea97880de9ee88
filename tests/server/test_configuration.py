"""What a model needs in its configuration: next to nothing; and what a wrong one is told."""

import numpy as np
import pytest
import tritonclient.grpc as triton
from gesso import Pipeline, fn, types
from harness import Server
from recorded import cases, write_model
from sending import alone, infer

CASES = cases("pipelines")
CLASSIFY = CASES["classify"].pipeline
INPUT = 'input { name: "IMAGE" data_type: TYPE_UINT8 dims: [ -1 ] }\n'
OUTPUT = 'output { name: "PIXELS" data_type: TYPE_FP32 dims: [ 3, 64, 64 ] }\n'


def resized(**arguments):
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
    with pipe:
        image = fn.external_source(name="IMAGE", layout="HWC", dtype=types.UINT8, ndim=3)
        pipe.set_outputs(fn.resize(image, size=[20, 30], name="PIXELS", **arguments))
    pipe.build()
    return pipe


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    write_model(repository, "one_line", CLASSIFY)
    write_model(repository, "named.gesso", CLASSIFY, None)
    write_model(repository, "named.dali", CLASSIFY, None)
    write_model(repository, "as_dali", CLASSIFY, 'backend: "dali"\nmax_batch_size: 16\n' + INPUT + OUTPUT)
    write_model(repository, "renamed", CLASSIFY, 'backend: "gesso"\noutput { name: "TENSOR" }\n')
    write_model(
        repository,
        "other_file",
        CLASSIFY,
        'backend: "gesso"\ndefault_model_filename: "my file.bin"\n',
        3,
        "my file.bin",
    )
    write_model(
        repository,
        "threads",
        CLASSIFY,
        'backend: "gesso"\nparameters { key: "num_threads" value { string_value: "2" } }\n',
    )
    write_model(repository, "two", CASES["two_outputs"].pipeline)
    write_model(repository, "any_size", CASES["decode_only"].pipeline)
    write_model(
        repository,
        "as_trained",
        resized().serialize(),
        'backend: "gesso"\nparameters { key: "arithmetic" value { string_value: "pillow" } }\n',
    )
    with Server(repository) as server:
        yield server


MODELS = ["one_line", "named.gesso", "named.dali", "as_dali", "renamed", "other_file", "threads"]


@pytest.mark.parametrize("model", MODELS)
def test_every_way_to_configure_a_model_gives_the_same_answer(served, model):
    case = CASES["classify"]
    with triton.InferenceServerClient(served.grpc_url) as client:
        (answer,) = infer(client, model, alone({"IMAGE": case.inputs["IMAGE"][0]}))
    assert abs(answer[0] - case.outputs[0][0]).max() <= case.tol


def test_a_model_has_the_arithmetic_of_its_parameter(served):
    image = np.random.default_rng(1).integers(0, 256, (50, 70, 3), np.uint8)
    with triton.InferenceServerClient(served.grpc_url) as client:
        (answer,) = infer(client, "as_trained", alone({"IMAGE": image}))
    by = {}
    for arithmetic in ("dali", "pillow"):
        pipe = resized(arithmetic=arithmetic)
        pipe.feed_input("IMAGE", [image])
        by[arithmetic] = np.asarray(pipe.run()[0].at(0))
    assert (by["dali"] != by["pillow"]).any()
    np.testing.assert_array_equal(answer[0], by["pillow"])


def test_a_configuration_completes_itself(served):
    config = served.model_config("one_line")
    (image,), (pixels,) = config["input"], config["output"]
    assert config["max_batch_size"] == 3
    assert (image["name"], image["data_type"], image["dims"]) == ("IMAGE", "TYPE_UINT8", [-1])
    assert image["allow_ragged_batch"]
    assert (pixels["name"], pixels["data_type"], pixels["dims"]) == ("PIXELS", "TYPE_FP32", [3, 64, 64])
    assert "dynamic_batching" in config


def test_what_was_configured_stays_and_the_rest_is_filled_in(served):
    config = served.model_config("as_dali")
    assert config["max_batch_size"] == 16
    assert config["input"][0]["allow_ragged_batch"], "images of different sizes would never merge"
    (output,) = served.model_config("renamed")["output"]
    assert (output["name"], output["data_type"], output["dims"]) == ("TENSOR", "TYPE_FP32", [3, 64, 64])


def test_extents_are_concrete_where_the_pipeline_fixes_them(served):
    image, pixels = served.model_config("two")["output"]
    assert (image["data_type"], image["dims"]) == ("TYPE_UINT8", [48, 56, 3])
    assert (pixels["data_type"], pixels["dims"]) == ("TYPE_FP32", [3, 48, 56])
    (image,) = served.model_config("any_size")["output"]
    assert (image["data_type"], image["dims"]) == ("TYPE_UINT8", [-1, -1, 3])


def test_the_plan_stands_in_the_log(served):
    assert "CropMirrorNormalize" in served.log and "-> response" in served.log


WRONG = {
    "input_name": (INPUT.replace("IMAGE", "PICTURE") + OUTPUT, ["PICTURE", "IMAGE"]),
    "input_type": (INPUT.replace("UINT8", "FP32") + OUTPUT, ["IMAGE", "TYPE_FP32", "TYPE_UINT8"]),
    "too_many_outputs": (INPUT + OUTPUT + OUTPUT.replace("PIXELS", "MORE"), ["2", "1"]),
    "arithmetic": (
        'parameters { key: "arithmetic" value { string_value: "PIL" } }\n',
        ["arithmetic", "`PIL`", "`torchvision-float`"],
    ),
    "threads": ('parameters { key: "num_threads" value { string_value: "many" } }\n', ["num_threads", "many"]),
    # The server itself would end.
    "tags": ('metric_tags { key: "cost-center" value: "7" }\n', ["metric_tags", "`cost-center`", "Prometheus"]),
}


def test_a_wrong_configuration_names_what_is_wrong(tmp_path):
    for name, (config, _) in WRONG.items():
        write_model(tmp_path, name, CLASSIFY, 'backend: "gesso"\nmax_batch_size: 8\n' + config)
    write_model(tmp_path, "no_file", CLASSIFY, filename="else.dali")
    write_model(tmp_path, "no_pipeline", b"this is text")
    write_model(tmp_path, "empty_file", b"")
    write_model(tmp_path, "unknown_operator", CLASSIFY.replace(b"\x0a\x06Resize", b"\x0a\x06Revise"))
    write_model(tmp_path, "good", CLASSIFY)
    expected = {name: words for name, (_, words) in WRONG.items()} | {
        "no_file": ["model.dali"],
        "no_pipeline": ["not a serialized DALI pipeline"],
        "empty_file": ["empty"],
        "unknown_operator": ["Revise", "not known"],
    }
    with Server(tmp_path, strict=False) as server:
        assert server.model_ready("good"), "a broken model must not take the good one with it"
        with triton.InferenceServerClient(server.grpc_url) as client:
            index = {model.name: model for model in client.get_model_repository_index().models}
        for name, words in expected.items():
            assert index[name].state == "UNAVAILABLE"
            for word in words:
                assert word in index[name].reason, (name, index[name].reason)
