"""`Settings`: how a pipeline is to run, as its author asked and as files have it."""

import operator
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

from .._tensors.enums import DALIDataType
from . import call_site
from .constants import CPU_ONLY_DEVICE_ID

# Bits of `executor_type`, and of `executor_flags`, in files.
_MODES = _PIPELINED, _ASYNC, _SEPARATED, _DYNAMIC = 1, 2, 4, 8
_AFFINITY = 1
_CONCURRENCY_MASK, _STREAM_MASK = 0xE, 0x70
_DEFAULT_CONCURRENCY = 4
_DEFAULT_DEPTH = 2
_INTEGERS = ("batch_size", "num_threads", "device_id", "seed", "bytes_per_sample", "gpu_multiprocessors")


class StreamPolicy(Enum):
    """How DALI gives streams to operators. Kept in files; Gesso needs none."""

    UNSPECIFIED = 0
    SINGLE = 16
    PER_BACKEND = 32
    PER_OPERATOR = 48


class OperatorConcurrency(Enum):
    """Which operators DALI runs at the same time. Kept in files."""

    UNSPECIFIED = 0
    NONE = 2
    BACKEND = 4
    FULL = 6


# Where users find them, for messages and pickles.
StreamPolicy.__module__ = OperatorConcurrency.__module__ = "gesso.pipeline"


