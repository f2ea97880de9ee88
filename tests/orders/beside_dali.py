"""Random configurations of readers in the installed DALI and in Gesso: do the same samples come in the same order?

    python tests/orders/beside_dali.py --dali PYTHON [--gesso PYTHON] [--count 6000] [--seed N]

PYTHON is an interpreter that has the package; each needs numpy, DALI's is version 2.4. No GPU is needed. The seed
stands in the first line, so that a run can be had again. Exits with 1 if a configuration differs, and prints it.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from orders.chosen import FILED, LISTED, OF_CLIPS, OTHERS

# Configurations of one process, so that what it keeps does not grow.
AT_A_TIME = 250
MOST_SAMPLES, MOST_SHARDS = 40, 4
REFUSED, ENDED = "refused", "ended"


def options_of(draw, kind, size):
    """Arguments that order samples, each there or not."""
    options = {}
    if draw.random() < 0.5:
        options["num_shards"] = draw.randint(1, min(MOST_SHARDS, size))
        options["shard_id"] = draw.randrange(options["num_shards"])
    for name in ("stick_to_shard", "pad_last_batch", "random_shuffle", "lazy_init", "read_ahead"):
        if draw.random() < 0.35:
            options[name] = True
    if kind not in OTHERS and draw.random() < 0.3:
        options["shuffle_after_epoch"] = True
        if draw.random() < 0.5:
            options["shuffle_after_epoch_seed"] = draw.getrandbits(48)
    if draw.random() < 0.5:
        options["initial_fill"] = draw.choice((1, 2, 3, 5, 8, 16, 50))
    if draw.random() < 0.5:
        options["seed"] = draw.getrandbits(31)
    return options


def configuration(draw):
    """One way to read, as `orders.running` takes it."""
    kind = draw.choice((*LISTED, *FILED, *OTHERS))
    # Clips are slow to decode.
    if kind == "video" and draw.random() < 0.8:
        kind = "file"
    size = draw.choice(OF_CLIPS) if kind == "video" else draw.randint(1, MOST_SAMPLES)
    options, batch = options_of(draw, kind, size), draw.randint(1, 9)
    settings = {"batch_size": batch, "seed": draw.getrandbits(31), "prefetch_queue_depth": draw.randint(1, 3)}
    shards = options.get("num_shards", 1)
    per_epoch = math.ceil(math.ceil(size / shards) / batch)
    way = {"kind": kind, "size": size, "options": options, "settings": settings, "states": []}
    if kind in ("file", "numpy", "webdataset") and draw.random() < 0.4:
        options.pop("shard_id", None)
        way["iterator"] = {
            "shards": draw.sample(range(shards), draw.randint(1, shards)),
            "policy": draw.choice(("FILL", "DROP", "PARTIAL")),
            "reader_name": "reader0",
            "auto_reset": draw.random() < 0.5,
            "prepare_first_batch": draw.random() < 0.8,
        }
        return way
    way["count"] = min(3 * per_epoch + 2, 60)
    if draw.random() < 0.3:
        way["states"] = sorted(draw.sample(range(1, way["count"]), min(draw.randint(1, 2), way["count"] - 1)))
    return way


def work(name):
    """Answers the configurations on standard input, a line each."""
    import warnings

    from orders.running import Package, brief, run
    from orders.sets import Sets

    warnings.simplefilter("ignore")
    package = Package(name)
    with tempfile.TemporaryDirectory() as root:
        sets = Sets(root)
        for way in json.load(sys.stdin):
            try:
                metas, found = run(package, sets, way)
                answer = [brief(metas), found]
            except Exception as error:  # DALI's errors have no class of their own.
                answer = [REFUSED, f"{type(error).__name__}: {error}"[:300]]
            print(json.dumps(answer), flush=True)


def answers(python, name, ways):
    """What a package says of configurations. One that ends the process is such an answer, and the rest goes on."""
    found = []
    while len(found) < len(ways):
        command, given = [python, __file__, "--work", name], json.dumps(ways[len(found) :])
        done = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=False)
        found += [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
        if len(found) < len(ways):
            found.append([ENDED, done.returncode])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dali", metavar="PYTHON")
    parser.add_argument("--gesso", metavar="PYTHON", default=sys.executable)
    parser.add_argument("--count", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--work", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        return work(chosen.work)
    if not chosen.dali:
        parser.error("--dali names no interpreter")
    print(f"{chosen.count} configurations of seed {chosen.seed}", flush=True)
    draw, outcomes = random.Random(chosen.seed), Counter()
    for begin in range(0, chosen.count, AT_A_TIME):
        ways = [configuration(draw) for _ in range(min(AT_A_TIME, chosen.count - begin))]
        theirs, ours = answers(chosen.dali, "nvidia.dali", ways), answers(chosen.gesso, "gesso", ways)
        for way, expected, found in zip(ways, theirs, ours):
            if expected[0] == found[0] == REFUSED:
                outcomes["refused by both"] += 1
            elif expected[0] == ENDED and found[0] != ENDED:
                outcomes["DALI ends the process"] += 1
            elif expected == found:
                outcomes["equal"] += 1
            else:
                outcomes["different"] += 1
                print(f"{json.dumps(way)}\n  DALI:  {json.dumps(expected)[:600]}\n  Gesso: {json.dumps(found)[:600]}")
        print(begin + len(ways), dict(outcomes), flush=True)
    return 1 if outcomes["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
