"""The part of `Pipeline` that takes over what a serialized file says."""

import json

from .._readers import features
from . import runner


class Loading:
    """Becoming the pipeline of a file."""

    def _load(self, serialized, settings):
        self._description = json.loads(runner.describe(serialized))
        described = self._description
        seed = settings.get("seed")
        changed = {"max_batch_size": settings.get("batch_size"), "seed": seed if seed is None or seed >= 0 else None}
        changed["num_threads"] = settings.get("num_threads")
        changed["enable_checkpointing"] = settings.get("enable_checkpointing")
        changed = {key: value for key, value in changed.items() if value is not None}
        if changed:
            described.update(changed)
            serialized = features.rewritten(serialized, described)
        self._serialized = self._bytes = serialized
        self._max_batch_size = described["max_batch_size"]
        self._num_threads = described["num_threads"]
        self._seed = described["seed"]
        self._enable_checkpointing = bool(described.get("enable_checkpointing"))
        self._checkpoint = settings.get("checkpoint", self._checkpoint)
        self._device_id = settings.get("device_id", described["device_id"])
        self._take_executor(described, settings)

    def _take_declared(self, outputs):
        """What a file says of its outputs."""
        self._output_dtype = [runner.dtype_named(output["dtype"]) for output in outputs]
        self._output_ndim = [output["ndim"] for output in outputs]

    def _take_executor(self, described, settings):
        bits = described.get("executor_type") or 0
        depth = settings.get("prefetch_queue_depth")
        own = (described.get("prefetch_queue_depth_cpu") or 2, described.get("prefetch_queue_depth_gpu") or 2)
        if isinstance(depth, dict):
            if "cpu" not in depth and "gpu" not in depth:
                raise ValueError("`prefetch_queue_depth` is a dictionary without the key `cpu` or `gpu`")
            own = (depth.get("cpu", depth.get("gpu")), depth.get("gpu", depth.get("cpu")))
            bits |= 4
        elif depth is not None:
            own = (depth, depth)
        flags = [settings.get(name) for name in ("exec_pipelined", "exec_async", "exec_dynamic")]
        read = [bool(bits & bit) if flag is None else flag for flag, bit in zip(flags, (1, 2, 8))]
        self._exec_pipelined, self._exec_async, self._exec_dynamic = read
        self._exec_separated = bool(bits & 4)
        self._cpu_queue_size, self._gpu_queue_size = own
        self._take_wishes(described.get("executor_flags") or 0, settings)
        self._prefetch_queue_depth = {"cpu_size": own[0], "gpu_size": own[1]} if self._exec_separated else own[0]
