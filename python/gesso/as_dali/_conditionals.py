"""`nvidia.dali._conditionals`"""

from .._conditionals.scopes import Conditions, enabled  # noqa: F401


def conditionals_enabled():
    """Whether the pipeline that is being defined has conditionals."""
    return enabled() is not None
