"""`Compose`: transforms one behind the other as one pipeline; `at_once`, one transform of one picture or batch."""

import os

import torch
from PIL import Image

from .. import fn
from .._dynamic import plans
from .._pipeline_def import pipeline_def
from . import conversion

_NAME = "pictures"
BATCH_SIZE = 16
NUM_THREADS = max(1, (os.cpu_count() or 1) // 2)


def _behind(node, transforms, picture):
    for transform in transforms:
        node, picture = transform.apply(node, picture)
    return node


@pipeline_def(enable_conditionals=True, prefetch_queue_depth=1)
def _pipeline(transforms, picture, device):
    pictures = fn.external_source(name=_NAME, layout=picture.layout, dtype=picture.dtype, ndim=3, device=device)
    return _behind(pictures, transforms, picture)


class Compose:
    """Transforms one behind the other, as one pipeline.

    Called with a Pillow image gives an image; with a tensor `(channels, height, width)`, or with a batch of them, a
    tensor; unless a transform among them says otherwise. A `Compose` takes images or tensors, as the first call says.
    `batch_size`: the most pictures of a call. `settings`: more arguments of a pipeline, such as `seed`."""

    def __init__(self, op_list, batch_size=BATCH_SIZE, num_threads=NUM_THREADS, **settings):
        self.op_list, self.batch_size, self.num_threads = list(op_list), batch_size, num_threads
        self._settings, self._takes, self._pipelines = settings, None, {}
        self._returns = next((t.returns for t in reversed(self.op_list) if hasattr(t, "returns")), None)

    def __call__(self, data):
        """The picture, or pictures, behind the transforms."""
        batch, picture = conversion.batch_of(data)
        kind = Image.Image if picture.is_image else torch.Tensor
        self._takes = self._takes or kind
        if self._takes is not kind:
            raise TypeError(f"this `Compose` takes what it took first, a `{self._takes.__name__}`, found {type(data)}")
        pipeline = self._pipeline_for(picture, "gpu" if isinstance(batch, list) else "cpu")
        return conversion.result_of(pipeline.run(**{_NAME: batch})[0], data, self._returns)

    def _pipeline_for(self, picture, device):
        """Pictures of each kind have a pipeline of their own."""
        key = (picture, device)
        if key not in self._pipelines:
            on_gpu = device == "gpu" or any(transform.device == "gpu" for transform in self.op_list)
            settings = {"device_id": 0 if on_gpu else None, **self._settings}
            sizes = {"batch_size": self.batch_size, "num_threads": self.num_threads}
            self._pipelines[key] = _pipeline(self.op_list, picture, device, **sizes, **settings)
        return self._pipelines[key]


def at_once(transform, data):
    """What a transform that is not random makes of a picture or a batch; its plan is kept."""
    batch, picture = conversion.batch_of(data)
    if isinstance(batch, list):
        from .._dynamic.batch import as_batch

        batch = as_batch(batch, layout=picture.layout).evaluate()._storage
    fixed = (("transforms", (transform,)), ("picture", picture))
    device_id = 0 if transform.device == "gpu" else None
    return conversion.result_of(plans.run(_behind, [batch], {}, fixed, len(batch), device_id, NUM_THREADS)[0], data)
