"""The classifier alone, without Gesso in front: its conversion, its answers, and that it keeps a batch's samples
apart."""

import io
import json
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
    """EfficientNet-Lite0's input by Pillow, as `model_repository/classifier/data_config.json` says it and timm computes
    it."""
    config = json.loads((ROOT / "model_repository" / "classifier" / "data_config.json").read_text())
    _, *crop = config["input_size"]
    shorter = int(crop[0] / config["crop_pct"])
    image = Image.open(io.BytesIO(jpeg)).convert("RGB")
    size = [shorter if side == min(image.size) else int(shorter * side / min(image.size)) for side in image.size]
    image = image.resize(size, Image.Resampling.BICUBIC)
    left, top = (round((side - length) / 2) for side, length in zip(image.size, crop[::-1]))
    pixels = np.asarray(image.crop((left, top, left + crop[1], top + crop[0])), np.float32) / np.float32(255)
    mean, std = np.float32(config["mean"]), np.float32(config["std"])
    return np.ascontiguousarray(((pixels - mean) / std).transpose(2, 0, 1))


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


@pytest.mark.parametrize(("name", "allowed"), [("preprocess", 0), ("preprocess_dali", 0.3)])
def test_a_stage_makes_what_the_network_was_trained_with(client, photos, name, allowed):
    for jpeg in photos.values():
        image = triton.InferInput("IMAGE", [1, len(jpeg)], "UINT8")
        image.set_data_from_numpy(np.frombuffer(jpeg, np.uint8)[None])
        found = client.infer(name, [image]).as_numpy("PIXELS")[0]
        # On a CPU, which decodes as Pillow does, the one that `gesso from` made is equal to the bit.
        assert abs(found - prepared(jpeg)).max() <= allowed


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
