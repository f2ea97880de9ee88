"""Packages that Gesso does not bring, for those who need them: an error says how to install one. Knows nothing of what
they are for."""

import importlib


def needed(name, user, extra=None, error=ModuleNotFoundError):
    """The module `name`, of a package that `user` needs and the extra `extra` of the wheel brings; `error` is raised
    where it is not there."""
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != package:
            # The package is there, and lacks something itself.
            raise
    brought = (
        f" The extra `{extra}` of Gesso's wheel brings it: `pip install 'FILE.whl[{extra}]'`, where FILE.whl is the wheel."
        if extra
        else ""
    )
    raise error(
        f"{user} needs the package `{package}`, which is not installed.{brought or f' Install it: `pip install {package}`.'}"
    )
