"""What runs in a worker process: takes tasks, calls sources, sends what they give."""

import multiprocessing.reduction
import os
import signal
import threading
import traceback

import numpy as np

from .._callbacks.sources import get_callback_from_source
from .._tensors.feeding import to_array
from .._tensors.tensor_list import TensorListCPU
from .shared import Sender


class Failure:
    """An exception of a source, on its way to the user's process."""

    def __init__(self, error):
        self.type_name = type(error).__name__
        self.is_end = isinstance(error, StopIteration)
        self.text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.error = error if type(error).__module__ == "builtins" else None


def _plain(value):
    """Data that travels: arrays in place of frameworks' tensors."""
    if isinstance(value, TensorListCPU):
        return [np.ascontiguousarray(array).reshape(array.shape) for array in value.arrays]
    if isinstance(value, tuple):
        return tuple(_plain(element) for element in value)
    if isinstance(value, list):
        return [_plain(element) for element in value]
    array = to_array(value)
    if array.dtype == object:
        raise TypeError(
            f"a source in a worker returned a `{type(value)}`, expected an array of numpy or of PyTorch on the CPU, a `TensorCPU`, or a list or tuple of "
            "them"
        )
    return np.ascontiguousarray(array).reshape(array.shape)


class _Sources:
    """The sources of a worker, made of what they were sent as."""

    def __init__(self, given):
        self._given = given
        self._iterators = {}
        self._ended = {}

    def call(self, index, epoch, arguments, by_sample):
        """What the source gives for one task. A source that ended gives nothing more in that epoch, though it could
        begin again."""
        if self._ended.get(index) == epoch:
            raise StopIteration
        try:
            return self._call(index, arguments, by_sample)
        except StopIteration:
            self._ended[index] = epoch
            raise

    def _call(self, index, arguments, by_sample):
        source, kind_is_callable, cycle = self._given[index]
        if kind_is_callable:
            if by_sample:
                return [_plain(source(argument)) for argument in arguments]
            return _plain(source(*arguments))
        if index not in self._iterators:
            self._iterators[index] = get_callback_from_source(source, cycle)[0]
        return _plain(self._iterators[index]())


def _watch(parent):
    """Ends this process when the user's is gone."""
    while os.getppid() == parent:
        threading.Event().wait(1.0)
    os._exit(1)


def run(given, loader, connection, parent, package, others=()):
    """The loop of a worker."""
    if package != "gesso":
        from .. import as_dali  # noqa: F401
    # Ctrl-C reaches all processes of a terminal; this one ends with the user's.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in others:
        other.close()
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    try:
        sources = _Sources(loader(given) if loader is not None else given)
    except BaseException as error:
        _send(connection, Sender(), None, Failure(error))
        return
    sender = Sender()
    while True:
        try:
            released, (key, index, epoch, arguments, by_sample) = connection.recv()
        except (EOFError, OSError):
            return
        sender.release(released)
        try:
            answer = sources.call(index, epoch, arguments, by_sample)
        except BaseException as error:
            answer = Failure(error)
        try:
            _send(connection, sender, key, answer)
        except (BrokenPipeError, OSError):
            return


def _send(connection, sender, key, answer):
    try:
        number, capacity, written, handle = sender.write(answer)
    except Exception as error:
        number, capacity, written, handle = sender.write(Failure(error))
    connection.send((key, number, capacity, written, handle is not None))
    if handle is not None:
        multiprocessing.reduction.send_handle(connection, handle, None)
