"""Pages show what the records in benches/results say, and nothing newer lies there unseen."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

import figures  # noqa: E402
import records  # noqa: E402

# The words that stand in front of numbers which a reader holds against others.
CLAIM = re.compile(r"\b\d{1,3},\d{3} images/s\b")


def test_pages_are_as_their_records_say():
    done = subprocess.run([sys.executable, ROOT / "scripts/lib/figures.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_record_is_whole():
    found = records.all_records()
    assert len(found) > 25
    for record in found:
        assert record["rows"] and record["title"] and record["machine"], record["series"]


def test_the_first_screen_claims_what_its_table_says():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    ratios = {name: own / others for name, own, others, *_ in figures.compared()}
    batches = [round(ratio) for name, ratio in ratios.items() if "H200, batches" in name]
    on_cpu = [round(ratio, 1) for name, ratio in ratios.items() if "cores, " in name]
    claim = f"On one GPU large batches come {min(batches)} to {max(batches)} times as fast as DALI's, on two CPU cores {min(on_cpu)} to {max(on_cpu)} times"
    assert claim in " ".join(text.split())


def test_the_front_page_has_no_rate_of_its_own():
    text = figures.BLOCK.sub("", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert not CLAIM.findall(text)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    return tmp_path


def made(folder, date, rate):
    record = {
        "title": "t",
        "machine": "m",
        "date": date,
        "commit": "c",
        "command": "x",
        "spread": None,
        "columns": ["a", "b"],
        "rows": [["r", rate]],
    }
    (folder / f"some.{date}.json").write_text(records.text(record))


def test_the_newest_record_is_shown(folder):
    made(folder, "2026-01-02", 1234)
    assert figures.block("some") == "| a | b |\n| --- | --- |\n| r | 1,234 |\n"
    made(folder, "2026-01-03", 2345)
    assert "2,345" in figures.block("some") and "1,234" in figures.block("some 2026-01-02")


def test_a_page_is_stale_when_a_record_is_newer(folder, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- figures: some -->\n<!-- end -->\nafter\n")
    monkeypatch.setattr(figures, "pages", lambda: [page])
    monkeypatch.setattr(figures, "picture", lambda: "")
    monkeypatch.setattr(figures, "CHART", str(tmp_path / "chart.svg"))
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    made(folder, "2026-01-02", 1234)
    assert figures.main(["--check"])
    assert not figures.main([]) and not figures.main(["--check"])
    assert "1,234" in page.read_text() and page.read_text().endswith("<!-- end -->\nafter\n")
    made(folder, "2026-01-03", 2345)
    assert figures.main(["--check"])


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("some.2026-01-02.json", {"rows": [["r"]]}, "expected 2 cells"),
        ("some.2026-01-03.json", {}, "expected the date of its name"),
        ("Some.json", {}, "SERIES.YYYY-MM-DD.json"),
        ("some.2026-01-02.json", {"machine": ...}, "without machine"),
    ],
)
def test_wrong_records_are_refused(folder, name, change, expected):
    made(folder, "2026-01-02", 1)
    record = json.loads((folder / "some.2026-01-02.json").read_text()) | change
    path = folder / name
    path.write_text(json.dumps({key: value for key, value in record.items() if value is not ...}))
    with pytest.raises(records.RecordError, match=expected):
        records.read(path)


def test_a_run_is_kept(folder):
    path = records.write("some", "title", "command", "two rounds", ["a", "b"], [["r", 3]], folder)
    kept = records.read(path)
    assert kept["series"] == "some" and kept["machine"] and kept["commit"] and kept["rows"] == [["r", 3]]


def test_a_run_on_a_gpu_has_the_columns_that_pages_read():
    import gpu

    def row(peer, batch, rate):
        return {"peer": peer, "size": "500x375", "batch": batch, "images_per_second": rate}

    rows = [
        row("Gesso x1", 1, 10.4),
        row("Gesso x4", 1, 30.0),
        row("DALI 0.65 depth 1", 1, 3.0),
        row("DALI 1 depth 1", 1, 4.0),
        row("torchvision", 1, 2.0),
    ]
    columns, body = gpu.recorded(rows)
    assert columns == ["images, batch", "Gesso, one", "four", "DALI 2.4, best", "torchvision"]
    assert body == [["500 x 375, 1", 10, 30, 4, 2]]
    record = {"columns": columns, "rows": body}
    assert figures.picked(record, "500 x 375, 1", "four") == 30
