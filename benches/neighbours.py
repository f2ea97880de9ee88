#!/usr/bin/env python3
"""How long a client with small images waits while another sends what takes long, to the same model on two cores.

    benches/neighbours.py                          all attacks, 20 s each, on a server of its own
    benches/neighbours.py --only webp png          some of them
    benches/neighbours.py --set slow_request_ms=3600000    with parameters of the model: so, nothing is set aside
    benches/neighbours.py --only all --set max_request_ms=500   every kind, and how far its requests go beyond a limit
    benches/neighbours.py --only large-jpeg --pool 0       with a server that keeps no requests for reuse: what is left
                                                           is Gesso's

One client sends a small request and waits for the answer, again and again: a 500 x 375 JPEG that the model decodes,
resizes and normalizes, or what the attacked model takes, by one instance with default settings. Each line is one
attack: waits of that client before and during it, what became of the attackers' requests, and the server's memory
before, at most, and a few seconds after. A table of the worst figures of each attack ends the output. Server and
clients are bound to two cores where there are more."""

import argparse
import functools
import io
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "server"), str(ROOT / "python")]
import bombs  # noqa: E402
from gesso import fn, pipeline_def, types  # noqa: E402
from harness import Server, wait_until  # noqa: E402
from recorded import write_model  # noqa: E402

CORES = 2
# What became of a request, as far as it is shown.
ANSWERED, SHOWN = "answered", 160
# After an attack until its memory is looked at.
REST_SECONDS = 3
CONFIG = 'backend: "gesso"\nmax_batch_size: 64\ninstance_group [ { kind: KIND_CPU count: 1 } ]\n'


def image(name):
    return fn.decoders.image(fn.external_source(name=name, dtype=types.UINT8, ndim=1), output_type=types.RGB)


def number(name, ndim=0):
    return fn.external_source(name=name, dtype=types.INT32 if ndim else types.FLOAT, ndim=ndim)


@pipeline_def(batch_size=64, num_threads=2)
def blur():
    return fn.gaussian_blur(image("IMAGE"), sigma=number("SIGMA"))


@pipeline_def(batch_size=64, num_threads=2)
def enlarge():
    return fn.resize(image("IMAGE"), size=number("SIZE", 1))


@pipeline_def(batch_size=64, num_threads=2, output_ndim=1)
def numbers():
    return fn.random.normal(shape=number("SHAPE", 1), seed=1) * 0


@pipeline_def(batch_size=64, num_threads=2)
def sound():
    samples, _ = fn.decoders.audio(
        fn.external_source(name="SOUND", dtype=types.UINT8, ndim=1), dtype=types.FLOAT, downmix=True
    )
    return fn.spectrogram(samples, nfft=512)


