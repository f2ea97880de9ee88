"""Every row of docs/guides/triton-features.md names a test that there is."""

import ast
import re

from harness import ROOT

PAGE = ROOT / "docs/guides/triton-features.md"
FOLDER = ROOT / "tests/server"


def test_every_feature_has_a_test():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "::" in line]
    assert len(rows) > 30
    for row in rows:
        (name,) = re.findall(r"`([\w/]+\.py::\w+)`", row)
        file, function = name.split("::")
        defined = ast.parse((FOLDER / file).read_text()).body
        assert function in {each.name for each in defined if isinstance(each, ast.FunctionDef)}, name
