"""A program with types. `scripts/lib/typecheck.py` reads it with a type checker, for which a line with `type: ignore`
must be wrong."""

import numpy as np
from gesso import fn, math, ops, pipeline_def, types
from gesso.data_node import DataNode


@pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
def half() -> DataNode:
    numbers = fn.external_source(
        source=lambda: [np.array([1, 4], np.float32), np.array([9, 16], np.float32)], dtype=types.FLOAT
    )
    roots: DataNode = math.sqrt(numbers) * 2 / (1 + numbers[0] * 0 + 1)
    resized = ops.Cast(dtype=types.INT32)(roots)
    return fn.cast(-resized, dtype=types.INT16, device="cpu")


def test_what_a_checker_takes_runs():
    (batch,) = half().run()
    assert [array.tolist() for array in map(np.array, batch)] == [[-1, -2], [-3, -4]]


def test_enumerations_are_written_out_whole():
    for kind in (types.DALIDataType, types.DALIImageType, types.DALIInterpType):
        for name, member in kind.__members__.items():
            assert getattr(types, name) is member


def wrong(images: DataNode) -> None:
    fn.resize(images, sizes=[1, 2])  # type: ignore[call-arg]
    fn.resize(images, size="large")  # type: ignore[arg-type]
    fn.rezise(images)  # type: ignore[attr-defined]
    ops.Resize(sizes=[1, 2])  # type: ignore[call-arg]
    math.root(images)  # type: ignore[attr-defined]
    types.UINT9  # type: ignore[attr-defined]  # noqa: B018
