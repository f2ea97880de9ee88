"""CMake and pkg-config find Gesso in an archive, and what the guide says builds and runs."""

import io
import os
import re
import shutil
import subprocess
import sys

import c_files
import harness
import numpy as np
import parts
import pytest
import tarball

GUIDE = parts.ROOT / "docs" / "guides" / "from-c.md"
TIMEOUT = 300


def blocks(language):
    """Those of the page; an end of one is no beginning of another."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def test_paths_are_found_from_each_other():
    assert c_files.relative("lib/cmake/Gesso", "backends/gesso") == "../../../backends/gesso"
    assert c_files.relative("usr/lib/cmake/Gesso", "usr/lib/gesso/backends") == "../../gesso/backends"
    assert c_files.relative("gesso/cmake", "gesso") == ".."
    assert c_files.relative("gesso", "gesso/include") == "include"


@pytest.fixture
def archive_folder(tmp_path):
    """An archive as it is unpacked, but for what no program in C needs."""
    library = harness.plugin_path()
    if not library.is_file():
        pytest.skip(f"no `{library}`: `cargo build --release` makes it")
    folder = tmp_path / "moved here"
    (folder / "backends" / "gesso").mkdir(parents=True)
    (folder / "include").mkdir()
    os.symlink(library, folder / "backends" / "gesso" / "libtriton_gesso.so")
    shutil.copy(parts.ROOT / "include" / "gesso.h", folder / "include")
    for path, text in c_files.make("0.1.0", *tarball.PLACES):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture
def work(tmp_path):
    """The program's sources and a folder to build in, with a pipeline and two images."""
    folder = tmp_path / "work"
    folder.mkdir()
    for source in ("c/jpeg_to_npy.c", "cpp/statistics.cpp"):
        shutil.copy(parts.ROOT / "examples" / source, folder)
    (folder / "CMakeLists.txt").write_text(blocks("cmake")[0])
    (folder / "classify.py").write_text(blocks("python")[0])
    environment = os.environ | {"GESSO_LIBRARY": str(harness.plugin_path()), "PYTHONPATH": str(parts.ROOT / "python")}
    subprocess.run([sys.executable, "classify.py"], cwd=folder, env=environment, check=True, timeout=TIMEOUT)
    image = pytest.importorskip("PIL.Image")
    for name in "ab":
        data = io.BytesIO()
        image.fromarray(np.full((40, 60, 3), 255, np.uint8)).save(data, "JPEG")
        (folder / f"{name}.jpg").write_bytes(data.getvalue())
    return folder


def shell(commands, folder, gesso):
    """The commands of the page, in their order."""
    done = subprocess.run(
        ["bash", "-euc", commands],
        cwd=folder,
        env=os.environ | {"GESSO": str(gesso)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def of_archive(*blocks_of_page):
    """Blocks behind the one that says where an archive is. Its folder has a space in its name."""
    where = next(block for block in blocks("") if "$GESSO/lib/cmake" in block)
    return "".join([where.replace("$GESSO", '"$GESSO"'), *blocks_of_page])


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"no {program}")


def test_the_guide_builds_with_cmake(work, archive_folder):
    needs("cmake", "cc", "c++")
    with_cmake = next(block for block in blocks("") if "cmake -S" in block)
    shell(of_archive(with_cmake), work, archive_folder)
    shell("build/jpeg_to_npy classify.dali out a.jpg b.jpg", work, archive_folder)
    made = np.load(work / "out.1.npy")
    assert made.shape == (3, 224, 224) and made.min() == made.max() == 1


def test_the_guide_builds_with_pkg_config(work, archive_folder, tmp_path):
    needs("pkg-config", "cc", "c++")
    # Names with spaces are more than `$(...)` takes.
    os.rename(archive_folder, plain := tmp_path / "gesso")
    building, running = (next(block for block in blocks("") if word in block) for word in ("$(pkg-config", "./jpeg"))
    out = shell(of_archive(building, running), work, plain)
    assert "b.jpg -> out.1.npy" in out and (work / "out.0.npy").exists() and "224" in out


def test_an_installed_program_brings_its_library(work, archive_folder, tmp_path):
    needs("cmake", "cc", "c++")
    with (work / "CMakeLists.txt").open("a") as lists:
        lists.write(blocks("cmake")[1])
    installing = next(block for block in blocks("") if "cmake --install" in block)
    shell(of_archive(installing), work, archive_folder)
    # Neither the program nor the library is where it was.
    os.rename(work / "app", moved := tmp_path / "elsewhere")
    os.rename(archive_folder, tmp_path / "gone")
    shell(f"'{moved}/bin/jpeg_to_npy' classify.dali out a.jpg b.jpg", work, archive_folder)
    assert np.load(work / "out.1.npy").shape == (3, 224, 224)


def test_a_program_of_pkg_config_brings_its_library(work, archive_folder, tmp_path):
    needs("pkg-config", "cc")
    os.rename(archive_folder, plain := tmp_path / "gesso")
    shell(of_archive(next(block for block in blocks("") if "$ORIGIN" in block)), work, plain)
    os.rename(work / "app", moved := tmp_path / "elsewhere")
    os.rename(plain, tmp_path / "gone")
    shell(f"'{moved}/bin/jpeg_to_npy' classify.dali out a.jpg b.jpg", work, plain)
    assert np.load(work / "out.1.npy").shape == (3, 224, 224)


@pytest.mark.parametrize(
    ("asked", "found"), [("0.1", True), ("0.1.0", True), ("0.2", False), ("1.0", False), ("0.1.1", False), ("", True)]
)
def test_versions_that_fit(asked, found, work, archive_folder):
    needs("cmake", "cc", "c++")
    text = (work / "CMakeLists.txt").read_text().replace("Gesso 0.1 REQUIRED", f"Gesso {asked} REQUIRED")
    (work / "CMakeLists.txt").write_text(text)
    words = ["cmake", "-S", ".", "-B", "build", f"-DGesso_DIR={archive_folder / 'lib/cmake/Gesso'}"]
    done = subprocess.run(words, cwd=work, capture_output=True, text=True, timeout=TIMEOUT)
    assert (done.returncode == 0) == found, done.stderr


def test_a_missing_library_is_said(work, archive_folder):
    needs("cmake", "cc", "c++")
    (archive_folder / "backends" / "gesso" / "libtriton_gesso.so").unlink()
    words = ["cmake", "-S", ".", "-B", "build", f"-DGesso_DIR={archive_folder / 'lib/cmake/Gesso'}"]
    done = subprocess.run(words, cwd=work, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode != 0 and "libtriton_gesso.so, found none" in " ".join(done.stderr.split())
