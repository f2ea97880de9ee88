"""Fixtures of the tests against a real Triton server; `harness` is the server itself."""

import pytest
import tritonclient.grpc as triton
from harness import CACHE, ROOT, Server


@pytest.fixture(scope="session")
def photos():
    """Names and bytes of the demo's JPEGs."""
    found = {path.stem: path.read_bytes() for path in sorted((CACHE / "photos").glob("*.jpg"))}
    assert found, "no photos in .cache/photos: scripts/test makes them"
    return found


@pytest.fixture(scope="session")
def server():
    """One server with the project's models for all tests that only send requests."""
    with Server(ROOT / "model_repository") as running:
        yield running


@pytest.fixture(scope="session")
def client(server):
    with triton.InferenceServerClient(server.grpc_url) as connected:
        yield connected


@pytest.fixture(scope="session")
def contract(tmp_path_factory):
    """One server, in DALI's place, for all tests of the contract that only send requests."""
    from contract_models import write_repository

    repository = write_repository(tmp_path_factory.mktemp("contract"))
    with Server(repository, arguments=["--model-control-mode=explicit", "--load-model=*"]) as running:
        yield running


@pytest.fixture(params=["http", "grpc"])
def asked(request, contract):
    """A client of that server, by either protocol."""
    # Here, as a GPU machine that runs other tests of this folder may have gRPC alone.
    from protocols import Client

    with Client(request.param, contract) as client:
        yield client


@pytest.fixture(scope="session")
def features(tmp_path_factory):
    """One server with Triton's own features turned on, for all tests of them that only send requests."""
    from feature_models import arguments, write_repository

    repository = write_repository(tmp_path_factory.mktemp("features") / "models")
    with Server(repository, arguments=arguments(repository)) as running:
        yield running


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failed test shows the end of the log of each server that it had."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, Server):
                report.sections.append((f"log of `{name}`", value.log_tail()))
