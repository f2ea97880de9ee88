"""What the plugin must do in any Triton core, one check a promise; `in_process` runs them."""

from pathlib import Path

import numpy as np
from clips import CLIPS, DECOUPLED, long_video
from contract_models import CASES, CLASSIFY, X, config, filled, tensor, write_repository
from harness import wait_until
from recorded import cases, write_model
from triton_core import (
    CANCELLED,
    CUSTOM_ACTIVITY,
    INVALID,
    NOT_FOUND,
    SEQUENCE_END,
    SEQUENCE_START,
    UNAVAILABLE,
    Core,
    CoreError,
)

IMAGES = CLASSIFY.inputs["IMAGE"]
SPOILT = np.frombuffer(IMAGES[0].tobytes()[:400], np.uint8)
ROW = np.array([[1, 2, 3]], np.float32)
AT_ONCE = 200
FRAMES, LONG = 90, 6_000
ONE_INSTANCE = "instance_group [{ kind: KIND_CPU count: 1 }]\n"
CHECKS = []


class NotOffered(Exception):
    """The core lacks a function without which there is nothing to check."""


def check(words):
    def add(function):
        CHECKS.append((words, function))
        return function

    return add


def write_models(folder):
    """The models of the contract, and those of the checks that need others."""
    write_repository(folder)
    stream = lambda name: (CLIPS / "streams" / f"{name}.dali").read_bytes()
    write_model(folder, "spoilt", CLASSIFY.pipeline, config(*filled(4)))
    write_model(folder, "changing", CASES["plus_one"].pipeline, config("max_batch_size: 4", X))
    write_model(folder, "video", stream("partial"), f'backend: "dali"\n{DECOUPLED}')
    write_model(folder, "large_video", stream("large"), f'backend: "gesso"\n{ONE_INSTANCE}')
    frames_in = tensor("input", "X", "UINT8", *[-1] * 5), tensor("output", "OUT", "UINT8", *[-1] * 5)
    write_model(folder, "equalize", cases("equalize")["frames"].pipeline, config("max_batch_size: 0", *frames_in))
    pieces = "sequence_batching { max_sequence_idle_microseconds: 60000000 oldest { max_candidate_sequences: 8 } }\n"
    write_model(folder, "pieces", stream("partial"), f'backend: "gesso"\n{ONE_INSTANCE}{pieces}')
    return folder


def one(array):
    return np.asarray(array)[None]


def padded(images):
    longest = max(len(image) for image in images)
    return np.stack([np.pad(image, (0, longest - len(image))) for image in images])


def refusal(core, model, inputs, **options):
    """The error of a request, which the core may find before the backend does."""
    try:
        core.ask(model, inputs, **options).outputs()
    except CoreError as error:
        return error
    raise AssertionError("the request was answered")


def near(found, expected, tol):
    assert found.shape == expected.shape, f"expected {expected.shape}, found {found.shape}"
    off = np.abs(found.astype(np.float64) - expected).max()
    assert off <= tol, f"off by {off}, at most {tol} is allowed"


def assert_pixels(found, indices):
    near(found, np.stack([CLASSIFY.outputs[0][i] for i in indices]), CLASSIFY.tol)


def counted(core, model, requests):
    """Statistics of a model once it has counted so many requests of one sample, and after them their executions."""

    def done():
        found = core.statistics(model)
        outcomes = sum(found["inference_stats"][outcome]["count"] for outcome in ("success", "fail"))
        samples = sum(batch["batch_size"] * batch["compute_infer"]["count"] for batch in found["batch_stats"])
        return min(outcomes, samples) >= requests

    wait_until(done, f"{requests} requests are counted")
    return core.statistics(model)


def sequences(responses):
    """The first output of each response that has one."""
    return [next(iter(response.values())) for response in responses if response]


def frames(responses):
    batches = sequences(responses)
    return np.concatenate([batch.reshape(-1, *batch.shape[2:]) for batch in batches])


@check("the server and every model are ready")
def _(core):
    assert core.ready()
    index = core.json("ServerModelIndex", 0)
    late = sorted(model["name"] for model in index if model.get("state") != "READY")
    assert len(index) > 20 and not late, f"not ready: {late}"
    assert not core.ready("versions_latest", 1) and core.ready("versions_latest", 3)


