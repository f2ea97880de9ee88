"""The classifier alone, without Gesso in front: its conversion, its answers, and that it keeps a batch's samples
apart."""

import io
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton
from harness import ROOT, Server
from PIL import Image

sys.path.append(str(ROOT / "scripts" / "lib"))
import convert_classifier

CATS = {"tabby", "tiger cat", "Egyptian cat"}


@pytest.fixture(scope="module")
def classifier():
    with Server(ROOT / "model_repository", models=["classifier"]) as running:
        yield running


def prepared(jpeg):
    """EfficientNet-Lite0's input by Pillow: shorter side to 256, the central 224 x 224, (v - 127) / 128, channels
    first."""
    image = Image.open(io.BytesIO(jpeg)).convert("RGB")
    scale = 256 / min(image.size)
    image = image.resize([round(side * scale) for side in image.size], Image.Resampling.BICUBIC)
    left, top = ((side - 224) // 2 for side in image.size)
    pixels = np.asarray(image.crop((left, top, left + 224, top + 224)), np.float32)
    return np.ascontiguousarray(((pixels - 127) / 128).transpose(2, 0, 1))


def probabilities(server, pixels):
    request = triton.InferInput("PIXELS", list(pixels.shape), "FP32")
    request.set_data_from_numpy(pixels)
    with triton.InferenceServerClient(server.grpc_url) as client:
        return client.infer("classifier", [request]).as_numpy("PROBABILITIES")


def test_the_cat_is_a_cat_and_the_coffee_an_espresso(classifier, photos):
    labels = (ROOT / "model_repository" / "classifier" / "labels.txt").read_text().splitlines()
    answers = probabilities(classifier, np.stack([prepared(photos["chelsea"]), prepared(photos["coffee"])]))
    assert answers.shape == (2, 1000)
    np.testing.assert_allclose(answers.sum(axis=1), 1, atol=1e-5)
    assert {labels[index] for index in np.argsort(-answers[0])[:3]} == CATS
    assert labels[answers[1].argmax()] == "espresso"
    assert answers[1].max() > 0.9


def test_a_sample_has_the_same_answer_alone_and_in_a_batch(classifier, photos):
    pixels = np.stack([prepared(jpeg) for jpeg in photos.values()])
    alone = np.concatenate([probabilities(classifier, sample[None]) for sample in pixels])
    np.testing.assert_allclose(probabilities(classifier, pixels), alone, atol=1e-5)


def test_a_file_of_weights_that_wants_code_run_is_refused(tmp_path):
    class Hostile:
        def __reduce__(self):
            return (Path.write_text, (tmp_path / "proof", "ran"))

    file = tmp_path / "weights.pth"
    file.write_bytes(pickle.dumps(Hostile()))
    with pytest.raises(pickle.UnpicklingError, match="has no place in a file of weights"):
        convert_classifier.read_weights(file)
    assert not (tmp_path / "proof").exists()
