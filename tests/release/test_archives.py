"""The archives: the same bytes for the same files, laid out as Triton, Debian and the program expect them."""

import hashlib
import os
import shutil
import stat
import subprocess
import tarfile
from importlib.util import find_spec

import archive
import debian
import harness
import parts
import pytest
import tarball
from archive import Entry

PAPERS = [("licenses/LICENSE", b"terms\n"), ("sboms/gesso.cdx.json", b"{}\n")]
EPOCH = 1_700_000_000


def program():
    return harness.plugin_path().with_name("gesso")


@pytest.fixture(scope="module")
def contents():
    """What `scripts/release` would pack, with the build under test in place of a release's."""
    for path in (harness.plugin_path(), program()):
        if not path.is_file():
            pytest.skip(f"no `{path}`: `cargo build --release` makes it")
    header = (parts.ROOT / "include" / "gesso.h").read_bytes()
    return harness.plugin_path().read_bytes(), program().read_bytes(), header, PAPERS, b"changes\n", EPOCH


@pytest.fixture(scope="module")
def unpacked(contents, tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    (folder / "gesso.tar.gz").write_bytes(tarball.make("1.2.3", os.uname().machine, *contents))
    subprocess.run(["tar", "-xzf", "gesso.tar.gz"], cwd=folder, check=True)
    return folder / f"gesso-1.2.3-linux-{os.uname().machine}"


def test_the_order_in_which_files_are_given_does_not_show():
    entries = [
        Entry("a/x", b"1"),
        Entry("a/b/y", b"2", archive.PROGRAM),
        Entry("z", same_as="a/x"),
        Entry("l", link="a/x"),
    ]
    assert archive.tar(entries, EPOCH) == archive.tar(entries[::-1], EPOCH) != archive.tar(entries, EPOCH + 1)
    assert archive.gz(b"x") == archive.gz(b"x")


def test_archives_are_roots_and_of_the_time_that_was_given(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(archive.tar([Entry("a/x", b"1"), Entry("b/y", same_as="a/x"), Entry("l", link="a/x")], EPOCH))
    with tarfile.open(path) as opened:
        members = opened.getmembers()
        assert [member.name for member in members] == ["a", "a/x", "b", "l", "b/y"]
        assert {(member.uid, member.gid, member.uname, member.mtime) for member in members} == {(0, 0, "root", EPOCH)}
        assert opened.extractfile("b/y").read() == b"1"


def test_the_archive_is_laid_out_as_triton_and_the_program_expect(unpacked, tmp_path):
    names = sorted(path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file())
    assert names == [
        "CHANGELOG.md",
        "INSTALL.txt",
        "backends/dali/libtriton_dali.so",
        "backends/gesso/libtriton_gesso.so",
        "bin/gesso",
        "include/gesso.h",
        "lib/cmake/Gesso/GessoConfig.cmake",
        "lib/cmake/Gesso/GessoConfigVersion.cmake",
        "lib/pkgconfig/gesso.pc",
        *(name for name, _ in PAPERS),
    ]
    (tmp_path / "tritonserver" / "backends").mkdir(parents=True)
    environment = {name: value for name, value in os.environ.items() if name != "GESSO_LIBRARY"}
    command = [unpacked / "bin" / "gesso", "install", tmp_path / "tritonserver", "--as-dali"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    installed = tmp_path / "tritonserver" / "backends" / "dali" / "libtriton_dali.so"
    assert installed.read_bytes() == (unpacked / "backends" / "gesso" / "libtriton_gesso.so").read_bytes()


def test_a_server_loads_models_of_both_names_from_the_archive(unpacked, tmp_path):
    if find_spec("pytriton") is None:
        pytest.skip("the server is not installed: scripts/test does that")
    source = parts.ROOT / "model_repository" / "preprocess"
    for name in ("gesso", "dali"):
        shutil.copytree(source / "1", tmp_path / name / "1")
        (tmp_path / name / "config.pbtxt").write_text(f'backend: "{name}"\n')
    with harness.Server(tmp_path, backends=unpacked / "backends") as running:
        assert running.model_ready("gesso") and running.model_ready("dali")


def test_the_package_is_what_debian_expects(contents, tmp_path):
    if not shutil.which("dpkg-deb"):
        pytest.skip("no dpkg-deb")
    path = tmp_path / debian.name("1.2.3", os.uname().machine)
    path.write_bytes(debian.make("1.2.3", os.uname().machine, *contents))
    fields = subprocess.run(["dpkg-deb", "--field", path], capture_output=True, text=True, check=True).stdout
    assert "Package: gesso\nVersion: 1.2.3\n" in fields and "Depends: libc6 (>= 2.28)" in fields
    root = tmp_path / "root"
    subprocess.run(["dpkg-deb", "--extract", path, root], check=True)
    subprocess.run(["dpkg-deb", "--control", path, tmp_path / "control"], check=True)
    for line in (tmp_path / "control" / "md5sums").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.md5((root / name).read_bytes()).hexdigest() == digest, name
    assert (root / "usr/lib/gesso/backends/dali/libtriton_dali.so").resolve() == (root / debian.PLUGIN).resolve()
    assert os.readlink(root / "opt/tritonserver/backends/gesso/libtriton_gesso.so") == f"/{debian.PLUGIN}"
    assert stat.S_IMODE((root / "usr/bin/gesso").stat().st_mode) == 0o755
    # The program finds the plugin from where the package puts it.
    (tmp_path / "backends").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "GESSO_LIBRARY"}
    done = subprocess.run(
        [root / "usr/bin/gesso", "install", tmp_path / "backends"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
