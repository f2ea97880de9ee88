"""`jax_function`: a function of JAX's arrays as an operator."""

import functools

import jax
import numpy as np

from ..._authoring.operator import choose_device
from ..._callbacks.python_function import PythonFunction


class JaxFunction(PythonFunction):
    """Calls `function` with the batch of each input as one `jax.Array`, whose first dimension counts samples; it
    returns such arrays."""

    schema_name = "JaxFunction"
    _by_batch = True

    def __init__(self, function, *, sharding=None, preserve=True, **keywords):
        if sharding is not None and not isinstance(sharding, jax.sharding.Sharding):
            raise ValueError(f"`sharding` is a `{type(sharding).__name__}`, expected a `jax.sharding.Sharding`")
        if sharding is not None and jax.local_device_count() != 1:
            raise NotImplementedError(
                f"`sharding` in a process with {jax.local_device_count()} devices: expected one, and others in other processes"
            )
        super().__init__(function, **keywords)
        self._sharding, self._preserve = sharding, preserve

    @property
    def keep(self):
        """It may do more than return, unless its author says otherwise."""
        return self._preserve

    def run_python(self, node, inputs, batch_size):
        """The batches that the function makes of `inputs`."""
        outputs = super().run_python(node, inputs, batch_size)
        for i, (output, batch) in enumerate(zip(outputs, inputs)):
            # A layout goes on, where the author gave none and it fits.
            if (
                i >= len(self.layouts)
                and output.arrays
                and batch.arrays
                and output.arrays[0].ndim == batch.arrays[0].ndim
            ):
                output.layout = batch.layout
        return outputs

    def known_layouts(self):
        """Those that the author gave: the others depend on what the function returns."""
        return self.layouts

    def _of_batch(self, inputs):
        results = self.function(*(self._array(batch.arrays) for batch in inputs))
        if results is None:
            return None
        results = tuple(results) if isinstance(results, (tuple, list)) else (results,)
        return self._check(tuple(self._samples(array) for array in results))

    def _array(self, arrays):
        if len({array.shape for array in arrays}) > 1:
            raise RuntimeError(
                f"samples of {len({array.shape for array in arrays})} shapes cannot be one array: resize, crop or pad them before"
            )
        array = jax.numpy.asarray(np.stack(arrays))
        if self._sharding is None:
            return array
        mesh = getattr(self._sharding, "mesh", None)
        devices = mesh.size if mesh is not None else len(self._sharding.device_set)
        shape = (devices * array.shape[0], *array.shape[1:])
        return jax.make_array_from_single_device_arrays(shape, self._sharding, [array])

    @staticmethod
    def _samples(array):
        shards = getattr(array, "addressable_shards", ())
        if len(shards) > 1:
            raise ValueError(f"the function returned an array of {len(shards)} shards, expected one")
        return list(np.asarray(shards[0].data if shards else array))


def jax_function(function=None, num_outputs=1, output_layouts=None, sharding=None, device=None, preserve=True):
    """Makes a function of `jax.Array`s one of `DataNode`s, for definitions of pipelines; also as a decorator.

    The function gets whole batches, whose samples have one shape. num_outputs: how many arrays it returns; 0: None.
    output_layouts: those of the samples; absent: an output has the layout of the input at its place, if they have as
    many dimensions. sharding: the arrays are global ones. device: where the outputs are, "cpu" or "gpu"; absent: where
    the inputs are. preserve: whether it runs though nobody reads its outputs."""

    def decorate(function):
        @functools.wraps(function)
        def in_pipeline(*inputs):
            operator = JaxFunction(
                function,
                num_outputs=num_outputs,
                output_layouts=output_layouts,
                sharding=sharding,
                preserve=preserve,
                device=device or choose_device(inputs),
                _module=__name__,
                _display_name="jax_function",
            )
            return operator(*inputs)

        return in_pipeline

    return decorate if function is None else decorate(function)
