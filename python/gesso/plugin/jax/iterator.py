"""An iterator over pipelines whose batches are dictionaries of `jax.Array`s."""

import functools

import jax
import jax.numpy as jnp

from ... import _context
from ..._pipeline_def import pipeline_def
from ..base_iterator import BaseIterator, LastBatchPolicy, _distinct

_DEFAULT_THREADS = 4


def _array(batch):
    return jax.dlpack.from_dlpack(batch.as_tensor())


class DALIGenericIterator(BaseIterator):
    """Batches as dictionaries: `output_map` names the outputs.

    With several pipelines the parts are one array, split over devices as `sharding` says; without it they are stacked.
    """

    def __init__(
        self,
        pipelines,
        output_map,
        size=-1,
        reader_name=None,
        auto_reset=False,
        last_batch_padded=False,
        last_batch_policy=LastBatchPolicy.FILL,
        prepare_first_batch=True,
        sharding=None,
        pmap_compatible=None,
    ):
        assert sharding is None or isinstance(sharding, jax.sharding.Sharding), (
            "`sharding` is a `jax.sharding.Sharding`"
        )
        if last_batch_policy == LastBatchPolicy.PARTIAL:
            raise AssertionError(
                _context.add_words("arrays of JAX have one shape: `last_batch_policy` cannot be PARTIAL")
            )
        self.output_map = _distinct(output_map)
        self._sharding = sharding
        self._pmap_compatible = bool(pmap_compatible)
        super().__init__(
            pipelines,
            size,
            reader_name,
            auto_reset,
            None,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch=prepare_first_batch,
        )
        self._take_first_batch()

    def _convert(self, outputs):
        return {
            name: self._joined([_array(pipe_outputs[i]) for pipe_outputs in outputs])
            for i, name in enumerate(self.output_map)
        }

    def _joined(self, parts):
        if self._num_gpus == 1 and self._sharding is None and not self._pmap_compatible:
            return parts[0]
        assert all(part.shape == parts[0].shape for part in parts), (
            f"the shards differ in shape: {[part.shape for part in parts]}"
        )
        if self._sharding is not None:
            mesh = getattr(self._sharding, "mesh", None)
            count = mesh.size if mesh is not None else len(self._sharding.device_set)
            shape = (count * parts[0].shape[0], *parts[0].shape[1:])
            return jax.make_array_from_single_device_arrays(shape, self._sharding, parts)
        return jnp.stack(parts)


def data_iterator(
    pipeline_fn=None,
    output_map=(),
    size=-1,
    reader_name=None,
    auto_reset=False,
    last_batch_padded=False,
    last_batch_policy=LastBatchPolicy.FILL,
    prepare_first_batch=True,
    sharding=None,
    devices=None,
    pmap_compatible=None,
):
    """Makes a definition of a pipeline one of an iterator: calling it makes pipeline and iterator.

    With `sharding` or `devices` there is a pipeline for each device; its definition takes `shard_id` and `num_shards`.
    """
    return decorator(DALIGenericIterator, **locals())


def decorator(iterator, pipeline_fn, output_map, sharding, devices, pmap_compatible, **options):
    """`data_iterator` for a class of iterators."""
    if sharding is not None and devices is not None:
        raise ValueError("`sharding` and `devices` are two ways to say one thing: give one")

    def decorate(function):
        @functools.wraps(function)
        def create_iterator(*args, checkpoints=None, **settings):
            define = pipeline_def(function)
            settings.setdefault("num_threads", _DEFAULT_THREADS)
            targets = devices or (jax.local_devices() if sharding is not None else [None])
            if checkpoints and len(checkpoints) != len(targets):
                raise RuntimeError(f"{len(checkpoints)} checkpoints for {len(targets)} devices, expected as many")
            if targets != [None]:
                settings["batch_size"] //= len(jax.devices())
            pipelines = []
            for i, device in enumerate(targets):
                own = dict(settings, checkpoint=checkpoints[i] if checkpoints else None)
                if device is not None:
                    own.update(device_id=device.id, shard_id=device.id, num_shards=len(targets))
                pipelines.append(define(*args, **own))
            pmap = pmap_compatible if devices is None else True
            return iterator(pipelines, output_map, sharding=sharding, pmap_compatible=pmap, **options)

        return create_iterator

    return decorate(pipeline_fn) if pipeline_fn else decorate
