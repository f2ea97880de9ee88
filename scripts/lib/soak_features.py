"""What scripts/soak --all asks: the models, each with a feature of Triton's or of Gesso's turned on, and for each
feature a request whose right answer is known.

Right answers are DALI's, which tests/conformance recorded; from the second answer on, each must be the first's bytes.
What a request may be refused with is written beside it."""

import itertools
import os
import random
import re
import socket
import sys
import threading
import time
from pathlib import Path

import numpy as np
import tritonclient.grpc as triton
import tritonclient.utils.shared_memory as shm
from soak import AWAY
from tritonclient.utils import InferenceServerException

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "server"), str(ROOT / "python")]
import feature_models as models  # noqa: E402
import http_load  # noqa: E402
from contract_models import CLASSIFY, X, config, parameter, tensor  # noqa: E402
from harness import wheel_path  # noqa: E402
from hostile_host import ANSWERS, FORBIDDEN  # noqa: E402
from protocols import Client  # noqa: E402
from recorded import cases, write_model  # noqa: E402

IMAGES = [image[None] for image in CLASSIFY.inputs["IMAGE"]]
SPOILT = IMAGES[0][:, :400]
TWO = cases("pipelines")["two_outputs"]
# A request for a large picture is cancelled within this time, and so often. Not more often: in 2.51 one of many
# thousand cancelled calls of gRPC crashes the server itself.
CANCEL_SECONDS, CANCEL_EACH_SECONDS = 0.1, 2
# How long the server or a client may take for a request, on a machine on which others take all cores and all memory.
PATIENCE_SECONDS = 600
# A sequence is left without its end so often, and is over for the server after this long: so none waits for a place
# among the four of `direct` until it is over itself.
LEFT_SECONDS, IDLE_SECONDS = 130, 120
# One request in so many is traced, so many of them go into a file.
TRACE_RATE, TRACES_A_FILE = 20, 50
RECORDS = 1_000_000
# Words of refusals of a queue, of a host, and of a model that is not there.
QUEUE = ("Exceeds maximum queue size", "Request timeout expired")
BUSY_HOST = ("other downloads take all of the", "took longer than 1 s")
ABSENT = ("is not ready", "not found", "unknown model", "has no available versions", "is unloading")
FAMILIES = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)


class Wrong(Exception):
    """An answer that is not the right one, or a refusal that should not be."""


def write_repository(folder, host):
    """The models, from those of tests/server."""

    def write(name, pipeline, *lines, **more):
        return write_model(folder, name, pipeline, config(*lines, backend="gesso", **more))

    eight, record = "max_batch_size: 8", parameter("record_requests", "soak")
    write("plain", CLASSIFY.pipeline, eight)
    write("cached", CLASSIFY.pipeline, eight, "response_cache { enable: true }")
    photo = IMAGES[0][0]
    warmup = models.WARMUP % ("photo", 2, "IMAGE", "UINT8", photo.size, 'input_data_file: "photo.jpg"')
    warm = write("warm", CLASSIFY.pipeline, eight, models.ONE_INSTANCE, warmup)
    (warm / "warmup").mkdir()
    (warm / "warmup" / "photo.jpg").write_bytes(photo.tobytes())
    write("recorded", models.PLUS_ONE, eight, X, record, parameter("record_max_count", RECORDS))

    # These share a resource of the rate limiter: one of them runs at a time.
    one = ["max_batch_size: 1", models.ONE_BATCH, X, models.NEEDS_GATE]
    write("limited", models.PLUS_ONE, *one)
    levels = "priority_levels: 2 default_priority_level: 2 default_queue_policy { max_queue_size: 3 }"
    write("prior", models.PLUS_ONE, *one, f"dynamic_batching {{ {levels} }}")
    timeout = "timeout_action: REJECT default_timeout_microseconds: 500 allow_timeout_override: true"
    write("impatient", models.PLUS_ONE, *one, "dynamic_batching { %s }" % (models.QUEUE % timeout))

    first = 'control_input [ { name: "FIRST" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]'
    for name, strategy in (("told", "oldest { }"), ("direct", "direct { }")):
        batching = f"max_sequence_idle_microseconds: {IDLE_SECONDS}000000 {strategy} {first}"
        lines = ["max_batch_size: 4", models.ONE_INSTANCE, X, f"sequence_batching {{ {batching} }}"]
        write(name, models.told().serialize(), *lines)

    image, pixels = tensor("input", "IMAGE", "UINT8", -1), tensor("output", "PIXELS", "FP32", 3, 64, 64)
    models.python_model(folder, "caller", models.CALLER, eight, image, pixels, models.ONE_INSTANCE)
    models.write_ensembles(folder, write)

    allow = ", ".join(
        host.url(f"{path}/") for path in ["ok", "to", "tagged", *sorted({a.split("/")[0] for a in ANSWERS} - {"ok"})]
    )
    limits = {"networks": "127.0.0.1", "max_mb": 1, "seconds": 1, "redirects": 2, "cache_mb": 8, "allow": allow}
    lines = [parameter(f"fetch_{key}", value) for key, value in limits.items()]
    write("fetching", CLASSIFY.pipeline, eight, tensor("input", "IMAGE", "STRING", 1), *lines)
    return folder


