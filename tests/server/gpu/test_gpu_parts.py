"""A model whose batches keep to a part of a GPU's multiprocessors."""

import re

import numpy as np
import tritonclient.grpc as triton
from harness import Server
from on_gpu import PIPELINES, config
from recorded import write_model
from sending import alone, infer, together

CASE = PIPELINES["classify"]
WANTED = 16
OPEN = "device is open"
# Whoever decodes, a level may be another; so let it be the multiprocessors.
ON_SMS = 'parameters { key: "jpeg_path" value { string_value: "sm" } }\n'
IN_PART = f'parameters {{ key: "gpu_multiprocessors" value {{ string_value: "{WANTED}" }} }}\n'


def test_a_part_of_a_gpu_answers_as_all_of_it(tmp_path):
    write_model(tmp_path, "whole", CASE.pipeline, config() + ON_SMS)
    write_model(tmp_path, "part", CASE.pipeline, config(count=2, max_batch_size=2) + ON_SMS + IN_PART)
    images = CASE.inputs["IMAGE"]
    with Server(tmp_path) as server, triton.InferenceServerClient(server.grpc_url) as client:
        expected = [infer(client, "whole", alone({"IMAGE": image}))[0] for image in images]
        requests = [i % len(images) for i in range(24)]
        answers = together(server.grpc_url, "part", [alone({"IMAGE": images[i]}) for i in requests])
        for i, answer in zip(requests, answers, strict=True):
            assert not isinstance(answer, Exception), answer
            np.testing.assert_array_equal(answer[0], expected[i])
        opened = [line for line in server.log.splitlines() if OPEN in line]
    found = {name: taken(opened, name) for name in ("whole", "part")}
    # The driver may round up.
    assert WANTED <= found["part"] < found["whole"], opened


def taken(lines, model):
    """How many multiprocessors the batches of `model` may take, as the server logged."""
    (line,) = [line for line in lines if f"model={model} " in line]
    return int(re.search(r"multiprocessors=(\d+)", line)[1])
