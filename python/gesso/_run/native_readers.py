"""Readers of a graph that the library has, too: it reads by them ahead, in a stream. Order, numbers and errors are
those of the readers in the interpreter."""

import threading

from .._native import library
from .._native.stream import StreamEngine
from .._readers import damage, features, storage
from .._readers.caffe import Caffe, Caffe2
from .._readers.coco import COCO
from .._readers.csv import Csv
from .._readers.file import File
from .._readers.nemo_asr import NemoAsr
from .._readers.numpy import Numpy
from .._readers.records import MXNet, TFRecord
from .._readers.sequence import Sequence
from .._readers.video import Video
from .._readers.webdataset import Webdataset
from ..tfrecord import string
from .python_nodes import failed

# Batches that a GPU works on at the same time: one alone leaves it idle while the host prepares the next and waits for
# the last.
_LANES_OF_GPU = 4
# Threads of a pipeline that names no number.
_THREADS = 4
# Readers that the library has, and their arguments that are paths.
_PATHS = {
    File: ("file_root", "file_list", "files"),
    Video: ("file_root", "file_list", "filenames"),
    Webdataset: ("paths", "index_paths"),
    TFRecord: ("path", "index_path"),
    MXNet: ("path", "index_path"),
    Numpy: ("file_root", "file_list", "files"),
    COCO: ("file_root", "annotations_file"),
    Caffe: ("path",),
    Caffe2: ("path",),
    Sequence: ("file_root",),
    NemoAsr: ("manifest_filepaths",),
    Csv: ("file_root", "file_list"),
}
# Those whose arguments name texts with paths in them.
_LISTS = ("file_list", "manifest_filepaths")
# Those that shuffle files, not samples, before each epoch.
_OF_FILES = (Webdataset, TFRecord, MXNet)


