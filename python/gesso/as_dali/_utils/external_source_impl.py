"""`nvidia.dali._utils.external_source_impl`"""

from ..._sources import SourceDescription, SourceKind, accepted_arg_count, get_callback_from_source  # noqa: F401
