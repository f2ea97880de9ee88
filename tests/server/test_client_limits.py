"""Limits of what one client asks of a model, in a real server that hands headers on: who is refused, and that nobody
else is. `python tests/server/test_client_limits.py --count 100000` sends that many requests, each of another client,
and looks at the memory."""

import argparse
import json
import random
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from contract_models import CASES, CLASSIFY, X, config, filled, parameter, tensor
from feature_models import ensemble
from harness import Server, wait_until
from hostile_host import Host
from protocols import Client
from recorded import write_model
from tritonclient.utils import InferenceServerException

PLUS_ONE = CASES["plus_one"].pipeline
ROW = np.array([[1, 2, 3]], np.float32)
PHOTO = CLASSIFY.inputs["IMAGE"][0].tobytes()
# As HTTP clients write it, and as gRPC does.
HEADER = {"http": "X-Api-Key", "grpc": "x-api-key"}
UNAVAILABLE = {"http": "503", "grpc": "StatusCode.UNAVAILABLE"}
NAMES = "x-api-key|x-forwarded-for"
FORWARD = [f"--http-header-forward-pattern=(?i)({NAMES})", f"--grpc-header-forward-pattern={NAMES}"]
BATCH = 6
# What clients may leave in the server's memory, whatever they are called: its own pools.
GROWTH_BYTES = 60e6
# Longer, and the server itself refuses a request.
LONGEST_NAME = 6_000


def limits(header="X-Api-Key", in_flight=None, per_second=None):
    lines = [parameter("client_header", header)]
    lines += [parameter("max_requests_per_client", in_flight)] if in_flight else []
    return lines + ([parameter("max_requests_per_client_per_second", per_second)] if per_second else [])


def write_repository(folder, host):
    def write(name, pipeline, *lines):
        write_model(folder, name, pipeline, config(*lines, backend="gesso"))

    write("batch", PLUS_ONE, *filled(BATCH), X, *limits(in_flight=2))
    write("pairs", PLUS_ONE, *filled(4), X, *limits("x-forwarded-for", in_flight=1))
    write("one", PLUS_ONE, "max_batch_size: 8", X, *limits(in_flight=1))
    write("rate", PLUS_ONE, "max_batch_size: 8", X, *limits(per_second=1))
    write("both", PLUS_ONE, "max_batch_size: 8", X, *limits(in_flight=4, per_second=1000))
    write("free", PLUS_ONE, "max_batch_size: 8", X)
    sums = tensor("output", "SUM", "FP32", -1)
    write("step", PLUS_ONE, *filled(2), X, sums, *limits(in_flight=1))
    ensemble(folder, "chain", [("step", {"X": "X"}, {"SUM": "SUM"})], "max_batch_size: 2", X, sums)
    image = tensor("input", "IMAGE", "STRING", 1)
    fetching = [parameter("fetch_allow", host.url("")), parameter("fetch_networks", "127.0.0.1")]
    write("files", CLASSIFY.pipeline, "max_batch_size: 8", image, *fetching, *limits(in_flight=2))
    warm = 'model_warmup { name: "w" batch_size: 4 inputs { key: "X" value { data_type: TYPE_FP32 dims: [ 3 ] zero_data: true } } }'
    write("warm", PLUS_ONE, "max_batch_size: 8", X, warm, *limits(in_flight=1))
    return folder


@pytest.fixture(scope="module")
def host():
    with Host({"photo": PHOTO}) as running:
        yield running


@pytest.fixture(scope="module")
def limited(tmp_path_factory, host):
    with Server(write_repository(tmp_path_factory.mktemp("limits"), host), arguments=FORWARD) as running:
        yield running


@pytest.fixture(params=["http", "grpc"])
def protocol(request):
    return request.param


def ask(client, protocol, model, key, inputs=None, header=None, **options):
    """The first output, or the text of the error, which must say that the client has to wait."""
    headers = {} if key is None else {header or HEADER[protocol]: key}
    try:
        answer = client.infer(model, inputs or {"X": ROW}, headers=headers, **options)
    except InferenceServerException as error:
        assert error.status() == UNAVAILABLE[protocol], error
        return error.message()
    return answer.as_numpy("PIXELS" if inputs else "SUM")


def at_once(server, protocol, model, keys, parameters=None, **options):
    """What requests of these clients get that reach the model as one batch; `parameters` are those of all but two."""

    def one(number):
        more = {"parameters": parameters} if parameters and number < len(keys) - 2 else {}
        # A client for HTTP belongs to its thread.
        with Client(protocol, server) as client:
            return ask(client, protocol, model, keys[number], **options, **more)

    with ThreadPoolExecutor(len(keys)) as pool:
        return list(pool.map(one, range(len(keys))))


def served(answers):
    for answer in answers:
        if not isinstance(answer, str):
            np.testing.assert_array_equal(answer, ROW + 1)
    return [not isinstance(answer, str) for answer in answers]


def refusals(server, model, limit="max_requests_per_client"):
    wanted = f'gesso_client_refusals_total{{limit="{limit}",model="{model}",version="1"}} '
    (line,) = (line for line in server.metrics.splitlines() if line.startswith(wanted))
    return int(float(line.split()[-1]))


