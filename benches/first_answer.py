"""Seconds from a folder with `preprocessor_config.json` to the first served answer: `gesso from` with its proof, a real
tritonserver, one request; beside the server's own start with the same model in place.

    python benches/first_answer.py [--python PYTHON] [--rounds 3] [--count 100]

`--python` is the interpreter that has the package `gesso` and transformers with torch and torchvision. This one needs
what tests/server/harness.py needs: tritonclient, nvidia-pytriton, `GESSO_PLUGIN`."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "server"))
import tritonclient.grpc as triton
from harness import CACHE, Server

CONFIGURATION = {
    "image_processor_type": "ViTImageProcessor",
    "size": {"height": 224, "width": 224},
    "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3,
}


def converted(python, folder, count):
    """Makes the stage; prints what the command says; returns the model repository."""
    definition, models = folder / "vit", folder / "models"
    definition.mkdir()
    (definition / "preprocessor_config.json").write_text(json.dumps(CONFIGURATION))
    command = [python, "-m", "gesso", "from", "hf", definition, "-o", models / "preprocess", "--count", str(count)]
    print(subprocess.run([*command, "--require-equal"], check=True, capture_output=True, text=True).stdout, end="")
    return models


def answered(models, image):
    """Seconds until the server is ready, and until it answered."""
    start = time.perf_counter()
    with Server(models) as server, triton.InferenceServerClient(server.grpc_url) as client:
        ready = time.perf_counter() - start
        request = triton.InferInput("IMAGE", [1, len(image)], "UINT8")
        request.set_data_from_numpy(image[None])
        assert client.infer("preprocess", [request]).as_numpy("pixel_values").shape == (1, 3, 224, 224)
        return ready, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=100, help="photos of the proof")
    options = parser.parse_args()
    image, rows = np.fromfile(sorted((CACHE / "photos").glob("*.jpg"))[0], np.uint8), []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            models = converted(options.python, Path(folder), options.count)
            made = time.perf_counter() - start
            _, answer = answered(models, image)
            ready, _ = answered(models, image)
        rows.append((made, answer, made + answer - ready))
        print(
            f"converted and proven in {made:.2f} s, started and answered in {answer:.2f} s, start alone {ready:.2f} s"
        )
    print(f"beside the server's own start: {statistics.median(row[-1] for row in rows):.2f} s")


if __name__ == "__main__":
    main()
