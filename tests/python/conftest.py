"""Tests of the Python package. They need the wheel installed (or `PYTHONPATH=python` and `GESSO_LIBRARY`), numpy and
pytest; no DALI."""

import pytest

FILES = 11


@pytest.fixture
def files(tmp_path):
    """Eleven files, each with its number and three zeros."""
    for number in range(FILES):
        (tmp_path / f"{number:02}").write_bytes(bytes([number, 0, 0, 0]))
    return [str(tmp_path / f"{number:02}") for number in range(FILES)]
