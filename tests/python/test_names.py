"""`nvidia.dali` as another name, the command, and automatic augmentation."""

import subprocess
import sys

import numpy as np
from gesso import Pipeline, fn, pipeline_def, types
from gesso.auto_aug import auto_augment, rand_augment, trivial_augment


def python(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300, **options)


def test_the_alias_stands_for_the_package():
    program = """
import gesso.as_dali
import gesso, nvidia.dali, nvidia.dali.fn as fn
import nvidia.dali.backend, nvidia.dali.plugin.base_iterator, nvidia.dali.plugin.triton
from nvidia.dali import pipeline_def, types
from nvidia.dali.fn import transforms
from nvidia.dali.auto_aug import rand_augment
from nvidia.dali.tensors import TensorListCPU
assert fn is gesso.fn and types.FLOAT is gesso.types.FLOAT
try:
    fn.cast()
except ValueError as error:
    assert "nvidia.dali.fn.cast" in str(error), error
"""
    done = python("-c", program)
    assert done.returncode == 0, done.stderr


def test_a_script_runs_under_the_alias(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys, nvidia.dali.fn as fn\nprint(sys.argv[1], fn.__name__)\n")
    done = python("-m", "gesso.as_dali", str(script), "x")
    assert done.stdout.split() == ["x", "gesso.fn"], done.stderr


def test_a_program_becomes_a_file(tmp_path):
    script = tmp_path / "model.py"
    script.write_text(
        "from gesso import fn, pipeline_def\n"
        "from gesso.triton import autoserialize\n"
        "@autoserialize\n"
        "@pipeline_def(batch_size=8, num_threads=2)\n"
        "def model():\n"
        "    return fn.external_source(name='x') + 1\n"
    )
    done = python("-m", "gesso", "serialize", str(script), "-o", str(tmp_path / "model.dali"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model.dali").stat().st_size > 50


def augmented(augment):
    @pipeline_def(batch_size=6, num_threads=2, seed=11, enable_conditionals=True)
    def define():
        image = types.Constant(np.arange(20 * 20 * 3, dtype=np.uint8).reshape(20, 20, 3), device="cpu", layout="HWC")
        return augment(image)

    first, second = (define().run()[0].as_array() for _ in range(2))
    np.testing.assert_array_equal(first, second)
    return first


def test_automatic_augmentations_are_the_same_for_the_same_seed():
    for augment in (
        lambda image: rand_augment.rand_augment(image, n=2, m=15),
        lambda image: auto_augment.auto_augment(image, shape=[20, 20]),
        lambda image: trivial_augment.trivial_augment_wide(image),
    ):
        images = augmented(augment)
        assert images.shape == (6, 20, 20, 3)
        assert any((images[0] != image).any() for image in images[1:])


def test_an_iterator_counts_samples():
    from gesso.plugin.base_iterator import BaseIterator, LastBatchPolicy

    class Iterator(BaseIterator):
        def __next__(self):
            (out,) = self._get_outputs()[0]
            self._schedule_runs()
            self._advance_and_check_drop_last()
            return out

    @pipeline_def(batch_size=4, num_threads=1)
    def define():
        return fn.random.uniform()

    assert len(list(Iterator(define(), size=10))) == 3
    assert len(list(Iterator(define(), size=10, last_batch_policy=LastBatchPolicy.DROP))) == 2


def test_operators_on_arrays_at_once():
    from gesso import dynamic

    image = np.zeros((4, 6, 3), np.uint8)
    assert dynamic.resize(image, size=[2, 2]).shape == (2, 2, 3)
    turned = dynamic.rotate([image, image], angle=[np.float32(90), np.float32(0)])
    assert [array.shape for array in turned] == [(6, 4, 3), (4, 6, 3)]


def test_pipelines_show_themselves(tmp_path, capsys):
    @pipeline_def(batch_size=2, num_threads=1)
    def define(interp=types.INTERP_LINEAR):
        return fn.resize(
            fn.external_source(name="image"), size=[2, 2], interp_type=interp, dtype=types.FLOAT, name="small"
        )

    pipeline = define()
    pipeline.show()
    assert "small" in capsys.readouterr().out
    written = Pipeline.deserialize(define(interp=types.INTERP_CUBIC).serialize())
    for shown in (pipeline, written):
        shown.show()
        text = capsys.readouterr().out
        assert "dtype=FLOAT" in text and "interp_type=INTERP_" in text, text
    assert "<td>small</td>" in pipeline._repr_html_()
    pipeline.save_graph_to_dot_file(str(tmp_path / "graph.dot"))
    assert '"image" -> "small"' in (tmp_path / "graph.dot").read_text()


def test_names_with_quotes_do_not_break_pictures(tmp_path):
    @pipeline_def(batch_size=2, num_threads=1)
    def define():
        return fn.resize(fn.external_source(name='a"b<i>'), size=[2, 2])

    pipeline = define()
    pipeline.save_graph_to_dot_file(str(tmp_path / "graph.dot"))
    assert r'"a\"b<i>" -> ' in (tmp_path / "graph.dot").read_text()
    assert "a&quot;b&lt;i&gt;" in pipeline._repr_html_()


def test_stubs_are_python():
    from gesso import _stubs

    for path, text in _stubs.make().items():
        compile(text, path, "exec")


def test_programs_for_dali_get_its_words_and_others_do_not():
    program = """
import sys
if sys.argv[1:]:
    import gesso.as_dali
    from nvidia.dali import fn, pipeline_def
else:
    from gesso import fn, pipeline_def
@pipeline_def(batch_size=1, num_threads=1)
def define():
    return fn.random.uniform() & 1
try:
    define().run()
except RuntimeError as error:
    print(error)
"""
    words = "Inputs to bitwise operator `bitand` must be of integral type."
    theirs, own = python("-c", program, "as_dali").stdout, python("-c", program).stdout
    assert words in theirs and words not in own and own.strip() and theirs.count("\n") > own.count("\n")
