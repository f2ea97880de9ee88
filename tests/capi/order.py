#!/usr/bin/env python3
"""Calls the C API in random order, as the header allows it: handles live and are freed in any order, results outlast their instances,
exported tensors outlast their results, and every function gets null and places that are out of range, too. What a result holds must stay
what it was, and no call may answer with an internal error.

    order.py --cases 200 --seed 1          200 rounds of 60 calls each
    order.py --seed 1 --from 12 --cases 1 --show

GESSO_PLUGIN names the library, else it is the release build.
"""

import argparse
import ctypes
import random
import sys
from ctypes import POINTER, byref, c_int32, c_int64, c_size_t, c_void_p

from hostile import DATA, INTERNAL, OK, Library, Options, Tensor, batch_of, cases, plugin_path

CALLS = 60
# Far beyond any index.
OUT_OF_RANGE = (1 << 31, (1 << 64) - 1)


class Managed(ctypes.Structure):
    """DLManagedTensor, flat, on a machine of 64 bits: see dlpack.h"""


Deleter = ctypes.CFUNCTYPE(None, POINTER(Managed))
Managed._fields_ = [
    ("data", c_void_p),
    ("device", c_int32 * 2),
    ("ndim", c_int32),
    ("dtype", c_int32),
    ("shape", POINTER(c_int64)),
    ("strides", POINTER(c_int64)),
    ("byte_offset", ctypes.c_uint64),
    ("context", c_void_p),
    ("deleter", Deleter),
]


class Defect(Exception):
    """What the library must not do."""


class Round:
    """One round: what lives, and what was in it when it was made."""

    def __init__(self, library, known, rng, show):
        self.library, self.known, self.rng, self.show = library, known, rng, show
        # Handles, with the case that they come from; of results also what they held, of exports their bytes.
        self.pipelines, self.instances, self.results, self.exports = [], [], [], []
        self.looked = 0

    def call(self, name, *arguments):
        status = getattr(self.library.c, name)(*arguments)
        if self.show:
            print(name, status)
        if status == INTERNAL:
            raise Defect(f"{name}: {self.library.error()}")
        if status != OK and not self.library.error():
            raise Defect(f"{name}: status {status} without a word")
        return status == OK

    def pick(self, pool):
        """One of the pool, or null, which is allowed everywhere."""
        return self.rng.choice(pool) if pool and self.rng.random() < 0.95 else None

    def take(self, pool):
        return pool.pop(self.rng.randrange(len(pool))) if pool else None

    def load(self):
        case, handle = self.rng.choice(self.known), c_void_p()
        length = len(case.pipeline) if self.rng.random() < 0.9 else self.rng.randrange(len(case.pipeline))
        if self.call("gesso_pipeline_load", case.pipeline, c_size_t(length), 0, byref(handle)):
            self.pipelines.append((handle, case))
        elif handle.value:
            raise Defect("gesso_pipeline_load: a handle beside an error")

    def ask(self):
        found, index = self.pick(self.pipelines), self.rng.choice((0, 1, *OUT_OF_RANGE))
        handle = found and found[0]
        count = self.library.c.gesso_pipeline_input_count(handle)
        if found and count != len(found[1].inputs):
            raise Defect(f"{count} inputs, expected {len(found[1].inputs)}")
        self.library.c.gesso_pipeline_max_batch_size(handle)
        self.call("gesso_pipeline_input", handle, c_size_t(index), None)

    def create(self):
        found, handle = self.pick(self.pipelines), c_void_p()
        options = Options(ctypes.sizeof(Options), self.rng.choice((1, 2)), 0, 0)
        if self.call("gesso_instance_create", found and found[0], byref(options), byref(handle)):
            self.instances.append((handle, found[1]))

    def run(self):
        found, handle = self.pick(self.instances), c_void_p()
        # Now and then another pipeline's inputs.
        case = found[1] if found and self.rng.random() < 0.9 else self.rng.choice(self.known)
        batch, given, _kept = batch_of(case.inputs)
        if self.call("gesso_instance_run", found and found[0], c_size_t(batch), given, c_size_t(len(case.inputs)), byref(handle)):
            outputs = len(case.outputs)
            held = {(output, sample): self.read(handle, output, sample) for output in range(outputs) for sample in range(batch)}
            self.results.append((handle, held))

    def read(self, handle, output, sample):
        """The bytes of a tensor; None for one that failed or is not there."""
        tensor = Tensor(ctypes.sizeof(Tensor))
        if not self.call("gesso_result_tensor", handle, c_size_t(output), c_size_t(sample), byref(tensor)):
            return None
        return ctypes.string_at(tensor.data, tensor.bytes) if tensor.bytes else b""

    def look(self):
        found = self.pick(self.results)
        if found is None:
            return self.call("gesso_result_tensor", None, c_size_t(0), c_size_t(0), byref(Tensor(ctypes.sizeof(Tensor))))
        self.looked += 1
        for place, held in found[1].items():
            if self.read(found[0], *place) != held:
                raise Defect(f"output and sample {place} changed")
        for wrong in OUT_OF_RANGE:
            if self.read(found[0], wrong, 0) is not None or self.read(found[0], 0, wrong) is not None:
                raise Defect("a tensor out of range")

    def export(self):
        found = self.pick(self.results)
        if found is None or not found[1]:
            return
        place, managed = self.rng.choice(list(found[1])), POINTER(Managed)()
        if self.call("gesso_result_dlpack", found[0], c_size_t(place[0]), c_size_t(place[1]), byref(managed)):
            self.exports.append((managed, found[1][place]))

    def drop(self):
        """Frees something, or nothing by its null."""
        kinds = (("pipeline", self.pipelines), ("instance", self.instances), ("result", self.results))
        kind, pool = self.rng.choice(kinds)
        found = self.take(pool) if self.rng.random() < 0.9 else None
        getattr(self.library.c, f"gesso_{kind}_free")(found and found[0])

    def release(self):
        if found := self.take(self.exports):
            managed, held = found
            self.looked += 1
            tensor = managed.contents
            if held and ctypes.string_at(tensor.data + tensor.byte_offset, len(held)) != held:
                raise Defect("an exported tensor changed")
            tensor.deleter(managed)

    def go(self):
        """So many calls, then whatever is left is freed, in the order that comes."""
        # Some steps come more often, so that there is something to look at.
        steps = [self.load, self.ask, self.look, self.export, self.drop, self.release, *[self.create] * 2, *[self.run] * 3]
        for _ in range(CALLS):
            self.rng.choice(steps)()
        while self.pipelines or self.instances or self.results or self.exports:
            self.rng.choice((self.drop, self.release))()


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="begin")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--show", action="store_true", help="print every call and its status")
    options = parser.parse_args()
    library = Library(plugin_path())
    library.c.gesso_pipeline_input_count.restype = library.c.gesso_pipeline_max_batch_size.restype = c_size_t
    library.c.gesso_pipeline_input_count.argtypes = library.c.gesso_pipeline_max_batch_size.argtypes = [c_void_p]
    known = [case for path in sorted(DATA.glob("*.zip")) for case in cases(path.stem).values() if case.inputs]
    defects = looked = 0
    for number in range(options.begin, options.begin + options.cases):
        made = Round(library, known, random.Random(f"{options.seed} {number}"), options.show)
        try:
            made.go()
        except Defect as defect:
            defects += 1
            print(f"{number}: {defect}", flush=True)
        looked += made.looked
    print(f"{options.cases} rounds, {looked} results and tensors looked at again, {defects} defects")
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
