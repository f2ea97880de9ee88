"""How easily the pages read: words a sentence, sentences above 35 words, numbers per 100 words, of prose without
tables, code and headings.

python3 scripts/lib/readability.py            a table of all pages, the hardest first
python3 scripts/lib/readability.py --most 22  and exit status 1 if a page that is no report or log has more words a
sentence"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONG_SENTENCE_WORDS = 35
# Below that a page says too little to be judged by its mean.
MIN_SENTENCES = 5
# Pages that scripts make, and the history of measurements.
REPORTS = ("docs/reports/", "docs/benchmarks/", "CHANGELOG.md")


def prose(text):
    """Paragraphs and items without code, tables, headings and links' targets."""
    text = re.sub(r"```.*?```", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    # What stands between backticks is one word, whatever it holds.
    text = re.sub(r"`+[^`]*`+", "name", text)
    lines = []
    for line in text.splitlines():
        if re.match(r"\s*(#|\||>|!\[)", line):
            line = ""
        # An item of a list is a paragraph of its own.
        lines.append(re.sub(r"^\s*([-*]|\d+\.) ", "\n\n", line))
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", "\n".join(lines)) if part.strip()]


def sentences(text):
    """The words of each sentence."""
    found = []
    for paragraph in prose(text):
        for sentence in re.split(r"(?<=[.!?])[*_\"')]*\s+(?=[A-Z\[*_\"'(n])", paragraph):
            words = re.findall(r"[A-Za-z0-9][\w'./%-]*", sentence)
            if words:
                found.append(words)
    return found


def measure(path):
    """Sentences, words a sentence, percent of long sentences, numbers per 100 words."""
    found = sentences(path.read_text(encoding="utf-8"))
    words = [word for sentence in found for word in sentence]
    if not words:
        return None
    long = sum(len(sentence) > LONG_SENTENCE_WORDS for sentence in found)
    numbers = sum(word[0].isdigit() for word in words)
    return len(found), len(words) / len(found), 100 * long / len(found), 100 * numbers / len(words)


def main(words):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, help="words a sentence that a page may have")
    options = parser.parse_args(words)
    pages = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "tests" / "README.md",
        ROOT / "benches" / "README.md",
    ]
    rows = [(path.relative_to(ROOT).as_posix(), measure(path)) for path in pages]
    rows = sorted(((name, row) for name, row in rows if row), key=lambda entry: -entry[1][1])
    print(f"{'page':44} {'sentences':>9} {'words each':>10} {'% long':>7} {'numbers':>8}")
    for name, (count, mean, long, numbers) in rows:
        print(f"{name:44} {count:9} {mean:10.1f} {long:7.0f} {numbers:8.1f}")
    hard = [
        name
        for name, (count, mean, _, _) in rows
        if options.most and mean > options.most and count >= MIN_SENTENCES and not name.startswith(REPORTS)
    ]
    if hard:
        print(f"above {options.most} words a sentence: {', '.join(hard)}")
    return bool(hard)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