def arguments_of(folder):
    """Of the server: what models may use, and what it writes."""
    traces = [f"triton,file={folder}/traces/trace", "level=TIMESTAMPS", f"rate={TRACE_RATE}", "count=-1"]
    return [
        "--model-control-mode=explicit",
        "--load-model=*",
        f"--cache-directory={wheel_path() / 'caches'}",
        "--cache-config=local,size=16777216",
        "--rate-limit=execution_count",
        *(f"--trace-config={each}" for each in [*traces, f"triton,log-frequency={TRACES_A_FILE}"]),
        "--metrics-config=summary_latencies=true",
        f"--backend-config=gesso,record_folder={folder}/records",
        "--backend-config=gesso,log_format=json",
        f"--backend-config=gesso,max_request_ms={1_000 * PATIENCE_SECONDS}",
    ]


def total(text, family, **labels):
    """The sum of a family of metrics over all lines with these labels."""
    found = 0.0
    for name, told, value in FAMILIES.findall(text):
        if name == family and labels.items() <= dict(re.findall(r'(\w+)="([^"]*)"', told)).items():
            found += float(value)
    return found


class Right:
    """Right answers: DALI's within its tolerance at first, then the first one's bytes. Safe for all threads."""

    def __init__(self):
        self.first = {}

    def pixels(self, key, found, expected, tolerance):
        if found is None or found.shape != expected.shape:
            raise Wrong(f"{key}: expected {expected.shape}, found {None if found is None else found.shape}")
        first = self.first.setdefault(key, found.tobytes())
        apart = np.abs(found.astype(np.float64) - expected).max()
        if apart > tolerance or found.tobytes() != first:
            raise Wrong(f"{key}: {apart} apart from DALI's, as before: {found.tobytes() == first}")


