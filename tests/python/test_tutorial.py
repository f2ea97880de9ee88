"""The pages of the documentation do what they say: their Python runs as it stands, from top to bottom."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_tutorial_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    program = []
    for block in blocks("python-tutorial.md", "python"):
        name = re.match(r"# (\w+\.py)\n", block)
        if name:
            (tmp_path / name[1]).write_text(block)
        else:
            program.append(block)
    (tmp_path / "tutorial.py").write_text("".join(program))
    names = runpy.run_path(str(tmp_path / "tutorial.py"))
    printed = capsys.readouterr().out
    for line in re.findall(r"print\(.*# (.*)$", "".join(program), re.MULTILINE):
        assert line.strip() in printed, printed
    assert names["batch"].shape == (8, 64, 64, 3) and names["array"].shape == (2, 3, 224, 224)
    # What the page's commands do with the file that it made.
    written = subprocess.run(
        [sys.executable, "-m", "gesso", "serialize", "preprocess.py", "-o", "model.dali"], capture_output=True, text=True, cwd=tmp_path
    )
    assert written.returncode == 0, written.stderr
    from gesso import Pipeline

    (out,) = Pipeline.deserialize(filename="model.dali", prefetch_queue_depth=1).run(IMAGE=[names["file"]])
    assert (out.as_array()[0] == names["array"][0]).all()


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the standard library's signatures differ from version to version")
def test_the_reference_is_fresh():
    make = runpy.run_path(str(ROOT / "scripts" / "lib" / "python_reference.py"))["page"]
    page = ROOT / "docs" / "python-api.md"
    assert page.read_text(encoding="utf-8") == make(), f"run `python3 scripts/lib/python_reference.py > docs/{page.name}`"


@pytest.mark.parametrize("page", ["python.md", "python-tutorial.md", "python-from-dali.md"])
def test_python_of_the_pages_is_python(page):
    for block in blocks(page, "python"):
        compile(block, page, "exec")