SIGMA, SIZE, SHAPE = (lambda value, dtype=dtype: np.array(value, dtype) for dtype in (np.float32, np.int32, np.int32))
# Models: the file, and what the client with small requests sends.
MODELS = {
    "preprocess": ((ROOT / "benches" / "pipeline.dali").read_bytes, lambda: {"IMAGE": [small()]}),
    "blur": (lambda: blur().serialize(), lambda: {"IMAGE": [small()], "SIGMA": [SIGMA(1)]}),
    "enlarge": (lambda: enlarge().serialize(), lambda: {"IMAGE": [small()], "SIZE": [SIZE([224, 224])]}),
    "numbers": (lambda: numbers().serialize(), lambda: {"SHAPE": [SHAPE([1000])]}),
    "sound": (lambda: sound().serialize(), lambda: {"SOUND": [bombs.flac(1)]}),
}
# What is sent to which model (the samples of one request), and on how many connections.
ATTACKS = {
    "webp": ("preprocess", lambda: {"IMAGE": [bombs.webp()] * 10}, 1),
    "progressive": ("preprocess", lambda: {"IMAGE": [bombs.progressive()] * 8}, 1),
    "png": ("preprocess", lambda: {"IMAGE": [bombs.png()]}, 2),
    "jpeg": ("preprocess", lambda: {"IMAGE": [bombs.jpeg(grain=128, quality=30)]}, 2),
    # Of 55 MB. The server's gRPC keeps the last requests, eight of them, with all of their bytes for reuse: see
    # `--pool`.
    "large-jpeg": ("preprocess", lambda: {"IMAGE": [bombs.jpeg(grain=1)]}, 2),
    "no-image": ("preprocess", lambda: {"IMAGE": [bytes(55_000_000)]}, 2),
    "jpeg-2000": ("preprocess", lambda: {"IMAGE": [bombs.jpeg_2000()] * 4}, 2),
    "gif": ("preprocess", lambda: {"IMAGE": [bombs.gif_codes()]}, 2),
    "png-chunks": ("preprocess", lambda: {"IMAGE": [bombs.png_chunks()]}, 2),
    "tiff-strips": ("preprocess", lambda: {"IMAGE": [bombs.tiff_strips()]}, 2),
    "sigma": ("blur", lambda: {"IMAGE": [small()], "SIGMA": [SIGMA(100_000)]}, 2),
    "size": ("enlarge", lambda: {"IMAGE": [small()], "SIZE": [SIZE([15_000, 15_000])]}, 2),
    "shape": ("numbers", lambda: {"SHAPE": [SHAPE([250_000_000])]}, 2),
    "flac": ("sound", lambda: {"SOUND": [bombs.flac()]}, 2),
}
USUAL = ["webp", "progressive", "png", "jpeg"]


@functools.cache
def small():
    """A JPEG of 500 x 375."""
    file = io.BytesIO()
    bombs.noise(500, 375, grain=2).save(file, "JPEG", quality=90)
    return file.getvalue()


def request(inputs):
    """Inputs of a request: files behind one another, filled up with zeros, or arrays."""
    made = []
    for name, samples in inputs.items():
        if isinstance(samples[0], bytes):
            longest = max(map(len, samples))
            samples = [np.frombuffer(file.ljust(longest, b"\0"), np.uint8) for file in samples]
        stacked = np.stack(samples)
        # A number is a tensor of one element.
        stacked = stacked[:, None] if stacked.ndim == 1 else stacked
        made.append(triton.InferInput(name, stacked.shape, np_to_triton_dtype(stacked.dtype)))
        made[-1].set_data_from_numpy(stacked)
    return made


def attack(url, name, until, told, begin):
    """Sends the attack's requests one after the other; tells what became of each."""
    model, inputs, _ = ATTACKS[name]
    sent = request(inputs())
    begin.wait()
    with triton.InferenceServerClient(url) as client:
        while time.time() < until.value:
            began = time.perf_counter()
            try:
                client.infer(model, sent)
                outcome = ANSWERED
            except InferenceServerException as error:
                outcome = f"{error.status()}: {error.message()}"[:SHOWN]
            told.put((outcome, 1e3 * (time.perf_counter() - began)))


class Good(threading.Thread):
    """The client with small requests, from start to `stop`."""

    def __init__(self, url, model):
        super().__init__(daemon=True)
        self.url, self.model, self.sent, self.over = url, model, request(MODELS[model][1]()), threading.Event()
        self.waits, self.first, self.wrong = [], None, 0

    def run(self):
        with triton.InferenceServerClient(self.url) as client:
            while not self.over.is_set():
                began = time.perf_counter()
                answer = client.infer(self.model, self.sent)
                answer = answer.as_numpy(answer.get_response().outputs[0].name)
                self.waits.append(1e3 * (time.perf_counter() - began))
                self.first = answer if self.first is None else self.first
                self.wrong += not np.array_equal(answer, self.first)

    def stop(self):
        self.over.set()
        self.join()
        p50, p99 = np.percentile(self.waits, [50, 99])
        return (
            f"{len(self.waits):6} answers, p50 {p50:6.2f}  p99 {p99:7.2f}  worst {max(self.waits):8.2f} ms",
            self.wrong,
        )


