"""Videos that come in pieces: a sequence of requests brings one, each its next bytes. And videos that requests name."""

import queue

import numpy as np
import pytest
import tritonclient.grpc as triton
from clips import CLIPS, DECOUPLED, long_video
from harness import Server, wait_until
from recorded import cases, write_model
from test_video_stream import Answers
from tritonclient.utils import InferenceServerException

CLASSIFY = cases("pipelines")["classify"]
SEQUENCES = 'backend: "gesso"\nsequence_batching { max_sequence_idle_microseconds: 3000000 oldest { max_candidate_sequences: 100 } }\n'
# Without it there is an instance on each GPU, and two would take the pieces of a video in any order.
INSTANCE = "instance_group [{ kind: KIND_CPU count: 1 }]\n"
ONE = f'backend: "gesso"\n{INSTANCE}'
LITTLE = 'parameters { key: "max_memory_mb" value { string_value: "%d" } }\n'
HURRIED = """parameters { key: "client_header" value { string_value: "x-api-key" } }
parameters { key: "max_requests_per_client_per_second" value { string_value: "1" } }
"""
FILE = """backend: "gesso"
parameters { key: "files.VIDEO" value { string_value: "%s" } }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files that requests name, and one beside them."""
    folder = tmp_path_factory.mktemp("around") / "files"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "long.ivf").write_bytes(long_video(90).tobytes())
    (folder.parent / "secret.ivf").write_bytes(long_video(7).tobytes())
    (folder / "photo.jpg").write_bytes(CLASSIFY.inputs["IMAGE"][0].tobytes())
    (folder / "large.jpg").write_bytes(bytes(3 << 20))
    (folder / "link.ivf").symlink_to(folder.parent / "secret.ivf")
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory, folder):
    models = tmp_path_factory.mktemp("pieces")

    def write(name, file, config='backend: "gesso"\n'):
        write_model(models, name, (CLIPS / "streams" / f"{file}.dali").read_bytes(), config)

    write("partial", "partial", ONE)
    write("padded", "pad", f'backend: "dali"\n{INSTANCE}{DECOUPLED}')
    write("beside", "beside", ONE)
    write("large", "large", ONE)
    write("sequences", "partial", SEQUENCES + "instance_group [{ kind: KIND_CPU count: 2 }]\n")
    write("short", "partial", SEQUENCES + INSTANCE)
    write("hurried", "partial", ONE + HURRIED)
    write("unordered", "partial", 'backend: "gesso"\ninstance_group [{ kind: KIND_CPU count: 2 }]\n')
    write("named", "partial", FILE % folder)
    write("little", "partial", ONE + LITTLE % 1)
    write_model(models, "photos", CLASSIFY.pipeline, (FILE % folder).replace("VIDEO", "IMAGE") + LITTLE % 8)
    write("nowhere", "partial", FILE % (folder / "none"))
    with Server(models, strict=False) as running:
        yield running


def pieces_of(video, count):
    return np.array_split(video, count)


def send(server, model, piece, sequence, first=False, last=False, **beside):
    """The answers to one piece."""
    given = {"VIDEO": np.ascontiguousarray(piece)[None], **beside}
    with Answers(server, model, given, sequence_id=sequence, sequence_start=first, sequence_end=last) as answers:
        return answers.all()


def sequences(server, model, pieces, sequence, **beside):
    """The answers to each piece of a video."""
    last = len(pieces) - 1
    return [send(server, model, piece, sequence, i == 0, i == last, **beside) for i, piece in enumerate(pieces)]


def frames(answers):
    batches = [array for answer in answers for array in answer.arrays("VIDEO")]
    return np.concatenate([batch.reshape(-1, *batch.shape[2:]) for batch in batches])


@pytest.fixture(scope="module")
def expected(server):
    with Answers(server, "partial", {"VIDEO": long_video(90)[None]}) as answers:
        return frames([answers.all()])


@pytest.mark.parametrize(
    "model, sequence", [("partial", 7), ("partial", "camera-1"), ("sequences", 8), ("sequences", "camera-2")]
)
def test_sequences_come_as_soon_as_their_bytes_are_there(server, expected, model, sequence):
    answers = sequences(server, model, pieces_of(long_video(90), 10), sequence)
    assert all(answer.error is None and answer.is_final for answer in answers)
    # Nine frames a piece: a sequence of seven is complete with each, two with some; the last frames when the video
    # ends.
    counts = [sum(shape[0] * shape[1] for shape in answer.shapes) for answer in answers]
    assert sum(counts) == 90 and all(count >= 7 for count in counts), counts
    assert all(shape[1] == 7 for answer in answers[:-1] for shape in answer.shapes)
    assert (frames(answers) == expected).all()


