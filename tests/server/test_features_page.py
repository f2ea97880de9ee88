"""Pages about servers: every feature names a test that there is, and every alert has its part of the runbook."""

import ast
import re

from harness import ROOT

PAGE = ROOT / "docs/guides/triton-features.md"
RUNBOOK = ROOT / "docs/guides/runbook.md"
ALERTS = ROOT / "packaging/prometheus/alerts.yml"
FOLDER = ROOT / "tests/server"


def test_every_feature_has_a_test():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "::" in line]
    assert len(rows) > 30
    for row in rows:
        (name,) = re.findall(r"`([\w/]+\.py::\w+)`", row)
        file, function = name.split("::")
        defined = ast.parse((FOLDER / file).read_text()).body
        assert function in {each.name for each in defined if isinstance(each, ast.FunctionDef)}, name


def test_every_alert_is_in_the_runbook():
    alerts = re.findall(r"- alert: (\w+)", ALERTS.read_text())
    headings = re.findall(r"^### (\w+)$", RUNBOOK.read_text(), re.MULTILINE)
    assert alerts and set(alerts) <= set(headings)
