"""Records in data/orders.json in which order real DALI gives samples: version 2.4, on a CPU.

    python tests/orders/record.py            runs every configuration of `chosen` and writes the file
    python tests/orders/record.py --check    says instead where the installed DALI differs from the file

Needs nvidia-dali 2.4 and numpy, no GPU. Data sets are made in a temporary folder; the same DALI gives the same bytes.
"""

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from orders.chosen import configurations, fingerprint
from orders.running import Package, brief, run
from orders.sets import Sets

FILE = Path(__file__).parent / "data/orders.json"


def line(name, way, metas, found):
    """The answer to a configuration as one line of JSON."""
    answer = {"of": fingerprint(way), "metas": brief(metas), "gives": found if "iterator" in way else ", ".join(found)}
    return f"{json.dumps(name)}: {json.dumps(answer, separators=(',', ':'))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="", help="configurations whose names have this")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    package, lines = Package("nvidia.dali"), []
    with tempfile.TemporaryDirectory() as root:
        sets = Sets(root)
        for name, way in configurations().items():
            if chosen.only not in name:
                continue
            try:
                lines.append(line(name, way, *run(package, sets, way)))
            except Exception as error:
                raise RuntimeError(f"`{name}`: {way}") from error
    if chosen.only:
        print("\n".join(lines))
    elif chosen.check:
        recorded = FILE.read_text().splitlines()[1:-1]
        wrong = [new for new, old in zip(lines, recorded) if new != old.rstrip(",")]
        print("\n".join(wrong + [f"{len(wrong)} of {len(lines)} configurations differ"]))
        sys.exit(bool(wrong) or len(lines) != len(recorded))
    else:
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
