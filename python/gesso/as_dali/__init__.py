"""Makes `nvidia.dali` mean Gesso: `import gesso.as_dali` first, or `python -m gesso.as_dali script.py`.

`nvidia.dali.X` is what Gesso has under the same name, or the module `X` of this package where DALI keeps things
elsewhere."""

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import multiprocessing.spawn
import sys
import types

from .. import _context
from . import _words

_ROOT = "nvidia.dali"
_HERE = __name__


def _target(name):
    """The module that stands for `nvidia.dali.<name>`, or None."""
    for package in (_HERE, "gesso"):
        full = f"{package}.{name}"
        if full in sys.modules:
            return full
        try:
            if importlib.util.find_spec(full) is not None:
                return full
        except (ModuleNotFoundError, ValueError):
            continue
    return None


class _Alias(importlib.abc.Loader):
    """Gives an existing module for another name."""

    def __init__(self, target):
        self._target = target

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        sys.modules[module.__name__] = importlib.import_module(self._target)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules below `nvidia.dali`."""

    def find_spec(self, fullname, path=None, target=None):
        if not fullname.startswith(_ROOT + "."):
            return None
        found = _target(fullname[len(_ROOT) + 1 :])
        return None if found is None else importlib.machinery.ModuleSpec(fullname, _Alias(found), is_package=True)


class _InChild:
    """Installs the alias where it is unpickled: in a process that is started anew, before anything of the user's is
    imported there."""

    def __reduce__(self):
        return exec, (f"import sys\nsys.path[:] = {sys.path!r}\nimport {_HERE}",)


def _follow_children():
    """Lets processes of `multiprocessing` that are started anew have the alias."""
    prepare = multiprocessing.spawn.get_preparation_data

    @functools.wraps(prepare)
    def with_alias(name):
        return {**prepare(name), _HERE: _InChild()}

    multiprocessing.spawn.get_preparation_data = with_alias


def _install():
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    _context.package, _context.add_words = _ROOT, _words.added
    try:
        parent = importlib.import_module("nvidia")
    except ImportError:
        parent = types.ModuleType("nvidia", "Packages of NVIDIA.")
        parent.__path__ = []
        sys.modules["nvidia"] = parent
    for name in [name for name in sys.modules if name == _ROOT or name.startswith(_ROOT + ".")]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder())
    _follow_children()
    gesso = sys.modules["gesso"]
    root = types.ModuleType(_ROOT, gesso.__doc__)
    root.__path__, root.__file__ = [], gesso.__file__
    root.__version__ = "2.4.0"
    sys.modules[_ROOT] = root
    parent.dali = root
    for name in gesso.__all__:
        setattr(root, name, getattr(gesso, name))
    names = "fn ops types math pipeline backend backend_impl tensors data_node plugin_manager external_source auto_aug"
    for name in (*names.split(), "plugin", "experimental", "tfrecord", "pickling", "_conditionals", "_multiproc.pool"):
        importlib.import_module(f"{_ROOT}.{name}")


_install()
