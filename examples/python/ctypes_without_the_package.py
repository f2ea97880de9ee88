"""Runs a serialized pipeline on image files by ctypes, and shows its outputs as numpy arrays that share the library's
memory. For programs that must not depend on the Python package, which else does all of this: `import gesso`.

    GESSO_LIBRARY=target/release/libtriton_gesso.so python3 examples/python/ctypes_without_the_package.py \\
        model.dali a.jpg b.jpg

Needs numpy, no DALI and no server. The pipeline's one input takes encoded images.
"""

import ctypes
import json
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_size_t, c_void_p
from pathlib import Path

import numpy as np

OK = 0
UINT8 = 0
CPU = 0


class Sample(ctypes.Structure):
    """gesso_sample"""

    _fields_ = [("struct_size", c_size_t), ("data", c_void_p), ("shape", POINTER(c_int64)), ("ndim", c_size_t)]


class Input(ctypes.Structure):
    """gesso_input"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("dtype", c_int32),
        ("device", c_int32),
        ("samples", POINTER(Sample)),
        ("layout", c_char_p),
    ]


class GessoError(RuntimeError):
    """A call failed; the text is the library's."""


class Tensor:
    """An output of one sample, which numpy and others take by DLPack without a copy."""

    def __init__(self, managed):
        self.managed = managed

    def __dlpack_device__(self):
        return (1, 0)  # host memory

    def __dlpack__(self, **_):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [c_void_p, c_char_p, c_void_p]
        # Who takes the tensor renames the capsule and frees the tensor.
        capsule, self.managed = new(self.managed, b"dltensor", None), None
        return capsule


class Pipeline:
    """A pipeline with one instance on host threads."""

    def __init__(self, path, library=None):
        self.library = ctypes.CDLL(library or os.environ.get("GESSO_LIBRARY", "libtriton_gesso.so"))
        self.library.gesso_last_error.restype = c_char_p
        self.library.gesso_result_dlpack.argtypes = [c_void_p, c_size_t, c_size_t, POINTER(c_void_p)]
        for name in ("gesso_pipeline_free", "gesso_instance_free", "gesso_result_free", "gesso_string_free"):
            getattr(self.library, name).argtypes = [c_void_p]
        serialized = Path(path).read_bytes()
        text = c_void_p()
        self.call("gesso_describe", serialized, c_size_t(len(serialized)), byref(text))
        self.description = json.loads(ctypes.string_at(text))
        self.library.gesso_string_free(text)
        self.pipeline, self.instance = c_void_p(), c_void_p()
        self.call("gesso_pipeline_load", serialized, c_size_t(len(serialized)), CPU, byref(self.pipeline))
        self.call("gesso_instance_create", self.pipeline, None, byref(self.instance))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.gesso_instance_free(self.instance)
        self.library.gesso_pipeline_free(self.pipeline)

    def call(self, name, *arguments):
        if getattr(self.library, name)(*arguments) != OK:
            raise GessoError(self.library.gesso_last_error().decode())

    def run(self, files):
        """For each file an array per output, or the error that it failed with."""
        arrays = [np.frombuffer(file, np.uint8) for file in files]
        lengths = [(c_int64 * 1)(array.size) for array in arrays]
        size = ctypes.sizeof(Sample)
        samples = (Sample * len(arrays))(*(Sample(size, a.ctypes.data, n, 1) for a, n in zip(arrays, lengths)))
        name = self.description["inputs"][0]["name"].encode()
        given = Input(ctypes.sizeof(Input), name, UINT8, CPU, samples)
        result = c_void_p()
        self.call("gesso_instance_run", self.instance, c_size_t(len(files)), byref(given), c_size_t(1), byref(result))
        try:
            return [self.outputs(result, i) for i in range(len(files))]
        finally:
            # The arrays keep what they need.
            self.library.gesso_result_free(result)

    def outputs(self, result, sample):
        message = c_char_p()
        if self.library.gesso_result_sample_status(result, c_size_t(sample), byref(message)) != OK:
            return GessoError(message.value.decode())
        arrays = []
        for output in range(len(self.description["outputs"])):
            managed = c_void_p()
            self.call("gesso_result_dlpack", result, output, sample, byref(managed))
            arrays.append(np.from_dlpack(Tensor(managed)))
        return arrays


def main():
    model, *images = sys.argv[1:]
    with Pipeline(model) as pipeline:
        names = [output["name"] for output in pipeline.description["outputs"]]
        failed = False
        for image, outputs in zip(images, pipeline.run([Path(image).read_bytes() for image in images])):
            if isinstance(outputs, GessoError):
                print(f"{image}: {outputs}", file=sys.stderr)
                failed = True
                continue
            for name, array in zip(names, outputs):
                print(f"{image} {name} {array.dtype} {array.shape} mean {array.mean(dtype=np.float64):.4f}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