@check("what a configuration leaves out is completed")
def _(core):
    found = core.config("identity_cpu")
    assert [i["name"] for i in found["input"]] == ["X"] and found["input"][0]["data_type"] == "TYPE_FP32"
    assert found["max_batch_size"] > 0 and len(found["output"]) == 1


@check("batches of any size come back")
def _(core):
    for size in (1, 2, 7, 256):
        sent = np.random.default_rng(size).random((size, 5), np.float32)
        np.testing.assert_array_equal(core.ask("identity", {"X": sent}).outputs()["OUT"], sent)


@check("images become what DALI made of them")
def _(core):
    for i, image in enumerate(IMAGES):
        assert_pixels(core.ask("classify", {"IMAGE": one(image)}).outputs()["PIXELS"], [i])
    assert_pixels(core.ask("classify", {"IMAGE": padded(IMAGES)}).outputs()["PIXELS"], range(3))


@check("two inputs, two outputs")
def _(core):
    case = CASES["two_inputs"]
    for i in case.samples:
        found = core.ask("two_inputs", {name: one(given[i]) for name, given in case.inputs.items()}).outputs()
        for k, name in enumerate(("L", "R")):
            near(found[name][0], case.outputs[k][i], case.tol)


@check("some of the outputs, and the id of the request")
def _(core):
    answers = core.ask("two_outputs", {"IMAGE": one(IMAGES[0])}, ["PIXELS"], id="order 7")
    assert list(answers.outputs()) == ["PIXELS"] and answers.id == "order 7"


@check("an optional input")
def _(core):
    case, image = CASES["sized"], one(CASES["sized"].inputs["IMAGE"][0])
    given = core.ask("sized", {"IMAGE": image, "SIZE": one(case.inputs["SIZE"][0])}).outputs()["PIXELS"]
    near(given[0], case.outputs[0][0], case.tol)
    assert core.ask("sized", {"IMAGE": image}).outputs()["PIXELS"].shape == (1, 18, 22, 3)


@check("strings that hold a file each")
def _(core):
    files = np.array([image.tobytes() for image in IMAGES], object).reshape(-1, 1)
    assert_pixels(core.ask("strings", {"IMAGE": files}).outputs()["PIXELS"], range(3))


@check("an input in several buffers")
def _(core):
    sent = np.random.default_rng(0).random((9, 1_000), np.float32)
    found = core.ask("identity", {"X": [sent[:2], sent[2:3], sent[3:]]}).outputs()["OUT"]
    np.testing.assert_array_equal(found, sent)


@check("without batching, and with split outputs")
def _(core):
    sent = np.random.default_rng(3).random((3, 4), np.float32)
    (found,) = core.ask("unbatched", {"X": sent}).outputs().values()
    np.testing.assert_array_equal(found, sent)
    case = CASES["crops"]
    answers = [core.ask("crops", {"CROPS": one(sample)}) for sample in case.inputs["CROPS"]]
    for i, answer in enumerate(answers):
        np.testing.assert_array_equal(answer.outputs()["EACH"], case.outputs[0][i])


@check("versions as their policy says, and an ensemble")
def _(core):
    for version in (2, 3):
        found = core.ask("versions_latest", {"X": ROW}, version=version).outputs()["SUM"]
        np.testing.assert_array_equal(found, ROW + version)
    np.testing.assert_array_equal(core.ask("both", {"X": ROW}).outputs()["SUM"], ROW + 3)


