"""Expressions: calls that wait for each other become one plan, in which the library makes one operator of several, such
as decoding and resizing. Which calls go together is decided here; `plans` runs them."""

import functools
from dataclasses import dataclass

from . import batching, plans

# Calls of one plan. Longer expressions, such as a loop that adds, become several.
MOST_CALLS = 64
# The argument of invocations that says where random numbers begin.
POSITION = "_position"


@dataclass(frozen=True, slots=True)
class Step:
    """How a call is a part of a plan: a function of nodes with its fixed arguments (pairs), the number of its GPU or
    None, and whether it draws random numbers."""

    function: object
    fixed: tuple = ()
    device_id: int | None = None
    is_random: bool = False


def source_of(value):
    """The call that must run before a tensor or batch is there; None if it is there."""
    while value._storage is None:
        if value._result is not None:
            call = value._result.invocation
            return call if call.is_waiting else None
        value = value._batch
    return None


class _Form:
    """Calls that need each other, without their data: for each a function, fixed arguments, inputs and named inputs. An
    input is (call, output), or (None, number) for what is there before."""

    def __init__(self, calls):
        self._calls, self._functions = calls, {}
        # Calls whose results were asked for behind a run that did not keep them: the next one does.
        self.wanted = set()

    def function(self, kept):
        """The function of nodes that gives the outputs of the calls `kept`."""
        found = self._functions.get(kept)
        if found is None:
            found = self._functions[kept] = functools.partial(self._of_nodes, kept)
        return found

    def _of_nodes(self, kept, *leaves):
        made = []
        take = lambda at: leaves[at[1]] if at[0] is None else made[at[0]][at[1]]
        for function, fixed, inputs, named in self._calls:
            found = function(*map(take, inputs), **{name: take(at) for name, at in named}, **dict(fixed))
            made.append(tuple(found) if isinstance(found, (list, tuple)) else (found,))
        return [node for i in kept for node in made[i]]


@functools.lru_cache(maxsize=plans.KEPT)
def _form(calls):
    return _Form(calls)


class Expression:
    """What one plan runs for a call that waits, the first of `roots`, and for those of the others that fit: `calls` in
    their order. `before`: calls that they need, and that run in other plans."""

    def __init__(self, *roots):
        self.calls, self.before, self._root, self._found = [], [], roots[0], set()
        self._device_id, self._position = None, None
        self._is_joinable = self._root.step is not None and self._root.batch_size != 0 and self._admits(self._root)
        self._asked = {self._root}
        self._add(self._root)
        for root in roots[1:]:
            if root in self._found or self._joins(root):
                self._asked.add(root)
                if root not in self._found:
                    self._add(root)

    def _add(self, call):
        """Puts a call behind those that it needs."""
        self._found.add(call)
        if call.within is not None:
            form, number = call.within
            form.wanted.add(number)
        for value in call.tensors():
            source = source_of(value)
            if source is None or source in self._found:
                continue
            if value._result is not None and self._joins(source):
                self._add(source)
            else:
                self.before.append(source)
        self.calls.append(call)

    def _joins(self, call):
        if not self._is_joinable or call.step is None or len(self._found) >= MOST_CALLS:
            return False
        root = self._root
        return (call.is_batch, call.batch_size) == (root.is_batch, root.batch_size) and self._admits(call)

    def _admits(self, call):
        """Whether a plan can have a call beside those that are there, for its GPU and its random numbers."""
        step = call.step
        if step.device_id is not None and self._device_id not in (None, step.device_id):
            return False
        if step.is_random:
            # A plan has one place in the random numbers. What reads nothing has nothing to be joined with.
            if self._position is not None or call is not self._root and not call.inputs:
                return False
            self._position = call.args[POSITION]
        self._device_id = self._device_id if step.device_id is None else step.device_id
        return True

    def run(self, context):
        """Gives results to the roots, and to the calls whose results others wait for."""
        places, leaves = {call: i for i, call in enumerate(self.calls)}, {}

        def place(value):
            if value._storage is None and value._result is not None and value._result.invocation in places:
                return places[value._result.invocation], value._result.index
            return None, leaves.setdefault(id(value), (len(leaves), value))[0]

        form = _form(tuple([self._described(call, place) for call in self.calls]))
        root = self._root
        is_kept = lambda i, call: call in self._asked or i in form.wanted or call.is_awaited(places)
        kept = tuple([i for i, call in enumerate(self.calls) if is_kept(i, call)])
        size = root.batch_size if root.is_batch else None
        batches = [batching.batch_storage(value, size) for _, value in leaves.values()]
        device_id, threads = self._device_id, context.num_threads
        made = iter(plans.run(form.function(kept), batches, {}, (), size or 1, device_id, threads, self._position))
        for i, call in enumerate(self.calls):
            if i in kept:
                call.take(batching.results([next(made) for _ in range(len(call))], size))
            else:
                call.within = form, i

    @staticmethod
    def _described(call, place):
        named = tuple([(name, place(value)) for name, value in call.args.items() if name != POSITION])
        return call.step.function, call.step.fixed, tuple([place(value) for value in call.inputs]), named


def run_together(calls, context):
    """Runs calls, in one plan as far as they fit."""
    while waiting := [call for call in calls if call.is_waiting]:
        expression = Expression(*waiting)
        for call in expression.before:
            call.run(context)
        if not expression.before:
            expression.run(context)