def lanes(device, num_threads, depth, most=_LANES_OF_GPU):
    """For a stream that keeps `depth` batches ready: batches that are worked on at once, threads of each, and batches
    that may be read ahead. There are no more lanes than threads, so that these are not more than were asked for."""
    threads = num_threads or _THREADS
    count = min(most, threads) if device == library.GPU else 1
    return {"lanes": count, "num_threads": threads // count, "prefetch": depth + count}


def _paths(node):
    """All that the reader was given."""
    kind = next(kind for kind in _PATHS if isinstance(node.operator, kind))
    for name in _PATHS[kind]:
        given = node.values_of(name) or ()
        yield from [given] if isinstance(given, str) else given


def _is_local(node):
    """Whether the library finds the same files as the reader in the interpreter."""
    root = node.values_of("file_root")
    given = [node.values_of(name) or [] for name in _LISTS]
    listed = [path for paths in given for path in ([paths] if isinstance(paths, str) else paths)]
    if root == "" or any(map(storage.is_remote, _paths(node))):
        return False
    try:
        # A list may name files in an object store.
        return not any("://" in storage.text(path) for path in listed)
    except (RuntimeError, OSError, ValueError):
        return False


def _is_whole(node):
    """Whether the arguments say no more than the library understands: none that is `interpreted`, no features that
    files have no place for."""
    if any(name in node.values for name in node.operator.interpreted):
        return False
    features = getattr(node.operator, "features", {}).values()
    return all(isinstance(feature.default, str if feature.dtype == string else (int, float)) for feature in features)


def _is_native(node, restarts, device):
    """Whether the library reads as this reader does. Videos it reads better on a device, as it decodes them there, and
    it alone keeps to `formats`."""
    is_on_device = node.device == "gpu" and device == library.GPU
    is_video = isinstance(node.operator, Video) and (is_on_device or node.pipeline.formats is not None)
    if not is_video and (type(node.operator) not in _PATHS or isinstance(node.operator, Video)):
        return False
    if node.operator.only_in_python or node.tensors or node.values_of("seed") == -1 or not _is_whole(node):
        return False
    # With checkpoints samples are shuffled from the order of the files for every epoch, which the library does not do.
    return (
        not (restarts and node.values_of("shuffle_after_epoch")) or isinstance(node.operator, _OF_FILES)
    ) and _is_local(node)


def _is_plain(node, history, batch_size):
    """Whether a state was made with the number of shards and the batch size of now."""
    now = [node.values_of("num_shards", 1), batch_size]
    return history is None or [part[:2] for part in history] == [now]


def chosen(operators, settings, device, restarts, state):
    """The readers of a graph if the library reads as all of them do, from `state` on; else none of them."""
    nodes = [node for node in operators if getattr(node.operator, "is_source", False)]
    if not settings.prepares_ahead or not all(_is_native(node, restarts, device) for node in nodes):
        return []
    histories, batch_size = (state or {}).get("readers", {}), settings.batch_size
    return nodes if all(_is_plain(node, histories.get(node.name), batch_size) for node in nodes) else []


class NativeReaders:
    """Readers of a graph that the library reads by, and the stream in which it does so. Errors are those of readers in
    the interpreter."""

    def __init__(self, nodes, settings, place, restarts, begun):
        """`begun`: how many batches were given before."""
        self.nodes, self.batch_size, self._restarts, self._begun = nodes, settings.batch_size, restarts, begun
        self._place, self._num_threads, self._depth = place, settings.num_threads, settings.queue_depth
        self._engine = self._files = None

    def open(self, description, functions):
        """The stream of a description; it has one lane if it calls functions, one batch after the other."""
        most = {"most": 1} if functions else {}
        settings = lanes(self._place.device, self._num_threads, self._depth, **most)
        file = features.written(description, self.nodes)
        engine = StreamEngine(file, *self._place, batch_size=self.batch_size, functions=functions, **settings)
        engine.skip(self._begun)
        engine.open()
        sizes = {name: meta["epoch_size"] for name, meta in engine.reader_meta().items()}
        self._files_of = lambda node, **where: _Files(node, sizes[node.name], self._restarts, self.batch_size, **where)
        self._files = {node.name: self._files_of(node) for node in self.nodes}
        self._engine = engine
        return engine

    def run(self, batch_size, inputs):
        """The outcome of the next batch, and what its samples were read from: name, infos and numbers of each
        reader."""
        number = self._begun
        self._begun += 1
        try:
            outcome = self._engine.run(batch_size, inputs)
        except library.GessoError as error:
            if (node := self._reader_of(error.text)) is not None:
                raise failed(node, RuntimeError(error.text.reason)) from error
            raise
        self._raise_unread(outcome.errors, number)
        infos = {name: _Infos(files, number) for name, files in self._files.items()} if outcome.errors else {}
        return outcome, [(name, found, found.numbers()) for name, found in infos.items()]

    def _reader_of(self, text):
        """The reader that an error of the library names."""
        return next((node for node in self.nodes if node.name == text.source), None)

    def _raise_unread(self, errors, number):
        """A file that cannot be read is an error of the batch, whatever becomes of samples that cannot be computed."""
        for i, text in sorted(errors.items()):
            node = self._reader_of(text)
            if node is None:
                continue
            if node.pipeline.formats is not None:
                # The interpreter does not keep to them, so it does not read again.
                raise failed(node, RuntimeError(f"Could not read {text.reason}"))
            try:
                # In the words of the reader in the interpreter.
                if not isinstance(node.operator, File):
                    self._files[node.name].read(number, i)
                elif text.file:
                    storage.read(text.file)
            except (RuntimeError, OSError) as error:
                raise failed(node, error) from error
            # Now it is there, or the library decodes it.
            raise failed(node, RuntimeError(f"Could not read {text.reason}"))

    def restart(self, batches):
        """Goes on with the epoch of the readers behind the one that so many batches have got to."""
        self._engine.restart(self._begun, batches)
        # Batches of before keep theirs.
        self._files = {node.name: self._files_of(node, first=self._begun, left=batches) for node in self.nodes}

    def meta(self):
        """What the readers say of their data."""
        return self._engine.reader_meta() if self.nodes else {}

    def history(self, batches):
        """How the readers have read so many batches."""
        return {node.name: [[node.values_of("num_shards", 1), self.batch_size, batches]] for node in self.nodes}

    def left(self):
        """What is left for each shard of epochs that other shards began: there are none."""
        return {node.name: None for node in self.nodes}

    def check_formats(self, error):
        """Raises what opening the stream failed with, if the interpreter would decode what must not be decoded."""
        videos = [node for node in self.nodes if isinstance(node.operator, Video)]
        if videos and videos[0].pipeline.formats is not None:
            raise failed(videos[0], error) from error


class _Files:
    """Which samples the batches of a reader are of, from number `first` on: found out by drawing their order again, if
    somebody asks. `size`: how many the library found; `left`: batches behind which the epoch was left."""

    def __init__(self, node, size, restarts, batch_size, first=0, left=None):
        self._node, self._size, self._restarts, self._batch_size = (node, size, restarts, batch_size)
        self._first, self._left = first, left
        self._lock = threading.Lock()
        self._samples = self._order = None
        self._next = first

    def _begin(self):
        options = {name: value.value for name, value in self._node.values.items()}
        self._order, self._next = (self._node.operator.order(self._samples, options, self._restarts), self._first)
        if self._left is not None:
            for _ in range(self._left):
                self._order.batch(self._batch_size)
            self._order.next_epoch()

    def name(self, index):
        """What the errors of a sample call it."""
        if hasattr(self._samples, "name"):
            return self._samples.name(index)
        try:
            _, info = self._read(index)
        except (RuntimeError, OSError):
            return ""
        return info[0] if isinstance(info, list) else info

    def read(self, number, i):
        """Reads sample `i` of a batch again."""
        if (numbers := self.of_batch(number)) is not None:
            self._read(numbers[i])

    def _read(self, index):
        with damage.named(f"a sample of `{self._node.operator.display}`", but=(RuntimeError, OSError)):
            return self._samples.read(index)

    def of_batch(self, number):
        """The numbers of its samples."""
        with self._lock:
            if self._samples is None:
                self._samples = self._node.operator.begin(self._node)
            if self._samples.size != self._size:
                # Others came or went since: which file is which number nobody knows any more.
                return None
            if self._order is None or number < self._next:
                self._begin()
            while self._next < number:
                self._order.batch(self._batch_size)
                self._next += 1
            self._next += 1
            return self._order.batch(self._batch_size)


class _Infos:
    """The path of each sample of a batch, and its number among those of its reader, found out when it is asked for."""

    def __init__(self, files, number):
        self._files, self._number, self._found = files, number, ()

    def __getitem__(self, index):
        numbers = self.numbers()
        return "" if numbers is None else self._files.name(numbers[index])

    def numbers(self):
        """The number of each sample, or None."""
        if self._found == ():
            self._found = self._files.of_batch(self._number)
        return self._found
