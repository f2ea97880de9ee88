"""Runs `model.onnx` with onnxruntime on the CPU, all requests of a batch at once."""

from pathlib import Path

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """PIXELS [n, 3, 224, 224] FP32 -> PROBABILITIES [n, 1000] FP32."""

    def initialize(self, args):
        model = Path(args["model_repository"]) / args["model_version"] / "model.onnx"
        if not model.is_file():
            raise pb_utils.TritonModelException(f"`{model}` is missing: scripts/demo makes it")
        options = onnxruntime.SessionOptions()
        # Idle threads sleep: spinning ones would take the cores that decode the next images.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])

    def execute(self, requests):
        # By DLPack, because the backend's own `as_numpy` gives wrong strides under numpy 2.
        batches = [np.from_dlpack(pb_utils.get_input_tensor_by_name(request, "PIXELS")) for request in requests]
        (probabilities,) = self.session.run(["PROBABILITIES"], {"PIXELS": np.concatenate(batches)})
        ends = np.cumsum([len(batch) for batch in batches])[:-1]
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("PROBABILITIES", part)])
            for part in np.split(probabilities, ends)
        ]
