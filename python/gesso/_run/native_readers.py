"""The sources of a graph in a stream, which reads ahead: readers that the library has, and those that the interpreter
alone has, as data sets that the library calls. Order, numbers and errors of the first are those of the readers in the
interpreter."""

import functools
import threading

from .._native import library
from .._native.callback_dataset import CallbackDataset
from .._native.stream import StreamEngine
from .._readers import damage, features, storage
from .._readers.library import OfLibrary, unread
from .._readers.video import Video
from .python_nodes import failed, is_reader, is_source, read, stop

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
    histories = (state or {}).get("readers", {})
    return [node for node in nodes if _is_plain(node, histories.get(node.name), settings.batch_size)]


class SourceStream:
    """The sources of a graph, and the stream in which they are read. Errors are those of readers in the interpreter."""

    def __init__(self, operators, settings, place, restarts, begun, natives):
        """`begun`: how many batches were given before. `natives`: readers of the graph's `operators` that the library
        reads by."""
        self.batch_size, self._restarts, self._begun = settings.batch_size, restarts, begun
        self._place, self._num_threads, self._depth = place, settings.num_threads, settings.queue_depth
        known = {id(node) for node in natives}
        self.readers, self.natives = [node for node in operators if is_reader(node)], natives
        self._own = [node for node in self.readers if id(node) not in known]
        self.called = [node for node in operators if is_source(node) and id(node) not in known]
        self._datasets = {node.name: CallbackDataset(functools.partial(read, node)) for node in self.called}
        self._engine = self._files = None

    def start(self):
        """Finds the samples of readers in the interpreter."""
        for node in self._own:
            node.operator.start(node, self._restarts)
            if node.name in self._datasets:
                node.is_wanted = functools.partial(getattr, self._datasets[node.name], "is_wanted")

    def open(self, description, functions):
        """The stream of a description; it has one lane if it calls functions, one batch after the other."""
        most = {"most": 1} if functions else {}
        settings = lanes(self._place.device, self._num_threads, self._depth, **most)
        file = features.written(description, self.natives)
        functions, close = {**functions, **self._datasets}, functools.partial(stop, self._own)
        engine = StreamEngine(
            file, *self._place, batch_size=self.batch_size, functions=functions, close=close, **settings
        )
        engine.skip(self._begun)
        engine.open()
        self._engine = engine
        self._files = {node.name: self._files_of(node) for node in self.natives}

    def _files_of(self, node, **where):
        size = self._engine.reader_meta()[node.name]["epoch_size"]
        return _Files(node, size, self._restarts, self.batch_size, **where)

    def run(self, batch_size, inputs):
        """The outcome of the next batch, and what its samples were read from: name, infos and numbers of each
        reader."""
        number, error, outcome = self._begun, None, None
        self._begun += 1
        try:
            outcome = self._engine.run(batch_size, inputs)
        except BaseException as raised:
            error = raised
        given = {name: dataset.taken() for name, dataset in self._datasets.items()}
        if error is not None:
            self._raise(error, given.values())
        if outcome is None:
            raise RuntimeError("the program is at its end: no more batches are made")
        self._raise_unread(outcome.errors)
        if not outcome.errors:
            return outcome, []
        natives = [(name, _Infos(files, number)) for name, files in self._files.items()]
        found = [(name, infos, infos.numbers()) for name, infos in natives]
        found += [(node.name, *given[node.name][0]) for node in self._own if node.name in given]
        return outcome, found

    def _raise(self, error, given):
        """Raises what a batch failed with, in the words of the reader that failed."""
        own = next((one for one in given if isinstance(one, BaseException)), None)
        if own is not None:
            raise own
        if isinstance(error, library.GessoError) and (node := self._reader_of(error.text)) is not None:
            raise failed(node, RuntimeError(error.text.reason)) from error
        raise error

    def _reader_of(self, text):
        """The reader that an error of the library names."""
        return next((node for node in self.readers if node.name == text.source), None)

    def _raise_unread(self, errors):
        """A file that cannot be read is an error of the batch, whatever becomes of samples that cannot be computed."""
        for _, text in sorted(errors.items()):
            node = self._reader_of(text)
            if node is None:
                continue
            raise failed(node, unread(text))

    def skip(self, batches, readers):
        """Brings readers of the interpreter to where so many batches were given; `readers` says how they had done so.
        The stream was opened where it goes on."""
        for node in self._own:
            node.operator.skip(node, batches, self.batch_size, readers.get(node.name))

    def restart(self, batches):
        """Goes on with the epoch of the readers behind the one that so many batches have got to."""
        self._engine.restart(self._begun, batches)
        for node in self._own:
            node.operator.restart(node, batches, self.batch_size)
        # Batches of before keep theirs.
        self._files = {node.name: self._files_of(node, first=self._begun, left=batches) for node in self.natives}

    def meta(self):
        """What the readers say of their data."""
        found = self._engine.reader_meta() if self.natives else {}
        return {node.name: found.get(node.name) or node.operator.meta(node) for node in self.readers}

    def history(self, batches):
        """How the readers have read so many batches."""
        natives = {node.name: [[node.values_of("num_shards", 1), self.batch_size, batches]] for node in self.natives}
        own = {node.name: node.operator.history(node, batches, self.batch_size) for node in self._own}
        return natives | own

    def left(self):
        """What is left for each shard of epochs that other shards began: for the library's readers there are none."""
        return {node.name: None for node in self.natives} | {node.name: node.operator.left(node) for node in self._own}


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
