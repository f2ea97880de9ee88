"""The order in which readers give samples: that of real DALI 2.4, which tests/orders/record.py recorded, whatever runs
the readers here."""

import itertools
import json
import pathlib
import sys
import warnings

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from orders.chosen import configurations, fingerprint
from orders.running import Package, brief, run
from orders.sets import Sets

RECORD = pathlib.Path(__file__).parents[1] / "orders/data/orders.json"
WAYS, RECORDED = configurations(), json.loads(RECORD.read_text())

#: Configurations of which the order is another one than DALI's: name > why.
EXPECTED_TO_DIFFER = {}

#: Where the library has the reader, too, and may run all of the pipeline as one stream.
NATIVE = {
    "file",
    "labels",
    "file+file",
    "webdataset",
    "tfrecord",
    "mxnet",
    "numpy",
    "coco",
    "caffe",
    "caffe2",
    "nemo_asr",
    "sequence",
}


def modes(way):
    """How a configuration is run."""
    # A pipeline from a file takes no state.
    loaded = [] if way["states"] else ["loaded"]
    if way["kind"] == "labels":
        # Large: once in the library, once in the interpreter.
        return ["ahead", "function"]
    if way["kind"] in NATIVE and "file" not in way["kind"]:
        return ["plain", "ahead", "function"]
    if way["kind"] in NATIVE:
        return ["plain", "ahead", "function", *([] if "iterator" in way else ["fed"]), *loaded]
    return ["plain", *loaded] if way["kind"] == "video" else ["plain"]


def runner(pipeline):
    """Who reads."""
    return "library" if pipeline.runner.execution.run.is_read_by_library else "interpreter"


def expected_runner(way, mode):
    """What is to run them, so that none of the two is left out without notice; None: either."""
    if mode == "fed":
        return "interpreter"
    if "+" in way["kind"]:
        return None
    if way["kind"] not in NATIVE:
        return "interpreter"
    if mode == "function" and way["settings"]["prefetch_queue_depth"] == 1:
        return "interpreter"
    if mode in ("ahead", "function"):
        # Behind a state the library shuffles epochs otherwise, but for readers that shuffle files.
        of_files = way["kind"] in ("webdataset", "tfrecord", "mxnet")
        shuffles = way["states"] and way["options"].get("shuffle_after_epoch") and not of_files
        return "interpreter" if shuffles else "library"
    return None


CASES = [(name, mode) for name, way in WAYS.items() for mode in modes(way)]


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    return Sets(tmp_path_factory.mktemp("orders"))


@pytest.fixture(scope="module")
def gesso():
    return Package("gesso")


def difference(expected, found):
    """Where two runs part: at a batch, or at what an iterator says is the length of an epoch."""
    has_epochs, lines = not isinstance(expected, str), []
    if not has_epochs:
        expected, found = [expected.split(", ")], [found]
    for epoch, (theirs, ours) in enumerate(zip(expected, found, strict=True)):
        for i, (one, other) in enumerate(itertools.zip_longest(theirs, ours, fillvalue="nothing")):
            if one != other:
                place = f"epoch {epoch}, " + (f"batch {i - 1}" if i else "its length") if has_epochs else f"batch {i}"
                lines.append(f"{place}: DALI gives {one}, Gesso {other}")
    return lines


def test_every_configuration_is_recorded_as_it_is():
    assert [name for name in WAYS if name not in RECORDED] == [] == [name for name in RECORDED if name not in WAYS]
    changed = [name for name, way in WAYS.items() if fingerprint(way) != RECORDED[name]["of"]]
    assert not changed, "tests/orders/record.py has not been run since these were changed"


@pytest.mark.parametrize("name, mode", CASES, ids=[f"{name}-{mode}" for name, mode in CASES])
def test_the_order_is_that_of_dali(gesso, sets, request, name, mode):
    if name in EXPECTED_TO_DIFFER:
        request.applymarker(pytest.mark.xfail(reason=EXPECTED_TO_DIFFER[name], strict=True))
    way, recorded, ran = WAYS[name], RECORDED[name], set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metas, found = run(gesso, sets, way, mode, lambda pipeline: ran.add(runner(pipeline)))
    where = f"`{name}`, run as `{mode}`: {way}"
    assert brief(metas) == recorded["metas"], f"what the readers say differs in {where}"
    lines = difference(recorded["gives"], found)
    assert not lines, f"{where}\n" + "\n".join(lines[:4] + [f"{len(lines)} differ"])
    expected = expected_runner(way, mode)
    assert expected is None or ran == {expected}, f"other than is to run it ran {where}"
