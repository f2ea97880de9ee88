#!/usr/bin/env python3
"""Changes one sample of recorded batches into one that nobody would send, and tells where others notice: fail or
change.

    isolation.py --cases 5000 --seed 1

Pipelines with operators that look at other samples on purpose are left out. GESSO_PLUGIN as for hostile.py.
"""

import argparse
import ctypes
import json
import math
import random
import sys
from ctypes import byref, c_char_p, c_size_t, c_void_p

# `hostile` finds the others.
from hostile import OK, THREADS, Cases, InstanceOptions, Library, batch_of  # isort: skip
from declarations import Tensor
from harness import plugin_path

# Those that SECURITY.md names, and merged branches: what a sample draws there depends on who else takes its branch, and
# branches of different types fail as in DALI once both are taken.
MIXING = {
    "Pad",
    "Cat",
    "OneHot",
    "PermuteBatch",
    "MultiPaste",
    "Normalize",
    "decoders__Numpy",
    "conditional__Merge",
    "_conditional__Merge",
}

# Batches of a type that is taken as long as no sample has anything in it: with one that has, all are refused.
OF_NOTHING = {"coord_transform.no_points_of_another_type"}

MOST_ELEMENTS = 1 << 24


class Runner(Library):
    """What becomes of each sample."""

    def __init__(self, path):
        super().__init__(path)
        self.c.gesso_pipeline_output_count.argtypes, self.c.gesso_pipeline_output_count.restype = [c_void_p], c_size_t

    def operators(self, pipeline):
        text = c_void_p()
        self.check(self.c.gesso_describe(pipeline, c_size_t(len(pipeline)), byref(text)))
        described = json.loads(ctypes.string_at(text))
        self.c.gesso_string_free(text)
        return {operator["name"] for operator in described["operators"]}

    def check(self, status):
        if status != OK:
            raise RuntimeError(self.error())

    def samples(self, pipeline, inputs):
        """For each sample its outputs, or the text of its error."""
        planned, instance, result = c_void_p(), c_void_p(), c_void_p()
        try:
            self.check(self.c.gesso_pipeline_load(pipeline, c_size_t(len(pipeline)), 0, byref(planned)))
            options = InstanceOptions(ctypes.sizeof(InstanceOptions), THREADS)
            self.check(self.c.gesso_instance_create(planned, byref(options), byref(instance)))
            batch, given, _kept = batch_of(inputs)
            self.check(
                self.c.gesso_instance_run(instance, c_size_t(batch), given, c_size_t(len(inputs)), byref(result))
            )
            outputs = range(self.c.gesso_pipeline_output_count(planned))
            return [self.sample(result, i, outputs) for i in range(batch)]
        finally:
            self.c.gesso_result_free(result)
            self.c.gesso_instance_free(instance)
            self.c.gesso_pipeline_free(planned)

    def sample(self, result, i, outputs):
        message = c_char_p()
        if self.c.gesso_result_sample_status(result, i, byref(message)) != OK:
            return message.value.decode(errors="replace")
        found = []
        for output in outputs:
            tensor = Tensor(ctypes.sizeof(Tensor))
            self.check(self.c.gesso_result_tensor(result, c_size_t(output), c_size_t(i), byref(tensor)))
            data = ctypes.string_at(tensor.data, tensor.bytes) if tensor.bytes else b""
            found.append((tensor.dtype, tensor.shape[: tensor.ndim], data))
        return found


def changed(known, rng, inputs, victim):
    """The inputs with another sample `victim`, of the type and rank of the others and no huge shape: else the call is
    refused."""
    inputs = {name: list(samples) for name, samples in inputs.items()}
    for samples in inputs.values():
        made = known.mutator.sample(rng, samples[victim])
        if made.ndim == samples[victim].ndim and math.prod(max(extent, 1) for extent in made.shape) <= MOST_ELEMENTS:
            samples[victim] = made
    return inputs


def noticed(runner, known, seed, number, right):
    """How others noticed the change of case `number`; `None` where they did not."""
    rng = random.Random(f"isolation {seed} {number}")
    name = rng.choice(known.names)
    case = known.known[name]
    batch = max((len(samples) for samples in case.inputs.values()), default=0)
    if name not in right:
        # Of two samples that differ in rank, the first is right.
        mixes = batch < 3 or name in OF_NOTHING or runner.operators(case.pipeline) & MIXING
        right[name] = None if mixes else runner.samples(case.pipeline, case.inputs)
    if right[name] is None:
        return None
    victim = rng.randrange(batch)
    try:
        found = runner.samples(case.pipeline, changed(known, rng, case.inputs, victim))
    except RuntimeError as error:
        return f"{name}: the batch failed: {error}"
    for i, (now, before) in enumerate(zip(found, right[name])):
        if i != victim and now != before:
            return f"{name}: sample {i} beside {victim}: {now if isinstance(now, str) else 'other values'}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=1000)
    options = parser.parse_args()
    runner, known, right = Runner(plugin_path()), Cases(options.seed), {}
    said = {number: noticed(runner, known, options.seed, number, right) for number in range(options.cases)}
    wrong = {number: text for number, text in said.items() if text}
    for number, text in wrong.items():
        print(f"{number}: {text}")
    print(f"{options.cases} cases, {len(wrong)} noticed")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
