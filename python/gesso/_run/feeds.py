"""`Feeds`: what the inputs of a pipeline were fed, until batches take it."""

import contextlib
from collections import deque

from .._tensors.feeding import in_place, is_constant, is_large, to_batch
from .input_checks import check_declared, check_same


def _has_more(declared):
    """Whether there may be a batch of the videos that an input was fed."""
    return "videos" in declared and declared["videos"].videos.has_more()


class Feeds:
    """What was fed to each input and no batch took yet, what it was fed last, and the batches that wait for it.

    It must not know who feeds, be it the user, a source or a worker, nor what runs the batches."""

    def __init__(self):
        # What the inputs are declared to be, by name; known once the pipeline is built.
        self.inputs = {}
        # Whether one of them waits for data, and whether nothing of a batch is needed once it has run.
        self._blocks, self._may_borrow = False, False
        # Whether a batch can go past the queues: nobody waits for it there, and nothing of it is needed later.
        self.can_pass = False
        # The outcomes of batches that began before there was data for them.
        self.waiting = deque()
        # The facts are another dictionary after each change: who keeps one can go back to it.
        self._fed, self._last, self._facts = {}, {}, {}
        # Within `together`: what was fed, with the queue that it is in.
        self._newest = None
        # What is read where the user has it.
        self._borrowed = []

    def __bool__(self):
        return bool(self._fed)

    def declare(self, inputs, may_borrow):
        """Says what the inputs are, and whether nothing of a batch is needed once it has run."""
        self.inputs, self._may_borrow = inputs, may_borrow
        self._blocks = any(declared["blocking"] for declared in inputs.values())
        self.can_pass = may_borrow and not any(
            "videos" in declared or declared["repeat_last"] or declared["blocking"] for declared in inputs.values()
        )

    def feed(self, name, data, batch_size, layout=None, copy=True, at_once=False):
        """Gives an input its next batch. `at_once`: a batch takes it before the user has a chance to change it; then
        comes `keep_rest`."""
        declared = self.inputs.get(name)
        if declared is None:
            raise KeyError(
                f'Could not find an input operator with name "{name}". The pipeline has {sorted(self.inputs)}.'
            )
        if "videos" in declared:
            copy = not (declared["no_copy"] or is_constant(data))
        borrows = False
        if copy and self._may_borrow and is_large(data):
            borrows = at_once and not declared["repeat_last"]
            copy = not (borrows or is_constant(data))
        batch = to_batch(data, batch_size, layout, copy)
        if "videos" in declared:
            check_declared(name, declared, batch)
            queue = declared["videos"].videos.feed(batch)
        else:
            self._check(name, declared, batch)
            queue = self._fed.setdefault(name, deque())
            queue.append(batch)
        if self._newest is not None:
            self._newest.append((queue, batch))
        if borrows:
            self._borrowed.append(batch)

    def _check(self, name, declared, batch):
        check_declared(name, declared, batch)
        facts = batch.facts()
        before = self._facts.get(name)
        if before != facts:
            check_same(before, batch)
            self._facts = {**self._facts, name: facts}

    @contextlib.contextmanager
    def together(self):
        """What is fed inside of it is fed as a whole: of what fails in the middle nothing is left for batches."""
        facts, around, newest = self._facts, self._newest, []
        self._newest = newest
        try:
            yield
        except BaseException:
            self._facts = facts
            for queue, batch in newest:
                # A batch that waited may have taken it.
                with contextlib.suppress(ValueError):
                    queue.remove(batch)
            raise
        finally:
            self._newest = around

    def are_just(self, inputs):
        """Whether there is one for each input, and none before them."""
        return inputs.keys() == self.inputs.keys() and not any(self._fed.values())

    def passed(self, inputs, batch_size):
        """What `feed` and `take` make of a batch that runs at once, where it `can_pass`."""
        taken, facts = {}, self._facts
        try:
            for name, data in inputs.items():
                batch = in_place(data, batch_size) or to_batch(data, batch_size, copy=not is_large(data))
                self._check(name, self.inputs[name], batch)
                taken[name] = batch
        except BaseException:
            self._facts = facts
            raise
        return taken if len(taken) == 1 else {name: taken[name] for name in self.inputs}

    def keep_rest(self):
        """Copies what was to be read at once, and no batch took."""
        borrowed, self._borrowed = self._borrowed, []
        # Mostly a batch took all that there was.
        if borrowed and any(self._fed.values()):
            for batch in borrowed:
                if any(batch in queue for queue in self._fed.values()):
                    batch.make_own()

    def must_wait(self):
        """Whether a batch that begins now waits for data, as an input wants it to."""
        return self._blocks and (bool(self.waiting) or not self.are_there())

    def are_there(self):
        """Whether every input has data for the next batch."""
        return all(
            self._fed.get(name) or declared["repeat_last"] and name in self._last or _has_more(declared)
            for name, declared in self.inputs.items()
        )

    def take(self, queue_depth):
        """The next batch of every input, by name; none is taken unless there are all. `queue_depth` is for the message
        where one has none."""
        taken = {}
        for name, declared in self.inputs.items():
            if "videos" in declared:
                continue
            queue = self._fed.get(name)
            if queue:
                taken[name] = queue[0]
            elif declared["repeat_last"] and name in self._last:
                taken[name] = self._last[name]
            else:
                raise RuntimeError(
                    f"There is no batch for the input `{name}`: feed it before each run, `{queue_depth}` times before "
                    "the first one, as the pipeline prepares batches ahead. (Attempted to peek the data batch that "
                    "doesn't exist.)"
                )
        for name, batch in taken.items():
            if queue := self._fed.get(name):
                queue.popleft()
                self._last[name] = batch
        return taken
