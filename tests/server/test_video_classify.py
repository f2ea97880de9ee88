"""The demo's model of videos: every eighth frame becomes a sample of the batch that the classifier gets."""

import numpy as np
import pytest
import tritonclient.grpc as triton
from harness import CACHE, ROOT
from tritonclient.utils import InferenceServerException

STRIDE, FRAMES_OF_A_PHOTO = 8, 24


@pytest.fixture(scope="module")
def clip():
    path = CACHE / "clips" / "photos.mp4"
    assert path.is_file(), "no video of the photos: scripts/test makes it"
    return np.fromfile(path, np.uint8)


def probabilities(client, video):
    given = triton.InferInput("VIDEO", [1, len(video)], "UINT8")
    given.set_data_from_numpy(video[None])
    return client.infer("video_classify", [given]).as_numpy("PROBABILITIES")


def test_each_photo_is_seen_where_it_is_shown(client, clip, photos):
    found = probabilities(client, clip)
    assert found.shape == (len(photos) * FRAMES_OF_A_PHOTO // STRIDE, 1000)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-3)
    labels = (ROOT / "model_repository" / "classifier" / "labels.txt").read_text().splitlines()
    likeliest = [{labels[i] for i in np.argsort(row)[-5:]} for row in found]
    each = FRAMES_OF_A_PHOTO // STRIDE
    for name, expected in {"chelsea": "Egyptian cat", "coffee": "espresso", "camera": "tripod"}.items():
        first = sorted(photos).index(name) * each
        # The camera moves across: most frames show what it is.
        assert sum(expected in row for row in likeliest[first : first + each]) >= 2, (
            name,
            likeliest[first : first + each],
        )


def test_what_is_no_video_is_refused_and_the_next_is_answered(client, clip):
    with pytest.raises(InferenceServerException):
        probabilities(client, np.frombuffer(b"nothing that is a video", np.uint8))
    assert len(probabilities(client, clip)) == 18
