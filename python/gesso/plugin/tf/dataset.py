"""`DALIDataset`: the batches of a pipeline as a `tf.data.Dataset`."""

import functools
import warnings

import tensorflow as tf

from ... import _context
from ..._native.engine import has_gpu
from . import passes

_NEEDS_INPUTS = "the pipeline has external sources: those are for `experimental.DALIDatasetWithInputs`"


def _promised(dtypes, shapes):
    """Types and shapes of the outputs as tuples; a shape is a tuple, or None where nothing is known of it."""
    if not isinstance(dtypes, tf.DType) and not (
        isinstance(dtypes, tuple) and all(isinstance(dtype, tf.DType) for dtype in dtypes)
    ):
        raise TypeError(
            _context.add_words(f"`output_dtypes`: expected a `tf.DType` or a tuple of them, found {dtypes!r}")
        )
    passes.check_types("output_dtypes", [dtypes] if isinstance(dtypes, tf.DType) else dtypes)
    if dtypes == ():
        raise ValueError("`output_dtypes` is empty: expected a type for each output")
    if isinstance(dtypes, tf.DType):
        return (dtypes,), (tf.TensorShape(shapes),)
    if shapes is None:
        shapes = (None,) * len(dtypes)
    if not isinstance(shapes, (tuple, list)) or len(shapes) != len(dtypes):
        count = len(shapes) if isinstance(shapes, (tuple, list)) else 1
        raise ValueError(
            _context.add_words(f"`output_shapes` is for {count} outputs, and `output_dtypes` for {len(dtypes)}")
        )
    return dtypes, tuple(tf.TensorShape(shape) for shape in shapes)


def _renamed(new, old, name):
    """What was given under the new or the old name of an argument."""
    if old is None:
        return new
    if new is not None:
        raise ValueError(_context.add_words(f"`{name}` is the old name of `output_{name}`, and both were given"))
    warnings.warn(f"`{name}` is the old name of `output_{name}`.", Warning, stacklevel=4)
    return tuple(old) if isinstance(old, list) else old


def _device_type():
    """`CPU` or `GPU`: where TensorFlow places what is made now; None if that is left open."""
    # An operator that is placed says it.
    name = tf.identity(False).device if tf.executing_eagerly() else tf.no_op().device
    return tf.DeviceSpec.from_string(name).device_type if name else None


def _check_place(pipeline, fails):
    """TensorFlow's device, which must be that of the outputs, or (unless `fails`) is copied to. Without a GPU
    all outputs are made on the CPU."""
    place = _device_type() or "CPU"
    for i, edge in enumerate(pipeline.runner.definition.declared(pipeline.runner.settings)[0]):
        own = "GPU" if edge[1] == "gpu" and has_gpu() else "CPU"
        if own == place:
            continue
        text = f"output `{i}` of the pipeline is on the {own}, and TensorFlow's device is the {place}"
        if fails:
            raise tf.errors.InternalError(None, None, _context.add_words(text))
        warnings.warn(f"{text}: it is copied.", UserWarning, stacklevel=5)
    return place


class _Batches(tf.data.Dataset):
    """What both kinds of data sets are. A new iterator begins anew."""

    def __init__(
        self,
        pipeline,
        output_dtypes=None,
        output_shapes=None,
        fail_on_device_mismatch=True,
        *,
        input_datasets=None,
        batch_size=1,
        num_threads=4,
        device_id=0,
        exec_separated=False,
        exec_dynamic=False,
        prefetch_queue_depth=2,
        cpu_prefetch_queue_depth=2,
        gpu_prefetch_queue_depth=2,
        dtypes=None,
        shapes=None,
    ):
        shapes = _renamed(output_shapes, shapes, "shapes")
        dtypes = _renamed(output_dtypes, dtypes, "dtypes")
        self._dtypes, self._shapes = _promised(dtypes, shapes)
        file = passes.serialized(pipeline)
        settings = {"batch_size": batch_size, "num_threads": num_threads, "device_id": device_id}
        settings["prefetch_queue_depth"] = gpu_prefetch_queue_depth if exec_separated else prefetch_queue_depth
        settings = passes.checked(settings)
        place = _check_place(pipeline, fail_on_device_mismatch)
        shaped = passes.Shaped(
            [dtype.as_numpy_dtype for dtype in self._dtypes],
            [None if shape.rank is None else tuple(shape.as_list()) for shape in self._shapes],
        )
        made = self._of_inputs(pipeline, input_datasets, functools.partial(passes.Pass, file, settings), shaped)
        if place == "GPU":
            made = made.apply(tf.data.experimental.copy_to_device("/gpu:0"))
        self._made = made
        super().__init__(made._variant_tensor)

    def _signature(self):
        return tuple(tf.TensorSpec(shape, dtype) for dtype, shape in zip(self._dtypes, self._shapes))

    def _of_inputs(self, pipeline, input_datasets, begin, shaped):
        return tf.data.Dataset.from_generator(
            functools.partial(passes.batches, begin, shaped), output_signature=self._signature()
        )

    def _inputs(self):
        return [self._made]

    @property
    def element_spec(self):
        """Types and shapes of a batch."""
        return self._made.element_spec


class DALIDataset(_Batches):
    """The batches of a pipeline as a `tf.data.Dataset`; each is a tuple of tensors. The pipeline is run from its file,
    so that each iterator begins anew.

    `output_dtypes`: a `tf.DType` for each output. `output_shapes`: shapes with None for what is not known; extents of 1
    that a shape lacks are left out of the batches. `fail_on_device_mismatch`: an error, and not a copy, where outputs
    are not on the device that TensorFlow works on. The rest are settings of the pipeline; `device_id=None` is the
    CPU."""

    def __init__(self, pipeline, output_dtypes=None, output_shapes=None, fail_on_device_mismatch=True, **settings):
        if "input_datasets" in settings:
            raise TypeError(
                _context.add_words("`input_datasets` is an argument of `experimental.DALIDatasetWithInputs` alone")
            )
        fed, groups = passes.inputs_of(pipeline)
        if fed or groups:
            raise ValueError(_context.add_words(_NEEDS_INPUTS))
        super().__init__(pipeline, output_dtypes, output_shapes, fail_on_device_mismatch, **settings)
