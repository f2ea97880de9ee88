"""Files that are damaged: whatever reading them comes to, the error says which file, and is one that `on_missing`
knows."""

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
        text = (
            str(error) if isinstance(error, (RuntimeError, OSError, ValueError)) else f"{type(error).__name__}: {error}"
        )
        raise RuntimeError(f"Could not read {where}: {text}") from None


def with_origins(errors, readers):
    """Why samples failed, with where each is from. `readers`: for each its name, and by sample what it was read from
    and its number, as far as they are known."""
    named = {}
    for i, text in errors.items():
        origins = [
            words
            for name, infos, numbers in readers
            if (words := _origin(text, name, infos[i], numbers and numbers[i]))
        ]
        named[i] = text.behind(" and ".join(origins)) if origins else text
    return named


def _origin(text, name, info, number):
    """Where one sample is from; without a path that its error names already."""
    words = [f"`{info}`"] if info and info not in text else []
    if number is not None:
        words.append(f"sample {number} of the reader `{name}`")
    return ", ".join(words)
