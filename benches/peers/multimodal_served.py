"""The mode `served` of multimodal.py: a processor as a model of Gesso's and as one of Triton's Python backend, under
the same load of clients that send files of mixed sizes. Answers go into shared memory, so that sending them is not what
is measured."""

import json
import sys
import urllib.request
from contextlib import ExitStack
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "lib"), str(ROOT / "tests" / "server")]

import http_load  # noqa: E402
from harness import Server  # noqa: E402

PYTHON_MODEL = """import io
import json

import torch
import triton_python_backend_utils as backend
from PIL import Image, ImageOps
from gesso.convert import hf_processors
from torch.utils.dlpack import from_dlpack, to_dlpack

FIELDS = json.loads({fields!r})
# Each output with the rank of one image's.
OUTPUTS = {outputs!r}


class TritonPythonModel:
    def initialize(self, _):
        torch.set_num_threads(1)
        self.processor = hf_processors.loaded(FIELDS["image_processor_type"], FIELDS, "torchvision")

    def execute(self, requests):
        answers = []
        for request in requests:
            given = from_dlpack(backend.get_input_tensor_by_name(request, "IMAGE").to_dlpack())
            file = given[0].numpy().tobytes()
            image = ImageOps.exif_transpose(Image.open(io.BytesIO(file))).convert("RGB")
            found = self.processor(image, return_tensors="pt")
            tensors = [self.tensor(name, found[name], rank) for name, rank in OUTPUTS.items()]
            answers.append(backend.InferenceResponse(tensors))
        return answers

    def tensor(self, name, value, rank):
        # By DLPack: the backend is built for numpy 1, and misreads arrays of numpy 2.
        value = (value if value.ndim > rank else value[None]).contiguous()
        return backend.Tensor.from_dlpack(name, to_dlpack(value))
"""
TYPES = {"float32": "FP32", "int64": "INT64", "int32": "INT32", "uint8": "UINT8"}
ROOM = 1 << 12


def repository(folder, made, fields, options):
    """Writes both models; returns the names of their outputs."""
    from gesso.convert.repository import write

    stage = made.stage
    outputs = {name: (TYPES[dtype], [-1] * max(len(dims), 1)) for name, (dtype, dims) in stage.outputs.items()}
    # As `gesso from` writes it.
    write(made, folder / "gesso", "", options.batch)
    (folder / "python" / "1").mkdir(parents=True)
    # As many processes as there are cores, each with one thread.
    lines = [
        'backend: "python"',
        "max_batch_size: 1",
        f"instance_group [ {{ kind: KIND_CPU count: {options.cores} }} ]",
    ]
    lines.append('input [ { name: "IMAGE" data_type: TYPE_UINT8 dims: [ -1 ] } ]')
    for name, (dtype, dims) in outputs.items():
        lines.append(f'output [ {{ name: "{name}" data_type: TYPE_{dtype} dims: {dims} }} ]')
    (folder / "python" / "config.pbtxt").write_text("\n".join(lines) + "\n")
    ranks = {name: len(dims) for name, (_, dims) in outputs.items()}
    text = PYTHON_MODEL.format(fields=json.dumps(fields), outputs=ranks)
    (folder / "python" / "1" / "model.py").write_text(text)
    return list(outputs)


def post(address, path, body):
    """Calls one of the server's endpoints."""
    data = json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(f"http://{address}/v2/{path}", data, method="POST")):
        pass


class Answers:
    """Shared memory of a model's answers: for each client a place for each output."""

    def __init__(self, stack, address, model, sizes, clients):
        self.sizes, self.slot = sizes, sum(-(-size // 64) * 64 for size in sizes.values())
        self.memory = SharedMemory(create=True, size=self.slot * clients)
        stack.callback(self.memory.unlink)
        stack.callback(self.memory.close)
        self.name = f"{model}_answers"
        key = {"key": f"/{self.memory.name.lstrip('/')}", "offset": 0, "byte_size": self.memory.size}
        post(address, f"systemsharedmemory/region/{self.name}/register", key)
        stack.callback(post, address, f"systemsharedmemory/region/{self.name}/unregister", {})

    def places(self, client):
        """Where each output of a client's request goes."""
        found, offset = [], self.slot * client
        for name, size in self.sizes.items():
            found.append((name, http_load.Place(self.name, offset, size)))
            offset += -(-size // 64) * 64
        return found

    def digest(self, client, sizes):
        """What is at a client's places, as far as its answer goes."""
        return [
            bytes(self.memory.buf[place.offset : place.offset + sizes[name]]) for name, place in self.places(client)
        ]


def load(stack, address, model, files, sizes, clients):
    """The answers' memory, and the requests of each client; neighbours begin with different files."""
    answers = Answers(stack, address, model, sizes, clients)

    def request(client, file):
        given = [("IMAGE", "UINT8", [1, len(file)], file)]
        return http_load.inference(model, given, answers.places(client))

    turns = [[files[(client + at) % len(files)] for at in range(len(files))] for client in range(clients)]
    return answers, [[request(client, file) for file in turn] for client, turn in enumerate(turns)]


def run(options, fields, paths, folder):
    """Prints throughput and latency of both models, round by round in turn."""
    from gesso import convert
    from gesso._comparison.compare import runner

    made, files = convert.transformers(fields, batch_size=options.batch), [path.read_bytes() for path in paths]
    names, answer = repository(folder / "models", made, fields, options), runner(made())
    largest = [answer(np.frombuffer(file, np.uint8)) for file in files]
    sizes = {name: max(outputs[at].nbytes for outputs in largest) + ROOM for at, name in enumerate(names)}
    first = {name: largest[0][at].nbytes for at, name in enumerate(names)}
    with Server(folder / "models") as server, ExitStack() as stack:
        address = server.http_url
        loads = {model: load(stack, address, model, files, sizes, options.clients) for model in ("gesso", "python")}
        for model, (answers, connections) in loads.items():
            if errors := http_load.run(address, [connections[0]], count=1).errors:
                raise RuntimeError(f"`{model}`: {errors[0]}")
            expected = [np.ascontiguousarray(value).tobytes() for value in largest[0]]
            assert answers.digest(0, first) == expected, f"`{model}` answers otherwise"
        print(f"{options.preset}, {options.clients} clients, {len(files)} files, {options.cores} cores for each model:")
        rates = {model: [] for model in loads}
        for number in range(options.rounds + 1):
            for model, (_, connections) in loads.items():
                outcome = http_load.run(address, connections, seconds=options.seconds, processes=2)
                if outcome.errors:
                    raise RuntimeError(f"`{model}`: {outcome.errors[0]}")
                # The first round warms the server up.
                if number:
                    rates[model].append((outcome.rate, *np.percentile(outcome.latencies, (50, 99)) * 1000))
    middle = {model: np.median(found, axis=0) for model, found in rates.items()}
    for model, (rate, half, most) in middle.items():
        print(f"{model:8} {rate:10.1f} requests/s, p50 {half:.0f} ms, p99 {most:.0f} ms")
    ours, theirs = middle["gesso"], middle["python"]
    print(f"gesso: {ours[0] / theirs[0]:.2f} times the requests, p99 {theirs[2] / ours[2]:.2f} times shorter")
