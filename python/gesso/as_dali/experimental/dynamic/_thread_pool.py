"""DALI's place of `ThreadPool`."""

from ...._dynamic.threads import ThreadPool, get_num_threads, set_num_threads  # noqa: F401
from ...._dynamic.threads import default_pool as _get_default_thread_pool  # noqa: F401
