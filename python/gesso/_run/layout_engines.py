"""Engines of one description. A layout that data brings along changes what a file means, so there is one for each
combination of layouts."""

import copy
import functools

from .._authoring import schema as _schema
from .._authoring import serialization
from .._threads.interrupts import let


class LayoutEngines:
    """Makes the engine for the data at hand; the one for data without layouts is made at once, to find errors."""

    def __init__(self, description, open_engine, functions=None):
        """`functions`: what operators `Callback` of the description call, by their names."""
        self._description = description
        self._open = functools.partial(open_engine, functions=functions)
        self._calls_back = bool(functions)
        self._engines = {}
        self._free = {source["name"] for source in description["inputs"] if not source.get("layout")}
        self._error = None
        self._skipped, self._first = 0, None
        names = [operator["name"] for operator in description["operators"]]
        # How many samples went into a branch before depends on what was in them.
        self._draws_in_branches = any(map(_splits, names)) and any(map(_draws, names))
        try:
            self._engines[()] = self._open(serialization.write(description))
        except RuntimeError as error:
            # A layout may be what is missing.
            if not self._free:
                raise
            self._error = error

    def _key(self, inputs):
        layouts = [(name, batch.layout) for name, batch in inputs if batch.layout and name in self._free]
        return tuple(sorted(layouts)) if layouts else ()

    def _make(self, key):
        if not key and self._error is not None:
            raise self._error
        described = copy.deepcopy(self._description)
        layouts = dict(key)
        for source in described["inputs"]:
            if source["name"] in layouts:
                source["layout"] = layouts[source["name"]]
                source["stored"] = [*source["stored"], {"name": "layout", "type": "string"}]
        self._engines[key] = self._open(serialization.write(described))
        return self._engines[key]

    def run(self, batch_size, inputs):
        """Runs a batch of `inputs`: pairs of a name and a `Batch`."""
        key = self._key(inputs)
        engine = self._engines.get(key) or self._make(key)
        while self._skipped:
            # There may be many.
            with let():
                self._skipped -= 1
            engine.run(batch_size, inputs)
        if self._first is not None:
            engine.go_on(self._first)
            self._first = None
        return engine.run(batch_size, inputs)

    def go_on(self, samples):
        """The next batch is one before which there were so many samples: its random numbers follow from that."""
        self._first = samples

    def skip(self, batches, samples):
        """Goes to where so many batches of so many samples in all were run. Random numbers follow from the samples;
        only those in branches are drawn again, when the next batch runs. Functions are not called again."""
        self.go_on(samples)
        self._skipped = batches if self._draws_in_branches and not self._calls_back else 0


def _splits(name):
    return name.endswith("conditional__Split")


def _draws(name):
    schema = _schema.find(name)
    return schema is not None and schema.random
