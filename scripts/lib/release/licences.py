"""The terms of all parts in one text: which part is under which, and every text once.

Not by cargo-about: it knows crates, but not the C that they bring along, nor what rustc and zig's linker add.
"""

import html
import re

import parts

# What a file with terms is called.
TERMS = re.compile(r"(un)?licen[cs]e|copying|notice|copyright-library|readme\.ijg", re.IGNORECASE)
SUFFIXES = ("", ".txt", ".md", ".html", ".ijg", ".apache", ".mit")

# Folders of a part that hold terms, too; the second is that of zig's unwinder, the third that of what it links of
# glibc.
INSIDE = ("LICENSES", "lib/libunwind", "lib/libc/glibc")

# For a part that comes without its terms: the text of a licence, from another package (None: ours).
STANDARD = {
    "Apache-2.0": (None, "LICENSE"),
    "MIT": ("webp", "LICENSE-MIT"),
    "MPL-2.0": ("cbindgen", "LICENSE"),
    "Unlicense": ("memchr", "UNLICENSE"),
}

HEAD = """\
Gesso {version} is under the Apache License 2.0: see LICENSE. It holds the following parts of others, each under its own terms. The
numbers name the texts below. Where a part offers a choice, Gesso takes it under any of the terms that are given for it. The source of a
crate is published under its name and version, unchanged, in the registry of Rust's crates, and developed at the address beside it; for
those under the Mozilla Public License 2.0 that is the Source Code Form of its section 3.2.

"""


def of(part):
    """The terms that come with a part: (name of the file, text)."""
    folders = [part.folder, *(part.folder / inside for inside in INSIDE)]
    files = [path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]
    found = []
    for path in files:
        if path.is_file() and TERMS.match(path.name) and path.suffix.lower() in SUFFIXES:
            text = path.read_text(encoding="utf-8", errors="replace")
            found.append((path.name, _plain(text) if path.suffix == ".html" else text.strip()))
    return [(name, text) for name, text in found if text]


def standard(part, folders):
    """The text of a part's licence, for one that comes without; `folders` has every package's folder by its name."""
    for name in re.findall(r"[\w.-]+", part.licence):
        if name in STANDARD:
            package, file = STANDARD[name]
            folder = parts.ROOT if package is None else folders[package]
            return [(name, (folder / file).read_text(encoding="utf-8").strip())]
    raise RuntimeError(
        f"{part.name} {part.version} (`{part.licence}`) comes without its terms, and no text of them is at hand"
    )


def document(shipped, folders):
    """All terms as one text. `shipped` are parts, without ours."""
    texts, rows = {}, []
    for part in shipped:
        for each in (part, *part.holds):
            found = of(each) or standard(each, folders)
            numbers = sorted({texts.setdefault(text, len(texts) + 1) for _, text in found})
            rows.append((f"{each.name} {each.version}", each.licence, ", ".join(map(str, numbers)), each.source))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]]) for row in rows]
    blocks = [f"\n\n{'=' * 100}\n[{number}]\n\n{text}\n" for text, number in texts.items()]
    return HEAD.format(version=parts.version()) + "\n".join(lines) + "\n" + "".join(blocks)


def _plain(page):
    """A page's text: that of Rust's standard library is one."""
    page = re.sub(r"<(style|script|head).*?</\1>|<[^>]+>", "", page, flags=re.DOTALL)
    return re.sub(r"\n\s*\n+", "\n\n", html.unescape(page)).strip()
