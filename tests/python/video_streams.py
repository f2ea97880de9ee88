"""Clips, what DALI answered for them (`tests/data/video/streams/record.py` wrote that down), and pipelines of them."""

import json
import pathlib

import numpy as np
from gesso import Pipeline

CLIPS = pathlib.Path(__file__).parents[1] / "data/video"
ANSWERS = json.loads((CLIPS / "streams/answers.json").read_text())
BATCH = 3


def clip(name):
    return np.fromfile(CLIPS / name, np.uint8)


def define(outputs, **settings):
    pipe = Pipeline(**{"batch_size": BATCH, "num_threads": 2, "device_id": None, "prefetch_queue_depth": 1, **settings})
    with pipe:
        made = outputs()
        pipe.set_outputs(*(made if isinstance(made, (list, tuple)) else [made]))
    pipe.build()
    return pipe


def taken(pipe, runs=100):
    """The first output of each run until there is no data; the shape and the sum of each sample."""
    found = []
    for _ in range(runs):
        try:
            out = pipe.run()[0]
        except RuntimeError as error:
            assert "No data was provided" in str(error), error
            return found
        found.append([[list(np.array(sample).shape), int(np.array(sample).astype(np.int64).sum())] for sample in out])
    return found