def test_a_client_above_its_limit_is_refused_alone(limited, protocol):
    before = refusals(limited, "batch")
    answers = at_once(limited, protocol, "batch", ["flood", "flood", "flood", "flood", "other", "other"])
    assert served(answers)[4:] == [True, True] and sum(served(answers)[:4]) == 2
    for error in (answer for answer in answers if isinstance(answer, str)):
        assert "the client has 2 requests in flight already, its limit (`max_requests_per_client`)" in error
        assert "flood" not in error and "other" not in error
    wait_until(lambda: refusals(limited, "batch") == before + 2, "the refusals are counted")
    # Its requests have ended.
    assert sum(served(at_once(limited, protocol, "batch", ["flood", "flood", *"abcd"]))) == BATCH
    assert "flood" not in limited.metrics and "flood" not in limited.log


def test_clients_without_the_header_are_one(limited, protocol):
    answers = at_once(limited, protocol, "batch", [None, None, "", " ", "a", "b"])
    assert served(answers)[4:] == [True, True] and sum(served(answers)) == 4
    errors = [answer for answer in answers if isinstance(answer, str)]
    assert all("requests without header `x-api-key` are those of one client" in error for error in errors), errors


def test_a_parameter_of_the_client_does_not_change_who_it_is(limited, protocol):
    """The server puts the headers behind it."""
    mine = {"x-api-key": "other", "X-API-KEY": "other", "n": 3}
    answers = at_once(limited, protocol, "batch", ["same"] * 4 + ["other"] * 2, parameters=mine)
    assert served(answers)[4:] == [True, True] and sum(served(answers)) == 4


def test_the_last_address_of_a_list_counts(limited, protocol):
    """What stands before it the client may have made up."""
    keys = ["1.1.1.1, 10.0.0.1", "2.2.2.2,10.0.0.1:80", "10.0.0.2", "::ffff:10.0.0.2"]
    answers = at_once(limited, protocol, "pairs", keys, header="x-forwarded-for")
    assert sum(served(answers[:2])) == 1 and sum(served(answers[2:])) == 1


def test_steps_of_an_ensemble_know_whose_request_it_is(limited, protocol):
    assert served(at_once(limited, protocol, "chain", ["a", "b"])) == [True, True]
    answers = at_once(limited, protocol, "chain", ["a", "a"])
    (error,) = (answer for answer in answers if isinstance(answer, str))
    assert "max_requests_per_client" in error


def test_who_waits_for_its_answers_is_never_refused(limited, protocol):
    with Client(protocol, limited) as client:
        assert all(served(ask(client, protocol, "one", "patient") for _ in range(200)))
        assert all(served(ask(client, protocol, "one", None) for _ in range(50)))


def test_requests_of_a_second_are_limited(limited, protocol):
    keys = [f"fast {protocol}"] * 24 + [f"slow {protocol}"]
    answers = at_once(limited, protocol, "rate", keys)
    assert 0 < sum(served(answers[:24])) < 24 and served(answers[24:]) == [True]
    (error, *_) = (answer for answer in answers if isinstance(answer, str))
    assert "the client has sent 1 requests within a second already" in error
    assert refusals(limited, "rate", "max_requests_per_client_per_second") > 0
    with Client(protocol, limited) as client:
        wait_until(lambda: served([ask(client, protocol, "rate", keys[0])]) == [True], "the second is over")


def test_a_client_that_floods_a_slow_host_takes_its_share_of_downloads(limited, host):
    """Also a request with many addresses has no more downloads at a time than its client may have requests."""
    host.released.clear()
    with Client("grpc", limited) as client, ThreadPoolExecutor(2) as pool:
        flood = []
        for files in (1, 6):
            held = {"IMAGE": [host.url("held/photo")] * files}
            flood.append(pool.submit(ask, client, "grpc", "files", "flood", held))
            wait_until(lambda: host.held == len(flood), "the host is asked")
        error = ask(client, "grpc", "files", "flood", {"IMAGE": [PHOTO]})
        assert "2 requests in flight" in error
        expected = ask(client, "grpc", "files", "other", {"IMAGE": [PHOTO]})
        found = ask(client, "grpc", "files", "other", {"IMAGE": [host.url("ok/photo")]})
        np.testing.assert_array_equal(found, expected)
        assert not any(each.done() for each in flood)
        host.released.set()
        for each, files in zip(flood, (1, 6)):
            np.testing.assert_array_equal(each.result(), np.repeat(expected, files, 0))
        assert host.most_held == 2
        np.testing.assert_array_equal(ask(client, "grpc", "files", "flood", {"IMAGE": [PHOTO]}), expected)


