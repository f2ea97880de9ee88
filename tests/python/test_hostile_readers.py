"""Damaged data sets of every kind: what a reader makes of them are samples or a `RuntimeError`, soon, with bounded
memory. More of them: `GESSO_READER_CASES=5000 pytest tests/python/test_hostile_readers.py`."""

import os
import random
import resource
import signal

import pytest
from data_sets import IN_PYTHON, NATIVE, astronomy, damaged
from gesso import Pipeline

CASES = int(os.environ.get("GESSO_READER_CASES", 60))
# A reader that needs longer for a data set of some kilobytes hangs.
SECONDS = 20
MEMORY_MB = 1000


def read_all(make):
    made = Pipeline(2, 1, seed=1)
    with made:
        outputs = make()
        made.set_outputs(*(outputs if isinstance(outputs, list) else [outputs]))
    made.build()
    for _ in range(4):
        made.run()


def test_damage_is_an_error(kind, tmp_path):
    if kind is astronomy:
        pytest.importorskip("astropy.io.fits")
    names, make = kind(tmp_path)
    whole = {name: (tmp_path / name).read_bytes() for name in names}
    read_all(make)
    failed = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0
    for seed in range(CASES):
        numbers = random.Random(seed)
        name = numbers.choice(names)
        (tmp_path / name).write_bytes(damaged(whole[name], numbers))
        signal.alarm(SECONDS)
        try:
            read_all(make)
        except RuntimeError:
            refused += 1
        except Exception as error:  # whatever it is, it should not have come
            failed.append(f"seed {seed}: {type(error).__name__}: {error}")
        finally:
            signal.alarm(0)
            (tmp_path / name).write_bytes(whole[name])
    assert not failed, "\n".join([f"{len(failed)} of {CASES}", *failed[:10]])
    assert refused, "nothing was wrong enough"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY_MB << 10


def pytest_generate_tests(metafunc):
    metafunc.parametrize("kind", [*NATIVE, *IN_PYTHON], ids=lambda kind: kind.__name__)
