"""Nodes of `torchdata.nodes`: readers, functions of one value of a dictionary, and the way to tensors of PyTorch's."""

import torchdata.nodes

__all__ = ["DictMapper", "Reader", "ToTorch"]


class _Node(torchdata.nodes.BaseNode):
    """Base of the nodes. They begin an epoch anew and cannot go on in the middle of one."""

    def get_state(self):
        """Nothing: epochs are begun anew."""
        return {}


class Reader(_Node):
    """Dictionaries of a reader's outputs. `reader_type` is its class; `output_names` are the keys, by default `data`
    and `label` of a reader with two outputs; other arguments are the reader's."""

    def __init__(self, reader_type, *, batch_size, output_names=None, **arguments):
        super().__init__()
        if batch_size is not None:
            arguments.setdefault("max_batch_size", batch_size)
        self._reader, self._size, self._epoch = reader_type(batch_size=batch_size, **arguments), batch_size, None
        count = self._reader._infer_num_outputs()
        names = ("data", "label") if output_names is None else tuple(output_names)
        if len(names) != count:
            raise ValueError(f"the reader has {count} outputs, and there are {len(names)} names for them: {names}")
        self._names = names

    def next(self):
        """The next batch, a dictionary."""
        if self._epoch is None:
            raise RuntimeError("`next` was called before `reset`")
        return dict(zip(self._names, next(self._epoch)))

    def reset(self, initial_state=None):
        """Begins the next epoch."""
        if initial_state is not None:
            raise NotImplementedError("a reader's node cannot go on in the middle of an epoch")
        super().reset(initial_state)
        self._epoch = self._reader.next_epoch(batch_size=self._size)

    def get_metadata(self):
        """What the reader says of its data."""
        return self._reader.get_metadata(self._size)


class _Behind(_Node):
    """A node that reads another one."""

    def __init__(self, source):
        super().__init__()
        self._source = source

    def reset(self, initial_state=None):
        """Begins the next epoch."""
        super().reset(initial_state)
        self._source.reset(initial_state)


class DictMapper(_Behind):
    """The dictionaries of `source`, with `map_fn` of the value under `key`."""

    def __init__(self, source, map_fn, key="data"):
        super().__init__(source)
        self._function, self._key = map_fn, key

    def next(self):
        """The next dictionary."""
        values = dict(self._source.next())
        values[self._key] = self._function(values[self._key])
        return values


class ToTorch(_Behind):
    """The values of the dictionaries of `source` as tensors of PyTorch's; all on the GPU if one is there. What is
    given is written already: `output_stream` needs no waiting."""

    def __init__(self, source, output_stream=None):
        super().__init__(source)

    def next(self):
        """The next tuple of tensors."""
        values = self._source.next()
        numbers = {value.device.device_id for value in values.values()} - {None}
        if len(numbers) > 1:
            raise ValueError(f"the values lie on the GPUs {sorted(numbers)}, expected one of them")
        for number in numbers:
            values = {key: value.gpu(number) for key, value in values.items()}
        return tuple(value.torch() for value in values.values())