@check("an ensemble with a limit of requests in flight")
def _(core):
    step = 'step [ {{ model_name: "{}" model_version: -1 input_map {{ key: "{}" value: "{}" }} output_map {{ key: "{}" value: "{}" }} }} ]'
    steps = [
        step.format("video", "VIDEO", "IN", "VIDEO", "between"),
        step.format("equalize", "X", "between", "OUT", "OUT"),
    ]
    lines = [
        'platform: "ensemble"',
        tensor("input", "IN", "UINT8", -1, -1),
        tensor("output", "OUT", "UINT8", *[-1] * 5),
    ]
    lines += [
        "model_transaction_policy { decoupled: true }",
        "ensemble_scheduling { max_inflight_requests: 1",
        *steps,
        "}",
    ]
    write_model(core.repository, "limited", b"", "\n".join(lines))
    try:
        core.load("limited")
    except CoreError as error:
        # A configuration with a field that it does not know is none.
        assert "failed to load" in error.message or "poll" in error.message, error
        raise NotOffered("limits of an ensemble's requests in flight") from None
    batches = sequences(core.ask("video", {"VIDEO": one(long_video(FRAMES))}).wait().responses)
    expected = [core.ask("equalize", {"X": batch}).outputs()["OUT"] for batch in batches]
    asked = [core.ask("limited", {"IN": one(long_video(FRAMES))}) for _ in range(4)]
    for answers in asked:
        found = sequences(answers.wait().responses)
        assert answers.error is None and len(found) == len(expected), answers.error
        for one_found, one_expected in zip(found, expected):
            np.testing.assert_array_equal(one_found, one_expected)


@check("requests of different sizes merge into one execution")
def _(core):
    answers = [core.ask("merging", {"IMAGE": one(image)}) for image in IMAGES]
    for i, answer in enumerate(answers):
        assert_pixels(answer.outputs()["PIXELS"], [i])
    found = counted(core, "merging", 3)
    assert (found["inference_count"], found["execution_count"]) == (3, 1), found


@check("one bad file in a batch is an error of its request alone, and counted")
def _(core):
    answers = [core.ask("spoilt", {"IMAGE": one(image)}) for image in [*IMAGES, SPOILT]]
    for i, answer in enumerate(answers[:3]):
        assert_pixels(answer.outputs()["PIXELS"], [i])
    error = answers[3].wait().error
    assert error is not None and error.code == INVALID and "JPEG" in error.message, error
    found = counted(core, "spoilt", 4)
    parts = found["inference_stats"]
    assert (parts["success"]["count"], parts["fail"]["count"], found["execution_count"]) == (3, 1, 1), found
    assert all(0 < parts[part]["ns"] < 60e9 for part in ("compute_input", "compute_infer", "compute_output")), parts


@check("requests that do not fit are refused")
def _(core):
    wrong = [(1, 2, 2), np.float32], [(1, 2), np.int32], [(257, 2), np.float32]
    for shape, kind in wrong:
        assert refusal(core, "identity", {"X": np.zeros(shape, kind)}).code == INVALID
    assert refusal(core, "identity", {"Y": ROW}).code == INVALID
    text = refusal(core, "sized_strict", {"IMAGE": one(IMAGES[0])}).message
    assert "default.SIZE" in text, text
    case = CASES["two_inputs"].inputs
    refusal(core, "two_inputs", {"LEFT": padded(case["LEFT"][:2]), "RIGHT": one(case["RIGHT"][0])})


@check(f"{AT_ONCE} requests at once")
def _(core):
    def sent(i):
        if i % 2:
            return core.ask("identity", {"X": ROW + i})
        return core.ask("classify", {"IMAGE": one(IMAGES[i % 3])})

    for i, answer in enumerate([sent(i) for i in range(AT_ONCE)]):
        if i % 2:
            np.testing.assert_array_equal(answer.outputs()["OUT"], ROW + i)
        else:
            assert_pixels(answer.outputs()["PIXELS"], [i % 3])


@check("a decoupled model answers a video in parts")
def _(core):
    assert core.config("video")["model_transaction_policy"]["decoupled"]
    answers = core.ask("video", {"VIDEO": one(long_video(FRAMES))}).wait()
    assert answers.error is None, answers.error
    shapes = [batch.shape for batch in sequences(answers.responses)]
    assert shapes == [(3, 7, 32, 48, 3)] * 4 + [(1, 6, 32, 48, 3)], shapes
    found = frames(answers.responses)
    # The clip comes again every twelve frames.
    assert all((found[i] == found[i % 12]).all() for i in range(FRAMES)) and (found[0] != found[1]).any()


@check("a damaged video gives what is before, then an error")
def _(core):
    answers = core.ask("video", {"VIDEO": one(long_video(FRAMES, damaged=50))}).wait()
    assert len(frames(answers.responses)) == 50 and "frame 50" in answers.error.message


