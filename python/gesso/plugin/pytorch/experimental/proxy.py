"""A pipeline behind a `DataLoader`: worker processes read and decode nothing, they hand samples to the pipeline of the
main process, which runs whole batches."""

import collections
import queue
import threading
import types
import weakref

import torch.multiprocessing
from torch.utils import data

from ...._threads.interrupts import uninterrupted
from ....pipeline import Pipeline
from .. import tensors
from . import references
from .references import DALIOutputBatchRef, DALIOutputSampleRef, DALIPipelineRunRef, DALIProxy  # noqa: F401

# DALI's name.
_collate_dali_output_sample_ref_fn = references.collate
# Seconds between two looks whether the thread is to end, or has ended.
_LOOK = 1.0

__all__ = ["DALIProxy", "DALIServer", "DataLoader"]


def _serve(server, stops):
    """What the thread of a server does; it does not keep the server."""
    while not stops.is_set():
        at_hand = server()
        if at_hand is None:
            return
        at_hand.step()
        # While it waits for nothing else, others may drop the server.
        del at_hand
    at_hand = server()
    if at_hand is not None:
        at_hand.finish()


class DALIServer:
    """Runs a pipeline with inputs for `proxy`, which data sets call in worker processes, in a thread of this one.

    `with DALIServer(pipeline) as server:` Its `proxy` takes a sample for each input and gives a reference for each
    output; `produce_data` makes tensors of the references in a batch, and `DataLoader` does so itself.
    `deterministic`: batches run in the order in which they are asked for, so that random operators give the same in
    each run of a program; they do not run ahead then."""

    def __init__(self, pipeline, deterministic=False):
        if not isinstance(pipeline, Pipeline):
            raise TypeError(f"Expected a `Pipeline`, got: {pipeline!r}"[:200])
        pipeline.build()
        fed = {node.name for group in pipeline.runner.sources.groups for node in group.used}
        names = [name for name in pipeline.runner.feeds.inputs if name not in fed]
        if not names:
            raise RuntimeError("The pipeline has no inputs: expected an `external_source` with a name and no source")
        self._pipe, self._asked = pipeline, torch.multiprocessing.Queue()
        self._proxy = DALIProxy(names, pipeline.num_outputs, self._asked, deterministic)
        self._thread, self._stops = None, threading.Event()
        # What runs gave and nobody took; processes whose runs nobody will take.
        self._given, self._forgotten, self._under_way = {}, set(), collections.deque()
        self._change = threading.Condition()

    @property
    def proxy(self):
        """What a data set calls with samples; see `DALIProxy`."""
        return self._proxy

    # --- the thread

    def start_thread(self):
        """Starts to run batches; `with` does it."""
        if self._thread is None:
            self._stops = threading.Event()
            self._thread = threading.Thread(target=_serve, args=(weakref.ref(self), self._stops), daemon=True)
            self._thread.start()

    def stop_thread(self):
        """Ends that. Batches that were not taken are thrown away."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stops.set()
            self._asked.put(None)
            thread.join()
            with self._change:
                self._given.clear()

    def _is_thread_running(self):
        return self._thread is not None

    def __enter__(self):
        self.start_thread()
        return self

    def __exit__(self, *_):
        self.stop_thread()

    @uninterrupted
    def __del__(self):
        # What failed to be made has no thread. The thread itself may be the last that knows the server.
        if hasattr(self, "_stops"):
            self._stops.set()

    def step(self):
        """Begins as many batches as the pipeline prepares ahead, and finishes one; for the thread."""
        while len(self._under_way) < self._pipe.runner.settings.queue_depth:
            asked = self._next_asked(wait=not self._under_way)
            if asked is None:
                break
            self._under_way.append(self._begin(*asked))
        if self._under_way:
            self._finish(*self._under_way.popleft())

    def finish(self):
        """Takes what the pipeline began out of it; for the thread, at its end."""
        while self._under_way:
            self._finish(*self._under_way.popleft())

    def _next_asked(self, wait):
        try:
            return self._asked.get(timeout=_LOOK) if wait else self._asked.get_nowait()
        except queue.Empty:
            if wait:
                # Nothing is left of them.
                self._forgotten.clear()
            return None

    def _begin(self, key, inputs):
        """(key, why it could not begin or None)"""
        try:
            self._pipe.runner.begin(self._pipe, inputs)
        except Exception as error:
            return key, error
        return key, None

    def _finish(self, key, error):
        outputs = None
        if error is None:
            try:
                outputs = tuple(tensors.dense(batch) for batch in self._pipe.outputs())
            except Exception as failed:
                error = failed
        with self._change:
            if key[0] not in self._forgotten:
                self._given[key] = (outputs, error)
            self._change.notify_all()

    def expect(self, processes):
        """Keeps what runs for these worker processes give: others that had their numbers have ended."""
        with self._change:
            self._forgotten.difference_update(processes)

    def forget(self, processes):
        """Throws away what runs for these worker processes gave, or will give: they have ended."""
        with self._change:
            self._forgotten.update(processes)
            for key in [key for key in self._given if key[0] in self._forgotten]:
                del self._given[key]

    # --- data

    def produce_data(self, obj):
        """`obj` with tensors in place of references, also of those within lists, tuples, dictionaries and attributes;
        what can be changed in place is."""
        return self._replaced(obj, {}, {})

    def _outputs(self, run):
        """The outputs of a run, once it is done."""
        if run.is_taken:
            raise RuntimeError("the outputs of this batch were taken before: `produce_data` gives them once")
        if run.chosen is not None and run.samples:
            self._proxy.ask(run)
        with self._change:
            while run.key not in self._given:
                if self._thread is None or not self._thread.is_alive():
                    raise RuntimeError("the server does not run: call `start_thread`, or use it in `with`")
                self._change.wait(_LOOK)
            outputs, error = self._given.pop(run.key)
            run.is_taken = True
        if error is not None:
            raise error
        return outputs

    def _replaced(self, value, done, runs):
        if id(value) in done:
            return done[id(value)]
        if isinstance(value, DALIOutputBatchRef):
            run = value.pipe_run_ref
            if run.key not in runs:
                runs[run.key] = self._outputs(run)
            return runs[run.key][value.output_idx]
        if isinstance(value, DALIOutputSampleRef):
            raise TypeError(
                "a reference to one sample of an output cannot be replaced: expected batches, which PyTorch's "
                "`default_collate` makes of samples; a `DataLoader` needs a `batch_size`, and a `collate_fn` calls it"
            )
        done[id(value)] = value
        if isinstance(value, tuple):
            parts = [self._replaced(part, done, runs) for part in value]
            if any(new is not old for new, old in zip(parts, value)):
                done[id(value)] = type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        elif isinstance(value, list):
            self._replace_in(value, enumerate(value), done, runs)
        elif isinstance(value, dict):
            self._replace_in(value, value.items(), done, runs)
        elif hasattr(value, "__dict__") and not callable(value) and not isinstance(value, types.ModuleType):
            self._replace_in(value.__dict__, vars(value).items(), done, runs)
        return done[id(value)]

    def _replace_in(self, whole, parts, done, runs):
        for key, part in list(parts):
            new = self._replaced(part, done, runs)
            if new is not part:
                whole[key] = new


class DataLoader(data.DataLoader):
    """PyTorch's `DataLoader` whose batches have the pipeline's outputs in them. Takes a `DALIServer`, then what
    PyTorch's takes; starts the server if it does not run."""

    def __init__(self, dali_server, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.dali_server = dali_server

    def __iter__(self):
        self.dali_server.start_thread()
        batches = super().__iter__()
        processes = [worker.pid for worker in getattr(batches, "_workers", [])]
        self.dali_server.expect(processes)
        try:
            for batch in batches:
                yield self.dali_server.produce_data(batch)
        finally:
            if not self.persistent_workers:
                del batches
                self.dali_server.forget(processes)
