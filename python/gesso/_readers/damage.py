"""Files that are damaged: whatever reading them comes to, the error says which file, and is one that `on_missing` knows."""

import contextlib


@contextlib.contextmanager
def named(where, but=()):
    """What is raised inside becomes a RuntimeError that names `where`; what is of a type of `but` stays as it is."""
    try:
        yield
    except but:
        raise
    except Exception as error:
        if isinstance(error, RuntimeError) and where in str(error):
            raise
        text = str(error) if isinstance(error, (RuntimeError, OSError, ValueError)) else f"{type(error).__name__}: {error}"
        raise RuntimeError(f"Could not read {where}: {text}") from None
