"""Real files of other projects beside their referees: what a file is, how far answers are apart, a process that ends,
and the page. The decoders themselves are asked by the script alone."""

import file_collections as files
import numpy as np
import pytest

PIXELS = np.full((4, 5, 3), 100, np.uint8)


@pytest.mark.parametrize(
    "begin, kind",
    [
        (b"\xff\xd8\xff\xe0", "JPEG"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "WebP"),
        (b"RF64\0\0\0\0WAVEds64", "WAV"),
        (b"RIFF\0\0\0\0AVI LIST", None),
        (b"\0\0\0\x18ftypmif1\0\0\0\0heicmif1", "HEIC"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0avifmif1", "AVIF"),
        (b"\0\0\0\x14ftypM4A \0\0\0\0M4A ", "sound of MP4"),
        (b"FORM\0\0\0\0AIFC", "AIFF"),
        (b"P5\n3 3", "PNM"),
        (b"P7\n", None),
        (b"\xff\xf9\x50\x80", "AAC"),
        (b"\xff\xfb\x90\x44", "MP3"),
        (b"plain text", None),
        (b"", None),
    ],
)
def test_a_file_is_known_by_how_it_begins(tmp_path, begin, kind):
    (tmp_path / "file").write_bytes(begin)
    assert files.kind_of(tmp_path / "file") == kind


@pytest.mark.parametrize(
    "apart, kind, outcome",
    [
        (0, "PNG", "equal"),
        (1, "PNG", "differ"),
        (2, "JPEG", "within two levels"),
        (3, "JPEG", "differ"),
        (3, "HEIC", "differ"),
    ],
)
def test_lossy_files_may_be_two_levels_away(apart, kind, outcome):
    assert files.compare(PIXELS, PIXELS + np.uint8(apart), kind, "another").name == outcome


def test_chroma_may_be_interpolated_and_colours_cut_off():
    """What moves red and blue against each other leaves luma alone; where red is at its end it does not."""
    other = PIXELS.copy()
    other[0, 0] += np.array([10, 251, 10], np.uint8)
    assert files.compare(PIXELS, other, "AVIF", "another").name == "luma within two levels"
    assert files.compare(PIXELS, other, "JPEG", "another").name == "differ"
    other[1, 1] = [255, 100, 100]
    assert files.compare(PIXELS, other, "HEIC", "another").name == "luma within two levels"


def test_shapes_and_types_have_to_be_the_same():
    assert files.compare(PIXELS, PIXELS[1:], "PNG", "another").name == "differ"
    assert files.compare(PIXELS, PIXELS.astype(np.uint16), "PNG", "another").name == "not compared"
    assert files.compare(PIXELS, None, "TIFF", "another").name == "not compared"
    sound = np.linspace(-1, 1, 10, dtype=np.float32)
    assert files.compare(sound, sound + np.float32(1e-8), "FLAC", "another").name == "equal"
    assert files.compare(sound, sound + np.float32(1e-3), "FLAC", "another").name == "differ"


def test_gray_is_repeated_and_alpha_is_dropped():
    assert files.as_rgb(PIXELS[..., 0]).shape == (4, 5, 3)
    assert files.as_rgb(np.zeros((4, 5, 4), np.uint16)).shape == (4, 5, 3)
    assert files.as_rgb(np.zeros((4, 5), np.float32)) is None


def test_a_process_that_ends_is_told_and_started_again(tmp_path):
    child = files.Child("none of its roles", tmp_path)
    for _ in range(2):
        assert child.ask(path="x") == {"lost": "the process ended with status 1"}


def test_the_page_counts_each_file_once(tmp_path):
    outcomes = [
        ("a/1.png", "PNG", "equal", ""),
        ("a/2.png", "PNG", "differ", "far | away"),
        ("b/3.jpg", "JPEG", "equal", ""),
    ]
    found = [(tmp_path / name, kind, files.Outcome(*outcome)) for name, kind, *outcome in outcomes]
    files.write(tmp_path / "page.md", found, tmp_path)
    text = (tmp_path / "page.md").read_text()
    assert "| a | PNG | 2 | 1 | 0 | 0 | 1 | 0 | 0 | 0 | 0 |" in text
    assert "| all |  | 3 | 2 |" in text and "| a/2.png | PNG | far \\| away |" in text
