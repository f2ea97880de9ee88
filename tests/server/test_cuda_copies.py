"""Copies are counted as CUPTI tells of them: by a library that is in its place and tells of some."""

import os
import subprocess
import sys

import pytest
from harness import ROOT

sys.path.append(str(ROOT / "scripts" / "lib"))
from cuda_copies import Copies, CopiesError, Counted, Counter

# Tells of one kernel and, with every second flush, of what stands in `COPIES`.
CUPTI = """
#include <stdint.h>
#include <stdlib.h>
struct record { uint32_t record; uint8_t kind, source, target, flags; uint64_t bytes, times[9]; };
static const struct record made[] = {{10, 1, 0, 0, 0, 7}, {1, 1, 2, 3, 0, 1000}, {1, 2, 3, 2, 0, 40}, {1, 1, 2, 3, 0, 24}, {22, 10, 3, 3, 0, 5}};
static void (*ask)(uint8_t **, size_t *, size_t *), (*give)(void *, uint32_t, uint8_t *, size_t, size_t);
static int flushes;
int cuptiActivityRegisterCallbacks(void *a, void *b) { ask = a; give = b; return 0; }
int cuptiActivityEnable(uint32_t kind) { return STATUS; }
int cuptiActivityGetNumDroppedRecords(void *c, uint32_t s, size_t *dropped) { *dropped = DROPPED; return 0; }
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, struct record **record) {
    struct record *next = *record ? *record + 1 : (struct record *)buffer;
    if ((uint8_t *)next >= buffer + valid) return 12;
    *record = next;
    return 0;
}
int cuptiActivityFlushAll(uint32_t flag) {
    uint8_t *buffer; size_t size, most;
    if (flushes++ != 1) return 0;
    ask(&buffer, &size, &most);
    for (size_t i = 0; i < sizeof made; i++) buffer[i] = ((const uint8_t *)made)[i];
    give(0, 0, buffer, size, sizeof made);
    return 0;
}
"""
# In the driver's place.
PROGRAM = "import ctypes, os, sys; ctypes.CDLL(os.environ['CUDA_INJECTION64_PATH']).InitializeInjection(); print(flush=True); sys.stdin.read()"


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """What is counted in a program that has our library and a CUPTI made with these definitions."""

    def count(status=0, dropped=0):
        (tmp_path / "cupti.c").write_text(CUPTI)
        library = tmp_path / "libcupti.so.13"
        subprocess.run(
            [
                "cc",
                f"-DSTATUS={status}",
                f"-DDROPPED={dropped}",
                "-shared",
                "-fPIC",
                "-o",
                library,
                tmp_path / "cupti.c",
            ],
            check=True,
        )
        monkeypatch.setenv("GESSO_CUPTI", str(library))
        counter = Counter(tmp_path / "counted")
        program = [sys.executable, "-c", PROGRAM]
        with subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | counter.environment
        ) as running:
            running.stdout.readline()
            return counter.read()

    return count


def test_copies_are_counted_by_kind(counted):
    ((_, kinds),) = counted().items()
    assert kinds == {"HtoD": Copies(2, 1024, 1000), "DtoH": Copies(1, 40, 40), "PtoP": Copies(1, 5, 5)}


def test_what_cannot_be_counted_is_an_error(counted):
    with pytest.raises(CopiesError, match="CUPTI returned 35"):
        counted(status=35)


def test_lost_records_are_an_error(counted):
    with pytest.raises(CopiesError, match="3 copies were not recorded"):
        counted(dropped=3)


def test_a_difference_has_what_was_copied_between():
    before = Counted(server={"HtoD": Copies(2, 10, 8)})
    after = Counted(server={"HtoD": Copies(5, 40, 20), "DtoH": Copies(1, 3, 3)}, stub={"DtoD": Copies(1, 1, 1)})
    assert after - before == {
        "server": {"HtoD": Copies(3, 30, 20), "DtoH": Copies(1, 3, 3)},
        "stub": {"DtoD": Copies(1, 1, 1)},
    }
