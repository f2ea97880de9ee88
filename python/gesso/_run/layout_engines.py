"""Engines of one description. A layout that data brings along changes what a file means, so there is one for each
combination of layouts."""

import copy
import functools

from .._authoring import serialization


class LayoutEngines:
    """Makes the engine for the data at hand; the one for data without layouts is made at once, to find errors."""

    def __init__(self, description, open_engine, functions=None):
        """`functions`: what operators `Callback` of the description call, by their names."""
        self._description = description
        self._open = functools.partial(open_engine, functions=functions)
        self._engines = {}
        self._free = {source["name"] for source in description["inputs"] if not source.get("layout")}
        self._error = None
        # Where the next batch goes on, if that is not behind the one before.
        self._place = None
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
        if self._place is not None:
            engine.go_on(*self._place)
            self._place = None
        return engine.run(batch_size, inputs)

    def go_on(self, samples, branch_samples=()):
        """The next batch is one before which there were so many samples, and so many in each branch of conditionals:
        its random numbers follow from that."""
        self._place = samples, branch_samples
