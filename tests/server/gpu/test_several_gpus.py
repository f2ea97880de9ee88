"""One model on two GPUs: both work, both answer alike, and tensors may lie on either."""

import numpy as np
import pytest
import tritonclient.grpc as triton
from cuda_driver import CudaError, Driver
from harness import Server
from on_gpu import PIPELINES, config, landing_in, lying_in, registered
from recorded import cases, write_model
from sending import alone, infer, together

CASE = PIPELINES["classify"]
IMAGES = CASE.inputs["IMAGE"]
REQUESTS = 96
# What a process takes of a GPU at least, once it works there.
CONTEXT_BYTES = 100 << 20


@pytest.fixture(scope="module")
def second(driver):
    """The driver of the second GPU."""
    try:
        made = Driver(1)
    except CudaError as error:
        pytest.skip(f"skipped: {error}")
    yield made
    driver.make_current()


@pytest.fixture(scope="module")
def served(driver, second, tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    write_model(repository, "both", CASE.pipeline, config(max_batch_size=1, gpus=(0, 1)))
    for gpu in (0, 1):
        write_model(repository, f"only_{gpu}", CASE.pipeline, config(gpus=(gpu,)))
        resident = cases("crop_mirror_normalize")["as_before_a_classifier_made_for_gpu"]
        write_model(repository, f"normalize_{gpu}", resident.pipeline, config(gpus=(gpu,)))
    second.make_current()
    idle = second.used_bytes()
    with Server(repository) as server:
        assert second.used_bytes() > idle + CONTEXT_BYTES, "nothing is on the second GPU"
        driver.make_current()
        yield server


def test_both_answer_alike(served):
    with triton.InferenceServerClient(served.grpc_url) as client:
        expected = [infer(client, "only_0", alone({"IMAGE": image}))[0] for image in IMAGES]
        for image, answer in zip(IMAGES, expected, strict=True):
            np.testing.assert_array_equal(infer(client, "only_1", alone({"IMAGE": image}))[0], answer)
    wanted = [i % len(IMAGES) for i in range(REQUESTS)]
    answers = together(served.grpc_url, "both", [alone({"IMAGE": IMAGES[i]}) for i in wanted])
    for i, answer in zip(wanted, answers, strict=True):
        assert not isinstance(answer, Exception), answer
        np.testing.assert_array_equal(answer[0], expected[i])


@pytest.mark.parametrize("gpu", (0, 1))
@pytest.mark.parametrize("memory", (0, 1))
def test_tensors_may_lie_on_either(served, driver, second, gpu, memory):
    holder = (driver, second)[memory]
    x = cases("crop_mirror_normalize")["as_before_a_classifier_made_for_gpu"].inputs["X"][0][None]
    with triton.InferenceServerClient(served.grpc_url) as client:
        (expected,) = infer(client, f"normalize_{gpu}", {"X": x})
        holder.make_current()
        try:
            name = f"{gpu}_{memory}"
            (output,) = client.get_model_metadata(f"normalize_{gpu}").outputs
            with (
                registered(client, holder, f"in_{name}", x.nbytes, memory) as source,
                registered(client, holder, f"out_{name}", expected.nbytes, memory) as target,
            ):
                source.write(x)
                client.infer(
                    f"normalize_{gpu}",
                    [lying_in("X", x, f"in_{name}")],
                    outputs=[landing_in(output.name, expected.nbytes, f"out_{name}")],
                )
                np.testing.assert_array_equal(target.read(expected.dtype, expected.shape), expected)
        finally:
            driver.make_current()
