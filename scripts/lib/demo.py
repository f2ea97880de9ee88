"""Starts the server, sends it every file as it is, prints the five likeliest classes and where the time went.

python scripts/lib/demo.py FILE_OR_DIRECTORY...
"""

import signal
import sys
import time
from pathlib import Path

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from model_statistics import between, settled, snapshot, steps

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "server"))
from harness import Server, ServerError  # noqa: E402

MODEL = "classify"
TOP = 5
IMAGES = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}


def image_files(paths):
    """The files themselves, and every image directly inside the directories."""
    files = []
    for path in map(Path, paths):
        if path.is_dir():
            found = sorted(file for file in path.iterdir() if file.suffix.lower() in IMAGES)
            if not found:
                raise SystemExit(f"error: no image in `{path}`")
            files += found
        else:
            files.append(path)
    return files


def classify(client, encoded):
    """The likeliest classes as (probability, label), for one compressed image."""
    image = triton.InferInput("IMAGE", [1, len(encoded)], "UINT8")
    image.set_data_from_numpy(np.frombuffer(encoded, np.uint8)[None])
    answer = client.infer(MODEL, [image], outputs=[triton.InferRequestedOutput("PROBABILITIES", class_count=TOP)])
    # With `class_count` the server answers "probability:index:label", likeliest first.
    classes = (entry.decode().split(":", 2) for entry in answer.as_numpy("PROBABILITIES").reshape(-1))
    return [(float(probability), label) for probability, _, label in classes]


def report(client, models, path):
    """Sends one file and prints the answer; whether there was one."""
    encoded = path.read_bytes()
    print(f"\n{path.name}  ({len(encoded) / 1e3:.0f} kB)")
    before, began = snapshot(client, models), time.perf_counter()
    try:
        classes = classify(client, encoded)
    except InferenceServerException as error:
        print(f"    {error.status()}: {error.message()}")
        return False
    total = 1e3 * (time.perf_counter() - began)
    for probability, label in classes:
        print(f"    {100 * probability:5.1f} %  {label}")
    work = between(before, settled(client, before, 1))
    parts = [f"{name} {done.compute_ms:.1f} (queued {done.queue_ms:.1f})" for name, done in work.items()]
    rest = total - sum(done.compute_ms + done.queue_ms for done in work.values())
    print(f"    {total:.1f} ms = {' + '.join(parts)} + transport and scheduling {rest:.1f}")
    return True


def main():
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    files = image_files(sys.argv[1:])
    try:
        # The client goes first: a server that still has a connection waits for it before it leaves.
        with Server(ROOT / "model_repository") as server, triton.InferenceServerClient(server.grpc_url) as client:
            print(f"server ready in {server.ready_seconds:.2f} s, gRPC on {server.grpc_url}")
            models = steps(client, MODEL)
            before = snapshot(client, models)
            try:
                classify(client, files[0].read_bytes())  # the first request of a fresh server tells nothing of the next
                settled(client, before, 1)
            except InferenceServerException:
                pass  # reported below, with its file
            answered = [report(client, models, path) for path in files]
        print("\nserver stopped")
    except ServerError as error:
        raise SystemExit(f"error: {error}") from None
    except KeyboardInterrupt:
        print("\ninterrupted; server stopped", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    if not all(answered):
        raise SystemExit(f"error: {answered.count(False)} of {len(answered)} files were refused")


if __name__ == "__main__":
    main()
