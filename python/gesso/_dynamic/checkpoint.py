"""`Checkpoint`: states of readers and random generators under names, saved together."""

import glob
import json
import os
import re
import string
from typing import NamedTuple

_VERSION = 2
_AUTOMATIC = "__op_"


class Entry(NamedTuple):
    """A state, and the class that it belongs to, if that is known."""

    state: object
    type_name: str | None = None


def _kind(operator):
    return type(operator).__qualname__


class Checkpoint:
    """Give it what has a state, with `register`; then `collect` and `save`. In a new process: `load`, and `register`
    the same again, which gives each its state back."""

    def __init__(self):
        self.clear()

    def clear(self):
        """Forgets all."""
        self._operators, self._states, self._dirty = {}, {}, set()
        self._is_complete = self._is_loaded = False
        self._number = None

    is_complete = property(lambda self: self._is_complete, doc="Whether states were collected.")
    is_loaded = property(lambda self: self._is_loaded, doc="Whether states come from a file or a text.")
    names = property(lambda self: tuple(self._operators), doc="Names of what was registered.")

    def __len__(self):
        return len(self._operators)

    def __contains__(self, name):
        return str(name) in self._operators

    def register(self, op, name=None):
        """Adds a reader or a generator, and applies the state that waits for it; its name, made up if none is given."""
        if not hasattr(op, "get_state") or not hasattr(op, "set_state"):
            raise TypeError(f"expected a reader or a generator, which have a state; found a `{_kind(op)}`")
        enable = getattr(op, "_enable_checkpointing", None)
        if enable is not None:
            enable()
        known = next((key for key, other in self._operators.items() if other is op), None)
        if name is None:
            return self._apply(known) if known is not None else self._add(f"{_AUTOMATIC}{len(self._operators)}", op)
        if not name or name.startswith(_AUTOMATIC):
            raise ValueError(
                f"the name of an operator: expected a text that does not begin with `{_AUTOMATIC}`, found {name!r}"
            )
        if known not in (None, name):
            raise RuntimeError(f"the operator is registered already, under the name {known!r}")
        other = self._operators.get(name)
        if other is None:
            return self._add(name, op)
        if type(other) is not type(op):
            raise TypeError(
                f"Cannot replace operator {name!r} of type {_kind(other)!r} with an operator of type {_kind(op)!r}."
            )
        self._operators[name] = op
        return self._apply(name)

    def _add(self, name, op):
        if self._is_complete:
            raise RuntimeError(f"the checkpoint was completed by `collect`: {name!r} is new; call `clear` first")
        if self._is_loaded and name not in self._states:
            raise KeyError(f"Loaded checkpoint has no state for {name!r}; it has {sorted(self._states)}.")
        self._operators[name] = op
        return self._apply(name)

    def _apply(self, name):
        if name in self._dirty:
            entry, op = self._states[name], self._operators[name]
            if entry.type_name not in (None, _kind(op)):
                raise TypeError(
                    f"Type mismatch for operator {name!r}: the checkpoint has the state of a {entry.type_name!r}, the operator is a {_kind(op)!r}."
                )
            op.set_state(entry.state)
            self._dirty.discard(name)
        return name

    def get_state(self, name):
        """The state under a name; None if there is none yet."""
        if str(name) not in self._operators:
            raise KeyError(f"no operator is registered under {name!r}")
        entry = self._states.get(str(name))
        return None if entry is None else entry.state

    def set_state(self, name, value, op_type=None):
        """Sets the state under a name; `restore`, or `register` for that name, applies it. `op_type`: the class that it
        belongs to, or its name."""
        if self._is_complete and str(name) not in self._operators:
            raise KeyError(f"no operator is registered under {name!r}")
        if op_type is not None and not isinstance(op_type, (str, type)):
            raise TypeError(f"`op_type` must be a class or its name, found {op_type!r}")
        self._states[str(name)] = Entry(value, op_type.__qualname__ if isinstance(op_type, type) else op_type)
        self._dirty.add(str(name))

    def _refuse_others(self):
        others = sorted(self._states.keys() - self._operators.keys())
        if others:
            raise RuntimeError(f"there are states with no corresponding registered ops: {others}")

    def collect(self):
        """Asks all that is registered for its state."""
        self._refuse_others()
        self._states = {name: Entry(op.get_state(cuda_stream=None), _kind(op)) for name, op in self._operators.items()}
        self._dirty, self._is_complete, self._is_loaded = set(), True, False

    def restore(self):
        """Gives all that is registered its state back."""
        if not self._states:
            return
        self._refuse_others()
        missing = sorted(self._operators.keys() - self._states.keys())
        if missing:
            raise RuntimeError(f"the checkpoint is incomplete: there is no state for {missing}")
        for name in sorted(self._dirty):
            self._apply(name)

    def serialize(self):
        """The states as a text."""
        if not self._states:
            raise RuntimeError("the checkpoint is empty: call `collect` or `set_state` first")
        states = {name: {"state": str(entry.state), "type": entry.type_name} for name, entry in self._states.items()}
        return json.dumps({"version": _VERSION, "states": states})

    def deserialize(self, data):
        """Takes the states of a text of `serialize`."""
        try:
            payload = json.loads(data)
        except ValueError as error:
            raise ValueError(f"Invalid checkpoint payload: expected JSON, found {data[:80]!r}: {error}") from None
        if not isinstance(payload, dict) or not isinstance(payload.get("states"), dict):
            raise ValueError("Invalid checkpoint payload: expected an object with `version` and `states`")
        if payload.get("version") != _VERSION:
            raise ValueError(f"the checkpoint has version {payload.get('version')!r}, expected {_VERSION}")
        states = {}
        for name, entry in payload["states"].items():
            if not isinstance(entry, dict) or "state" not in entry:
                raise ValueError(f"Invalid checkpoint entry for {name!r}: expected an object with `state` and `type`")
            kind = entry.get("type")
            if kind is not None and not isinstance(kind, str):
                raise ValueError(f"Invalid `type` for entry {name!r}: expected a text, found {kind!r}")
            states[name] = Entry(str(entry["state"]), kind)
        self._states, self._dirty = states, set(states)
        self._is_complete, self._is_loaded = False, True

    def save(self, filename):
        """Writes the states to a new file; its name. `filename` has the place `{seq}` for a number that no file has."""
        if self._number is None:
            self._number = max((number for number, _ in _files(filename)), default=-1) + 1
        else:
            _files(filename)
        while os.path.exists(path := filename.format(seq=self._number)):
            self._number += 1
        text = self.serialize()
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
        self._number += 1
        return path

    def load(self, filename):
        """Takes the states of the file with the highest number; its name."""
        found = _files(filename)
        if not found:
            raise FileNotFoundError(f"no file is called as {filename!r} says")
        _, path = max(found)
        with open(path, encoding="utf-8") as file:
            self.deserialize(file.read())
        return path


def _files(pattern):
    """(number, path) of the files whose names are `pattern` with a number in the place of `{seq}`."""
    parts = list(string.Formatter().parse(pattern))
    fields = [field for _, field, _, _ in parts if field is not None]
    if fields != ["seq"]:
        raise ValueError(f"the name of a checkpoint's file: expected one place `{{seq}}` in it, found {pattern!r}")
    expression = "".join(re.escape(text) + ("" if field is None else r"(\d+)") for text, field, _, _ in parts)
    search = "".join(glob.escape(text) + ("" if field is None else "*") for text, field, _, _ in parts)
    matches = ((re.fullmatch(expression, path), path) for path in glob.iglob(search))
    return [(int(match.group(1)), path) for match, path in matches if match]
