"""The repository of the tests of Triton's own features: one model a feature, all from recorded pipelines."""

import os

from contract_models import CASES, CLASSIFY, X, config, parameter, tensor
from gesso import fn, pipeline_def, types
from harness import wheel_path
from recorded import cases, write_model

PLUS_ONE = CASES["plus_one"].pipeline
ONE_CORE = min(os.sched_getaffinity(0))
ONE_INSTANCE = "instance_group [ { kind: KIND_CPU count: 1 } ]"
# So that the server, not Gesso, decides what comes next.
ONE_BATCH = parameter("max_batches_in_flight", "1")
# Held by the model `gate` as long as a test wants, and needed by those that must wait.
RESOURCE = 'rate_limiter { resources [ { name: "gate" global: true count: 1 } ] }'
NEEDS_GATE = f"instance_group [ {{ kind: KIND_CPU count: 1 {RESOURCE} }} ]"
CLIENTS = [parameter("client_header", "x-api-key"), parameter("max_requests_per_client", "64")]
QUEUE = "default_queue_policy { %s }"
WARMUP = 'model_warmup { name: "%s" batch_size: %d inputs { key: "%s" value { data_type: TYPE_%s dims: [ %d ] %s } } }'

# Holds the resource until the file exists that the request names.
GATE = """
import os, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            name = pb_utils.get_input_tensor_by_name(request, "UNTIL")
            path, deadline = np.from_dlpack(name).tobytes(), time.monotonic() + 120
            print(f"the gate is closed until {path.decode()}", flush=True)
            while not os.path.exists(path) and time.monotonic() < deadline:
                time.sleep(0.005)
            opened = pb_utils.Tensor.from_dlpack("OPENED", name.to_dlpack())
            answers.append(pb_utils.InferenceResponse([opened]))
        return answers
"""

# Asks a model of Gesso for one output and gives it on, or its error.
CALLER = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            image = pb_utils.get_input_tensor_by_name(request, "IMAGE")
            asked = pb_utils.InferenceRequest(model_name="plain", requested_output_names=["PIXELS"], inputs=[image])
            answer = asked.exec()
            if answer.has_error():
                answers.append(pb_utils.InferenceResponse(error=answer.error()))
            else:
                answers.append(pb_utils.InferenceResponse(answer.output_tensors()))
        return answers