def test_a_video_ends_with_a_piece_that_is_refused(server):
    """Without it, it would be another video."""
    pieces = pieces_of(long_video(90), 60)
    errors = [send(server, "hurried", piece, 31, i == 0).error for i, piece in enumerate(pieces)]
    refused = next(i for i, error in enumerate(errors) if error)
    assert refused > 0 and "sent 1 requests within a second already" in str(errors[refused])
    assert all(errors[refused:])


def test_a_piece_that_completes_nothing_is_answered_without_outputs(server):
    answers = sequences(server, "padded", pieces_of(long_video(10), 40), 21)
    assert [bool(answer.shapes) for answer in answers].count(True) == 2
    assert answers[-1].shapes == [(1, 7, 32, 48, 3)] and (answers[-1].arrays("VIDEO")[0][0, 3:] == 0).all()


@pytest.mark.parametrize(
    "clip", ["h264.h264", "h265.hevc", "vp9.webm", "vp8.webm", "h264_cropped.mkv", "h264_fragments.mp4", "av1.webm"]
)
def test_containers_that_grow(server, clip):
    file = np.fromfile(CLIPS / clip, np.uint8)
    with Answers(server, "partial", {"VIDEO": file[None]}) as whole:
        assert (frames(sequences(server, "partial", pieces_of(file, 5), 31)) == frames([whole.all()])).all()


def test_several_videos_come_at_the_same_time(server, expected):
    for model in ("partial", "sequences"):
        pieces = pieces_of(long_video(90), 6)
        found = {sequence: [] for sequence in (41, 42, "x")}
        for i, piece in enumerate(pieces):
            for sequence, answers in found.items():
                answers.append(send(server, model, piece, sequence, i == 0, i == 5))
        assert all((frames(answers) == expected).all() for answers in found.values())


def test_what_stands_beside_comes_with_each_piece(server):
    pieces = pieces_of(long_video(21), 3)
    answers = [
        send(server, "beside", piece, 51, i == 0, i == 2, NUMBER=np.array([[i]], np.int32))
        for i, piece in enumerate(pieces)
    ]
    name = next(o.name for o in answers[-1].results[0].get_response().outputs if o.datatype == "INT32")
    assert {int(number) for number in answers[-1].arrays(name)[0].ravel()} == {2}


def test_errors_say_what_to_do(server):
    piece = long_video(7)
    assert "its first request says that it starts" in str(send(server, "partial", piece, 61).error)
    file = np.fromfile(CLIPS / "h264.mp4", np.uint8)
    assert "faststart" in str(send(server, "partial", file, 62, True, True).error)
    assert "set `sequence_batching { }`" in str(send(server, "unordered", piece, 63, True, True).error)
    # Nothing comes behind an error.
    damaged = pieces_of(long_video(90, damaged=20), 5)
    answers = sequences(server, "partial", damaged, 64)
    assert [answer.error is None for answer in answers] == [True, False, False, False, False]
    assert "frame 20" in str(answers[1].error) and "no video with correlation id `64`" in str(answers[2].error)
    # It may begin anew, before it has ended, too.
    for _ in range(2):
        assert send(server, "partial", pieces_of(long_video(90), 2)[0], 64, True).error is None


def test_videos_that_wait_take_no_memory_of_other_requests(server, expected):
    """Of each a sequence is begun: 40 of them are larger than the memory that a batch may take."""
    first = pieces_of(long_video(90), 9)[0]
    answers = [send(server, "little", first, 4_000 + i, True) for i in range(40)]
    assert all(answer.error is None and answer.shapes == [(1, 7, 32, 48, 3)] for answer in answers)
    assert (frames(sequences(server, "little", pieces_of(long_video(90), 5), 4_100)) == expected).all()