class Asker:
    """One thread's client and the requests that it knows. Each request returns "right", "refused" or "left", or raises
    `Wrong`."""

    numbers = itertools.count(1)

    def __init__(self, soak, number):
        self.soak, self.right, self.host = soak, soak.right, soak.host
        self.draw = random.Random(number)
        self.client = Client(("grpc", "http")[number % 2], soak.server)
        if number % 2:
            patience = {"connection_timeout": PATIENCE_SECONDS, "network_timeout": PATIENCE_SECONDS}
            self.client.connected = self.client.api.InferenceServerClient(soak.server.http_url, **patience)
        self.grpc = triton.InferenceServerClient(soak.server.grpc_url)
        self.region, self.leaves_at = None, 0.0

    def close(self):
        """By the thread that asked: a client over HTTP belongs to it."""
        if self.region:
            self.forget_region()
        self.client.connected.close()
        self.grpc.close()

    def refused(self, words, model, inputs, **options):
        """The answer, or None where the server refused with one of these words."""
        try:
            return self.client.infer(model, inputs, **options)
        except InferenceServerException as error:
            if any(word in str(error) for word in words):
                return None
            raise Wrong(f"{model}: {error}") from None

    def row(self):
        return np.array([[self.draw.randrange(1_000) for _ in range(3)]], np.float32)

    def images(self, model, most=1, name="PIXELS", files=None):
        """Some pictures in a request, now and then a spoilt one."""
        which = [self.draw.randrange(len(IMAGES)) for _ in range(self.draw.randint(1, most))]
        if self.draw.random() < 0.1:
            # Not the same one twice: the server's cache would answer it, without outputs.
            spoilt = np.concatenate([SPOILT, np.frombuffer(self.draw.randbytes(8), np.uint8)[None]], 1)
            if self.refused(["JPEG"], model, {"IMAGE": spoilt}) is not None:
                raise Wrong(f"{model}: a spoilt picture was answered")
            return "refused"
        # Zeros behind the end of a file do no harm, so files of different length go into one request.
        length = max(IMAGES[i].size for i in which)
        batch = np.concatenate([np.pad(IMAGES[i], ((0, 0), (0, length - IMAGES[i].size))) for i in which])
        found = self.refused([], model, {"IMAGE": batch}).as_numpy(name)
        for i, pixels in zip(which, found, strict=True):
            self.right.pixels((model, i), pixels, CLASSIFY.outputs[0][i], CLASSIFY.tol)
        return "right"

    def plus(self, model, words=(), **options):
        row = self.row()
        answer = self.refused(words, model, {"X": row}, **options)
        if answer is None:
            return "refused"
        if (answer.as_numpy("SUM") != row + 1).any():
            raise Wrong(f"{model}: {answer.as_numpy('SUM')} for {row}")
        return "right"

    def cache(self):
        return self.images("cached")

    def warm_up(self):
        return self.images("warm", most=4)

    def records(self):
        return self.plus("recorded")

    def limiter(self):
        return self.plus("limited")

    def priorities(self):
        return self.plus("prior", QUEUE, priority=self.draw.choice([0, 1, 2]))

    def timeouts(self):
        return self.plus("impatient", QUEUE, timeout=self.draw.choice([0, 1, 1_000_000]))

    def sequences(self):
        model, number, count = self.draw.choice(["told", "direct"]), next(Asker.numbers), self.draw.randint(2, 5)
        left = time.monotonic() > self.leaves_at
        if left:
            self.leaves_at = time.monotonic() + LEFT_SECONDS
        for i in range(count):
            row, ends = self.row(), i == count - 1 and not left
            options = {"sequence_id": number, "sequence_start": i == 0, "sequence_end": ends}
            found = self.refused([], model, {"X": row}, **options).as_numpy("SUM")
            if (found != row + (i == 0)).any():
                raise Wrong(f"{model}: step {i}: {found} for {row}")
        return "left" if left else "right"

    def ensembles(self):
        if self.draw.random() < 0.1:
            return "refused" if self.refused(["JPEG"], "unsized", {"IMAGE": SPOILT}) is None else self.fail("unsized")
        row, image = self.row(), TWO.inputs["IMAGE"][0][None]
        answer = self.refused([], "chain", {"IMAGE": image, "X": row})
        for i, name in enumerate(["SMALL", "PIXELS"]):
            self.right.pixels(("chain", name), answer.as_numpy(name)[0], TWO.outputs[i][0], TWO.tol)
        return "right" if (answer.as_numpy("SUM") == row + 2).all() else self.fail("chain")

    def fail(self, what):
        raise Wrong(f"{what}: a wrong answer")

    def calls_of_python(self):
        return self.images("caller")

    def shared_memory(self):
        """A region of its own for all of the request and the answer, which is made anew now and then."""
        api, i = self.client, self.draw.randrange(len(IMAGES))
        expected, size = CLASSIFY.outputs[0][i], max(image.size for image in IMAGES)
        if self.region is None:
            name = f"soak-{next(Asker.numbers)}"
            path = f"/gesso-{os.getpid()}-{name}"
            bytes_ = size + expected.nbytes
            self.region = (name, shm.create_shared_memory_region(name, path, bytes_))
            api.connected.register_system_shared_memory(name, path, bytes_)
        name, handle = self.region
        shm.set_shared_memory_region(handle, [IMAGES[i][0]])
        made = api.api.InferInput("IMAGE", list(IMAGES[i].shape), "UINT8")
        made.set_shared_memory(name, IMAGES[i].size, 0)
        wanted = api.api.InferRequestedOutput("PIXELS")
        wanted.set_shared_memory(name, expected.nbytes, size)
        api.connected.infer("plain", [made], outputs=[wanted])
        found = shm.get_contents_as_numpy(handle, np.float32, expected.shape, size)
        self.right.pixels(("shared", i), found, expected, CLASSIFY.tol)
        if self.draw.random() < 0.02:
            self.forget_region()
        return "right"

    def forget_region(self):
        (name, handle), self.region = self.region, None
        # The answer may be there a moment before the server has let go of the request.
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.client.connected.unregister_system_shared_memory(name)
                break
            except InferenceServerException as error:
                if "currently in use" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        shm.destroy_shared_memory_region(handle)

    def cancellations(self):
        """A large picture, whose request is cancelled sooner or later; its answer may come before."""
        time.sleep(CANCEL_EACH_SECONDS * self.draw.random() * 2)
        kind, ended, found = self.draw.choice(list(self.soak.large)), threading.Event(), []
        made = triton.InferInput("IMAGE", list(self.soak.large[kind].shape), "UINT8")
        made.set_data_from_numpy(self.soak.large[kind])
        call = self.grpc.async_infer(
            "plain", [made], lambda result, error: (found.append((result, error)), ended.set())
        )
        if not ended.wait(self.draw.random() * CANCEL_SECONDS):
            call.cancel()
        if not ended.wait(PATIENCE_SECONDS):
            raise Wrong("a cancelled request has no outcome")
        (answer, error) = found[0]
        if error is not None:
            return "refused" if "CANCELLED" in str(error) else self.fail(f"cancelled: {error}")
        expected = self.soak.large_answers[kind]
        self.right.pixels(("large", kind), answer.as_numpy("PIXELS"), expected, 0)
        return "right"

    def addresses(self):
        """A file by its address, from a host that answers as it should, or as no host should."""
        i, host = self.draw.randrange(2), self.host
        good = [host.url(f"ok/{i}"), host.url(f"to/a?where=/ok/{i}"), host.url(f"tagged/{i}")]
        if self.draw.random() < 0.6:
            words, address = [], self.draw.choice(good)
        elif self.draw.random() < 0.5:
            words, address = ["redirect", "fetch_networks"], host.url(f"to/a?where={self.draw.choice(FORBIDDEN)}")
        else:
            path = self.draw.choice(list(ANSWERS))
            words, address = [ANSWERS[path] or "address"], host.url(path)
        # Where others take the machine, any of them may be late.
        answer = self.refused([*words, *BUSY_HOST], "fetching", {"IMAGE": [address]})
        if answer is None:
            return "refused"
        if address not in good:
            raise Wrong(f"fetching: {address} was answered")
        self.right.pixels(("fetching", i), answer.as_numpy("PIXELS")[0], CLASSIFY.outputs[0][i], CLASSIFY.tol)
        return "right"

    def visitor(self):
        """The model that comes and goes: version N adds N."""
        row = self.row()
        answer = self.refused([*AWAY, *ABSENT], "visitor", {"X": row})
        if answer is None:
            return "refused"
        told = answer.get_response()
        version = int(told["model_version"] if isinstance(told, dict) else told.model_version)
        return "right" if (answer.as_numpy("SUM") == row + version).all() else self.fail("visitor")

    def leaving(self):
        """A request over HTTP, whole or cut off, and a client that does not wait for the answer."""
        head, body = http_load.inference(
            "plain", [("IMAGE", "UINT8", list(IMAGES[0].shape), IMAGES[0].tobytes())], [("PIXELS", None)]
        )
        request = head + body
        where, port = self.soak.server.http_url.split(":")
        with socket.create_connection((where, int(port)), timeout=PATIENCE_SECONDS) as connection:
            cut = self.draw.choice([len(request), len(request), len(head), len(request) // 2])
            connection.sendall(request[:cut])
            time.sleep(self.draw.choice([0, 0.002, 0.02]))
        return "left"


KINDS = {
    "response cache": Asker.cache,
    "warm-up": Asker.warm_up,
    "recorded requests": Asker.records,
    "rate limiter": Asker.limiter,
    "priorities, full queues": Asker.priorities,
    "time in the queue": Asker.timeouts,
    "sequences": Asker.sequences,
    "ensembles": Asker.ensembles,
    "calls from a Python model": Asker.calls_of_python,
    "system shared memory": Asker.shared_memory,
    "cancellation": Asker.cancellations,
    "files by their address": Asker.addresses,
    "a model that comes and goes": Asker.visitor,
    "clients that leave": Asker.leaving,
}
# More threads than one ask these: a queue of one is never full, a host that is silent holds its thread for a second.
THREADS = {"priorities, full queues": 5, "time in the queue": 2, "files by their address": 3}
