"""What a client of the DALI backend may send and gets back, over HTTP and gRPC: one test a rule."""

import numpy as np
import pytest
from contract_models import CASES, CLASSIFY, DECODE_ONLY
from harness import wait_until
from sending import together

IMAGES = CLASSIFY.inputs["IMAGE"]


def one(array):
    return np.asarray(array)[None]


def padded(images):
    longest = max(len(image) for image in images)
    return np.stack([np.pad(image, (0, longest - len(image))) for image in images])


def assert_pixels(found, indices):
    expected = np.stack([CLASSIFY.outputs[0][i] for i in indices])
    assert found.shape == expected.shape and abs(found - expected).max() <= CLASSIFY.tol


def test_identity_of_batches_of_any_size(asked):
    for size in (1, 2, 7, 256):
        sent = np.random.default_rng(size).random((size, 5), np.float32)
        np.testing.assert_array_equal(asked.infer("identity", {"X": sent}).as_numpy("OUT"), sent)


def test_identity_cpu_of_a_pipeline_made_for_a_gpu(asked):
    sent = np.arange(6, dtype=np.float32).reshape(2, 3)
    (name,) = asked.outputs("identity_cpu")
    np.testing.assert_array_equal(asked.infer("identity_cpu", {"X": sent}).as_numpy(name), sent)


def test_image_processing_agrees_with_dali(asked):
    for i, image in enumerate(IMAGES):
        assert_pixels(asked.infer("classify", {"IMAGE": one(image)}).as_numpy("PIXELS"), [i])


def test_several_inputs_of_different_sizes(asked):
    case = CASES["two_inputs"]
    for i in case.samples:
        sent = {name: one(samples[i]) for name, samples in case.inputs.items()}
        answer = asked.infer("two_inputs", sent)
        for k, name in enumerate(("L", "R")):
            assert abs(answer.as_numpy(name)[0].astype(int) - case.outputs[k][i]).max() <= case.tol


def test_inputs_must_hold_as_many_samples_as_one_another(asked):
    case = CASES["two_inputs"]
    left, right = case.inputs["LEFT"], case.inputs["RIGHT"]
    text = asked.refusal("two_inputs", {"LEFT": padded(left[:2]), "RIGHT": one(right[0])})
    assert "batch size does not match other inputs for 'two_inputs'" in text, text


def test_a_model_of_an_ensemble_feeds_the_next(asked):
    sent = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(asked.infer("both", {"X": sent}).as_numpy("SUM"), sent + 3)


@pytest.mark.parametrize(
    "model,versions", [("versions_all", "123"), ("versions_latest", "23"), ("versions_specific", "13")]
)
def test_versions_are_served_as_their_policy_says(asked, model, versions):
    sent = np.zeros((1, 3), np.float32)
    for version in "123":
        if version in versions:
            answer = asked.infer(model, {"X": sent}, model_version=version).as_numpy("SUM")
            np.testing.assert_array_equal(answer, sent + int(version))
        else:
            assert not asked.connected.is_model_ready(model, version)
    newest = asked.infer(model, {"X": sent}).as_numpy("SUM")
    np.testing.assert_array_equal(newest, sent + int(versions[-1]))


def test_outputs_are_matched_by_position_and_renamed(asked):
    case = CASES["two_inputs"]
    answer = asked.infer("two_outputs", {"IMAGE": one(case.inputs["LEFT"][0])})
    assert answer.as_numpy("FIRST").dtype == np.uint8 and answer.as_numpy("PIXELS").dtype == np.float32


def test_a_subset_of_the_outputs(asked):
    answer = asked.infer("two_outputs", {"IMAGE": one(IMAGES[0])}, ["PIXELS"])
    assert answer.as_numpy("PIXELS").shape == (1, 3, 48, 56) and answer.as_numpy("FIRST") is None
    assert "NONE" in asked.refusal("two_outputs", {"IMAGE": one(IMAGES[0])}, ["NONE"])


def test_listed_inputs_merge_although_ragged(contract, asked):
    """The model lists its input without `allow_ragged_batch`, and the images differ in size."""
    before = asked.statistics("merging")
    answers = together(contract.grpc_url, "merging", [{"IMAGE": one(image)} for image in IMAGES])
    for i, answer in enumerate(answers):
        assert_pixels(answer[0], [i])

    # The server counts requests and, after them, their execution around the time of the answers.
    def counted():
        after = asked.statistics("merging")
        return (after[0] - before[0], after[1] - before[1])

    wait_until(lambda: counted() >= (len(IMAGES), 1), "the requests are counted")
    assert counted() == (len(IMAGES), 1)


def test_zero_padded_images_in_one_request(asked):
    assert_pixels(asked.infer("classify", {"IMAGE": padded(IMAGES)}).as_numpy("PIXELS"), [0, 1, 2])


def test_strings_hold_one_encoded_file_each(asked):
    files = [image.tobytes() for image in IMAGES]
    assert_pixels(asked.infer("strings", {"IMAGE": files}).as_numpy("PIXELS"), [0, 1, 2])
    assert_pixels(asked.infer("strings", {"IMAGE": files[1:2]}).as_numpy("PIXELS"), [1])


