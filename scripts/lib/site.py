"""Lays the pages out as MkDocs wants them: `site.py [--rust DOC] FOLDER` writes FOLDER/mkdocs.yml, FOLDER/pages and
FOLDER/pages/llms.txt.

The pages of the root become pages of the site; every link between pages is written anew for their new places. What a
page links to and is no page, a source file say, becomes its name. DOC is where `cargo doc` wrote; it becomes
FOLDER/pages/rust."""

import argparse
import json
import os
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Pages outside of docs/, and where they stand in the site.
OUTSIDE = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "ARCHITECTURE.md": "explanation/architecture.md",
    "SECURITY.md": "explanation/security.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "CHANGELOG.md": "changelog.md",
    "tests/README.md": "contributing/tests.md",
    "benches/README.md": "benchmarks/programs.md",
}
# The order of the folders in the menu.
SECTIONS = ["getting-started", "guides", "reference", "explanation", "benchmarks", "reports", "contributing"]
# Its pages of the Rust library, and where a reader begins.
RUST = "rust"
RUST_FIRST = f"{RUST}/gesso/index.html"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def places():
    """Every file that the site holds, by its path in the tree, and where it goes."""
    inside = [path for path in (ROOT / "docs").rglob("*") if path.is_file()]
    return {path.relative_to(ROOT).as_posix(): path.relative_to(ROOT / "docs").as_posix() for path in inside} | OUTSIDE


def moved(text, source, to):
    """The page with its links as they are from its new place."""

    def one(found):
        image, words, link = found.groups()
        file, _, heading = link.partition("#")
        if not file or "://" in file:
            return found.group(0)
        target = os.path.normpath(os.path.join(os.path.dirname(source), file))
        if target not in to:
            return words
        relative = os.path.relpath(to[target], os.path.dirname(to[source]) or ".")
        return f"{image}[{words}]({relative}{'#' + heading if heading else ''})"

    # Code shows brackets, too.
    parts = re.split(r"(```.*?```|`[^`\n]*`)", text, flags=re.DOTALL)
    joined = "".join(f"\0{i}\0" if i % 2 else part for i, part in enumerate(parts))
    joined = LINK.sub(one, joined)
    return re.sub("\0(\\d+)\0", lambda found: parts[int(found.group(1))], joined)


def title(text):
    """The page's first heading."""
    return next((line.lstrip("# ").strip() for line in text.splitlines() if line.startswith("# ")), "")


def summary(text):
    """The first sentence below the heading."""
    paragraphs = [
        part
        for part in re.split(r"\n\s*\n", text)
        if part.strip() and not part.startswith(("#", "```", "|", "<", "!", "-"))
    ]
    words = " ".join(LINK.sub(r"\2", paragraphs[0]).replace("**", "").split()) if paragraphs else ""
    return re.split(r"(?<=[.:]) ", words)[0].rstrip(":")


def menu(pages, with_rust):
    """MkDocs' `nav`: the first screen, then a section for each folder."""
    entries = [{"Gesso": "index.md"}, {title(pages["pages.md"]): "pages.md"}]
    for section in SECTIONS:
        # The page of a folder itself comes first.
        names = sorted(
            (name for name in pages if name.startswith(f"{section}/")),
            key=lambda name: (not name.endswith(("README.md", "index.md")), name),
        )
        listed = [{title(pages[name]): name} for name in names]
        if section == "reference" and with_rust:
            listed.append({"Rust library": RUST_FIRST})
        if listed:
            entries.append({section.replace("-", " ").capitalize(): listed})
    return [*entries, {"Changelog": "changelog.md"}]


def main(folder, rust=None):
    """Writes the folder anew."""
    folder = Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    to, pages = places(), {}
    for source, place in to.items():
        target = folder / "pages" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if place.endswith(".md"):
            pages[place] = moved((ROOT / source).read_text(encoding="utf-8"), source, to)
            target.write_text(pages[place], encoding="utf-8")
        else:
            shutil.copyfile(ROOT / source, target)
    if rust:
        shutil.copytree(rust, folder / "pages" / RUST)
    listed = "\n".join(f"- [{title(text)}]({name}): {summary(text)}" for name, text in sorted(pages.items()))
    (folder / "pages" / "llms.txt").write_text(
        f"# Gesso\n\n> {summary(pages['index.md'])}\n\n## Pages\n\n{listed}\n", encoding="utf-8"
    )
    # JSON is YAML.
    settings = {
        "site_name": "Gesso",
        "docs_dir": "pages",
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.sections", "search.highlight", "content.code.copy"],
        },
        "plugins": ["search"],
        "markdown_extensions": ["tables", "fenced_code", {"toc": {"permalink": True}}, "pymdownx.superfences"],
        "validation": {"links": {"anchors": "warn", "not_found": "warn"}},
        "nav": menu(pages, bool(rust)),
    }
    (folder / "mkdocs.yml").write_text(json.dumps(settings, indent=1), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rust", help="the folder that `cargo doc` wrote")
    parser.add_argument("folder")
    options = parser.parse_args()
    main(options.folder, options.rust)
