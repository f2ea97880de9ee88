"""What a release holds of others' work: the crates that cargo builds into it, and what the tools add. It reads what
cargo knows, and nothing from the network."""

import dataclasses
import functools
import importlib.util
import json
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = "gesso-cli"

# C that a crate brings along: crate, its folder in the crate, where its version stands, its licence.
JPEG_VERSION = ("CMakeLists.txt", r"^set\(VERSION ([\d.]+)\)")
WEBP_VERSION = ("configure.ac", r"^AC_INIT\(\[libwebp\], \[([\d.]+)\]")
BUNDLED = {
    "turbojpeg-sys": ("libjpeg-turbo", "libjpeg-turbo", JPEG_VERSION, "IJG AND BSD-3-Clause AND Zlib"),
    "libwebp-sys": ("libwebp", "vendor", WEBP_VERSION, "BSD-3-Clause"),
}


@dataclasses.dataclass(frozen=True)
class Part:
    """A crate, or what else is built into the library."""

    name: str
    version: str
    # An SPDX expression.
    licence: str
    # Where its source is developed.
    source: str
    # Where its files are on this machine.
    folder: Path
    # Of the source as it is published, SHA-256; ours have none.
    checksum: str | None = None
    # Whether it is in what is shipped; else it only helps to build that.
    shipped: bool = True
    is_crate: bool = True
    # Other parts that it uses: (name, version).
    needs: tuple = ()
    # Parts of others that it holds.
    holds: tuple = ()

    @property
    def key(self):
        """What tells it from all others."""
        return self.name, self.version


def version():
    """The release's version."""
    return re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]


def crates(machine):
    """The crates of a build for `machine`, ours among them, sorted: those that are shipped and those that only build
    them."""
    target = f"{machine}-unknown-linux-gnu"
    known = _known(target)
    packages = {package["id"]: package for package in known["packages"]}
    shipped = _tree(target, "normal,no-proc-macro")
    # The lists of cargo's metadata hold what tests need, too, so they only tell what is known of each.
    wanted = _tree(target, "normal,build")
    sums = checksums()
    found = []
    for node in known["resolve"]["nodes"]:
        package = packages[node["id"]]
        key = _key(package)
        if key not in wanted:
            continue
        used = {
            _key(packages[edge["pkg"]])
            for edge in node["deps"]
            if any(kind["kind"] != "dev" for kind in edge["dep_kinds"])
        }
        found.append(_crate(package, sums.get(key), key in shipped, tuple(sorted(used & wanted))))
    return sorted(found, key=lambda part: part.key)


def checksums():
    """What Cargo.lock says: (name, version) to the SHA-256 of the crate as it is published."""
    # In the form that cargo writes: tomllib is not in Python 3.10.
    blocks = (ROOT / "Cargo.lock").read_text(encoding="utf-8").split("[[package]]")[1:]
    fields = [dict(re.findall(r'^(\w+) = "(.*)"$', block, re.MULTILINE)) for block in blocks]
    return {(package["name"], package["version"]): package.get("checksum") for package in fields}


def folders():
    """The folder of every package that cargo knows here, by its name: also of those that only tests need."""
    return {package["name"]: Path(package["manifest_path"]).parent for package in _known()["packages"]}


def tools():
    """What rustc and zig's linker add: the standard library, and what stands between it and glibc. Needs both
    installed."""
    about = dict(line.split(": ", 1) for line in _run("rustc", "-vV").splitlines() if ": " in line)
    documents = Path(_run("rustc", "--print", "sysroot").strip()) / "share" / "doc" / "rust"
    zig = importlib.util.find_spec("ziglang")
    if zig is None:
        raise RuntimeError(
            "expected the package `ziglang`, whose linker makes a release: `scripts/release` installs it"
        )
    zig_version = re.search(
        r"^ziglang==(.*)$", (ROOT / "scripts/requirements-wheel.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    return [
        Part("rust-std", about["release"], "MIT OR Apache-2.0", "https://www.rust-lang.org", documents, is_crate=False),
        Part(
            "zig-runtime",
            zig_version[1],
            "MIT AND (Apache-2.0 WITH LLVM-exception) AND LGPL-2.1-or-later",
            "https://ziglang.org",
            Path(zig.origin).parent,
            is_crate=False,
        ),
    ]


def _crate(package, checksum, shipped, needs):
    folder = Path(package["manifest_path"]).parent
    source = package["repository"] or package["homepage"] or ""
    # Old crates separate alternatives by a slash.
    licence = (package["license"] or "").replace("/", " OR ")
    holds = ()
    if package["name"] in BUNDLED:
        name, inside, (file, pattern), terms = BUNDLED[package["name"]]
        found = re.search(pattern, (folder / inside / file).read_text(encoding="utf-8"), re.MULTILINE)
        holds = (Part(name, found[1], terms, source, folder / inside, is_crate=False),)
    return Part(package["name"], package["version"], licence, source, folder, checksum, shipped, True, needs, holds)


@functools.cache
def _known(target=None):
    return json.loads(_cargo("metadata", "--format-version=1", *([f"--filter-platform={target}"] if target else [])))


def _key(package):
    return package["name"], package["version"]


def _tree(target, edges):
    """(name, version) of all that the program needs by these kinds of edges, without what only tests need."""
    lines = _cargo(
        "tree", f"--package={PROGRAM}", f"--edges={edges}", f"--target={target}", "--prefix=none", "--format={p}"
    )
    words = (line.split() for line in lines.splitlines() if line.strip())
    return {(name, version.removeprefix("v")) for name, version, *_ in words}


def _cargo(*words):
    return _run("cargo", words[0], "--locked", *words[1:])


def _run(*words):
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(words)}` failed: {done.stderr.strip()}")
    return done.stdout