def test_samples_of_different_shapes_in_one_request_are_an_error_that_says_so(asked):
    text = asked.refusal("any_size", {"IMAGE": padded(DECODE_ONLY.inputs["IMAGE"])})
    assert "[120, 160, 3]" in text and "[183, 121, 3]" in text, text


def test_split_outputs_stand_along_the_batch_dimension(asked):
    case = CASES["crops"]
    for i, sample in enumerate(case.inputs["CROPS"]):
        whole = asked.infer("crops_whole", {"CROPS": one(sample)}).as_numpy("EACH")
        np.testing.assert_array_equal(whole, one(case.outputs[0][i]))
        split = asked.infer("crops", {"CROPS": one(sample)}).as_numpy("EACH")
        np.testing.assert_array_equal(split, case.outputs[0][i])
    pair = np.stack([case.inputs["CROPS"][0]] * 2)
    split = asked.infer("crops", {"CROPS": pair}).as_numpy("EACH")
    np.testing.assert_array_equal(split, np.concatenate([case.outputs[0][0]] * 2))


def test_split_outputs_of_merged_requests(contract):
    case = CASES["crops"]
    answers = together(contract.grpc_url, "crops", [{"CROPS": one(sample)} for sample in case.inputs["CROPS"]])
    for i, answer in enumerate(answers):
        np.testing.assert_array_equal(answer[0], case.outputs[0][i])


@pytest.mark.parametrize("model", ["unbatched", "unbatched_listed"])
def test_without_batching_the_first_dimension_is_the_batch_and_samples_may_have_one(asked, model):
    for size in (1, 3):
        sent = np.random.default_rng(size).random((size, 4), np.float32)
        (name,) = asked.outputs(model)
        np.testing.assert_array_equal(asked.infer(model, {"X": sent}).as_numpy(name), sent)


def test_without_batching_images_are_a_batch_of_their_own(asked):
    assert_pixels(asked.infer("unbatched_images", {"IMAGE": padded(IMAGES)}).as_numpy("PIXELS"), [0, 1, 2])


def test_an_optional_input_has_a_default(asked):
    case = CASES["sized"]
    image, size = case.inputs["IMAGE"][0], case.inputs["SIZE"][0]
    given = asked.infer("sized", {"IMAGE": one(image), "SIZE": one(size)}).as_numpy("PIXELS")
    assert abs(given[0].astype(int) - case.outputs[0][0]).max() <= case.tol
    assert asked.infer("sized", {"IMAGE": one(image)}).as_numpy("PIXELS").shape == (1, 18, 22, 3)
    pair = np.stack([image, image])
    assert asked.infer("sized", {"IMAGE": pair}).as_numpy("PIXELS").shape == (2, 18, 22, 3)


def test_an_optional_input_of_fixed_shape_is_zeros_by_itself(asked):
    sent = np.array([[1, 2, 3]], np.float32)
    np.testing.assert_array_equal(asked.infer("zeros", {"X": sent}).as_numpy("SUM"), sent + 1)


def test_an_optional_input_without_a_default_says_how_to_give_it_one(asked):
    text = asked.refusal("sized_strict", {"IMAGE": one(IMAGES[0])})
    assert "`SIZE` is missing" in text and "default.SIZE" in text, text


def test_an_input_in_several_buffers(asked):
    """Over HTTP a body of megabytes reaches the backend in pieces."""
    sent = np.random.default_rng(0).random((256, 20_000), np.float32)
    np.testing.assert_array_equal(asked.infer("identity", {"X": sent}).as_numpy("OUT"), sent)


def test_tensors_in_system_shared_memory(asked):
    sent = np.random.default_rng(0).random((3, 1000), np.float32)
    found = asked.infer_in_shared_memory("identity", {"X": sent}, ("OUT", np.float32, sent.shape))
    np.testing.assert_array_equal(found, sent)
    images = padded(IMAGES)
    found = asked.infer_in_shared_memory("classify", {"IMAGE": images}, ("PIXELS", np.float32, (3, 3, 64, 64)))
    assert_pixels(found, [0, 1, 2])


def test_an_answer_has_the_id_of_its_request(asked):
    answer = asked.infer("identity", {"X": np.zeros((1, 2), np.float32)}, request_id="order 7")
    response = answer.get_response()
    assert (response["id"] if isinstance(response, dict) else response.id) == "order 7"


@pytest.mark.parametrize("case", ["rank", "type", "batch", "missing"])
def test_requests_that_do_not_fit_are_refused(asked, case):
    wrong = {
        "rank": {"X": np.zeros((1, 2, 2), np.float32)},
        "type": {"X": np.zeros((1, 2), np.int32)},
        "batch": {"X": np.zeros((257, 2), np.float32)},
        "missing": {"Y": np.zeros((1, 2), np.float32)},
    }
    assert asked.refusal("identity", wrong[case])