@dataclass(frozen=True)
class Settings:
    """The arguments of `Pipeline` with their defaults, and what follows from them.

    It must not know graphs, data, epochs or what runs them: it is made of values and holds nothing that changes."""

    batch_size: int | None = None
    num_threads: int | None = None
    device_id: int | None = None
    seed: int | None = None
    exec_pipelined: bool = True
    prefetch_queue_depth: int | dict = _DEFAULT_DEPTH
    exec_async: bool = True
    bytes_per_sample: int = 0
    set_affinity: bool = False
    max_streams: int | None = None
    default_cuda_stream_priority: int | None = None
    _: KW_ONLY
    enable_memory_stats: bool = False
    enable_checkpointing: bool = False
    checkpoint: bytes | None = None
    py_num_workers: int = 1
    py_start_method: str = "fork"
    py_callback_pickler: object = None
    output_dtype: object = None
    output_ndim: object = None
    output_layout: object = None
    exec_dynamic: bool | None = None
    experimental_exec_dynamic: bool | None = None
    stream_policy: StreamPolicy | None = None
    concurrency: OperatorConcurrency | None = None
    on_error: str = "raise"
    gpu_multiprocessors: int | None = None
    deterministic: bool = False
    formats: Any = None

    def checked(self):
        """These settings as numbers and texts; raises for what cannot be."""
        if self.experimental_exec_dynamic is not None:
            call_site.warn("experimental_exec_dynamic is deprecated, please use exec_dynamic instead", Warning)
        for name in ("default_cuda_stream_priority", "max_streams"):
            if getattr(self, name) is not None:
                call_site.warn(f"`{name}` does nothing any more.", Warning)
        changed = {name: _integer(name, getattr(self, name)) for name in _INTEGERS}
        if changed["seed"] is not None and changed["seed"] < 0:
            call_site.warn(
                "a negative `seed` is an old way to say that there is none: leave it out, or give None.", UserWarning
            )
            changed["seed"] = None
        if self.on_error not in ("raise", "skip", "mark"):
            raise ValueError(f'`on_error` must be "raise", "skip" or "mark", got {self.on_error!r}.')
        if self.py_callback_pickler is not None and self.py_start_method == "fork":
            raise ValueError("`py_callback_pickler` is given, and workers are started by fork, which pickles nothing.")
        count = changed["gpu_multiprocessors"]
        if count is not None and count < 1:
            raise ValueError(f"`gpu_multiprocessors` must be at least 1, or None for all, got {count}.")
        if self.formats is not None and not isinstance(self.formats, str):
            names = list(self.formats)
            if not all(isinstance(name, str) for name in names):
                raise TypeError(f"`formats` must be a text or a list of texts, got {self.formats!r}.")
            changed["formats"] = ",".join(names)
        changed["deterministic"] = bool(self.deterministic)
        self._check_depth()
        _check_output_declarations(self.output_dtype, self.output_ndim, self.output_layout)
        dynamic = self.exec_dynamic if self.experimental_exec_dynamic is None else self.experimental_exec_dynamic
        if dynamic is None and self.exec_pipelined and self.exec_async and not self.exec_separated:
            dynamic = True
        return replace(self, **changed, exec_dynamic=dynamic)

    def _check_depth(self):
        depth = self.prefetch_queue_depth
        if self.exec_separated and not self.exec_async:
            raise ValueError("separate queues (`prefetch_queue_depth` as a dictionary) need `exec_async`")
        if not self.exec_separated and type(depth) is not int:
            raise TypeError(
                f"`prefetch_queue_depth` is {depth!r}, expected an int, or a dictionary with `cpu_size` and `gpu_size`"
            )
        if min(self.cpu_queue_size, self.gpu_queue_size) < 1:
            raise ValueError(f"`prefetch_queue_depth` must be at least 1, got {depth}.")

    # --- what follows from them

    exec_separated = property(lambda self: isinstance(self.prefetch_queue_depth, dict))
    cpu_queue_size = property(lambda self: self._depth_of("cpu_size"))
    gpu_queue_size = property(lambda self: self._depth_of("gpu_size"))
    # The number of the GPU, or None.
    gpu = property(lambda self: None if self.device_id == CPU_ONLY_DEVICE_ID else self.device_id)

    @cached_property
    def queue_depth(self):
        """Batches that are prepared ahead."""
        return max(self.cpu_queue_size, self.gpu_queue_size)

    @cached_property
    def runs_ahead(self):
        """Whether batches are made in another thread than the caller's."""
        return self.exec_async and self.exec_pipelined

    @cached_property
    def prepares_ahead(self):
        """Whether they are made before they are asked for."""
        return self.runs_ahead and self.queue_depth > 1

    def _depth_of(self, key):
        depth: Any = self.prefetch_queue_depth
        return depth[key] if self.exec_separated else depth

    def require_exec_dynamic(self, message):
        """Raises unless the dynamic executor was asked for."""
        if not self.exec_dynamic:
            needed = "`exec_async`, `exec_pipelined` and one `prefetch_queue_depth` for CPU and GPU"
            raise RuntimeError(f"{message}the dynamic executor (`exec_dynamic=True`, with {needed}).")

    # --- files

    @staticmethod
    def checked_for_file(given):
        """Arguments of `Pipeline` that replace those of a file, with integers as such."""
        given = {name: _integer(name, value) if name in _INTEGERS else value for name, value in given.items()}
        depth = given.get("prefetch_queue_depth")
        for one in depth.values() if isinstance(depth, dict) else [depth]:
            if one is not None and (type(one) is not int or one < 1):
                raise ValueError(f"`prefetch_queue_depth`: expected a number of at least 1, found {depth!r}")
        return given

    def fields(self):
        """The fields that a description of a file has for them."""
        modes = (self.exec_pipelined, self.exec_async, self.exec_separated, self.exec_dynamic)
        flags = _AFFINITY if self.set_affinity else 0
        if self.stream_policy is not None:
            flags |= self.stream_policy.value & _STREAM_MASK
        concurrency = _DEFAULT_CONCURRENCY if self.concurrency is None else self.concurrency.value & _CONCURRENCY_MASK
        return {
            "max_batch_size": self.batch_size,
            "num_threads": self.num_threads,
            "device_id": self.device_id,
            "seed": self.seed,
            "enable_checkpointing": bool(self.enable_checkpointing),
            "executor_type": sum(bit for is_on, bit in zip(modes, _MODES) if is_on),
            "executor_flags": flags | concurrency,
            "prefetch_queue_depth_cpu": self.cpu_queue_size,
            "prefetch_queue_depth_gpu": self.gpu_queue_size,
            "bytes_per_sample_hint": self.bytes_per_sample,
        }

    @staticmethod
    def changed_fields(given):
        """The fields of a file that arguments of `Pipeline` replace."""
        names = ("batch_size", "num_threads", "seed", "enable_checkpointing")
        changed = {name: given[name] for name in names if given.get(name) is not None}
        if changed.get("seed", 0) < 0:
            del changed["seed"]
        return {{"batch_size": "max_batch_size"}.get(name, name): value for name, value in changed.items()}

    def of_file(self, fields, given):
        """These settings with the fields of a file, which `changed_fields` has changed; what of `given` has no field,
        or may say it in another way, comes first."""
        bits, flags = fields.get("executor_type") or 0, fields.get("executor_flags") or 0
        own: dict[str, Any] = {
            "exec_pipelined": bool(bits & _PIPELINED),
            "exec_async": bool(bits & _ASYNC),
            "exec_dynamic": bool(bits & _DYNAMIC),
            "set_affinity": bool(flags & _AFFINITY),
            "stream_policy": StreamPolicy(flags & _STREAM_MASK),
            "concurrency": OperatorConcurrency(flags & _CONCURRENCY_MASK),
        }
        own.update({name: given[name] for name in own if given.get(name) is not None})
        return replace(
            self,
            batch_size=fields["max_batch_size"],
            num_threads=fields["num_threads"],
            seed=fields["seed"],
            enable_checkpointing=bool(fields.get("enable_checkpointing")),
            device_id=given.get("device_id", fields["device_id"]),
            checkpoint=given.get("checkpoint", self.checkpoint),
            prefetch_queue_depth=_depth_of_file(fields, bool(bits & _SEPARATED), given.get("prefetch_queue_depth")),
            **own,
        )


