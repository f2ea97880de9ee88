"""`nvidia.dali.pickling`"""

from .._workers.pickling import pickle_by_value  # noqa: F401
