"""Models for a server: Gesso in front, a network of torch behind it, and the ensemble of both. The network runs in
Triton's Python backend (behind/model.py), which copies a tensor on a GPU once on the device, into memory that the
network's process can open."""

import shutil
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "behind"
PREPROCESS, NETWORK, ENSEMBLE = "preprocess", "network", "classify"
SIDE, CLASSES = 224, 1000
SAMPLE_BYTES, ANSWER_BYTES = 3 * SIDE * SIDE * 4, CLASSES * 4
CONFIG = {
    PREPROCESS: """backend: "gesso"
output {{ name: "PIXELS" }}
""",
    NETWORK: """backend: "python"
input {{ name: "PIXELS" data_type: TYPE_FP32 dims: [ 3, {side}, {side} ] }}
output {{ name: "LOGITS" data_type: TYPE_FP32 dims: [ {classes} ] }}
parameters {{ key: "FORCE_CPU_ONLY_INPUT_TENSORS" value {{ string_value: "no" }} }}
parameters {{ key: "network" value {{ string_value: "{network}" }} }}
""",
    ENSEMBLE: """platform: "ensemble"
input {{ name: "IMAGE" data_type: TYPE_UINT8 dims: [ -1 ] }}
output {{ name: "LOGITS" data_type: TYPE_FP32 dims: [ {classes} ] }}
ensemble_scheduling {{
  step {{ model_name: "preprocess" model_version: -1
    input_map {{ key: "IMAGE" value: "IMAGE" }} output_map {{ key: "PIXELS" value: "pixels" }} }}
  step {{ model_name: "network" model_version: -1
    input_map {{ key: "PIXELS" value: "pixels" }} output_map {{ key: "LOGITS" value: "LOGITS" }} }}
}}
""",
}
HALF = 'parameters { key: "half" value { string_value: "yes" } }\n'


def write(repository, pipeline, network, *, gpu=True, half=False, max_batch=128, instances=1):
    """Writes the three models; `pipeline` makes PIXELS [3, 224, 224] of IMAGE, `instances` are the network's."""
    for model, text in CONFIG.items():
        version = Path(repository) / model / "1"
        version.mkdir(parents=True)
        config = f"max_batch_size: {max_batch}\n" + text.format(side=SIDE, classes=CLASSES, network=network)
        if model != ENSEMBLE:
            count = instances if model == NETWORK else 1
            config += "dynamic_batching { }\n"
            config += f"instance_group {{ kind: {'KIND_GPU gpus: [0]' if gpu else 'KIND_CPU'} count: {count} }}\n"
        if model == NETWORK and half:
            config += HALF
        (version.parent / "config.pbtxt").write_text(config)
    (Path(repository) / PREPROCESS / "1" / "model.dali").write_bytes(pipeline)
    for name in ("model.py", "network.py"):
        shutil.copy(SOURCES / name, Path(repository) / NETWORK / "1" / name)


def arguments(tensor_bytes):
    """Arguments of a server in which tensors of so many bytes in all may lie between the two models. What does not fit
    goes through the host."""
    return [f"--cuda-memory-pool-byte-size=0:{tensor_bytes}"]