# As messages of arguments that are not there have it.
Settings.__init__.__qualname__ = "Pipeline.__init__"


def _depth_of_file(fields, is_separated, given):
    """`prefetch_queue_depth` as `given` for a file, or as its fields have it."""
    cpu, gpu = (fields.get(f"prefetch_queue_depth_{place}") or _DEFAULT_DEPTH for place in ("cpu", "gpu"))
    if isinstance(given, dict):
        if "cpu" not in given and "gpu" not in given:
            raise ValueError("`prefetch_queue_depth` is a dictionary without the key `cpu` or `gpu`")
        cpu, gpu = given.get("cpu", given.get("gpu")), given.get("gpu", given.get("cpu"))
    elif given is not None:
        cpu = gpu = given
    return {"cpu_size": cpu, "gpu_size": gpu} if is_separated or isinstance(given, dict) else cpu


def _integer(name, value):
    """An argument that is an integer or None; TypeError for others."""
    if value is None:
        return value
    try:
        # A truth value is a number, too, but files tell them apart.
        return int(operator.index(value))
    except TypeError:
        found = f"{value!r} of type `{type(value).__name__}`"
        raise TypeError(f"Argument `{name}` of the pipeline: expected an integer, found {found}.") from None


def _check_output_declarations(dtype, ndim, layout):
    """Raises unless the declarations are what they can be."""
    for name, declared, kind, words in (
        ("output_dtype", dtype, DALIDataType, "a data type"),
        ("output_ndim", ndim, int, "a number"),
        ("output_layout", layout, str, "a text"),
    ):
        is_list = isinstance(declared, (list, tuple))
        colon, where = ("", " in the list") if is_list else (":", "")
        value: Any
        for value in declared if is_list else (declared,):
            if not isinstance(value, (kind, type(None))):
                raise TypeError(
                    f"`{name}` must be either {words}, a list of them with None where it is not known, or None. "
                    f"Found type{colon} {type(value)}{where}."
                )
            if kind is DALIDataType and value == DALIDataType.NO_TYPE:
                raise ValueError(
                    f"`output_dtype` can't be a types.NO_TYPE. Found{'' if is_list else ' value:'} {value}{where}."
                )
            if kind is int and value is not None and int(value) < 0:
                raise ValueError(f"`output_ndim` must be non-negative. Found{colon} {value}{where}.")
