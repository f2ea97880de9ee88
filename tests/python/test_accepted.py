"""What DALI takes that is easily forgotten: one value for all axes, enumerations as tensors, functions ahead of
branches; and where samples come from."""

import numpy as np
import pytest
from gesso import fn, pipeline_def, types

IMAGES = [np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8) for shape in ((20, 30, 3), (24, 18, 3))]


def run(define, **settings):
    """Its outputs."""
    pipeline = pipeline_def(batch_size=2, num_threads=1, device_id=None, **settings)(define)()
    pipeline.build()
    return pipeline.run()


def images():
    return fn.external_source(lambda: IMAGES, layout="HWC")


@pytest.mark.parametrize(
    "size", [12, [12], lambda: fn.external_source(lambda: [np.float32(12)] * 2)], ids=["number", "list", "tensor"]
)
@pytest.mark.parametrize("mode", ["default", "not_smaller"])
def test_one_size_is_that_of_all_axes(size, mode):
    given = run(lambda: fn.resize(images(), size=size() if callable(size) else size, mode=mode))[0]
    each = run(lambda: fn.resize(images(), size=[12, 12], mode=mode))[0]
    assert [given.at(i).tolist() for i in range(2)] == [each.at(i).tolist() for i in range(2)]


@pytest.mark.parametrize("ahead", ["function", "file"])
def test_arithmetic_in_a_branch_behind_the_interpreter(ahead, tmp_path):
    (tmp_path / "x").write_bytes(bytes(range(4)))
    path = np.frombuffer(str(tmp_path / "x").encode(), np.uint8)

    def define():
        if ahead == "function":
            x = fn.python_function(
                fn.external_source(lambda: [np.arange(4, dtype=np.uint8)] * 2), function=lambda array: array
            )
        else:
            x = fn.io.file.read(fn.external_source(lambda: [path] * 2))
        factor = fn.external_source(lambda: [np.int32(2), np.int32(3)])
        if fn.external_source(lambda: [np.array(True), np.array(False)]):
            x = fn.cast(x, dtype=types.INT32) * (factor * 2 + 1)
        else:
            x = fn.cast(x, dtype=types.INT32)
        return x

    (out,) = run(define, enable_conditionals=True)
    assert [out.at(i).tolist() for i in range(2)] == [[0, 5, 10, 15], [0, 1, 2, 3]]


def test_enumerations_are_tensors():
    def define():
        x = images()
        nearest = types.Constant(types.INTERP_NN)
        either = fn.random.choice([types.INTERP_NN, types.INTERP_NN])
        return tuple(fn.resize(x, size=[7, 9], interp_type=how) for how in (types.INTERP_NN, nearest, either))

    plain, constant, chosen = run(define)
    assert all((plain.at(i) == other.at(i)).all() for i in range(2) for other in (constant, chosen))


def test_a_step_is_a_tensor():
    (out,) = run(lambda: images()[:, :: fn.external_source(lambda: [np.int32(2), np.int32(-1)])])
    assert (out.at(0) == IMAGES[0][:, ::2]).all() and (out.at(1) == IMAGES[1][:, ::-1]).all()


@pytest.mark.parametrize("start, stop, step", [(6, 0, 2), (3, 1, 2), (3, 2, 3), (0, 0, 2), (0, 6, -2)])
def test_an_empty_range_has_no_elements(start, stop, step):
    (out,) = run(lambda: images()[:, start:stop:step])
    assert [out.at(i).shape for i in range(2)] == [(20, 0, 3), (24, 0, 3)]


def texts(batch):
    """The texts of a `get_property`."""
    return [bytes(batch.at(i)).decode() for i in range(2)]


@pytest.mark.parametrize("inside", [False, True], ids=["library", "interpreter"])
def test_samples_say_where_they_come_from(tmp_path, inside):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.jpg").write_bytes(name.encode() * 3)

    def define():
        files, labels = fn.readers.file(file_root=str(tmp_path))
        if inside:
            files = fn.python_function(files, function=lambda array: array)
        double = fn.stack(files, files)
        swapped = fn.permute_batch(files, indices=[1, 0])
        return (
            files,
            labels,
            double,
            fn.get_property(double, key="source_info"),
            fn.get_property(swapped, key="source_info"),
        )

    files, labels, double, property_of, swapped = run(define)
    expected = ["a/a.jpg", "b/b.jpg"]
    assert [sample.source_info() for sample in files] == expected == [sample.source_info() for sample in double]
    assert texts(property_of) == expected and texts(swapped) == expected[::-1]
    assert [sample.source_info() for sample in labels] == ["", ""]


@pytest.mark.parametrize("inside", [False, True], ids=["library", "interpreter"])
def test_a_source_is_the_path_as_it_was_given(tmp_path, inside):
    names = [str(tmp_path / "a.jpg"), "b.jpg"]
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).write_bytes(b"data")
    listed = tmp_path / "list.txt"
    listed.write_text(f"{names[0]} 0\n{names[1]} 1\n")

    def define():
        given = fn.readers.file(files=names, file_root=str(tmp_path))[0], fn.readers.file(file_list=str(listed))[0]
        return tuple(fn.python_function(files, function=lambda array: array) if inside else files for files in given)

    for files in run(define):
        assert [sample.source_info() for sample in files] == names


