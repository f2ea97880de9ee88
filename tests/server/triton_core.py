"""Triton's core in this process, by its C API: `libtritonserver.so` of any release, without `tritonserver` around it.

    with Core(path, repository, backends) as core:
        outputs = core.ask("identity", {"X": array}).outputs()

Only what the checks of `in_process` need. A function that a core lacks is not looked up before it is called.
"""

import ctypes
import json
import threading
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

import numpy as np

# The order is that of `TRITONSERVER_DataType`; `BYTES` is an array of objects here.
TYPES = [None, "?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "O"]
EXPLICIT = 2
CPU = 0
FINAL = 1
ALL_RELEASED = 1
SEQUENCE_START, SEQUENCE_END = 1, 2
TIMESTAMPS, CUSTOM_ACTIVITY = 4, 10
NEWEST = -1
PROMETHEUS = 0
# All of these are for a machine on which everything takes ten times as long.
ANSWER_SECONDS = 120
EXIT_SECONDS = 30

Allocate = ctypes.CFUNCTYPE(
    c_void_p, c_void_p, c_char_p, c_size_t, c_int, c_int64, c_void_p,
    POINTER(c_void_p), POINTER(c_void_p), POINTER(c_int), POINTER(c_int64),
)  # fmt: skip
Free = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_int, c_int64)
Came = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_void_p)
Activity = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_uint64, c_void_p)
Traced = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)


NOT_FOUND, INVALID, UNAVAILABLE, CANCELLED = 2, 3, 4, 7
WORDS = {NOT_FOUND: "not found", INVALID: "invalid argument", UNAVAILABLE: "unavailable", CANCELLED: "cancelled"}


class CoreError(Exception):
    """An error object of the core: its `code`, a number as no core has a word for each, and its `message`."""

    def __init__(self, code, message):
        super().__init__(f"{WORDS.get(code, f'code {code}')}: {message}")
        self.code, self.message = code, message


class Functions:
    """The library's functions by their names without `TRITONSERVER_`. Those that return an error raise it."""

    def __init__(self, path, scope):
        self.library = ctypes.CDLL(str(path), mode=scope)
        for name, result in (("ErrorCode", c_int), ("ErrorMessage", c_char_p), ("ErrorDelete", None)):
            getattr(self.library, f"TRITONSERVER_{name}").restype = result

    def has(self, name):
        return hasattr(self.library, f"TRITONSERVER_{name}")

    def __getattr__(self, name):
        function = getattr(self.library, f"TRITONSERVER_{name}")
        function.restype = c_void_p

        def call(*arguments):
            self.check(function(*arguments))

        setattr(self, name, call)
        return call

    def error(self, raw):
        """The error as an exception; the object is not deleted."""
        message = self.library.TRITONSERVER_ErrorMessage(c_void_p(raw)).decode(errors="replace")
        return CoreError(self.library.TRITONSERVER_ErrorCode(c_void_p(raw)), message)

    def check(self, raw):
        if raw:
            error = self.error(raw)
            self.library.TRITONSERVER_ErrorDelete(c_void_p(raw))
            raise error


class Memory:
    """The buffers of responses: the core's allocator, which this process serves."""

    def __init__(self, functions):
        self.buffers, self.functions = {}, functions
        # Both must live as long as the allocator.
        self.callbacks = (Allocate(self.allocate), Free(self.free))
        self.allocator = c_void_p()
        functions.ResponseAllocatorNew(byref(self.allocator), *self.callbacks, None)

    def allocate(self, _allocator, _name, size, _kind, _id, _user, buffer, _buffer_user, actual, actual_id):
        made = ctypes.create_string_buffer(max(size, 1))
        address = ctypes.addressof(made)
        self.buffers[address] = made
        buffer[0], actual[0], actual_id[0] = address, CPU, 0

    def free(self, _allocator, buffer, _user, _size, _kind, _id):
        self.buffers.pop(buffer)

    def delete(self):
        self.functions.ResponseAllocatorDelete(self.allocator)


class Answers:
    """The responses to one request, as they come: `responses` are arrays by name, `error` is what a response said."""

    def __init__(self):
        self.responses, self.error, self.id = [], None, None
        self.changed, self.final, self.released = threading.Condition(), False, False
        self.on_response = lambda: None

    def wait(self, until=None):
        """Waits until all has come and the request is this process's again, or until `until()` is true."""
        with self.changed:
            ended = self.changed.wait_for(until or (lambda: self.final and self.released), ANSWER_SECONDS)
        assert ended, f"no answer after {ANSWER_SECONDS} s"
        return self

    def outputs(self):
        """The arrays of the one response, or the error that it was."""
        self.wait()
        if self.error is not None:
            raise self.error
        assert len(self.responses) == 1, f"expected 1 response, found {len(self.responses)}"
        return self.responses[0]

    def note(self, **values):
        with self.changed:
            vars(self).update(values)
            self.changed.notify_all()


