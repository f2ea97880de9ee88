"""Pages that scripts make are fresh, and the site has all of them."""

import json
import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIB = ROOT / "scripts" / "lib"


def test_the_reference_of_the_c_api_is_fresh():
    page = ROOT / "docs" / "reference" / "c-functions.md"
    made = runpy.run_path(str(LIB / "c_reference.py"))["page"]()
    assert page.read_text(encoding="utf-8") == made, (
        "run `python3 scripts/lib/c_reference.py > docs/reference/c-functions.md`"
    )


def test_the_reference_has_every_function_of_the_header():
    header = (ROOT / "include" / "gesso.h").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "reference" / "c-functions.md").read_text(encoding="utf-8")
    declared = set(re.findall(r"^[a-z][\w *]*?\*?(gesso_\w+)\(", header, re.MULTILINE))
    types = set(re.findall(r"^(?:typedef .*|})\s*\*?(gesso_\w+);$", header, re.MULTILINE))
    assert len(declared) > 30 and len(types) > 15
    assert not {name for name in declared | types if f"\n### {name}\n" not in page}


def test_the_site_has_every_page_once(tmp_path):
    runpy.run_path(str(LIB / "site.py"))["main"](tmp_path / "site")
    settings = json.loads((tmp_path / "site" / "mkdocs.yml").read_text(encoding="utf-8"))
    named = [
        page
        for section in settings["nav"]
        for held in section.values()
        for entry in ([{"": held}] if isinstance(held, str) else held)
        for page in entry.values()
    ]
    there = {
        path.relative_to(tmp_path / "site" / "pages").as_posix() for path in (tmp_path / "site" / "pages").rglob("*.md")
    }
    assert len(named) == len(set(named)) and set(named) == there
    # MkDocs makes both of one address.
    assert not {name for name in there if name.endswith("README.md") and name.replace("README", "index") in there}
    listed = (tmp_path / "site" / "pages" / "llms.txt").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([^)]+)\)", listed)) == there
