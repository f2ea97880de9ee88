"""Memory while a data set of many small samples is read: it stays where it was. A million of them:
`GESSO_MANY_SAMPLES=1000000 pytest -s tests/python/test_many_samples.py`."""

import io
import os
import struct
import tarfile

import numpy as np
import pytest
from gesso import Pipeline, fn, tfrecord

SAMPLES = int(os.environ.get("GESSO_MANY_SAMPLES", 20_000))
FILES, BATCH, LENGTH = 10, 500, 40
# What may come between a tenth of the samples and their end: noise of the allocator.
GROWTH_BYTES = 8 << 20
# What the list of samples may take for each.
PLACE_BYTES = 400


def memory():
    """Bytes of the process that are in no file."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("RssAnon"))
    return int(line.split()[1]) << 10


def numbers_of(batch):
    """Of each sample its number, which its first bytes are."""
    return (batch.as_array()[:, :8] - ord("0")) @ 10 ** np.arange(7, -1, -1)


def parts():
    """The samples of each file: their numbers."""
    return [range(part, SAMPLES, FILES) for part in range(FILES)]


def content(i):
    return f"{i:08}".encode() + bytes(LENGTH - 8)


def archives(folder):
    """Tar archives with a file of each sample, whose head is changed from one: `tarfile` would take minutes."""
    info = tarfile.TarInfo("00000000.bin")
    info.size = LENGTH
    head = info.tobuf(tarfile.USTAR_FORMAT)
    base = sum(head[:148]) + sum(head[156:]) + 8 * 32 - sum(b"00000000")
    paths = []
    for part, numbers in enumerate(parts()):
        paths.append(str(folder / f"{part}.tar"))
        with open(paths[-1], "wb", 1 << 20) as file:
            for i in numbers:
                name = f"{i:08}".encode()
                check = b"%06o\0 " % (base + sum(name))
                file.write(name + head[8:148] + check + head[156:] + content(i).ljust(512, b"\0"))
            file.write(bytes(1024))
    with tarfile.open(paths[0]) as archive:
        assert archive.extractfile(archive.next()).read() == content(0)
    return lambda: fn.readers.webdataset(paths=paths, ext=["bin"], random_shuffle=True, name="reader")


def records(folder):
    """TFRecord files with their indices."""
    paths, indices = [], []
    for part, numbers in enumerate(parts()):
        paths.append(str(folder / f"{part}"))
        indices.append(str(folder / f"{part}.idx"))
        index = io.StringIO()
        with open(paths[-1], "wb", 1 << 20) as file:
            for i in numbers:
                value = b"\x0a" + bytes([LENGTH + 2]) + b"\x0a" + bytes([LENGTH]) + content(i)
                entry = b"\x0a\x01a\x12" + bytes([len(value)]) + value
                features = b"\x0a" + bytes([len(entry)]) + entry
                record = b"\x0a" + bytes([len(features)]) + features
                index.write(f"{file.tell()} {len(record) + 16}\n")
                file.write(struct.pack("<QI", len(record), 0) + record + bytes(4))
        with open(indices[-1], "w") as file:
            file.write(index.getvalue())
    feature = {"a": tfrecord.FixedLenFeature((), tfrecord.string, "")}
    return lambda: fn.readers.tfrecord(
        path=paths, index_path=indices, features=feature, random_shuffle=True, name="reader"
    )["a"]


@pytest.mark.parametrize("kind", [archives, records])
def test_memory_stays_flat(kind, tmp_path):
    define = kind(tmp_path)
    before = memory()
    pipeline = Pipeline(BATCH, 2, None, seed=1)
    with pipeline:
        pipeline.set_outputs(define())
    pipeline.build()
    pipeline.run()
    seen, looks, listed = np.zeros(SAMPLES, bool), [], memory() - before
    # All samples are in the first epoch, but for those that the first batch had.
    for batch in range(1, SAMPLES // BATCH):
        (data,) = pipeline.run()
        seen[numbers_of(data)] = True
        if batch % (SAMPLES // BATCH // 10) == 0:
            looks.append(memory())
    assert seen.sum() == SAMPLES - BATCH
    grown = max(looks) - looks[0]
    print(
        f"{kind.__name__}: {SAMPLES:,} samples; opened {listed / 1e6:.1f} MB, then at most {grown / 1e6:.1f} MB more: "
        + ", ".join(f"{(look - before) / 1e6:.1f}" for look in looks)
    )
    assert listed < (32 << 20) + PLACE_BYTES * SAMPLES
    assert grown < GROWTH_BYTES
