"""Capture: what a loop does with each batch of a source is done ahead with the next ones, in one plan and by a thread
of its own.

The first turn of the loop only records. From then on each batch that is read ahead has the recorded calls made for it.
A call of the loop gets such a result if operator, arguments, inputs and random numbers are the same as they were
recorded; else it runs as it does without capture. So results never depend on what was recorded."""

from collections import deque
from dataclasses import dataclass

from .._threads.background import Ahead
from .._threads.fork import Process
from . import batching, expressions, modes
from .expressions import POSITION
from .invocation import Invocation, InvocationResult

# Batches that are prepared ahead.
_DEPTH = 2
# Calls of one loop that are recorded.
_MOST_CALLS = 1024
# Turns of the loop after which a call that was not made any more is not made ahead either.
_FORGET = 8


@dataclass(frozen=True, slots=True)
class _Call:
    """A call as it is recorded. An input is (call, output), or (None, output of the source); `draws`: the generator,
    and how many numbers were drawn from it before in this turn."""

    operator: object
    inputs: tuple
    named: tuple
    is_batch: bool
    batch_size: int | None
    draws: tuple | None


class _Turn:
    """One turn of the loop: a batch of the source, and the recorded calls that were made for it ahead."""

    def __init__(self, loop, values, ahead):
        self.values, self.ahead = values, ahead
        self._loop, self._numbers = loop, {id(value): (None, i) for i, value in enumerate(values)}
        # Calls of this turn, in their order > number of the recorded one; those that are as they were made ahead.
        self.calls, self._same = {}, set()
        self.starts = {rng: rng.drawn for rng in loop.periods}

    def _place(self, value):
        """What a tensor or batch is in the recorded calls, or None."""
        if value._result is not None and value._result.invocation in self.calls:
            return self.calls[value._result.invocation], value._result.index
        return self._numbers.get(id(value))

    def notices(self, call, has_external_inputs):
        """Whether a call follows from the source alone. It gets its results if they were made ahead."""
        inputs = [self._place(value) for value in call.inputs if batching.is_ours(value)]
        named = [(name, self._place(value)) for name, value in call.args.items() if name != POSITION]
        is_known = len(inputs) == len(call.inputs) and None not in inputs and all(at is not None for _, at in named)
        number = None
        if is_known and call.step is not None and not has_external_inputs:
            number = self._loop.number_of(call, tuple(inputs), tuple(named), self._draws(call))
        if number is None:
            for value in call.tensors():
                if value._result is not None and value._result.invocation in self.calls:
                    value._result.invocation.is_asked = True
            return False
        self.calls[call] = number
        made = self.ahead.get(number)
        read = [at for at, _ in (*inputs, *(at for _, at in named)) if at is not None]
        if made is not None and made.position == call.args.get(POSITION) and self._same.issuperset(read):
            self._same.add(number)
            if made.results is not None:
                call.take(made.results)
        return True

    def _draws(self, call):
        """The generator of a random call, and how many of its words were drawn in this turn before."""
        if POSITION not in call.args:
            return None
        position = call.args[POSITION]
        return position.rng, position.drawn - self.starts.setdefault(position.rng, position.drawn)


@dataclass(slots=True)
class _Made:
    """What a recorded call gave ahead, if it was asked for, and where its random numbers began."""

    position: int | None
    results: tuple | None


class Loop:
    """A loop over the batches of a source. `produce` gives the batches of one turn, a list."""

    def __init__(self, produce):
        self._produce, self._turns, self._thread, self._process = produce, deque(), Ahead(), Process()
        self._numbers, self._calls, self._count = {}, [], 0
        # Number of a call whose results are asked for > the turn that it was made in last.
        self._asked = {}
        # Generator > words that a turn draws.
        self.periods = {}

    def number_of(self, call, inputs, named, draws):
        """The number of a call among the recorded ones, or None if there are too many."""
        step = call.step
        key = (step.function, step.fixed, step.device_id, inputs, named, call.is_batch, call.batch_size, draws)
        number = self._numbers.get(key)
        if number is None and len(self._calls) < _MOST_CALLS:
            number = self._numbers[key] = len(self._calls)
            self._calls.append(_Call(call.operator, inputs, named, call.is_batch, call.batch_size, draws))
        return number

    def turns(self, context):
        """The batches of the source, one turn after the other; StopIteration of the source ends them."""
        context = context._snapshot()
        while True:
            self._process.check("A loop with `capture=True`")
            while len(self._turns) < (_DEPTH if self._count else 1):
                self._turns.append(self._begin(context))
            try:
                values, ahead = self._turns.popleft().result()
            except StopIteration:
                return
            turn = _Turn(self, values, ahead)
            modes.set_loop(turn)
            try:
                yield values
            finally:
                if modes.current_loop() is turn:
                    modes.set_loop(None)
                self._learn(turn)

    def _learn(self, turn):
        self._count += 1
        self.periods = {rng: rng.drawn - start for rng, start in turn.starts.items()}
        for call, number in turn.calls.items():
            if call.is_asked or number in self._asked:
                self._asked[number] = self._count
        self._asked = {number: last for number, last in self._asked.items() if self._count - last < _FORGET}

    def _begin(self, context):
        """Begins a turn that so many others are before; a future of its batches and what was made ahead."""
        wanted = self._needed()
        positions, skipped = {}, len(self._turns)
        for number in wanted:
            if self._calls[number].draws is not None:
                rng, offset = self._calls[number].draws
                positions[number] = rng.position_behind(skipped * self.periods.get(rng, 0) + offset)
        return self._thread.submit(_run_ahead, self._produce, self._calls, wanted, set(self._asked), positions, context)

    def _needed(self):
        """Numbers of the calls that were asked for and of those that they need, in their order."""
        needed, waiting = set(), list(self._asked)
        while waiting:
            number = waiting.pop()
            if number not in needed:
                needed.add(number)
                call = self._calls[number]
                waiting.extend(at for at, _ in (*call.inputs, *(at for _, at in call.named)) if at is not None)
        return sorted(needed)


def _run_ahead(produce, calls, wanted, asked, positions, context):
    """The batches of a source, and the calls `wanted` made for them, of which `asked` are run."""
    values, made = produce(), {}

    def value_at(place):
        call, output = place
        if call is None:
            return values[output]
        return batching.KINDS[made[call].is_batch]._of_result(InvocationResult(made[call], output))

    for number in wanted:
        call = calls[number]
        args = {name: value_at(place) for name, place in call.named}
        if call.draws is not None:
            args[POSITION] = positions[number]
        inputs = [value_at(place) for place in call.inputs]
        made[number] = Invocation(call.operator, None, inputs, args, call.is_batch, call.batch_size)
        made[number].is_to_wait(context)
    try:
        expressions.run_together([made[number] for number in wanted if number in asked], context)
    except Exception:
        # The loop makes the call that fails again, and names its line.
        pass
    return values, {
        number: _Made(positions.get(number), None if call.is_waiting else call.values())
        for number, call in made.items()
    }
