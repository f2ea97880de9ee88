"""Which readers of a graph the library reads by itself, and in how many threads."""

from .._native import library
from .._readers import storage
from .._readers.library import OfLibrary
from .._readers.video import Video
from .python_nodes import is_reader

# Batches that a GPU works on at the same time: one alone leaves it idle while the host prepares the next and waits for
# the last.
_LANES_OF_GPU = 4
# Threads of a pipeline that names no number.
_THREADS = 4
# Arguments that name texts with paths in them.
_LISTS = ("file_list", "manifest_filepaths")


def lanes(device, num_threads, depth, most=_LANES_OF_GPU):
    """For a stream that keeps `depth` batches ready: batches that are worked on at once, threads of each, and batches
    that may be read ahead. There are no more lanes than threads, so that these are not more than were asked for."""
    threads = num_threads or _THREADS
    count = min(most, threads) if device == library.GPU else 1
    return {"lanes": count, "num_threads": threads // count, "prefetch": depth + count}


def _texts(node, *names):
    """The values of arguments that are texts."""
    given = [node.values_of(name) or () for name in names]
    lists = [texts if isinstance(texts, (list, tuple)) else [texts] for texts in given]
    return [text for texts in lists for text in texts if isinstance(text, str)]


def _is_local(node):
    """Whether the library finds the same files as the reader in the interpreter."""
    if any(map(storage.is_remote, _texts(node, *node.values))):
        return False
    try:
        # A list may name files in an object store.
        return not any("://" in storage.text(path) for path in _texts(node, *_LISTS))
    except (RuntimeError, OSError):
        return False


def _is_native(node, restarts, device):
    """Whether the library reads as this reader does. Videos it reads better on a device, as it decodes them there, and
    it alone keeps to `formats`."""
    if not isinstance(node.operator, OfLibrary):
        return False
    is_on_device = node.device == "gpu" and device == library.GPU
    if isinstance(node.operator, Video) and not is_on_device and node.pipeline.formats is None:
        return False
    if node.operator.only_in_python or node.tensors or node.values_of("seed") == -1:
        return False
    # With checkpoints samples are shuffled from the order of the files for every epoch, which the library does not do.
    shuffles_samples = node.values_of("shuffle_after_epoch") and not node.operator.shuffles_files
    return not (restarts and shuffles_samples) and _is_local(node)


def _is_plain(node, history, batch_size):
    """Whether a state was made with the number of shards and the batch size of now."""
    now = [node.values_of("num_shards", 1), batch_size]
    return history is None or [part[:2] for part in history] == [now]


def chosen(operators, settings, device, restarts, state):
    """The readers of a graph that the library reads as they do, from `state` on."""
    nodes = [node for node in operators if is_reader(node) and _is_native(node, restarts, device)]
    histories = {} if state is None else state["readers"]
    return [node for node in nodes if _is_plain(node, histories.get(node.name), settings.batch_size)]
