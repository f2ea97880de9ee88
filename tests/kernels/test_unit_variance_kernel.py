"""The kernel that makes the variance of signals 1 on the host, against numpy's float32: equal to the bit."""

import numpy as np
import pytest
from emulator import needs_compiler, place, table_kernel
from layouts import layout

ROW = "to from sums elements depth"
EPSILON = np.float32(1e-7)

pytestmark = needs_compiler


def depth(count):
    """How often so many elements are halved until every part is a loop: a half is whole lanes, so the other may be
    longer by all but one of them."""
    made, sums = 0, layout("unit_variance")
    while count > sums.PART:
        count = (count + 1) // 2 + sums.LANES - 1
        made += 1
    return made


@pytest.mark.parametrize("threads", [512, 32])
def test_signals(tmp_path, threads):
    random = np.random.default_rng(5)
    lengths = (1, 7, 8, 9, 127, 128, 129, 136, 137, 255, 257, 1000, 1031, 2151, 9001)
    given = [(random.normal(size=n) * 10.0 ** random.integers(-4, 4) + 0.3).astype(np.float32) for n in lengths]
    given += [np.full(300, -0.0, np.float32), np.asarray([np.inf, 1, 2], np.float32)]
    count = len(given)
    sums = [np.full(2 << depth(signal.size), np.nan, np.float32) for signal in given]
    outputs = [np.full(signal.size, np.nan, np.float32) for signal in given]
    rows = [
        (place(count + i), place(i), place(2 * count + i), signal.size, depth(signal.size))
        for i, signal in enumerate(given)
    ]
    run = table_kernel(tmp_path, "unit_variance", ROW, params="epsilon")
    made = run(rows, given + outputs + sums, blocks=1, threads=threads, param=(EPSILON,))[count : 2 * count]
    with np.errstate(invalid="ignore"):
        for signal, found in zip(given, made):
            np.testing.assert_array_equal(found, (signal - signal.mean()) / np.sqrt(signal.var() + EPSILON))
