"""Classes of operators, as DALI's `_ops` has them."""

import sys

from ...._dynamic import api
from ...._dynamic.operators import Operator  # noqa: F401
from ...._dynamic.readers import Reader  # noqa: F401

api.put(sys.modules[__name__], api.CLASSES)
_all_ops = [*api.CLASSES.values(), *api.READERS.values()]
_all_functions = list(api.FUNCTIONS.values())
