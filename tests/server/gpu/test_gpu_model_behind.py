"""A real model behind Gesso in one server: its input is what Gesso wrote, on the GPU, and Gesso copies no tensor."""

import ctypes
import sys
import sysconfig

import make_bench_images
import model_behind
import numpy as np
import pytest
import tritonclient.grpc as triton
from cuda_copies import CopiesError, Counter
from harness import ROOT, Server
from model_behind import ANSWER_BYTES, CLASSES, ENSEMBLE, NETWORK, PREPROCESS, SAMPLE_BYTES, SIDE
from on_gpu import landing_in, registered
from sending import infer, tensor, together

RESNET = "resnet18"
PIPELINE = ROOT / "benches" / "pipeline_gpu.dali"
IMAGES = 8
POOL_BYTES = 256 << 20
# Of the largest logit: sums of float32 in another order, as batches differ.
TOLERANCE = 1e-3
REQUESTS = 50
SERVER, BACKEND = "tritonserver", "triton_python_backend_stub"


def loads(library):
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def torch(driver):
    """PyTorch with CUDA and torchvision; without them, or without what Triton's Python backend needs, these tests are
    skipped."""
    library = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    if not any(loads(path) for path in (library, f"{sysconfig.get_config_var('LIBDIR')}/{library}")):
        pytest.skip(f"skipped: no {library}")
    found = pytest.importorskip("torch", reason="skipped: no PyTorch")
    pytest.importorskip("torchvision", reason="skipped: no torchvision")
    if not found.cuda.is_available():
        pytest.skip("skipped: this PyTorch has no CUDA")
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """JPEGs, each as an array of bytes."""
    folder = tmp_path_factory.mktemp("images")
    size, grain = make_bench_images.SIZES["500x375"]
    for i in range(IMAGES):
        make_bench_images.image(size, grain, i).save(folder / f"{i}.jpg", quality=90)
    return [np.fromfile(folder / f"{i}.jpg", np.uint8) for i in range(IMAGES)]


@pytest.fixture(scope="module")
def repository(torch, tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    model_behind.write(made, PIPELINE.read_bytes(), RESNET)
    return made


def requests(files, count):
    """Requests of `count` images each, zero-padded to the longest of the request."""
    made = []
    for first in range(0, len(files), count):
        batch = np.zeros((count, max(file.size for file in files[first : first + count])), np.uint8)
        for row, file in zip(batch, files[first:]):
            row[: file.size] = file
        made.append({"IMAGE": batch})
    return made


def answered(url, asked):
    answers = together(url, ENSEMBLE, asked)
    for answer in answers:
        assert not isinstance(answer, Exception), answer
    return np.concatenate([logits for (logits,) in answers])


@pytest.fixture(scope="module")
def served(repository):
    with Server(repository, arguments=["--log-verbose=1", *model_behind.arguments(POOL_BYTES)]) as server:
        yield server


@pytest.fixture(scope="module")
def expected(torch, served, files):
    """What the same network, in this process, makes of what Gesso alone answers."""
    sys.path.append(str(model_behind.SOURCES))
    from network import network

    with triton.InferenceServerClient(served.grpc_url) as client:
        (request,) = requests(files, IMAGES)
        (pixels,) = infer(client, PREPROCESS, request)
    assert pixels.shape == (IMAGES, 3, SIDE, SIDE)
    with torch.inference_mode():
        return network(RESNET, torch.device("cuda"))(torch.tensor(pixels).cuda()).cpu().numpy()


@pytest.mark.parametrize("count", [1, 2, IMAGES])
def test_a_model_reads_what_gesso_wrote_on_the_gpu(served, files, expected, count):
    scale = np.abs(expected).max()
    apart = min(np.abs(a - b).max() for i, a in enumerate(expected) for b in expected[:i])
    assert apart > 10 * TOLERANCE * scale, "the network tells no image from another"
    # It refuses a tensor that lies on the host, so an answer says that its input did not.
    logits = answered(served.grpc_url, requests(files, count))
    np.testing.assert_allclose(logits, expected, rtol=0, atol=TOLERANCE * scale)
    # The server's own word on where it put the tensor between the two: memory type 2 is the GPU's.
    placed = [line for line in served.log.splitlines() if "Internal response allocation: PIXELS" in line]
    assert len(placed) >= IMAGES // count, "the server does not log where it puts tensors"
    assert all("memory type 2, type id 0" in line for line in placed), placed[0]
    assert "Forcing CPU only input tensors" not in served.log


def test_a_tensor_on_the_host_is_refused(served):
    with triton.InferenceServerClient(served.grpc_url) as client:
        refused = infer(client, NETWORK, {"PIXELS": np.zeros((1, 3, SIDE, SIDE), np.float32)})
    assert isinstance(refused, triton.InferenceServerException), "the network took it"
    assert "lies on the host" in refused.message(), refused


@pytest.mark.parametrize("count", [1, IMAGES])
def test_files_go_up_answers_come_down_and_gesso_copies_no_tensor(repository, driver, files, tmp_path, count):
    try:
        counter = Counter(tmp_path)
    except CopiesError as error:
        pytest.skip(f"skipped: {error}")
    asked, images = requests(files, count), REQUESTS * count
    tensor_bytes = count * SAMPLE_BYTES

    def copies(send):
        # What is made once is made now.
        send()
        before = counter.read()
        send()
        made = counter.read() - before
        print(
            f"{count} images a request, copied for an image: "
            + "; ".join(
                f"{program} {kind} {copied.bytes / images:.0f} bytes"
                for program, kinds in made.items()
                for kind, copied in kinds.items()
            )
        )
        return made

    with Server(repository, arguments=model_behind.arguments(POOL_BYTES), environment=counter.environment) as server:
        with triton.InferenceServerClient(server.grpc_url) as client:

            def of_both():
                for i in range(REQUESTS):
                    (logits,) = infer(client, ENSEMBLE, asked[i % len(asked)])
                    assert logits.shape == (count, CLASSES)

            def of_gesso():
                for i in range(REQUESTS):
                    inputs = [tensor(name, array) for name, array in asked[i % len(asked)].items()]
                    client.infer(PREPROCESS, inputs, outputs=[landing_in("PIXELS", tensor_bytes, "pixels")])

            both = copies(of_both)
            with registered(client, driver, "pixels", tensor_bytes):
                gesso = copies(of_gesso)
    assert {SERVER, BACKEND} <= set(both), f"only {', '.join(both) or 'nobody'} counted"
    sent = sum(files[i % IMAGES].size for i in range(images))
    # Beside the files go tables, beside the answers words about images: much less than a tensor.
    spare = images * SAMPLE_BYTES // 8
    # A lone file may be an engine's, which fetches it in its own way.
    least = sent // 2 if count == IMAGES else 0
    on_device = lambda made: sum(made.of(program, kind).bytes for program in made for kind in ("DtoD", "PtoP"))
    for made in (both, gesso):
        assert least <= made.of(SERVER, "HtoD").bytes <= sent + spare, made
    assert sum(both.of(program, "DtoH").bytes for program in both) <= 2 * images * ANSWER_BYTES + spare, both
    assert gesso.of(SERVER, "DtoH").bytes <= spare, gesso
    # Gesso writes a tensor where it shall be, whoever gave the memory.
    assert on_device(gesso) <= spare, gesso
    # Triton's Python backend copies it once on the device, into memory that the network's process can open.
    assert on_device(both) <= images * SAMPLE_BYTES + 2 * images * ANSWER_BYTES + spare, both
    assert both.of(BACKEND, "HtoD").bytes <= spare, both
