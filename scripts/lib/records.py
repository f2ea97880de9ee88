"""What was measured, as files in benches/results: SERIES.DATE.json, which `write` makes at the end of a run and
`figures.py` shows.

A record has: `title`, what was measured, in words; `machine`; `date`; `commit`, of the code that was measured;
`command`, which measures it again; `spread`, how far rounds differ, or how many there were; `columns` and `rows`, the
table. What nobody wrote down is null. A record with `from` was taken from a page, which is named there; its `date` and
`commit` are those that brought it into the page."""

import datetime
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benches" / "results"
FIELDS = ("title", "machine", "date", "commit", "command", "spread", "columns", "rows")


class RecordError(ValueError):
    """A file is no record, or there is none."""


def read(path):
    """A record, with its `series`."""
    named = re.fullmatch(r"([a-z0-9-]+)\.(\d{4}-\d\d-\d\d)\.json", path.name)
    record = json.loads(path.read_text(encoding="utf-8"))
    missing = [field for field in FIELDS if field not in record]
    if named is None or missing:
        raise RecordError(
            f"{path.name}: expected a record named SERIES.YYYY-MM-DD.json, found one without {', '.join(missing) or 'that name'}"
        )
    if record["date"] != named[2]:
        raise RecordError(f"{path.name}: expected the date of its name, found `{record['date']}`")
    for line in record["rows"]:
        if len(line) != len(record["columns"]):
            raise RecordError(f"{path.name}: expected {len(record['columns'])} cells in each row, found {line}")
    return record | {"series": named[1]}


def all_records():
    """Every record, sorted by its name."""
    return [read(path) for path in sorted(FOLDER.glob("*.json"))]


def of_date(series, date):
    """That record."""
    path = FOLDER / f"{series}.{date}.json"
    if not path.exists():
        raise RecordError(f"expected a record `{path.name}` in benches/results, found none")
    return read(path)


def newest(series):
    """The last record of a series."""
    found = [record for record in all_records() if record["series"] == series]
    if not found:
        raise RecordError(f"expected a record of `{series}` in benches/results, found none")
    return max(found, key=lambda record: record["date"])


def machine():
    """This machine in words: its GPUs if there are any, processor and cores."""
    words = []
    if shutil.which("nvidia-smi"):
        asked = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True
        )
        words += sorted(set(asked.stdout.split("\n")) - {""}) if asked.returncode == 0 else []
    cpu = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.*)$", cpu.read_text(), re.MULTILINE) if cpu.exists() else []
    return ", ".join(
        [*words, f"{len(os.sched_getaffinity(0))} cores of {names[0] if names else 'an unnamed processor'}"]
    )


def commit():
    """Of the tree, with `+` if it has changes."""
    done = subprocess.run(
        ["git", "describe", "--always", "--exclude=*", "--dirty=+"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


def write(series, title, command, spread, columns, rows, folder=FOLDER):
    """Keeps a run of today; the file."""
    date = datetime.date.today().isoformat()
    record = {
        "title": title,
        "machine": machine(),
        "date": date,
        "commit": commit(),
        "command": command,
        "spread": spread,
    }
    path = Path(folder) / f"{series}.{date}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(record | {"columns": columns, "rows": rows}), encoding="utf-8")
    return path


def text(record):
    """A record as a file: a line for each row, so that changes are seen."""
    body = json.dumps({name: value for name, value in record.items() if name != "rows"}, indent=1, ensure_ascii=False)
    lines = ",\n".join("  " + json.dumps(line, ensure_ascii=False) for line in record["rows"])
    return body.removesuffix("\n}") + ',\n "rows": [\n' + lines + "\n ]\n}\n"