class Core:
    """A server over `repository` from `with` to the end of its block; no model is loaded but those of `models`.

    `scope` is that of the library's symbols: a program that is linked with the core shows them to all, an extension
    module of Python's only to itself.
    """

    def __init__(self, path, repository, backends, *, models=("*",), scope=ctypes.RTLD_GLOBAL):
        self.path, self.repository, self.backends, self.models = path, repository, backends, models
        self.functions = Functions(path, scope)
        self.server, self.kept, self.spans, self.lock = None, {}, [], threading.Lock()
        self.callbacks = (Came(self.came), Came(self.released))
        self.trace_callbacks = (Activity(self.activity), Traced(self.traced))

    @property
    def api(self):
        """The versions of the API of servers and of that of backends."""
        versions = []
        for name in ("TRITONSERVER_ApiVersion", "TRITONBACKEND_ApiVersion"):
            major, minor, function = c_uint32(), c_uint32(), getattr(self.functions.library, name)
            function.restype = c_void_p
            self.functions.check(function(byref(major), byref(minor)))
            versions.append(f"{major.value}.{minor.value}")
        return versions

    def __enter__(self):
        f, options, server = self.functions, c_void_p(), c_void_p()
        f.ServerOptionsNew(byref(options))
        f.ServerOptionsSetModelRepositoryPath(options, str(self.repository).encode())
        f.ServerOptionsSetBackendDirectory(options, str(self.backends).encode())
        f.ServerOptionsSetModelControlMode(options, EXPLICIT)
        for model in self.models:
            f.ServerOptionsSetStartupModel(options, model.encode())
        f.ServerOptionsSetStrictModelConfig(options, c_bool(False))
        f.ServerOptionsSetExitOnError(options, c_bool(False))
        f.ServerOptionsSetExitTimeout(options, EXIT_SECONDS)
        f.ServerOptionsSetLogInfo(options, c_bool(False))
        if f.has("ServerOptionsSetModelLoadRetryCount"):
            # Cores leave it unset, and then try for as long as it happens to say.
            f.ServerOptionsSetModelLoadRetryCount(options, 0)
        f.ServerOptionsSetMetrics(options, c_bool(True))
        f.ServerNew(byref(server), options)
        f.ServerOptionsDelete(options)
        self.server, self.memory = server, Memory(f)
        return self

    def __exit__(self, *_):
        self.functions.ServerStop(self.server)
        self.functions.ServerDelete(self.server)
        self.memory.delete()

    def json(self, name, *arguments):
        """What a function says in JSON: `ServerMetadata`, `ServerModelConfig` and the like."""
        message, base, size = c_void_p(), c_void_p(), c_size_t()
        getattr(self.functions, name)(self.server, *arguments, byref(message))
        self.functions.MessageSerializeToJson(message, byref(base), byref(size))
        text = ctypes.string_at(base, size.value)
        self.functions.MessageDelete(message)
        return json.loads(text)

    def config(self, model):
        return self.json("ServerModelConfig", model.encode(), c_int64(NEWEST), c_uint32(1))

    def statistics(self, model):
        return self.json("ServerModelStatistics", model.encode(), c_int64(NEWEST))["model_stats"][0]

    def ready(self, model=None, version=NEWEST):
        """Whether a model is ready, or the server."""
        found = c_bool()
        if model is None:
            self.functions.ServerIsReady(self.server, byref(found))
        else:
            self.functions.ServerModelIsReady(self.server, model.encode(), c_int64(version), byref(found))
        return found.value

    def load(self, model):
        self.functions.ServerLoadModel(self.server, model.encode())

    def unload(self, model):
        self.functions.ServerUnloadModel(self.server, model.encode())

    def metrics(self):
        """Prometheus text."""
        metrics, base, size = c_void_p(), c_void_p(), c_size_t()
        self.functions.ServerMetrics(self.server, byref(metrics))
        self.functions.MetricsFormatted(metrics, PROMETHEUS, byref(base), byref(size))
        text = ctypes.string_at(base, size.value).decode()
        self.functions.MetricsDelete(metrics)
        return text

    def ask(self, model, inputs, outputs=(), **options):
        """Sends a request and returns its `Answers` at once.

        An input is an array, or a list of arrays: one tensor in so many buffers. `id`, `version`, `flags`, `sequence`
        (a number or a text) and `traced` are options; `on_response` is called with each response, before the backend
        goes on.
        """
        f, request = self.functions, c_void_p()
        answers = Answers()
        answers.on_response = options.get("on_response", answers.on_response)
        f.InferenceRequestNew(byref(request), self.server, model.encode(), c_int64(options.get("version", NEWEST)))
        answers.request, answers.delete = request, lambda: f.InferenceRequestDelete(request)
        try:
            buffers = self.fill(request, inputs, outputs, options)
            trace = self.trace() if options.get("traced") else None
            with self.lock:
                self.kept[request.value] = (answers, buffers)
            user = request.value
            came, released = self.callbacks
            f.InferenceRequestSetReleaseCallback(request, released, c_void_p(user))
            f.InferenceRequestSetResponseCallback(request, self.memory.allocator, None, came, c_void_p(user))
            f.ServerInferAsync(self.server, request, trace)
        except CoreError:
            # The core has not taken it.
            self.kept.pop(request.value, None)
            answers.delete()
            raise
        return answers

    def fill(self, request, inputs, outputs, options):
        """Puts everything into a request; returns what must live until the core has given it back."""
        f, buffers = self.functions, []
        if "id" in options:
            f.InferenceRequestSetId(request, options["id"].encode())
        f.InferenceRequestSetFlags(request, c_uint32(options.get("flags", 0)))
        if isinstance(sequence := options.get("sequence", 0), str):
            f.InferenceRequestSetCorrelationIdString(request, sequence.encode())
        elif sequence:
            f.InferenceRequestSetCorrelationId(request, c_uint64(sequence))
        for name, value in inputs.items():
            parts = value if isinstance(value, list) else [value]
            shape = [sum(len(part) for part in parts), *parts[0].shape[1:]]
            kind = TYPES.index(parts[0].dtype.str.lstrip("<|"))
            f.InferenceRequestAddInput(
                request, name.encode(), kind, (c_int64 * len(shape))(*shape), c_uint64(len(shape))
            )
            for part in parts:
                data = strings(part) if part.dtype == object else np.ascontiguousarray(part).tobytes()
                buffers.append(ctypes.create_string_buffer(data, max(len(data), 1)))
                f.InferenceRequestAppendInputData(
                    request, name.encode(), buffers[-1], c_size_t(len(data)), CPU, c_int64(0)
                )
        for name in outputs:
            f.InferenceRequestAddRequestedOutput(request, name.encode())
        return buffers

    def cancel(self, answers):
        self.functions.InferenceRequestCancel(answers.request)

    def came(self, response, _flags, user):
        """The core's word of a response, or of the end alone."""
        answers = self.kept[user][0]
        if response:
            response = c_void_p(response)
            try:
                self.functions.InferenceResponseError(response)
                answers.id = self.text("InferenceResponseId", response)
                answers.responses.append(self.arrays(response))
            except Exception as error:
                # An error of this program's is one of the answer, too: an exception would be lost here.
                answers.error = error
            self.functions.InferenceResponseDelete(response)
            answers.on_response()
        self.settle(user, final=True) if _flags & FINAL else answers.note()

    def released(self, _request, flags, user):
        if flags & ALL_RELEASED:
            self.settle(user, released=True)

    def settle(self, user, **end):
        """A request is deleted when it was given back and its last response was here."""
        with self.lock:
            answers = self.kept[user][0]
            vars(answers).update(end)
            both = answers.final and answers.released
            if both:
                del self.kept[user]
        if both:
            answers.delete()
        answers.note()

    def text(self, name, of):
        found = c_char_p()
        getattr(self.functions, name)(of, byref(found))
        return (found.value or b"").decode()

    def arrays(self, response):
        count, made = c_uint32(), {}
        self.functions.InferenceResponseOutputCount(response, byref(count))
        for i in range(count.value):
            name, kind, shape, rank = c_char_p(), c_int(), POINTER(c_int64)(), c_uint64()
            base, size, memory, where, user = c_void_p(), c_size_t(), c_int(), c_int64(), c_void_p()
            found = (name, kind, shape, rank, base, size, memory, where, user)
            self.functions.InferenceResponseOutput(response, c_uint32(i), *map(byref, found))
            data = ctypes.string_at(base, size.value) if size.value else b""
            made[name.value.decode()] = np.frombuffer(data, TYPES[kind.value]).reshape(shape[: rank.value])
        return made

    def trace(self):
        made, (activity, released) = c_void_p(), self.trace_callbacks
        self.functions.InferenceTraceNew(byref(made), TIMESTAMPS, c_uint64(0), activity, released, None)
        return made

    def activity(self, trace, kind, _time, _user):
        self.spans.append((self.text("InferenceTraceModelName", c_void_p(trace)), kind))

    def traced(self, trace, _user):
        self.functions.InferenceTraceDelete(c_void_p(trace))


def strings(array):
    """Elements of `TYPE_STRING` as Triton reads them: each behind its length."""
    return b"".join(len(each).to_bytes(4, "little") + each for each in array.ravel())
