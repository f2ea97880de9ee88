"""A network of torchvision's in Triton's Python backend. It takes its input by DLPack, where it lies; on a GPU it
refuses one that lies on the host."""

import json

import torch
import triton_python_backend_utils as pb_utils
from network import network


class TritonPythonModel:
    """PIXELS [n, 3, h, w] FP32 -> LOGITS [n, 1000] FP32. Parameters: `network`, a name of torchvision's; `half`, with
    any value."""

    def initialize(self, args):
        parameters = {
            name: value["string_value"] for name, value in json.loads(args["model_config"])["parameters"].items()
        }
        self.on_gpu = args["model_instance_kind"] == "GPU"
        self.device = (
            torch.device("cuda", int(args["model_instance_device_id"])) if self.on_gpu else torch.device("cpu")
        )
        self.network = network(parameters["network"], self.device, "half" in parameters)
        # What is made once is not made by the first request.
        self.run(torch.zeros(1, 3, 224, 224, device=self.device))

    def run(self, pixels):
        with torch.inference_mode():
            logits = self.network(pixels)
        if self.on_gpu:
            torch.cuda.current_stream(self.device).synchronize()
        return logits

    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(request, "PIXELS") for request in requests]
        if self.on_gpu and any(tensor.is_cpu() for tensor in tensors):
            refused = pb_utils.TritonError("the input of a model on a GPU lies on the host")
            return [pb_utils.InferenceResponse(error=refused) for _ in requests]
        batches = [torch.from_dlpack(tensor.to_dlpack()) for tensor in tensors]
        # Several requests are gathered by one kernel; one is read where it lies.
        logits = self.run(torch.cat(batches) if len(batches) > 1 else batches[0])
        answers = logits.split([len(batch) for batch in batches])
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("LOGITS", torch.to_dlpack(answer))])
            for answer in answers
        ]