def test_a_client_that_leaves_leaves_its_place(limited, host):
    wait_until(lambda: host.held == 0, "nobody asks")
    host.released.clear()
    with Client("grpc", limited) as client:
        held = [client.input("IMAGE", [host.url("held/photo")])]
        headers, calls = {"x-api-key": "leaver"}, []
        for number in (1, 2):
            calls.append(client.connected.async_infer("files", held, lambda *_: None, headers=headers))
            wait_until(lambda: host.held == number, "the host is asked")

        def is_refused():
            return isinstance(ask(client, "grpc", "files", "leaver", {"IMAGE": [PHOTO]}), str)

        assert is_refused()
        for call in calls:
            call.cancel()
        wait_until(lambda: not is_refused(), "its requests have ended")
    host.released.set()


def test_a_model_is_warmed_up_whatever_its_limits(limited):
    assert limited.model_ready("warm")
    with Client("grpc", limited) as client:
        assert served([ask(client, "grpc", "warm", None)]) == [True]


def test_without_the_server_s_option_all_are_one_client(tmp_path, host):
    write_repository(tmp_path, host)
    with Server(tmp_path, models=["batch"]) as server:
        assert sum(served(at_once(server, "http", "batch", list("abcdef")))) == 2


@pytest.mark.parametrize(
    "lines, error",
    [
        (limits("a b", in_flight=1), "parameter `client_header` is `a b`, expected the name of a header"),
        (limits(in_flight="0x"), "parameter `max_requests_per_client` is `0x`, expected 1 to 65536"),
        (limits(in_flight=1)[1:], "parameter `max_requests_per_client` needs `client_header`"),
        (limits(), "parameter `client_header` limits nothing alone"),
    ],
)
def test_limits_are_checked_when_a_model_loads(tmp_path, lines, error):
    write_model(tmp_path, "wrong", PLUS_ONE, config("max_batch_size: 8", X, *lines, backend="gesso"))
    with Server(tmp_path, strict=False) as server:
        assert not server.model_ready("wrong") and error in server.log


def hostile_name(draw):
    """A name as no client has one; bytes of a header."""
    kinds = [
        lambda: b"%d" % draw.getrandbits(64),
        lambda: b"2001:db8:%x:%x::1" % (draw.getrandbits(16), draw.getrandbits(16)),
        lambda: b"%d.%d.%d.%d:%d" % (*draw.randbytes(4), draw.getrandbits(16)),
        lambda: bytes(byte for byte in draw.randbytes(40) if byte > 31 and byte != 127),
        lambda: b"x" * draw.randrange(LONGEST_NAME),
        lambda: b"," * draw.randrange(100),
        lambda: b"",
        lambda: b'"} 1\\',
    ]
    return draw.choices(kinds, [40, 10, 10, 10, 1, 1, 1, 1])[0]()


def exchange(connection, reader, model, header):
    """The status and body of an answer to one request over an open connection."""
    body = json.dumps({"inputs": [{"name": "X", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]}).encode()
    head = b"POST /v2/models/%s/infer HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n"
    connection.sendall(head % (model.encode(), header, len(body)) + body)
    status, length = int(reader.readline().split()[1]), 0
    while (line := reader.readline()) != b"\r\n":
        name, _, value = line.partition(b": ")
        length = int(value) if name.lower() == b"content-length" else length
    return status, reader.read(length)


def run_hostile(server, count, seed=1, connections=8):
    """Sends a request of each of so many clients; how many were served, and how much the memory has grown."""
    before, done = None, {200: 0, 503: 0}
    host, port = server.http_url.split(":")

    def some(number, amount):
        draw, found = random.Random(f"{seed}-{number}"), {}
        with socket.create_connection((host, int(port)), 60) as connection, connection.makefile("rb") as reader:
            for _ in range(amount):
                name = hostile_name(draw)
                status, body = exchange(connection, reader, "both", b"X-Api-Key: %s\r\n" % name)
                assert status in done and b"internal" not in body and b"panic" not in body, (status, name, body)
                found[status] = found.get(status, 0) + 1
        return found

    with ThreadPoolExecutor(connections) as pool:
        step = max(1, count // 10)
        for start in range(0, count, step):
            amount = max(1, step // connections)
            for found in pool.map(lambda i: some(i, amount), range(start, start + connections)):
                for status, many in found.items():
                    done[status] += many
            # Allocators have their pools by then.
            before = before or server.rss
    return done, server.rss - before


def test_any_number_of_clients_leaves_the_server_as_it_was(limited):
    done, growth = run_hostile(limited, 8_000)
    assert done[200] > 6_000 and growth < GROWTH_BYTES, (done, growth)
    with Client("grpc", limited) as client:
        assert served([ask(client, "grpc", "both", "somebody")]) == [True]
    families = [line for line in limited.metrics.splitlines() if line.startswith("gesso_client_refusals_total{")]
    # Three limits of each model that has some.
    assert len(families) == 3 * 8, families


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="clients (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    import tempfile

    with tempfile.TemporaryDirectory() as folder, Host({}) as host:
        from pathlib import Path

        with Server(write_repository(Path(folder), host), arguments=FORWARD) as server:
            done, growth = run_hostile(server, arguments.count, arguments.seed)
            print(f"{done[200]} served, {done[503]} refused, memory grew by {growth / 1e6:.1f} MB")
            if growth > GROWTH_BYTES or not server.alive:
                raise SystemExit("the memory has grown")


if __name__ == "__main__":
    main()