"""


@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def told():
    """Adds 1 where a sequence begins."""
    x = fn.external_source(name="X", dtype=types.FLOAT, ndim=1)
    return fn.cast(x + fn.external_source(name="FIRST", dtype=types.FLOAT, ndim=1), dtype=types.FLOAT, name="SUM")


def python_model(folder, name, script, *lines):
    write_model(folder, name, script.encode(), config(*lines, backend="python"), filename="model.py")


def ensemble(folder, name, steps, *lines):
    """`steps`: model, its inputs and its outputs, each by their name in the ensemble."""

    def step(model, inputs, outputs):
        maps = [f'input_map {{ key: "{key}" value: "{value}" }}' for key, value in inputs.items()]
        maps += [f'output_map {{ key: "{key}" value: "{value}" }}' for key, value in outputs.items()]
        return f'step [ {{ model_name: "{model}" model_version: -1 {" ".join(maps)} }} ]'

    (folder / name / "1").mkdir(parents=True)
    scheduling = ["ensemble_scheduling {", *(step(*each) for each in steps), "}"]
    (folder / name / "config.pbtxt").write_text("\n".join(['platform: "ensemble"', *lines, *scheduling]))


def write_repository(folder):
    def write(name, pipeline, *lines):
        return write_model(folder, name, pipeline, config(*lines, backend="gesso"))

    write("plain", CLASSIFY.pipeline, "max_batch_size: 8")
    write("cached", CLASSIFY.pipeline, "max_batch_size: 8", "response_cache { enable: true }")

    photo = CLASSIFY.inputs["IMAGE"][0]
    lines = [WARMUP % ("photo", 2, "IMAGE", "UINT8", photo.size, 'input_data_file: "photo.jpg"')]
    warm = write("warm", CLASSIFY.pipeline, "max_batch_size: 8", ONE_INSTANCE, *lines)
    (warm / "warmup").mkdir()
    (warm / "warmup" / "photo.jpg").write_bytes(photo.tobytes())
    lines = [WARMUP % (kind, 4, "X", "FP32", 3, f"{kind}: true") for kind in ("zero_data", "random_data")]
    write("warm_numbers", PLUS_ONE, "max_batch_size: 8", ONE_INSTANCE, *lines)

    python_model(
        folder, "gate", GATE, tensor("input", "UNTIL", "UINT8", -1), tensor("output", "OPENED", "UINT8", -1), NEEDS_GATE
    )
    one = ["max_batch_size: 1", ONE_BATCH, X, NEEDS_GATE]
    write("limited", PLUS_ONE, *one)
    write("prior", PLUS_ONE, *one, "dynamic_batching { priority_levels: 2 default_priority_level: 2 }")
    write("shared", PLUS_ONE, "max_batch_size: 8", X, *CLIENTS)
    write("short_queue", PLUS_ONE, *one, "dynamic_batching { %s }" % (QUEUE % "max_queue_size: 2"))
    timeout = "timeout_action: %s default_timeout_microseconds: 1000 allow_timeout_override: true"
    write("impatient", PLUS_ONE, *one, "dynamic_batching { %s }" % (QUEUE % timeout % "REJECT"))
    write("delaying", PLUS_ONE, *one, "dynamic_batching { %s }" % (QUEUE % timeout % "DELAY"))

    shape = "dims: [ 3, 1 ] reshape { shape: [ 3 ] }"
    tensors = [
        f'{role} {{ name: "{name}" data_type: TYPE_FP32 {shape} }}'
        for role, name in (("input", "X"), ("output", "SUM"))
    ]
    write("reshaped", PLUS_ONE, "max_batch_size: 4", *tensors)
    write("on_a_core", PLUS_ONE, 'instance_group [ { kind: KIND_CPU count: 1 host_policy: "one_core" } ]', X)
    named = write("named", PLUS_ONE, "max_batch_size: 8", X)
    (named / "configs").mkdir()
    (named / "configs" / "small.pbtxt").write_text(config("max_batch_size: 2", X, backend="gesso"))
    first = 'control_input [ { name: "FIRST" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]'
    batching = f"sequence_batching {{ max_sequence_idle_microseconds: 60000000 oldest {{ }} {first} }}"
    write("told", told().serialize(), "max_batch_size: 4", ONE_INSTANCE, X, batching)
    for strategy in ("direct", "oldest"):
        batching = f"sequence_batching {{ max_sequence_idle_microseconds: 60000000 {strategy} {{ }} }}"
        write(f"sequence_{strategy}", PLUS_ONE, "max_batch_size: 4", ONE_INSTANCE, X, batching)

    python_model(
        folder,
        "caller",
        CALLER,
        "max_batch_size: 8",
        tensor("input", "IMAGE", "UINT8", -1),
        tensor("output", "PIXELS", "FP32", 3, 64, 64),
        ONE_INSTANCE,
    )
    write_ensembles(folder, write)
    return folder


def write_ensembles(folder, write):
    image = tensor("input", "IMAGE", "UINT8", -1)
    write("two", cases("pipelines")["two_outputs"].pipeline, "max_batch_size: 8")
    write("plus", PLUS_ONE, "max_batch_size: 8", X)
    lines = [image, X, tensor("output", "SMALL", "UINT8", -1, -1, 3)]
    lines += [tensor("output", "PIXELS", "FP32", 3, -1, -1), tensor("output", "SUM", "FP32", -1)]
    steps = [
        ("two", {"IMAGE": "IMAGE"}, {"IMAGE_OUT": "SMALL", "PIXELS": "PIXELS"}),
        ("plus", {"X": "X"}, {"SUM": "between"}),
        ("plus", {"X": "between"}, {"SUM": "SUM"}),
    ]
    ensemble(folder, "chain", steps, "max_batch_size: 8", *lines)
    size = tensor("input", "SIZE", "FP32", 2, more="optional: true")
    write("sized", CASES["sized"].pipeline, "max_batch_size: 8", image, size, parameter("default.SIZE", "18, 22"))
    steps = [("sized", {"IMAGE": "IMAGE"}, {"PIXELS": "PIXELS"})]
    ensemble(folder, "unsized", steps, "max_batch_size: 8", image, tensor("output", "PIXELS", "UINT8", -1, -1, 3))


def traces(repository):
    """Where the server of `repository` writes its traces: files of this name with a number behind it."""
    return repository.with_name("trace.json")


def arguments(repository):
    """Of the server: it turns on what a model may use."""
    return [
        "--model-control-mode=explicit",
        "--load-model=*",
        f"--cache-directory={wheel_path() / 'caches'}",
        "--cache-config=local,size=16777216",
        "--rate-limit=execution_count",
        f"--trace-config=triton,file={traces(repository)}",
        "--trace-config=level=OFF",
        "--metrics-config=summary_latencies=true",
        "--model-config-name=small",
        f"--host-policy=one_core,cpu-cores={ONE_CORE}-{ONE_CORE}",
    ]
