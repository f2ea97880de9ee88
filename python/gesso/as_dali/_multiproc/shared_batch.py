"""`nvidia.dali._multiproc.shared_batch`: batches in shared memory, as our workers send them."""

from ..._workers.shared import Chunk, read, write


class BufShmChunk(Chunk):
    """Shared memory with a name of its owner's."""

    shm_chunk_id = None

    @classmethod
    def allocate(cls, shm_chunk_id, initial_chunk_size):
        """New memory."""
        chunk = cls.create(initial_chunk_size)
        chunk.shm_chunk_id = shm_chunk_id
        return chunk


class SharedBatchWriter:
    """Writes a batch into a chunk, which grows if need be."""

    def __init__(self, shm_chunk, batch):
        self.written = write(shm_chunk, batch)


class SharedBatchMeta:
    """What a reader needs to know of a batch beside the chunk."""

    def __init__(self, written):
        self.written = written

    @classmethod
    def from_writer(cls, writer):
        """Of what was written."""
        return cls(writer.written)


def deserialize_batch(buffer, meta):
    """The batch; its arrays are the chunk's memory."""
    return read(buffer, meta.written)
