"""What runs in a worker process: takes tasks, calls sources, sends what they give."""

import os
import threading
import traceback

import numpy as np

from .._feeding import to_array
from .._sources import get_callback_from_source
from .._tensor_list import TensorListCPU


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
        return [np.ascontiguousarray(array) for array in value.arrays]
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
    return array


class _Sources:
    """The sources of a worker, made of what they were sent as."""

    def __init__(self, given):
        self._given = given
        self._iterators = {}

    def call(self, index, arguments, by_sample):
        """What the source gives for one task."""
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
    for other in others:
        other.close()
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    try:
        sources = _Sources(loader(given) if loader is not None else given)
    except BaseException as error:
        connection.send((None, Failure(error)))
        return
    while True:
        try:
            task = connection.recv()
        except (EOFError, OSError):
            return
        if task is None:
            return
        key, index, arguments, by_sample = task
        try:
            answer = sources.call(index, arguments, by_sample)
        except BaseException as error:
            answer = Failure(error)
        try:
            connection.send((key, answer))
        except (BrokenPipeError, OSError):
            return
        except Exception as error:
            connection.send((key, Failure(error)))
