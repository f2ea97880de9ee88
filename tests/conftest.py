"""What a skip means. On a machine that is meant to have what a test needs, a test that is skipped for want of it fails:
with GESSO_REQUIRE_GPU a GPU and its libraries, with GESSO_REQUIRE_TOOLS all else but `MAY_BE_MISSING`."""

import os
import re

import pytest

GPU = re.compile(r"no GPU|libcuda|libnv|no CUDA|optical flow engine")
# What `scripts/test` does not install: gigabytes, or another program's service.
MAY_BE_MISSING = re.compile(
    r"'(torch|torchvision|torchdata|timm|transformers|vllm|sglang|ultralytics|open_clip|cv2|jax|ray|cupy|tensorflow|paddle)[.']|no PyTorch|nvidia\.dali|DALI is not installed|no docker compose|a wheel for this machine's glibc"
    r"|no answers of DALI on a GPU|signatures differ from version to version|did not survive the cancelling of a stream"
)


def required(reason):
    """The variable by which this machine is said to have what was missing, or None."""
    if GPU.search(reason):
        name = "GESSO_REQUIRE_GPU"
    else:
        name = None if MAY_BE_MISSING.search(reason) else "GESSO_REQUIRE_TOOLS"
    return name if name and name in os.environ else None


def judge(report):
    """Makes a skip that may not be a failure."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        name = required(reason)
        if name:
            report.outcome = "failed"
            report.longrepr = f"{name} is set, and this cannot run: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return judge((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return judge((yield))
