"""The list of parts: whole, each with its terms, and all of them terms that deny.toml allows."""

import json
import os
import re
from pathlib import Path

import licences
import parts
import pytest
import sbom

MACHINES = ("x86_64", "aarch64")


@pytest.fixture(scope="module", params=MACHINES)
def crates(request):
    return parts.crates(request.param)


def library():
    """The plugin under test."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or parts.ROOT / "target")
    found = Path(os.environ.get("GESSO_PLUGIN") or target / "release" / "libtriton_gesso.so")
    if not found.is_file():
        pytest.skip(f"no `{found}`: `cargo build --release` makes it")
    return found.read_bytes()


def test_crates_whose_names_stand_in_the_library_are_listed():
    # Messages of panics name their files, with the crate's folder: what the compiler took, whoever asked for it.
    named = set(re.findall(rb"registry/src/[^/]+/([A-Za-z0-9_-]+?)-(\d+\.\d+\.\d+[\w.+-]*)/", library()))
    assert len(named) > 20
    listed = {part.key for part in parts.crates(os.uname().machine) if part.shipped}
    assert {(name.decode(), version.decode()) for name, version in named} <= listed


def test_every_crate_is_of_the_registry_and_has_the_sum_that_cargo_checks(crates):
    sums = parts.checksums()
    ours = {part.name for part in crates if part.checksum is None}
    assert ours == {"gesso", "triton-gesso", "gesso-cli"}
    assert all(
        part.checksum == sums[part.key] and re.fullmatch("[0-9a-f]{64}", part.checksum)
        for part in crates
        if part.name not in ours
    )
    assert {"turbojpeg-sys", "image", "rayon"} <= {part.name for part in crates if part.shipped}
    # What makes code and what tests need is not in what is shipped; the latter is not even needed to build it.
    assert {"cmake", "serde_derive"} <= {part.name for part in crates if not part.shipped}
    assert not {"proptest", "cbindgen", "bindgen"} & {part.name for part in crates}


def test_every_part_is_under_terms_that_the_project_allows(crates):
    text = (parts.ROOT / "deny.toml").read_text(encoding="utf-8")
    section = text.partition("[licenses]")[2].partition("\n[")[0]
    everywhere = set(re.findall(r'^    "(.+)",$', section, re.MULTILINE))
    alone = {crate: terms for terms, crate in re.findall(r'allow = \["(.+)"\], crate = "(.+)"', section)}
    for part in crates:
        allowed = everywhere | {alone.get(part.name)}
        # The expression with each licence as a truth value, in Python's words.
        words = re.findall(r"[()]|AND|OR|[\w.+-]+(?: WITH [\w-]+)?", part.licence)
        said = " ".join(
            word.lower() if word in ("AND", "OR") else word if word in "()" else str(word in allowed) for word in words
        )
        assert said and eval(said), (part.key, part.licence)


def test_the_terms_of_every_part_are_told(crates):
    shipped = [part for part in crates if part.shipped and part.checksum]
    document = licences.document(shipped, parts.folders())
    head, *texts = document.split("=" * 100)
    for part in shipped:
        row = re.search(rf"^{re.escape(part.name)} {re.escape(part.version)} .*$", head, re.MULTILINE)
        assert row, part.key
        numbers = [int(number) for number in re.search(r"  (\d+(?:, \d+)*)  ", row[0])[1].split(", ")]
        assert sum(len(texts[number - 1]) for number in numbers) > 500, part.key
    assert all(re.search(rf"^{name} [\d.]+ ", head, re.MULTILINE) for name in ("libjpeg-turbo", "libwebp"))
    assert "Independent JPEG Group" in document


def test_a_part_without_terms_is_an_error(tmp_path):
    strange = parts.Part("strange", "1.0.0", "LicenseRef-Own", "", tmp_path)
    with pytest.raises(RuntimeError, match="strange 1.0.0"):
        licences.document([strange], {})


def test_the_list_for_scanners_is_whole_and_always_the_same(crates):
    listed = json.loads(sbom.document("x86_64", crates, 0))
    assert listed["bomFormat"] == "CycloneDX" and listed["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"
    assert [(entry["name"], entry["version"]) for entry in listed["components"]] == [part.key for part in crates]
    references = [entry["bom-ref"] for entry in listed["components"]]
    assert len(set(references)) == len(references)
    known = {*references, "gesso"}
    assert all(edge["ref"] in known and set(edge["dependsOn"]) <= known for edge in listed["dependencies"])
    jpeg = next(entry for entry in listed["components"] if entry["name"] == "turbojpeg-sys")
    assert jpeg["hashes"][0]["alg"] == "SHA-256" and jpeg["components"][0]["name"] == "libjpeg-turbo"
    assert (
        sbom.document("x86_64", crates, 0)
        == sbom.document("x86_64", crates, 0)
        != sbom.document("x86_64", crates[1:], 0)
    )


def test_every_crate_with_unsafe_code_stands_on_the_page(crates):
    page = (parts.ROOT / "docs" / "explanation" / "supply-chain.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w-]+)`", page))
    missing = {
        part.name
        for part in crates
        if part.shipped and part.checksum and part.name not in named and has_unsafe(part.folder)
    }
    assert not missing, "say in docs/explanation/supply-chain.md why their unsafe code is acceptable"


def has_unsafe(folder):
    """Whether a crate's sources have unsafe code; comments and lints that only name it do not count."""
    files = (
        path
        for path in folder.rglob("*.rs")
        if not {"tests", "benches", "examples"} & set(path.relative_to(folder).parts)
    )
    pattern = re.compile(r"\bunsafe\s*(\{|fn\b|impl\b|extern\b)")
    return any(
        pattern.search(re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8", errors="replace"))) for path in files
    )