def test_a_client_that_goes_away_leaves_nothing(server):
    """Beside 64 that are begun and not ended there is room for no other; they are forgotten when their time is over."""
    given = triton.InferInput("VIDEO", [1, len(first := pieces_of(long_video(90), 9)[0])], "UINT8")
    given.set_data_from_numpy(np.ascontiguousarray(first)[None])
    came = queue.Queue()
    with triton.InferenceServerClient(server.grpc_url) as client:
        client.start_stream(callback=lambda result, error: came.put((result, error)))
        for sequence in range(1_000, 1_065):
            client.async_stream_infer(
                "short", [given], sequence_id=sequence, sequence_start=True, enable_empty_final_response=True
            )
        answers, errors = 0, []
        while answers + len(errors) < 65:
            result, error = came.get(timeout=60)
            answers += error is None and result.get_response().parameters["triton_final_response"].bool_param
            errors += [str(error)] if error is not None else []
        client.stop_stream()
    assert answers == 64 and "64 videos come in pieces already" in errors[0]
    wait_until(lambda: send(server, "short", first, 2_000, True, True).error is None, "those are forgotten")
    assert "is forgotten: its next piece did not come" in server.log


def test_a_piece_that_is_cancelled_ends_its_video(tmp_path):
    write_model(tmp_path, "large", (CLIPS / "streams" / "large.dali").read_bytes(), ONE)
    with Server(tmp_path) as server:
        given = {"VIDEO": long_video(6_000)[None]}
        with Answers(server, "large", given, sequence_id=71, sequence_start=True, sequence_end=False) as answers:
            answers.next()
        try:
            error = send(server, "large", long_video(7), 71).error
        except Exception as failed:
            error = failed
        _, died, trace = server.log.partition("Signal (")
        if died:
            assert "libtriton_gesso" not in trace
            pytest.skip("this tritonserver did not survive the cancelling of a stream")
        assert "has failed" in str(error) or "no video with correlation id" in str(error)


def test_changed_pieces_end(server):
    random = np.random.RandomState(7)
    for i, clip in enumerate(("h264.h264", "vp9.webm", "h264_fragments.mp4", "h265.hevc", "vp8.ivf") * 6):
        file = np.fromfile(CLIPS / clip, np.uint8)
        file[random.randint(0, len(file), 4)] = random.randint(0, 256, 4)
        sequences(server, "partial", pieces_of(file, 4), 3_000 + i)
    assert server.alive


def named(server, model, name):
    with Answers(server, model, {"VIDEO": np.array([name.encode()], np.object_)}) as answers:
        return answers.all()


def test_a_request_names_its_video(server, expected):
    config = server.model_config("named")
    assert (config["input"][0]["data_type"], config["input"][0]["dims"]) == ("TYPE_STRING", [-1])
    assert (frames([named(server, "named", "deep/long.ivf")]) == expected).all()


@pytest.mark.parametrize(
    "name, said",
    [
        ("../secret.ivf", "is no name of a file"),
        ("/etc/passwd", "is no name of a file"),
        ("", "is no name of a file"),
        ("link.ivf", "no file `link.ivf`"),
        ("none.ivf", "no file `none.ivf`"),
        ("deep", "no file `deep`"),
    ],
)
def test_names_do_not_lead_out_of_the_folder(server, name, said):
    assert said in str(named(server, "named", name).error)


def test_a_folder_that_is_not_there_fails_the_load(server):
    assert not server.model_ready("nowhere") and "parameter `files.VIDEO`" in server.log


def photos(server, *names):
    given = triton.InferInput("IMAGE", [len(names), 1], "BYTES")
    given.set_data_from_numpy(np.array([[name.encode()] for name in names], np.object_))
    with triton.InferenceServerClient(server.grpc_url) as client:
        (name,) = (output["name"] for output in server.model_config("photos")["output"])
        return client.infer("photos", [given]).as_numpy(name)


def test_requests_of_a_batch_name_their_files(server):
    for answer in photos(server, "photo.jpg", "photo.jpg"):
        assert abs(answer - CLASSIFY.outputs[0][0]).max() <= CLASSIFY.tol
    # Half of the memory is for files.
    with pytest.raises(InferenceServerException, match="files of 6291456 bytes do not fit"):
        photos(server, "large.jpg", "large.jpg")
    with pytest.raises(InferenceServerException, match="input `IMAGE`: no file `none.jpg`"):
        photos(server, "photo.jpg", "none.jpg")
    assert photos(server, "photo.jpg").shape == (1, 3, 64, 64)
