"""Runs `model.onnx`, a model with one input and one output, by onnxruntime on the CPU, all requests of a batch at once.

Arrays cross by DLPack: the server's Python backend is built for numpy 1, and its own conversions misread the arrays of
numpy 2, the only numpy there is for Python 3.13.
"""

import ctypes
from pathlib import Path

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils

USED = ctypes.c_char_p(b"used_dltensor")
set_capsule_name = ctypes.pythonapi.PyCapsule_SetName
set_capsule_name.argtypes = [ctypes.py_object, ctypes.c_char_p]


class TritonPythonModel:
    """The model's input and output have the names that they have in the ONNX file."""

    def initialize(self, args):
        model = Path(args["model_repository"]) / args["model_version"] / "model.onnx"
        if not model.is_file():
            raise pb_utils.TritonModelException(f"`{model}` is missing: scripts/demo makes that of the demo")
        options = onnxruntime.SessionOptions()
        # Idle threads sleep: spinning ones would take the cores that decode the next images.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        (self.input,), (self.output,) = self.session.get_inputs(), self.session.get_outputs()

    def execute(self, requests):
        batches = [np.from_dlpack(pb_utils.get_input_tensor_by_name(request, self.input.name)) for request in requests]
        (scores,) = self.session.run([self.output.name], {self.input.name: np.concatenate(batches)})
        ends = np.cumsum([len(batch) for batch in batches])[:-1]
        return [pb_utils.InferenceResponse([tensor(self.output.name, part)]) for part in np.split(scores, ends)]


def tensor(name, array):
    """An array as a tensor of the server's."""
    capsule = array.__dlpack__()
    made = pb_utils.Tensor.from_dlpack(name, capsule)
    # The backend marks the capsule as used by a name that numpy does not know, which numpy would report each time.
    set_capsule_name(capsule, USED)
    return made