@check("a video in the pieces of a sequence, named by number and by text")
def _(core):
    whole = frames(core.ask("video", {"VIDEO": one(long_video(FRAMES))}).wait().responses)
    for sequence in (7, "camera-1"):
        if isinstance(sequence, str) and not core.functions.has("InferenceRequestSetCorrelationIdString"):
            continue
        responses = []
        for i, piece in enumerate(np.array_split(long_video(FRAMES), 10)):
            flags = SEQUENCE_START * (i == 0) | SEQUENCE_END * (i == 9)
            answers = core.ask("pieces", {"VIDEO": one(piece)}, sequence=sequence, flags=flags).wait()
            assert answers.error is None, answers.error
            responses += answers.responses
        np.testing.assert_array_equal(frames(responses), whole)


@check("a cancelled video ends, and the next one is answered")
def _(core):
    if not core.functions.has("InferenceRequestCancel"):
        raise NotOffered("cancellation")
    asked = []
    # Asked for here, so before the backend sends a second one.
    cancel = lambda: core.cancel(asked[0]) if asked else None
    asked.append(core.ask("large_video", {"VIDEO": one(long_video(LONG))}, on_response=cancel))
    answers = asked[0].wait()
    assert answers.error is None or answers.error.code == CANCELLED, answers.error
    found = sum(batch.shape[0] * batch.shape[1] for batch in sequences(answers.responses))
    assert found < LONG, "it went on to its end"
    after = core.ask("large_video", {"VIDEO": one(long_video(7))}).wait()
    assert after.error is None and len(frames(after.responses)) == 7


@check("metrics of the backend")
def _(core):
    lines = [line for line in core.metrics().splitlines() if line.startswith("gesso_input_bytes_total{")]
    if not lines and not hasattr(core.functions.library, "TRITONSERVER_MetricFamilyNew"):
        raise NotOffered("metrics of a backend")
    (value,) = [float(line.split()[-1]) for line in lines if 'model="merging"' in line]
    assert value == sum(image.nbytes for image in IMAGES), value


@check("a trace has the backend's spans")
def _(core):
    if not core.functions.has("InferenceTraceReportActivity"):
        raise NotOffered("spans in traces")
    core.ask("classify", {"IMAGE": one(IMAGES[0])}, traced=True).outputs()
    wait_until(lambda: ("classify", CUSTOM_ACTIVITY) in core.spans, "the spans are here")


@check("a model is unloaded and loaded again with another file")
def _(core):
    file = Path(core.repository) / "changing" / "1" / "model.dali"
    np.testing.assert_array_equal(core.ask("changing", {"X": ROW}).outputs()["SUM"], ROW + 1)
    core.unload("changing")
    wait_until(lambda: not core.ready("changing"), "the model has gone")
    assert refusal(core, "changing", {"X": ROW}).code in (UNAVAILABLE, NOT_FOUND)
    file.write_bytes(CASES["plus_two"].pipeline)
    core.load("changing")
    np.testing.assert_array_equal(core.ask("changing", {"X": ROW}).outputs()["SUM"], ROW + 2)


@check("a file that is no pipeline does not load, and the error says so")
def _(core):
    write_model(core.repository, "broken", b"no pipeline", config())
    try:
        core.load("broken")
    except CoreError as error:
        assert "not a serialized DALI pipeline" in error.message, error
    else:
        raise AssertionError("it was loaded")
    assert not core.ready("broken")


def ends_with_requests_under_way(core):
    """Leaves the server while requests are under way: each is answered, or told that the server goes."""
    answers = [core.ask("classify", {"IMAGE": one(IMAGES[i % 3])}) for i in range(30)]
    core.__exit__()
    for i, answer in enumerate(answers):
        answer.wait()
        if answer.error is None:
            assert_pixels(answer.responses[0]["PIXELS"], [i % 3])
        else:
            assert answer.error.code in (UNAVAILABLE, CANCELLED), answer.error
    assert not core.memory.buffers and not core.kept, "something was not given back"


def starts_again(path, folder, backends, scope):
    """A second server of the same process finds the backend as the first did."""
    with Core(path, folder, backends, models=["identity"], scope=scope) as core:
        np.testing.assert_array_equal(core.ask("identity", {"X": ROW}).outputs()["OUT"], ROW)
        assert not core.ready("classify")
