"""What scripts/coverage prints: of each group of parsers the lines that tests run."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WANTED = 0.95
# Who reads what strangers send, by paths or their beginnings.
PARSERS = {
    "JPEG on the host": ["src/cpu/decode/jpeg"],
    "JPEG for a device": ["src/gpu/jpeg/header.rs", "src/gpu/jpeg/sm/coded.rs", "src/gpu/jpeg/sm/scan.rs"],
    "other images": ["src/cpu/decode/"],
    "arrays": ["src/cpu/npy.rs"],
    "sound": ["src/cpu/audio/decode"],
    "video": ["src/cpu/video/"],
    "pipeline files": ["src/graph/proto", "src/graph/import"],
    "expressions": ["src/ops/math/arithmetic/grammar"],
    "configurations": ["crates/plugin/src/config/"],
    "lists and indices": ["src/readers/list.rs", "src/readers/video_list.rs", "crates/cli/src/index.rs"],
}


def tool(name):
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True).stdout.strip()
    (found,) = Path(sysroot).glob(f"lib/rustlib/*/bin/{name}")
    return str(found)


def lines(folder):
    """{path: {line: how often it ran}} of all files of this repository."""
    merged = folder / "all.profdata"
    counts = [str(path) for path in folder.glob("*.profraw")]
    if not counts:
        sys.exit("error: nothing was counted: run scripts/coverage without --report first")
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", *counts, "-o", merged], check=True)
    built = map(json.loads, (folder / "built.json").read_text().splitlines())
    objects = [message["executable"] for message in built if message.get("executable")]
    objects.append(str(ROOT / "target" / "debug" / "deps" / "libtriton_gesso.so"))
    command = [tool("llvm-cov"), "export", "-format=lcov", f"-instr-profile={merged}", objects[0]]
    command += [f"-object={path}" for path in objects[1:]]
    found, path = {}, None
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        kind, _, value = line.partition(":")
        if kind == "SF":
            path = Path(value)
            path = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else None
        elif kind == "DA" and path:
            number, count = map(int, value.split(",")[:2])
            ran = found.setdefault(path, {})
            ran[number] = ran.get(number, 0) + count
    return {path: without_tests(path, ran) for path, ran in found.items()}


def is_test(path):
    """Tests in files of their own are not counted either."""
    return path.endswith("tests.rs") or "/tests/" in path


def without_tests(path, ran):
    """Tests inside of a file are not counted."""
    text = (ROOT / path).read_text().splitlines()
    end = next((i for i, line in enumerate(text, 1) if line.startswith("#[cfg(test)]")), len(text) + 1)
    return {line: count for line, count in ran.items() if line < end}


def ranges(numbers):
    """3, 4, 5, 9 as "3-5 9"."""
    parts = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", action="store_true")
    options = parser.parse_args()
    counted, left = lines(options.folder), set()
    status, all_run, all_lines = 0, 0, 0
    for group, prefixes in PARSERS.items():
        files = sorted(
            path for path in counted if path not in left and path.startswith(tuple(prefixes)) and not is_test(path)
        )
        left.update(files)
        run = sum(count > 0 for path in files for count in counted[path].values())
        total = sum(len(counted[path]) for path in files)
        all_run, all_lines = all_run + run, all_lines + total
        if total == 0:
            sys.exit(f"error: no file of {group}")
        print(f"{group:20} {run:6} of {total:6} lines {100 * run / total:6.1f} %")
        for path in files if options.files else []:
            missed = sorted(line for line, count in counted[path].items() if count == 0)
            share = 100 * (1 - len(missed) / max(len(counted[path]), 1))
            print(f"    {path:48} {share:6.1f} %  {ranges(missed)}")
    print(f"{'all':20} {all_run:6} of {all_lines:6} lines {100 * all_run / all_lines:6.1f} %")
    if all_run < WANTED * all_lines:
        status = 1
    sys.exit(status)


if __name__ == "__main__":
    main()
