"""Fixtures of the tests that need a GPU; elsewhere they are skipped and say why."""

import sys
from pathlib import Path

import pytest

SERVER_TESTS = Path(__file__).resolve().parents[1]
# Also when only this folder is run.
sys.path[:0] = [str(SERVER_TESTS), str(SERVER_TESTS.parents[1] / "scripts" / "lib")]
from cuda_driver import CudaError, Driver  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def driver():
    """The first GPU; without one, every test of this folder is skipped."""
    try:
        return Driver()
    except CudaError as error:
        pytest.skip(f"skipped: {error}")
