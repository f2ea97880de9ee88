"""`nvidia.dali.plugin_manager`: libraries with operators of Gesso's own kind."""

from .. import fn, ops
from .._authoring import namespaces as _namespaces
from .._authoring import schema as _schema
from .backend_impl import LoadLibrary


def load_library(library_path, global_symbols=False):
    """Loads a library with operators; they are in `fn` and `ops` then."""
    LoadLibrary(library_path)
    _schema.reload()
    _namespaces.install(ops, fn)


def load_directory(plugin_dir_path, global_symbols=False):
    """Loads every library in a folder."""
    import pathlib

    for library in sorted(pathlib.Path(plugin_dir_path).glob("**/libdali_*.so")):
        load_library(library, global_symbols)
