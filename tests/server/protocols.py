"""One client over HTTP or gRPC, so that a test of a rule asks both."""

import importlib
import os

import numpy as np
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

# gRPC has names for what HTTP answers with a number.
REFUSED = {"StatusCode.INVALID_ARGUMENT", "400"}


class Client:
    """Requests by arrays. A list stands for a `TYPE_STRING` input with one file per element."""

    def __init__(self, protocol, server):
        # The one for HTTP needs packages that machines without need of it may lack.
        self.api = importlib.import_module(f"tritonclient.{protocol}")
        # Over HTTP so many requests can be under way at once.
        options = {"concurrency": 16} if protocol == "http" else {}
        self.connected = self.api.InferenceServerClient(getattr(server, f"{protocol}_url"), **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connected.close()

    def infer(self, model, inputs, outputs=None, **options):
        """The response. `outputs` names those that are wanted, all by default."""
        wanted = outputs and [self.api.InferRequestedOutput(name) for name in outputs]
        sent = [self.input(name, value) for name, value in inputs.items()]
        return self.connected.infer(model, sent, outputs=wanted, **options)

    def refusal(self, model, inputs, outputs=None, **options):
        """The text of the error that a request gets, which must be the client's fault."""
        try:
            self.infer(model, inputs, outputs, **options)
        except InferenceServerException as error:
            assert error.status() in REFUSED, error
            return error.message()
        raise AssertionError("the request was answered")

    def outputs(self, model):
        """Names of a model's outputs."""
        found = self.connected.get_model_metadata(model)
        if isinstance(found, dict):
            return [output["name"] for output in found["outputs"]]
        return [output.name for output in found.outputs]

    def statistics(self, model):
        """Samples that were answered and executions that they took, as the server counts them."""
        found = self.connected.get_inference_statistics(model)
        if isinstance(found, dict):
            (counted,) = found["model_stats"]
            return int(counted.get("inference_count", 0)), int(counted.get("execution_count", 0))
        (counted,) = found.model_stats
        return counted.inference_count, counted.execution_count

    def input(self, name, value):
        if isinstance(value, list):
            value = np.array(value, dtype=object).reshape(-1, 1)
        made = self.api.InferInput(name, list(value.shape), np_to_triton_dtype(value.dtype))
        made.set_data_from_numpy(np.ascontiguousarray(value))
        return made

    def infer_in_shared_memory(self, model, inputs, output):
        """As `infer`, with every byte of the request and of its one output (name, dtype, shape) in system shared
        memory."""
        name, dtype, shape = output
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        regions = {"in": sum(value.nbytes for value in inputs.values()), "out": size}
        # All of a machine share the names.
        path = f"/gesso-{os.getpid()}"
        handles = {
            key: shm.create_shared_memory_region(key, f"{path}-{key}", bytes_) for key, bytes_ in regions.items()
        }
        try:
            for key, bytes_ in regions.items():
                self.connected.register_system_shared_memory(key, f"{path}-{key}", bytes_)
            offset, sent = 0, []
            for each, value in inputs.items():
                shm.set_shared_memory_region(handles["in"], [value], offset)
                made = self.api.InferInput(each, list(value.shape), np_to_triton_dtype(value.dtype))
                made.set_shared_memory("in", value.nbytes, offset)
                sent.append(made)
                offset += value.nbytes
            wanted = self.api.InferRequestedOutput(name)
            wanted.set_shared_memory("out", size)
            self.connected.infer(model, sent, outputs=[wanted])
            return shm.get_contents_as_numpy(handles["out"], dtype, shape).copy()
        finally:
            self.connected.unregister_system_shared_memory()
            for handle in handles.values():
                shm.destroy_shared_memory_region(handle)
