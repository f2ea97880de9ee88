"""`kernels/patchify.cu` on the host: patches of images and clips against numpy's transposition."""

import numpy as np
import pytest
from emulator import needs_compiler, place, table_kernel

SIDE, DEPTH, MERGE = 3, 2, 2
ROW = "to from elements channels last_frame high wide frame_stride channel_stride row_stride column_stride unused"

pytestmark = needs_compiler


def expected(clip):
    """The patches of a clip (frames, channels, height, width)."""
    clip = np.concatenate([clip, *[clip[-1:]] * (-len(clip) % DEPTH)])
    frames, channels, height, width = clip.shape
    squares = (height // SIDE // MERGE, MERGE, SIDE, width // SIDE // MERGE, MERGE, SIDE)
    parts = clip.reshape(frames // DEPTH, DEPTH, channels, *squares)
    return parts.transpose(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(-1, channels * DEPTH * SIDE * SIDE)


@pytest.mark.parametrize(("word", "dtype"), [("uint8_t", np.uint8), ("uint32_t", np.float32), ("uint64_t", np.int64)])
def test_patches_are_cut_as_numpy_cuts_them(word, dtype, tmp_path):
    rows, memory, wanted = [], [], []
    for number, (frames, channels, height, width) in enumerate(((1, 3, 6, 12), (3, 1, 12, 6), (4, 2, 6, 6))):
        clip = np.random.default_rng(58).integers(0, 99, (frames, channels, height, width)).astype(dtype)
        is_last = number % 2 == 1
        given = np.ascontiguousarray(np.moveaxis(clip, 1, -1) if is_last else clip)
        strides = (1, width * channels, channels) if is_last else (height * width, width, 1)
        wanted.append(expected(clip))
        places = place(len(memory) + 1), place(len(memory))
        grid = (height // SIDE, width // SIDE)
        rows.append((*places, wanted[-1].size, channels, frames - 1, *grid, channels * height * width, *strides, 0))
        memory += [given, np.zeros_like(wanted[-1])]
    run = table_kernel(tmp_path, "patchify", ROW, params="side depth merge", ELEMENT=word)
    found = run(rows, memory, param=(SIDE, DEPTH, MERGE))
    for made, each in zip(found[1::2], wanted, strict=True):
        np.testing.assert_array_equal(made, each)
