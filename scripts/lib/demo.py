"""Starts the server, sends it every file as it is, prints the likeliest classes, of a video those along the way, and
where the time went.

python scripts/lib/demo.py FILE_OR_DIRECTORY...
"""

import itertools
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tritonclient.grpc as triton
from model_statistics import between, settled, snapshot, steps
from tritonclient.utils import InferenceServerException

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "server"))
from harness import Server, ServerError  # noqa: E402

IMAGES = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".avif", ".jxl", ".tif", ".tiff", ".ppm", ".pgm"}
VIDEOS = {".mp4", ".mov", ".mkv", ".webm", ".avi", ".ivf", ".264", ".h264", ".265", ".hevc"}
# The model classifies every eighth frame: model_repository/video_frames/make_pipeline.py.
STRIDE = 8


@dataclass(frozen=True)
class Kind:
    """What a file is, and who answers."""

    model: str
    input: str
    # How many classes are asked for.
    top: int


IMAGE, VIDEO = Kind("classify", "IMAGE", 5), Kind("video_classify", "VIDEO", 1)


def kind_of(path):
    return VIDEO if path.suffix.lower() in VIDEOS else IMAGE


def found_files(paths):
    """The files themselves, and every image and video directly inside the directories."""
    files = []
    for path in map(Path, paths):
        if path.is_dir():
            found = sorted(file for file in path.iterdir() if file.suffix.lower() in IMAGES | VIDEOS)
            if not found:
                raise SystemExit(f"error: no image and no video in `{path}`")
            files += found
        else:
            files.append(path)
    return files


def classify(client, kind, encoded):
    """The likeliest classes as (probability, label), of one compressed image or of each frame of a video."""
    file = triton.InferInput(kind.input, [1, len(encoded)], "UINT8")
    file.set_data_from_numpy(np.frombuffer(encoded, np.uint8)[None])
    answer = client.infer(
        kind.model, [file], outputs=[triton.InferRequestedOutput("PROBABILITIES", class_count=kind.top)]
    )
    # With `class_count` the server answers "probability:index:label", likeliest first.
    classes = (entry.decode().split(":", 2) for entry in answer.as_numpy("PROBABILITIES").reshape(-1))
    return [(float(probability), label) for probability, _, label in classes]


def scenes(classes):
    """Frames of a video behind each other that look alike: the first and the last, the mean probability, the label."""
    frame = 0
    for label, alike in itertools.groupby(classes, key=lambda found: found[1]):
        probabilities = [probability for probability, _ in alike]
        end = frame + len(probabilities) * STRIDE
        yield frame, end - 1, sum(probabilities) / len(probabilities), label
        frame = end


def report(client, path):
    """Sends one file and prints the answer; whether there was one."""
    encoded, kind = path.read_bytes(), kind_of(path)
    print(f"\n{path.name}  ({len(encoded) / 1e3:.0f} kB)")
    before, began = snapshot(client, steps(client, kind.model)), time.perf_counter()
    try:
        classes = classify(client, kind, encoded)
    except InferenceServerException as error:
        print(f"    {error.status()}: {error.message()}")
        return False
    total = 1e3 * (time.perf_counter() - began)
    if kind is VIDEO:
        for first, last, probability, label in scenes(classes):
            print(f"    {100 * probability:5.1f} %  {label}  (frames {first} to {last})")
    else:
        for probability, label in classes:
            print(f"    {100 * probability:5.1f} %  {label}")
    work = between(before, settled(client, before, 1))
    parts = [f"{name} {done.compute_ms:.1f} (queued {done.queue_ms:.1f})" for name, done in work.items()]
    rest = total - sum(done.compute_ms + done.queue_ms for done in work.values())
    print(f"    {total:.1f} ms = {' + '.join(parts)} + transport and scheduling {rest:.1f}")
    return True


def told_of(stage):
    """What made a model in front of the classifier, and what was measured: from the README that `gesso from` wrote."""
    lines = (ROOT / "model_repository" / stage / "README.md").read_text(encoding="utf-8").splitlines()
    made = next(line for line in lines if line.startswith("Made by"))
    return [f"{stage}: {made[0].lower()}{made[1:]}", *(line for line in lines if line.startswith(" "))]


def main():
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    files = found_files(sys.argv[1:])
    try:
        # The client goes first: a server that still has a connection waits for it before it leaves.
        with Server(ROOT / "model_repository") as server, triton.InferenceServerClient(server.grpc_url) as client:
            print(f"server ready in {server.ready_seconds:.2f} s, gRPC on {server.grpc_url}")
            print(*told_of("preprocess"), sep="\n")
            # The first request of a fresh server tells nothing of the next.
            for kind, path in {kind_of(path): path for path in reversed(files)}.items():
                before = snapshot(client, steps(client, kind.model))
                try:
                    classify(client, kind, path.read_bytes())
                    settled(client, before, 1)
                except InferenceServerException:
                    pass  # reported below, with its file
            answered = [report(client, path) for path in files]
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
