"""Tests of what `scripts/release` packs. They need no release: the lists come from cargo, the archives hold the build
under test."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "lib" / "release"), str(ROOT / "packaging"), str(ROOT / "tests" / "server")]
