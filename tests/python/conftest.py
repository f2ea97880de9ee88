"""Tests of the Python package. They need the wheel installed (or `PYTHONPATH=python` and `GESSO_LIBRARY`), numpy and
pytest; no DALI."""
