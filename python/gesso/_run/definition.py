"""`Definition`: what a pipeline computes, as a graph and as a file."""

import itertools
import json

from .._authoring import graph, serialization
from .._native.engine import describe
from . import file_graph


class Definition:
    """The graph of a pipeline with its outputs, its description, and the bytes of its file: each is made of the one
    before, or of the bytes, where these came first.

    It must not know how the graph is run, nor what data comes: settings are handed to it."""

    def __init__(self):
        # What the author said that it gives, and operators that stay though nothing reads what they make.
        self.returned, self.sinks = None, []
        # The branches of the definition, where it has conditionals.
        self.conditions = None
        # The graph: operators in order, and its outputs.
        self.operators = self.outputs = None
        # What a file says, if the definition came from one.
        self.loaded = None
        self._bytes = None
        self._numbers = itertools.count()

    def next_id(self):
        """A number for a new operator."""
        return next(self._numbers)

    def build(self, pipeline, settings, define_graph=None):
        """Makes the graph of what `define_graph`, or that of `pipeline`, returns; operators must be `pipeline`'s."""
        if self.operators is not None:
            return
        if define_graph is not None and self.returned is not None:
            raise RuntimeError("the graph is defined twice: by `set_outputs`, and by the `define_graph` of `build`")
        returned = self.returned
        if not returned:
            with pipeline:
                returned = (define_graph or pipeline.define_graph)()
        outputs = graph.as_outputs(returned)
        operators = graph.collect(outputs + self.sinks)
        graph.require_unique_names(pipeline, operators)
        graph.forbid_foreign(pipeline, operators)
        if settings.enable_checkpointing:
            graph.require_own(pipeline, operators, "The pipeline does not support checkpointing")
        for node in operators:
            node.use_in(pipeline)
        self.outputs, self.operators = outputs, operators

    def declared(self, settings):
        """(name, device, dtype, ndim) of each output, and its layout, as far as they are declared."""
        count = len(self.outputs)

        def each(value):
            return list(value) if isinstance(value, (list, tuple)) else [value] * count

        dtypes, ndims = each(settings.output_dtype), each(settings.output_ndim)
        if not len(dtypes) == len(ndims) == count:
            raise RuntimeError(
                f"Lengths of `output_dtype` ({len(dtypes)}), `output_ndim` ({len(ndims)}) and the graph's outputs "
                f"({count}) do not match"
            )
        declared = [(node.name, node.device, dtype, ndim) for node, dtype, ndim in zip(self.outputs, dtypes, ndims)]
        return declared, each(settings.output_layout)

    def description(self, settings):
        """What the file will say, as `gesso_describe` says it of a file."""
        if self.loaded is not None:
            return self.loaded
        return serialization.describe(self.operators, self.declared(settings)[0], settings.fields())

    def serialized(self, settings):
        """The bytes of the file."""
        if self._bytes is None:
            self._bytes = serialization.write(self.description(settings))
        return self._bytes

    # --- of a file

    def load(self, serialized, changed):
        """Becomes what a file says, with `changed` fields."""
        self.loaded = json.loads(describe(serialized))
        if changed:
            self.loaded.update(changed)
            serialized = serialization.write(self.loaded)
        self._bytes = serialized

    def build_of_file(self, pipeline):
        """Makes the graph of a file."""
        self.operators, self.outputs = file_graph.graph(pipeline, self.loaded)
