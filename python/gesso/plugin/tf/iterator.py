"""`DALIIterator`: the batches of a pipeline as tensors of a graph, another batch at each run."""

import threading
import weakref

import numpy as np
import tensorflow as tf

from ...pipeline import Pipeline
from . import passes

# Pipeline > its pass, where there is no graph whose operator holds it.
_eager = weakref.WeakKeyDictionary()


def _as_sparse(output):
    """Indices, values and dense shape of a batch: an index has the number of the sample first."""
    arrays = [np.asarray(array) for array in output.as_cpu().arrays]
    places = [
        np.concatenate([np.full((array.size, 1), i), np.indices(array.shape).reshape(array.ndim, -1).T], axis=1)
        for i, array in enumerate(arrays)
    ]
    extents = [max(sizes) for sizes in zip(*(array.shape for array in arrays))]
    values = np.concatenate([array.reshape(-1) for array in arrays])
    return np.concatenate(places).astype(np.int64), values, np.array([len(arrays), *extents], np.int64)


def DALIIteratorWrapper(
    pipeline=None,
    serialized_pipeline=None,
    sparse=(),
    shapes=(),
    dtypes=(),
    batch_size=-1,
    prefetch_queue_depth=2,
    num_threads=None,
    device_id=None,
    exec_dynamic=None,
    **_,
):
    """A list of tensors, one for each output of a pipeline; in a graph another batch at each run, else at each call.

    `pipeline`, or `serialized_pipeline`, its bytes. `dtypes` and `shapes`: those of the outputs; of a shape that is
    empty nothing is known. `sparse`: whether an output becomes a `tf.SparseTensor`. `batch_size`: without it the first
    extent of the first shape."""
    if batch_size == -1:
        if not shapes:
            raise ValueError("`shapes` is empty: its first extent, or `batch_size`, says how many samples a batch has")
        batch_size = int(np.atleast_1d(shapes[0])[0])
    settings = {"batch_size": batch_size, "device_id": device_id}
    if num_threads is not None:
        settings["num_threads"] = num_threads
    if isinstance(prefetch_queue_depth, dict):
        if not prefetch_queue_depth:
            raise ValueError("`prefetch_queue_depth` is empty: expected a number, or numbers by the place of operators")
        prefetch_queue_depth = max(prefetch_queue_depth.values())
    for dtype in dtypes:
        if not isinstance(dtype, tf.DType):
            raise TypeError(f"`dtypes`: expected a `tf.DType` for each output, found {dtype!r}")
    passes.check_types("dtypes", dtypes)
    settings["prefetch_queue_depth"] = prefetch_queue_depth
    file = serialized_pipeline if serialized_pipeline is not None else passes.serialized(pipeline)
    groups = passes.inputs_of(pipeline)[1] if isinstance(pipeline, Pipeline) else ()
    is_sparse = [i < len(sparse) and bool(sparse[i]) for i in range(len(dtypes))]
    wanted = [_shape(shapes[i]) if i < len(shapes) else None for i in range(len(dtypes))]
    if tf.executing_eagerly() and pipeline is not None:
        if pipeline not in _eager:
            _eager[pipeline] = passes.Pass(file, settings, groups)
        made = _eager[pipeline]
    else:
        made = passes.Pass(file, settings, groups)
    lock = threading.Lock()

    def step():
        with lock:
            outputs = made.next()
        if len(outputs) != len(dtypes):
            raise ValueError(f"the pipeline has {len(outputs)} outputs, and {len(dtypes)} types were given")
        found = []
        for i, output in enumerate(outputs):
            if is_sparse[i]:
                indices, values, shape = _as_sparse(output)
                found += [indices, values.astype(dtypes[i].as_numpy_dtype, copy=False), shape]
            else:
                array = passes.dense(i, output).astype(dtypes[i].as_numpy_dtype, copy=False)
                shape = passes.fitted(array.shape, wanted[i])
                if shape is None:
                    raise ValueError(f"output `{i}` has the shape {array.shape}, and {wanted[i]} was promised")
                found.append(array.reshape(shape))
        return found

    kinds = [
        kind for i, dtype in enumerate(dtypes) for kind in ([tf.int64, dtype, tf.int64] if is_sparse[i] else [dtype])
    ]
    rest, tensors = iter(tf.numpy_function(step, [], kinds)), []
    for i in range(len(dtypes)):
        if is_sparse[i]:
            tensors.append(tf.SparseTensor(next(rest), next(rest), next(rest)))
            continue
        tensor = next(rest)
        tensor.set_shape(wanted[i])
        tensors.append(tensor)
    return tensors


def _shape(value):
    """A shape as a tuple, or None if nothing is known of it."""
    if isinstance(value, (int, np.integer)):
        return (int(value),)
    value = tuple(value)
    return tuple(None if extent in (None, -1) else int(extent) for extent in value) or None


def DALIIterator():
    """The function that makes tensors of a pipeline: `DALIIterator()(pipeline=..., shapes=..., dtypes=...)`."""
    return DALIIteratorWrapper


DALIRawIterator = DALIIterator
