"""The pool of worker processes of one pipeline: tasks out, batches in, in order. A worker that dies is an error, never
a wait. Who calls it holds Ctrl-C off (`_threads.interrupts`): it comes through where a worker is waited for."""

import itertools
import multiprocessing
import multiprocessing.connection
import multiprocessing.reduction
import os
import socket
import weakref
from collections import deque

from .. import _context
from .._callbacks.sources import SourceKind
from .._threads.fork import Process
from .._threads.interrupts import let, uninterrupted
from . import pickling
from .shared import Receiver
from .worker import run

# How long a worker that is told to end may take, in seconds.
_PATIENCE = 1.0
_numbers = itertools.count()


class _Worker:
    """One process, the pipe to it, and the memory that it sends batches in."""

    def __init__(self, context, given, loader, others):
        self.connection, theirs = multiprocessing.Pipe()
        inherited = [worker.connection for worker in others] + [self.connection]
        arguments = (given, loader, theirs, os.getpid(), _context.package)
        if context.get_start_method() == "fork":
            arguments += (inherited,)
        self.process = context.Process(target=run, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.memory = Receiver()
        self.backlog = deque()
        self.waiting = 0

    def send(self, task):
        """Gives a task; later, if the worker has much to do: so pipes never fill on both sides."""
        self.backlog.append(task)
        self.push()

    def push(self):
        """Sends tasks of the backlog while few are under way."""
        while self.backlog and self.waiting < 2:
            try:
                self.connection.send((self.memory.done(), self.backlog.popleft()))
            except (BrokenPipeError, OSError):
                raise self.death() from None
            self.waiting += 1

    def receive(self):
        """The next answer: (key, data)."""
        with let():
            multiprocessing.connection.wait([self.connection, self.process.sentinel])
        if not self.connection.poll():
            raise self.death()
        try:
            key, number, capacity, written, is_new = self.connection.recv()
            if is_new:
                self.memory.add(number, multiprocessing.reduction.recv_handle(self.connection), capacity)
        except (EOFError, OSError):
            raise self.death() from None
        self.waiting -= 1
        self.push()
        return key, self.memory.read(number, capacity, written)

    def end(self):
        """Tells the process to end. It reads the end of the pipe also while children that were forked since have copies
        of this side."""
        if self.connection.closed:
            return
        with socket.socket(fileno=self.connection.fileno()) as pipe:
            pipe.shutdown(socket.SHUT_RDWR)
            pipe.detach()
        self.connection.close()

    def join(self):
        """Waits until the process is gone; one that is busy is stopped."""
        self.process.join(_PATIENCE)
        for stop in (self.process.terminate, self.process.kill):
            if self.process.is_alive():
                stop()
                self.process.join(_PATIENCE)
        self.memory.close()

    def death(self):
        """The error that says that the process is gone."""
        self.process.join(timeout=5)
        return RuntimeError(
            f"A worker process of a parallel external source ended unexpectedly, with exit code {self.process.exitcode}. Worker data "
            "receiving interrupted."
        )


class _Context:
    """The batches of one source that are under way. `epoch` counts how often it ended or failed."""

    def __init__(self, index, group, workers):
        self.index = index
        self.group = group
        self.workers = workers
        self.scheduled = deque()
        self.epoch = 0


class Pool:
    """The workers of a pipeline."""

    def __init__(self, groups, count, method, pickler):
        context = multiprocessing.get_context(method)
        given = [(g.source_desc.source, g.source_desc.kind is SourceKind.CALLABLE, g.source_desc.cycle) for g in groups]
        loader = None
        if method != "fork":
            given, loader = pickling.pack(given, pickler)
        self._process = Process()
        self.workers = []
        for _ in range(count):
            self.workers.append(_Worker(context, given, loader, self.workers))
        self._answers = {}
        self._turn = 0
        self.contexts = {}
        dedicated = 0
        for index, group in enumerate(groups):
            own = self.workers
            if group.source_desc.kind is not SourceKind.CALLABLE:
                own = [self.workers[dedicated % count]]
                dedicated += 1
            self.contexts[id(group)] = _Context(index, group, own)

    @uninterrupted
    def close(self):
        """Ends the workers. In a child of this process they are somebody else's."""
        if not self._process.is_here():
            return
        for worker in self.workers:
            worker.end()
        for worker in self.workers:
            worker.join()

    def pids(self):
        """The process ids of the workers."""
        return [worker.process.pid for worker in self.workers]

    def prefetch(self, groups, batch_size, epoch):
        """Schedules as many batches of each source as are prepared ahead."""
        for group in groups:
            if group.parallel:
                self._fill(self.contexts[id(group)], batch_size, epoch)

    def _fill(self, context, batch_size, epoch):
        while len(context.scheduled) < max(context.group.prefetch_queue_depth or 1, 1):
            self._schedule(context, len(context.scheduled), batch_size, epoch)

    def _schedule(self, context, lead, batch_size, epoch):
        group, number = context.group, next(_numbers)
        if group.batch:
            arguments = group.argument(None, epoch, batch_size, lead)
            parts = [(context.workers[self._turn % len(context.workers)], arguments)]
            self._turn += 1
        else:
            samples = [group.argument(i, epoch, batch_size, lead)[0] for i in range(batch_size)]
            count = min(len(context.workers), batch_size)
            bounds = [batch_size * k // count for k in range(count + 1)]
            parts = [(context.workers[k], samples[bounds[k] : bounds[k + 1]]) for k in range(count)]
        keys = []
        for position, (worker, arguments) in enumerate(parts):
            key = (number, position)
            worker.send((key, context.index, context.epoch, arguments, not group.batch))
            keys.append((key, worker))
        context.scheduled.append((number, keys))

    def _oldest(self, context):
        """The answers of the batch that was scheduled first. It stays scheduled until all of them came: the wait may be
        interrupted."""
        _, keys = context.scheduled[0]
        for key, worker in keys:
            while key not in self._answers:
                found, answer = worker.receive()
                if found is None:
                    raise RuntimeError(
                        f"A worker process of a parallel external source could not start:\n{answer.text}"
                    )
                self._answers[found] = answer
        context.scheduled.popleft()
        return [self._answers.pop(key) for key, _ in keys]

    def receive(self, group, batch_size, epoch):
        """The next batch of a source; StopIteration at the end of its epoch."""
        context = self.contexts[id(group)]
        if not context.scheduled:
            self._fill(context, batch_size, epoch)
        answers = self._oldest(context)
        for answer in answers:
            if hasattr(answer, "is_end"):
                self._end(context, group, answer)
        group.advance(batch_size)
        self._fill(context, batch_size, epoch)
        return answers[0] if group.batch else [sample for part in answers for sample in part]

    def _end(self, context, group, failure):
        group.reset()
        context.epoch += 1
        self._drop(context)
        if failure.is_end:
            raise StopIteration
        text = f"Exception traceback received from worker thread:\n\n{failure.text}"
        raise (type(failure.error) if failure.error is not None else RuntimeError)(text)

    def _drop(self, context):
        """Waits for what is under way and forgets it."""
        while context.scheduled:
            self._oldest(context)

    def reset(self, groups):
        """Begins a new epoch of every source that is a function."""
        for group in groups:
            if group.parallel and group.source_desc.kind is SourceKind.CALLABLE:
                self._drop(self.contexts[id(group)])

    def statistics(self, batch_size):
        """Shared memory that the workers have sent batches in: bytes of each piece, and for each sample that a worker
        makes at once."""
        capacities = [capacity for worker in self.workers for capacity in worker.memory.capacities()]
        share = -(-batch_size // len(self.workers))
        return {"capacities": capacities, "per_sample_capacities": [capacity // share for capacity in capacities]}


def _useful(group, batch_size):
    """How many workers can be busy for a source at the same time."""
    if group.source_desc.kind is not SourceKind.CALLABLE:
        return 1
    return max(group.prefetch_queue_depth or 1, 1) if group.batch else batch_size


def start(pipeline, groups, settings):
    """The pool for a pipeline's parallel sources; it ends with the pipeline."""
    count = min(settings.py_num_workers, sum(_useful(group, settings.batch_size) for group in groups))
    pool = Pool(groups, count, settings.py_start_method, settings.py_callback_pickler)
    weakref.finalize(pipeline, pool.close)
    return pool
