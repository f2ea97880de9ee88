"""A short form of the proof of the encoders (scripts/lib/prove_encoders.py): random images, random settings."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts" / "lib"))
import prove_encoders


def test_files_are_what_they_have_to_be():
    counts, wrong = prove_encoders.prove(count=180, seed=2, largest=40)
    assert not wrong, "\n".join(wrong)
    assert {what.split(",")[0] for what in counts} >= {"JPEG", "PNG of 8 bits", "PNG of 16 bits", "WebP"}


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_its_reader_of_pngs_reads_what_pillow_reads(dtype, channels):
    images = list(prove_encoders.pictures(np.random.default_rng(4), channels, dtype, 30))
    files = prove_encoders.encoded(prove_encoders.fn.gesso.encode_png, images, {}, None)
    for image, file in zip(images, files, strict=True):
        assert np.array_equal(prove_encoders.samples_of(file), image)
        if dtype == np.uint8:
            assert np.array_equal(prove_encoders.pixels_of(file, channels), image)
