"""A program with types. `scripts/lib/typecheck.py` reads it with a type checker, for which a line with `type: ignore`
must be wrong."""

import ast

import numpy as np
from gesso import dynamic, fn, math, ops, pipeline_def, types
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


def halved(pictures: dynamic.Batch, rng: dynamic.random.RNG) -> list[tuple[int, ...]]:
    angles = dynamic.random.uniform(range=[-9.0, 9.0], batch_size=pictures.batch_size, rng=rng)
    turned: dynamic.Batch = dynamic.rotate(pictures, angle=angles, keep_size=True)
    first: dynamic.Tensor = turned.tensors[0]
    height, width, _ = first.shape
    small: dynamic.Batch = dynamic.resize(turned, size=[height // 2, width // 2]) / 2
    one: dynamic.Tensor = dynamic.cast(first[0:2] + 1, dtype=dynamic.float32)
    assert one.shape == (2, width, 3) and np.asarray(one).dtype == np.float32
    return small.shape


def test_operators_at_once_have_types():
    with dynamic.EvalMode.deferred, dynamic.EvalContext(num_threads=1):
        picture = dynamic.tensor(np.zeros((40, 60, 3), np.uint8), layout="HWC")
        assert halved(dynamic.batch([picture, picture]), dynamic.random.RNG(1)) == [(20, 30, 3)] * 2


def test_the_stub_of_dynamic_mode_has_its_names():
    from gesso import _stubs
    from gesso._dynamic import api

    tree = ast.parse(_stubs.make()["dynamic.pyi"])
    top = {name.name: name for name in tree.body if isinstance(name, (ast.ClassDef, ast.FunctionDef))}
    imported = {name.asname for one in tree.body if isinstance(one, ast.ImportFrom) for name in one.names}
    declared = {
        one.target.id for one in tree.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    assert not set(api.NAMES) - top.keys() - imported - declared
    for kind in (api.Tensor, api.Batch, api.ExternalSource):
        body = [*top[kind.__name__].body, *top["_Numbers"].body]
        members = {one.name for one in body if isinstance(one, ast.FunctionDef)}
        if kind is api.ExternalSource:
            members -= {"device", "dtype", "layout", "ndim", "__len__"}
        assert not [name for name in members if not hasattr(kind, name)]
        assert not [name for name in dir(kind) if not name.startswith("_") and name not in members]


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
    dynamic.resize(dynamic.tensor([1]), sizes=[1])  # type: ignore[call-overload]
    dynamic.rezise(dynamic.tensor([1]))  # type: ignore[attr-defined]
    types.UINT9  # type: ignore[attr-defined]  # noqa: B018
