"""`gesso.compare`: runs a pipeline and a reference on the same files."""

import os

import numpy as np

from ..pipeline import Pipeline
from . import references
from .differences import Comparison
from .words import told


def compare(pipeline, files, reference, *, output=0, resize=None, filter=None, crop=None, mean=None, std=None):
    """Runs a pipeline beside what was done in training, and tells how far they are apart.

    `pipeline` is a `Pipeline` or the path of a serialized one. It has one input, which takes a file's bytes.
    `reference` is `"pillow"`, `"torchvision"` or `"opencv"`, a function that makes an array of a path, or the name of
    one as `"module:function"`. What a library does is said by `resize` (the shorter side, or height and width),
    `filter` (as in `fn.resize`: `"linear"`), `crop` (a window in the middle), `mean` and `std` (of values from 0 to 1;
    the answer is then float32 in planes). `output` is the number of the pipeline's output. Returns a `Comparison`.
    Channels first are compared with channels last, and types with other types; `Comparison.other` says so, and `within`
    counts it."""
    function, name = references.named(
        reference, {"resize": resize, "filter": filter, "crop": crop, "mean": mean, "std": std}
    )
    run = runner(pipeline)
    found = Comparison(name)
    for path in map(os.fspath, files):
        with told(f"{path}: the pipeline fails"):
            with open(path, "rb") as file:
                outputs = run(np.frombuffer(file.read(), np.uint8))
            if not 0 <= output < len(outputs):
                raise ValueError(f"output {output} is not there: the pipeline has {len(outputs)}")
        with told(f"{path}: the reference fails"):
            ours = outputs[output]
            theirs, other = alike(np.asarray(function(path)), ours)
        found.add(path, ours, theirs, other)
    if not found.files:
        raise ValueError("there are no files to compare")
    return found


def runner(pipeline):
    """A function that makes the outputs of one input: a file's bytes."""
    with told("the pipeline cannot run on files"):
        if isinstance(pipeline, Pipeline):
            own = Pipeline.deserialize(pipeline.serialize(), batch_size=1, prefetch_queue_depth=1)
        else:
            own = Pipeline.deserialize(filename=os.fspath(pipeline), batch_size=1, prefetch_queue_depth=1)
        own.build()
        inputs = sorted(own.runner.feeds.inputs)
        if len(inputs) != 1:
            raise ValueError(f"expected one input, which takes a file, found {inputs}")

    def run(data):
        own.feed_input(inputs[0], [data])
        return [np.array(output.as_cpu().at(0)) for output in own.run()]

    return run


def alike(theirs, ours):
    """The reference's array with channels where the pipeline has them, and in words what else than values is
    different."""
    found = []
    if theirs.ndim == ours.ndim == 3 and theirs.shape != ours.shape:
        for order in ((2, 0, 1), (1, 2, 0)):
            if theirs.transpose(order).shape == ours.shape:
                found.append(
                    f"order of dimensions: the pipeline's shape is {ours.shape}, the reference's {theirs.shape}"
                )
                theirs = theirs.transpose(order)
                break
    if theirs.shape != ours.shape:
        raise ValueError(f"it made an array of shape {theirs.shape}, the pipeline one of shape {ours.shape}")
    if theirs.dtype.kind not in "buif":
        raise ValueError(f"it made an array of type {theirs.dtype}, expected real numbers")
    if theirs.dtype != ours.dtype:
        found.append(f"type: the pipeline's is {ours.dtype}, the reference's {theirs.dtype}")
    return theirs, found
