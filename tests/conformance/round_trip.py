#!/usr/bin/env python3
"""Random pipelines, written in Python twice: with DALI's package and with Gesso's. The files say the same up to names,
each package runs the other's file, and all outputs are equal; sums of floats and averages of pixels but to the
tolerance that fuzz.py has for them.

    round_trip.py [--cases N] [--seed S] [--only OPERATOR ...]     exit status 1 when something differs

Runs in a Python that has both packages (or Gesso's by PYTHONPATH=python and GESSO_LIBRARY). No GPU. What is drawn:
draw.py."""

import argparse
import collections
import json
import sys
import warnings

import draw
import fuzz
import gesso
import gesso.auto_aug
import numpy as np
import nvidia.dali
import nvidia.dali.auto_aug.auto_augment
import nvidia.dali.auto_aug.rand_augment
import nvidia.dali.auto_aug.trivial_augment
from gesso._native.engine import describe
from gesso.auto_aug import auto_augment, rand_augment, trivial_augment
from nvidia.dali._utils import dali_trace

AUTOMATIC = {
    "RandAugment": (lambda package, image: package.rand_augment.rand_augment(image, n=2, m=11)),
    "RandAugment of the shape": (
        lambda package, image: package.rand_augment.rand_augment(image, n=3, m=7, shape=[24, 32])
    ),
    "AutoAugment": (lambda package, image: package.auto_augment.auto_augment(image)),
    "AutoAugment, SVHN": (lambda package, image: package.auto_augment.auto_augment(image, "svhn", shape=[24, 32])),
    "AutoAugment, CIFAR-10": (lambda package, image: package.auto_augment.auto_augment(image, "reduced_cifar10")),
    "TrivialAugment": (lambda package, image: package.trivial_augment.trivial_augment_wide(image)),
}


class Gessos:
    rand_augment, auto_augment, trivial_augment = rand_augment, auto_augment, trivial_augment


def as_said(file):
    """What a file says, with values numbered in order in place of their names, and without what only tells where it was
    written."""
    described, numbers = json.loads(describe(file)), {}

    def number(name):
        return numbers.setdefault(name, len(numbers))

    for operator in described["operators"]:
        operator.pop("bookkeeping", None)
        operator.pop("instance")
        for key in ("inputs", "outputs"):
            operator[key] = [number(name) for name in operator[key]]
        operator["argument_inputs"] = {key: number(name) for key, name in operator.get("argument_inputs", {}).items()}
        hidden = ("_display_name", "_module", "_origin_stack", "preserve_name", "_if_stmt")
        operator["stored"] = [entry for entry in operator["stored"] if not entry["name"].startswith(hidden)]
    for source in described["inputs"]:
        source.pop("bookkeeping", None)
        hidden = ("_display_name", "_module", "_origin_stack", "preserve_name")
        source["stored"] = [entry for entry in source["stored"] if not entry["name"].startswith(hidden)]
    for output in described["outputs"]:
        output["name"] = number(output["name"])
    return described