def test_different_sources_are_none(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.npy").write_bytes(b"")
        np.save(tmp_path / f"{name}.npy", np.zeros(3))

    def define():
        first = fn.readers.numpy(file_root=str(tmp_path), files=["a.npy", "b.npy"])
        other = fn.readers.numpy(file_root=str(tmp_path), files=["b.npy", "a.npy"])
        found = fn.readers.numpy(file_root=str(tmp_path))
        return first + first, first + other, found

    same, mixed, found = run(define)
    assert [sample.source_info() for sample in same] == ["a.npy", "b.npy"]
    assert [sample.source_info() for sample in mixed] == ["", ""]
    assert [sample.source_info() for sample in found] == ["./a.npy", "./b.npy"]


@pytest.mark.parametrize(
    "dtype", [np.float32, np.dtype("float32"), np.dtype("float32").type, types.FLOAT, int(types.FLOAT)]
)
def test_element_types_of_numpy(dtype):
    cast, normalized, fed = run(
        lambda: (
            fn.cast(images(), dtype=dtype),
            fn.crop_mirror_normalize(images(), dtype=dtype),
            fn.constant(fdata=[1.0], dtype=dtype),
        )
    )
    assert cast.dtype == normalized.dtype == fed.dtype == types.FLOAT
    given = run(lambda: fn.external_source(lambda: [np.float32(1)] * 2, dtype=dtype))[0]
    assert given.dtype == types.FLOAT


@pytest.mark.parametrize("dtype", [float, "float32", np.str_, np.dtype("complex64")])
def test_what_is_no_element_type(dtype):
    with pytest.raises((TypeError, ValueError), match="types.DALIDataType"):
        run(lambda: fn.cast(images(), dtype=dtype))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
def test_bytes_are_a_sample(kind):
    (out,) = run(lambda: fn.external_source(lambda: [kind(b"abc"), kind(b"de")]))
    assert [out.at(i).tobytes() for i in range(2)] == [b"abc", b"de"] and out.dtype == types.UINT8
    (out,) = run(lambda: fn.external_source(lambda info: kind(b"abc"), batch=False))
    assert out.at(1).tobytes() == b"abc"


def test_the_bytes_of_one_sample_are_no_batch():
    data = b"x" * 100_000
    with pytest.raises(RuntimeError, match=r"the 100000 bytes of one sample. A batch of it is `\[data\]`") as caught:
        run(lambda: fn.external_source(lambda: data))
    assert len(str(caught.value)) < 2000


def test_functions_of_numpy():
    def define():
        x = fn.cast(images(), dtype=types.FLOAT)
        return (
            np.sqrt(x),
            np.add(x, 1),
            np.float32(2) * x,
            np.array([1, 2, 3], np.float32) * x,
            np.maximum(3, x),
            np.arctan2(x, x + 1),
        )

    outs = run(define)
    for i, image in enumerate(IMAGES):
        x = image.astype(np.float32)
        expected = np.sqrt(x), x + 1, 2 * x, np.array([1, 2, 3]) * x, np.maximum(3, x), np.arctan2(x, x + 1)
        assert all(np.allclose(out.at(i), array) for out, array in zip(outs, expected))


@pytest.mark.parametrize(
    "wrong, instead",
    [
        (np.mean, "gesso.fn.reductions.mean"),
        (np.std, "gesso.fn.reductions.std_dev"),
        (lambda x: np.clip(x, 0, 1), "gesso.math.clamp"),
        (lambda x: np.stack([x, x]), "gesso.fn.stack"),
        (np.fft.fft, "gesso.fn.python_function"),
        (np.array, "gesso.fn.python_function"),
        (np.signbit, "gesso.fn.python_function"),
        (np.add.reduce, "gesso.fn.python_function"),
    ],
)
def test_functions_of_numpy_that_need_data_say_what_to_use(wrong, instead):
    with pytest.raises(TypeError, match=f"numpy's `.*` cannot take a `DataNode`.*`{instead}"):
        run(lambda: wrong(images()))


def test_a_fraction_for_a_whole_number_is_cut_with_a_warning():
    with pytest.warns(UserWarning, match="2.5 stands for a whole number and is cut to 2"):
        (out,) = run(lambda: fn.random.uniform(shape=[2.5]))
    assert out.at(0).shape == (2,)


def test_a_truth_value_as_a_number_of_the_pipeline():
    @pipeline_def(num_threads=1)
    def define():
        return fn.random.uniform(range=[0, 1], shape=3)

    first, second = (define(batch_size=size, seed=seed).run()[0].as_array() for size, seed in ((True, True), (1, 1)))
    np.testing.assert_array_equal(first, second)