def failures(url, model):
    """How many requests of a model the server has answered with an error, and the seconds from their arrival until
    then."""
    with triton.InferenceServerClient(url) as client:
        fail = client.get_inference_statistics(model).model_stats[0].inference_stats.fail
        return fail.count, 1e-9 * fail.ns


def measure(server, name, seconds):
    """Prints the figures of an attack; returns its line of the table."""
    model, _, connections = ATTACKS[name]
    context = multiprocessing.get_context("spawn")
    told, until, begin = context.Queue(), context.Value("d", float("inf")), context.Barrier(connections + 1)
    clients = [
        context.Process(target=attack, args=[server.grpc_url, name, until, told, begin]) for _ in range(connections)
    ]
    idle = Good(server.grpc_url, model)
    idle.start()
    time.sleep(seconds / 2)
    figures, wrong = idle.stop()
    print(f"{name}\n  alone     {figures}", flush=True)
    before, failed = server.rss, failures(server.grpc_url, model)
    for client in clients:
        client.start()
    begin.wait()
    good, most, outcomes = Good(server.grpc_url, model), before, {}
    good.start()
    until.value = time.time() + seconds
    while any(client.is_alive() for client in clients):
        most = max(most, server.rss)
        time.sleep(0.05)
        if time.time() >= until.value and not good.over.is_set():
            figures, more = good.stop()
            print(f"  attacked  {figures}", flush=True)
        while not told.empty():
            outcome, took = told.get()
            outcomes[outcome] = [*outcomes.get(outcome, []), took]
    for client in clients:
        client.join()
    while not told.empty():
        outcome, took = told.get()
        outcomes[outcome] = [*outcomes.get(outcome, []), took]
    time.sleep(REST_SECONDS)
    print(f"  memory    {before / 1e6:.0f} MB before, {most / 1e6:.0f} MB at most, {server.rss / 1e6:.0f} MB after")
    for outcome, took in outcomes.items():
        print(f"  attackers {len(took)} x {outcome}")
    count, lasted = (now - then for now, then in zip(failures(server.grpc_url, model), failed))
    print(
        f"  refused   {count} requests, in the server {1e3 * lasted / max(count, 1):.0f} ms each in the mean, without their way to it"
    )
    if wrong + more:
        raise SystemExit(f"error: {wrong + more} answers to the small image differ")
    added = (most - before) / 1e6
    refused = max((max(took) for outcome, took in outcomes.items() if outcome != ANSWERED), default=0)
    answered = max(outcomes.get(ANSWERED, [0]))
    return f"{name:12} {max(idle.waits):10.1f} {max(good.waits):12.1f} {refused:10.1f} {answered:10.1f} {added:10.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[*ATTACKS, "all"], default=USUAL)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument(
        "--pool", type=int, metavar="N", help="requests that the server's gRPC keeps for reuse, 8 otherwise"
    )
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="parameters of the model")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:CORES])
    lines = [
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
        for key, value in (setting.split("=", 1) for setting in options.set)
    ]
    with tempfile.TemporaryDirectory() as folder:
        names = list(ATTACKS) if "all" in options.only else options.only
        models = {ATTACKS[name][0] for name in names}
        for model in models:
            write_model(folder, model, MODELS[model][0](), CONFIG + "".join(lines))
        arguments = [] if options.pool is None else [f"--grpc-infer-allocation-pool-size={options.pool}"]
        with Server(folder, models=sorted(models), arguments=arguments) as server:
            for model in models:
                warm = Good(server.grpc_url, model)
                warm.start()
                wait_until(lambda warm=warm: len(warm.waits) > 200, "the server is warm")
                warm.stop()
            table = [measure(server, name, options.seconds) for name in names]
            # With `max_request_ms` no request that is refused should take twice as long. What is sent and answered
            # takes its time on the way, too.
            heads = (
                f"{'worst, in ms':12} {'alone':>10} {'beside it':>12} {'refused':>10} {'answered':>10} {'MB more':>10}"
            )
            print(heads, *table, sep="\n")


if __name__ == "__main__":
    main()
