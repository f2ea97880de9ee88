"""`nvidia.dali.experimental.dynamic`: Gesso's dynamic mode under DALI's names, its private ones where programs use
them."""

import sys as _sys

from ...._dynamic import api as _api
from ...._dynamic import readers as _readers
from ...backend_impl import OpSchema as _OpSchema
from . import _invocation, _op_builder, _ops, _thread_pool  # noqa: F401


class _Backend:
    def __init__(self, pipeline):
        self._pipeline = pipeline

    def GetReaderMeta(self):
        """What the reader says of its data."""
        return self._pipeline.reader_meta(_readers._NAME)


def _give_private_names():
    for kind in (*_ops._all_ops, *(_function._operator_class for _function in _ops._all_functions)):
        kind._schema = _OpSchema(kind._description)
    for function in _ops._all_functions:
        function._schema = function._operator_class._schema
    _readers.Reader._op_backend = property(
        lambda self: None if self._pipeline is None else _Backend(self._pipeline), doc="DALI's name of what runs."
    )


_give_private_names()
_api.fill(_sys.modules[__name__])