def difference(one, other, at=""):
    """Where two descriptions differ first; None if they do not."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            if (found := difference(one.get(key), other.get(key), f"{at}.{key}")) is not None:
                return found
        return None
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return next(
            (
                found
                for i, (a, b) in enumerate(zip(one, other))
                if (found := difference(a, b, f"{at}[{i}]")) is not None
            ),
            None,
        )
    return None if one == other else f"{at}: DALI has {one!r}, Gesso {other!r}"


def unequal(ours, theirs):
    """The largest difference of outputs, or a text; None if they are equal to the bit."""
    largest = None
    for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        for a, b in zip(one, other, strict=True):
            if a.dtype != b.dtype or a.shape != b.shape:
                return f"output {i}: {a.dtype}{a.shape} and {b.dtype}{b.shape}"
            if a.tobytes() != b.tobytes():
                with np.errstate(all="ignore"):
                    apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
                both = ~(np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))) & (a != b)
                largest = max(largest or 0.0, float(np.nan_to_num(apart[both], nan=np.inf).max(initial=0)))
    return largest or None


def automatic(spec, package):
    """A pipeline with an automatic augmentation."""
    both = nvidia.dali.auto_aug if package is nvidia.dali else Gessos

    @package.pipeline_def(
        batch_size=draw.BATCH, num_threads=1, seed=spec["seed"], prefetch_queue_depth=1, enable_conditionals=True
    )
    def define():
        image = package.fn.external_source(name="X0", dtype=package.types.UINT8, ndim=3, layout="HWC")
        return AUTOMATIC[spec["operator"]](both, image)

    return define()


def allowed(spec, outputs):
    """The largest difference that outputs of Gesso and DALI may have."""
    return 1.0 if spec["operator"] in AUTOMATIC else fuzz.tolerance(spec, outputs)[0]


def compared(spec):
    """What differs: {way: how}, and whether the outputs do in the last bits; None when DALI refuses the pipeline."""
    make = automatic if spec["operator"] in AUTOMATIC else (lambda spec, package: fuzz.authored(spec, package=package))
    theirs = make(spec, nvidia.dali)
    their_file = theirs.serialize()
    inputs = fuzz.inputs_of(spec, their_file)
    expected = fuzz.outputs_of(theirs, inputs)
    found, own, rounding = {}, [], False

    def attempt(way, work):
        try:
            how = work()
        except Exception as error:
            how = f"{type(error).__name__}: {error}".replace("\n", " ")
        if how is not None:
            found[way] = how

    made = []
    attempt("Gesso defines it", lambda: made.append(make(spec, gesso)))
    attempt("Gesso writes it", lambda: made.append(made[0].serialize()))
    if len(made) < 2:
        return found, False
    our_file = made[1]
    attempt("the files", lambda: difference(as_said(their_file), as_said(our_file)))
    attempt("Gesso runs it", lambda: own.append(fuzz.outputs_of(made[0], inputs)))
    if own:
        apart = unequal(own[0], expected)
        rounding = isinstance(apart, float) and apart <= allowed(spec, expected)
        attempt("outputs", lambda: None if rounding else apart)
        again = {"prefetch_queue_depth": 1}
        attempt(
            "Gesso runs DALI's file",
            lambda: unequal(fuzz.outputs_of(gesso.Pipeline.deserialize(their_file, **again), inputs), own[0]),
        )
        attempt(
            "DALI runs Gesso's file",
            lambda: unequal(fuzz.outputs_of(nvidia.dali.Pipeline.deserialize(our_file, **again), inputs), expected),
        )
    return found, rounding


def drawn(number, seed, names):
    """A pipeline with operators that were drawn; every tenth with an automatic augmentation."""
    if number % 10 or set(names) != set(draw.DRAWS):
        return fuzz.drawn(number, seed, names)
    name = list(AUTOMATIC)[number // 10 % len(AUTOMATIC)]
    image = dict(dtype="uint8", layout="HWC", shapes=[[24, 32, 3]] * draw.BATCH, seed=number, low=None, high=None)
    return dict(operator=name, seed=number, inputs=[image], steps=[])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    dali_trace.set_tracing(enabled=False)
    specs, results, number = [], [], 0
    while len(results) < options.cases and number < 4 * options.cases + 40:
        more = [
            drawn(n, options.seed, options.only or list(draw.DRAWS))
            for n in range(number, number + options.cases - len(results))
        ]
        number += len(more)
        for spec, found in zip(more, fuzz.in_children(more, compared)):
            if found is not None:
                specs.append(spec)
                results.append(found)
    ways = collections.Counter(way for found, _ in results for way in found)
    for spec, (found, _) in zip(specs, results):
        for way, how in found.items():
            print(
                f"{spec['operator']}, seed {spec['seed']}: {way}: {how if isinstance(how, str) else f'off by {how:.3g}'}"[
                    :400
                ]
            )
    wrong, rounded = sum(bool(found) for found, _ in results), sum(rounding for _, rounding in results)
    print(
        f"{len(results)} pipelines: {len(results) - wrong} have the same file and run in both packages, {rounded} of them with outputs that differ "
        f"in rounding; {wrong} are wrong {dict(ways) or ''}"
    )
    sys.exit(bool(ways))


if __name__ == "__main__":
    main()
