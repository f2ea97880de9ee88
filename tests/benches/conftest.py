"""Tests of what benchmarks measure and draw with. They need no GPU: a script stands in for the program that
measures."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "scripts" / "lib"), str(ROOT / "benches"), str(ROOT / "benches" / "peers")]
