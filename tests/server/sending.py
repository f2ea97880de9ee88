"""Requests to a model by arrays, one or many at a time."""

import threading
import time

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

SETTLE_SECONDS = 60
INVALID = "StatusCode.INVALID_ARGUMENT"


def tensor(name, array):
    """One input of a request; the first dimension of `array` is the batch."""
    made = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
    made.set_data_from_numpy(np.ascontiguousarray(array))
    return made


def strings(name, files):
    """A `TYPE_STRING` input with one file per element."""
    array = np.array(files, dtype=object).reshape(-1, 1)
    made = triton.InferInput(name, list(array.shape), "BYTES")
    made.set_data_from_numpy(array)
    return made


def alone(arrays):
    """Sample arrays as a batch of one: name to array."""
    return {name: np.asarray(array)[None] for name, array in arrays.items()}


def infer(client, model, arrays, outputs=None):
    """The outputs of one request in the model's order, or the exception."""
    wanted = outputs and [triton.InferRequestedOutput(name) for name in outputs]
    try:
        answer = client.infer(model, [tensor(name, a) for name, a in arrays.items()], outputs=wanted)
    except InferenceServerException as error:
        return error
    names = outputs or [output.name for output in client.get_model_metadata(model).outputs]
    return [answer.as_numpy(name) for name in names]


def together(url, model, requests, outputs=None):
    """Sends all requests at once, each from a client of its own, so that the server can merge them."""
    answers = [None] * len(requests)
    barrier = threading.Barrier(len(requests))

    def send(i):
        with triton.InferenceServerClient(url) as client:
            client.is_server_live()
            barrier.wait()
            answers[i] = infer(client, model, requests[i], outputs)

    threads = [threading.Thread(target=send, args=[i]) for i in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def statistics(client, model, requests, executed=None):
    """What the server counted for a model, once it has counted so many requests and the executions of `executed` of
    them, by default all.

    It counts a request after its answer has left, and an execution after all of its requests.
    """
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        counted = client.get_inference_statistics(model).model_stats[0]
        outcomes = counted.inference_stats.success.count + counted.inference_stats.fail.count
        samples = sum(batch.batch_size * batch.compute_infer.count for batch in counted.batch_stats)
        # An execution counts the samples of requests that failed, too, which have one at least.
        expected = max(requests if executed is None else executed, counted.inference_count)
        if (outcomes >= requests and samples >= expected) or time.monotonic() > deadline:
            return counted
        time.sleep(0.005)
