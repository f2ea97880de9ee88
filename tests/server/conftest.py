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


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failed test shows the end of the log of each server that it had."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, Server):
                report.sections.append((f"log of `{name}`", value.log_tail()))
