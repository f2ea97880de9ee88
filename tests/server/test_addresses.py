"""Files by their address, in a real server: what is fetched, what is refused, and whom a slow or hostile host holds up.
`python tests/server/test_addresses.py --count 10000` sends that many hostile requests and looks at the memory."""

import argparse
import random
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tritonclient.grpc as triton
from contract_models import CLASSIFY, config, parameter, tensor
from harness import Server, wait_until
from hostile_host import ANSWERS, FORBIDDEN, REFUSED, Host
from recorded import write_model
from sending import strings
from tritonclient.utils import InferenceServerException

PHOTO, OTHER = (CLASSIFY.inputs["IMAGE"][i].tobytes() for i in (0, 1))
FILES = {"photo": PHOTO, "a b.jpg": OTHER, "text": b"no picture"}
# What hostile requests may leave in the server's memory: its pools, and the files of those that are under way.
GROWTH_BYTES = 300e6


def write_repository(folder, host):
    allow = ", ".join(
        [
            *(host.url(f"{path.split('/')[0]}/") for path in ANSWERS),
            host.url("ok/"),
            host.url("to/"),
            host.url("tagged/"),
            host.url("moved/"),
        ]
        + [host.url("says_less/"), "https://images.example.com/", f"http://127.0.0.2:{host.port}/ok/"]
    )
    image = tensor("input", "IMAGE", "STRING", 1)
    short = [
        parameter("fetch_networks", "127.0.0.1"),
        parameter("fetch_max_mb", "1"),
        parameter("fetch_seconds", "1"),
        parameter("fetch_redirects", "2"),
    ]
    patient = [*short[:2], parameter("fetch_seconds", "12"), parameter("fetch_at_once", "4")]
    allowed = parameter("fetch_allow", allow)
    pipeline = CLASSIFY.pipeline
    batches = "dynamic_batching { max_queue_delay_microseconds: 1000 }"

    def write(name, *lines):
        write_model(folder, name, pipeline, config("max_batch_size: 8", *lines, backend="gesso"))

    write("fetching", image, allowed, *short, batches)
    write("bytes", tensor("input", "IMAGE", "UINT8", -1), allowed, *short)
    write("patient", image, allowed, *patient, batches, "instance_group [ { kind: KIND_CPU count: 1 } ]")
    write("keeping", image, allowed, *short, parameter("fetch_cache_mb", "8"))
    write("outside", image, allowed, *short[1:])
    write("plain", image)
    return folder


@pytest.fixture(scope="module")
def host():
    with Host(FILES) as running:
        yield running


@pytest.fixture(scope="module")
def fetching(tmp_path_factory, host):
    # No proxy of the environment comes between.
    environment = {"http_proxy": "http://127.0.0.1:9", "AWS_ENDPOINT_URL": "", "AWS_ACCESS_KEY_ID": ""}
    with Server(write_repository(tmp_path_factory.mktemp("addresses"), host), environment=environment) as running:
        yield running


@pytest.fixture(scope="module")
def asked(fetching):
    with triton.InferenceServerClient(fetching.grpc_url) as client:
        yield client


def ask(client, files, model="fetching"):
    """The pixels, or the text of the error."""
    try:
        return client.infer(model, [strings("IMAGE", files)]).as_numpy("PIXELS")
    except InferenceServerException as error:
        return error.message()


def counted(server, family, *labels):
    lines = [line for line in server.metrics.splitlines() if line.startswith(family + "{")]
    return sum(float(line.split()[-1]) for line in lines if all(label in line for label in labels))


def fetched(server, model, outcome):
    return counted(server, "gesso_fetches_total", f'model="{model}"', f'outcome="{outcome}"')


def test_a_file_is_the_same_by_its_address(asked, host):
    expected = ask(asked, [PHOTO, OTHER])
    mixed = ask(asked, [host.url("ok/photo").encode(), OTHER])
    both = ask(
        asked, [host.url("ok/photo?x=1#y").upper().replace("/OK/PHOTO?X", "/ok/photo?x"), host.url("ok/a%20b.jpg")]
    )
    led = ask(asked, [host.url("to/a?where=/to/b%3Fwhere=/ok/photo"), host.url("says_less/a%20b.jpg")])
    for found in (mixed, both, led):
        assert isinstance(found, np.ndarray), found
        np.testing.assert_array_equal(found, expected)


def test_addresses_are_bytes_of_a_tensor_too(asked, host):
    expected = ask(asked, [PHOTO, OTHER])
    rows = [np.frombuffer(host.url(path).encode().ljust(64, b"\0"), np.uint8) for path in ("ok/photo", "ok/a%20b.jpg")]
    made = triton.InferInput("IMAGE", [2, 64], "UINT8")
    made.set_data_from_numpy(np.stack(rows))
    np.testing.assert_array_equal(asked.infer("bytes", [made]).as_numpy("PIXELS"), expected)


def test_nothing_is_fetched_that_no_list_allows(asked, host, fetching):
    before = sum(host.asked.values())
    for address in REFUSED:
        error = ask(asked, [address.replace("PORT", str(host.port))])
        if address.startswith(("http://127.0.0.2:PORT/ok/", "https://127")):
            continue
        assert "input `IMAGE`: the address is not allowed by `fetch_allow`" in error or "image" in error, (
            address,
            error,
        )
    assert "is in a network that is not allowed by `fetch_networks`" in ask(
        asked, [f"http://127.0.0.2:{host.port}/ok/photo"]
    )
    assert "is in a network that is not allowed by `fetch_networks`" in ask(asked, [host.url("ok/photo")], "outside")
    # Without a list an address is a file that is no picture.
    assert "fetch" not in ask(asked, [host.url("ok/photo")], "plain")
    assert sum(host.asked.values()) == before
    assert fetched(fetching, "fetching", "not_allowed") > 0 and fetched(fetching, "outside", "network") > 0


def test_redirects_lead_nowhere_else(asked, host):
    secrets = host.asked.get("/secret/a", 0)
    for where in FORBIDDEN:
        error = ask(asked, [host.url(f"to/a?where={where}")])
        assert isinstance(error, str) and ("a redirect leads to" in error or "fetch_networks" in error), (where, error)
    assert host.asked.get("/secret/a", 0) == secrets == 0


@pytest.mark.parametrize("path, expected", ANSWERS.items())
def test_hostile_answers_fail_their_request(asked, host, fetching, path, expected):
    error = ask(asked, [PHOTO, host.url(path)])
    assert isinstance(error, str) and error.startswith("[") is False, error
    assert "input `IMAGE`: sample 1: " in error and expected in error, error
    assert "secret" not in error and str(host.port) not in error
    assert fetching.alive and isinstance(ask(asked, [PHOTO]), np.ndarray)


def test_what_is_no_picture_is_told_so(asked, host):
    assert "image" in ask(asked, [host.url("ok/text")])


def test_a_slow_host_holds_up_its_own_requests_alone(fetching, host):
    """More requests than there are threads for downloads wait for it."""
    with ThreadPoolExecutor(16) as pool, triton.InferenceServerClient(fetching.grpc_url) as client:
        slow = [pool.submit(ask, client, [host.url("ok/photo?wait=3")], "patient") for _ in range(6)]
        wait_until(lambda: host.asked.get("/ok/photo", 0) > 0, "the slow host is asked")
        expected = ask(client, [PHOTO], "patient")
        assert isinstance(expected, np.ndarray) and not any(each.done() for each in slow)
        for each in slow:
            np.testing.assert_array_equal(each.result(), expected)


def test_a_client_that_leaves_ends_its_wait(fetching, host):
    with triton.InferenceServerClient(fetching.grpc_url) as client:
        ended = threading.Event()
        call = client.async_infer(
            "patient", [strings("IMAGE", [host.url("silent/left")])], lambda result, error: ended.set()
        )
        wait_until(lambda: host.asked.get("/silent/left", 0) > 0, "the host is asked")
        call.cancel()
        assert ended.wait(60)
        wait_until(
            lambda: counted(fetching, "gesso_failures_total", 'model="patient"', 'kind="cancelled"') > 0,
            "the server has let go of the request",
        )


def test_kept_files_are_asked_for_by_their_version(asked, host, fetching):
    first = ask(asked, [host.url("tagged/photo")], "keeping")
    again = ask(asked, [host.url("tagged/photo")], "keeping")
    np.testing.assert_array_equal(again, first)
    assert 'if-none-match: "1"' in host.heads[-1].lower()
    assert (fetched(fetching, "keeping", "downloaded"), fetched(fetching, "keeping", "cached")) == (1, 1)


def test_a_version_of_one_host_is_none_of_another(asked, host):
    address = host.url("moved/photo?where=a%20b.jpg")
    np.testing.assert_array_equal(ask(asked, [address], "keeping"), ask(asked, [PHOTO], "keeping"))
    np.testing.assert_array_equal(ask(asked, [address], "keeping"), ask(asked, [OTHER], "keeping"))
    first, second = host.heads[-2:]
    assert first.startswith("GET /moved/") and 'if-none-match: "1"' in first.lower()
    assert second.startswith("GET /tagged/") and "if-none-match" not in second.lower()


def test_buckets_are_asked_as_who_we_are(tmp_path, host):
    image = tensor("input", "IMAGE", "STRING", 1)
    lines = [
        image,
        parameter("fetch_allow", "s3://bucket/photos/, gs://gs-files/"),
        parameter("fetch_networks", "127.0.0.1/32"),
    ]
    write_model(tmp_path, "buckets", CLASSIFY.pipeline, config("max_batch_size: 8", *lines, backend="gesso"))
    environment = {
        "AWS_ACCESS_KEY_ID": "KEY",
        "AWS_SECRET_ACCESS_KEY": "very-secret",
        "AWS_SESSION_TOKEN": "session",
        "AWS_REGION": "eu-north-1",
        "AWS_ENDPOINT_URL": host.url("").rstrip("/"),
        "STORAGE_EMULATOR_HOST": host.url("").rstrip("/"),
        "GOOGLE_OAUTH_ACCESS_TOKEN": "token-of-ours",
    }
    with Server(tmp_path, environment=environment) as server, triton.InferenceServerClient(server.grpc_url) as client:
        found = ask(client, ["gs://gs-files/a b.jpg"], "buckets")
        np.testing.assert_array_equal(found, ask(client, [OTHER], "buckets"))
        assert host.heads[-1].startswith("GET /gs-files/a%20b.jpg HTTP") and "Bearer token-of-ours" in host.heads[-1]
        error = ask(client, ["s3://bucket/photos/a b.jpg"], "buckets")
        assert "status 404" in error, error
        head = host.heads[-1]
        assert head.startswith("GET /bucket/photos/a%20b.jpg?") and "X-Amz-Signature=" in head
        assert "KEY%2F" in head and "X-Amz-Security-Token=session" in head and "very-secret" not in head
        assert "fetch_allow" in ask(client, ["s3://bucket/other/a"], "buckets")
        assert "KEY" not in server.log and "token-of-ours" not in server.log


def certificate(folder, name):
    """A certificate for `name` by an authority of its own, as a context, and its file."""
    folder.mkdir()
    key, file = folder / "key.pem", folder / "certificate.pem"
    extensions = ["-addext", f"subjectAltName=DNS:{name}", "-addext", "basicConstraints=critical,CA:FALSE"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", file, "-days", "2"]
    subprocess.run([*command, "-subj", f"/CN={name}", *extensions], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    return context, file


def test_hosts_are_who_they_should_be_by_tls(tmp_path, host):
    names = {"known": "localhost", "stranger": "localhost", "other": "elsewhere.example.com"}
    made = {each: certificate(tmp_path / each, name) for each, name in names.items()}
    (known, file), (stranger, _), (other, other_file) = made.values()
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(file.read_bytes() + other_file.read_bytes())
    with Host(FILES, known) as good, Host(FILES, stranger) as bad, Host(FILES, other) as wrong:
        urls = [f"https://localhost:{each.port}/" for each in (good, bad, wrong)]
        allow = parameter("fetch_allow", ", ".join([*urls, host.url("ok/")]))
        lines = [tensor("input", "IMAGE", "STRING", 1), allow, parameter("fetch_networks", "127.0.0.1, ::1")]
        models = tmp_path / "models"
        write_model(models, "private", CLASSIFY.pipeline, config("max_batch_size: 8", *lines, backend="gesso"))
        environment = {"SSL_CERT_FILE": str(trusted)}
        with Server(models, environment=environment) as server, triton.InferenceServerClient(server.grpc_url) as client:
            expected = ask(client, [PHOTO], "private")
            np.testing.assert_array_equal(ask(client, [urls[0] + "ok/photo"], "private"), expected)
            for url in urls[1:]:
                assert "its host is not who it should be, by TLS" in ask(client, [url + "ok/photo"], "private")
            error = ask(client, [f"{urls[0]}to/a?where={host.url('ok/photo')}"], "private")
            assert "a redirect leads from `https` to another scheme" in error
            assert not bad.asked and not wrong.asked


def test_a_model_is_unloaded_while_requests_wait(tmp_path, host):
    repository = write_repository(tmp_path, host)
    with Server(repository, models=["patient"]) as server, triton.InferenceServerClient(server.grpc_url) as client:
        ended = threading.Event()
        client.async_infer("patient", [strings("IMAGE", [host.url("slow_body/a")])], lambda result, error: ended.set())
        time.sleep(0.2)
        client.unload_model("patient")
        wait_until(lambda: not client.is_model_ready("patient") and ended.is_set(), "the model has gone")
        assert server.alive


def hostile(host, draw):
    """The files of a request, most of which cannot be had."""
    kinds = [
        lambda: host.url(draw.choice([path for path in ANSWERS if not path.startswith(("slow", "silent"))])),
        lambda: host.url(draw.choice(["slow_head/a", "slow_body/a", "silent/a"])) if draw.random() < 0.2 else PHOTO,
        lambda: draw.choice(REFUSED).replace("PORT", str(host.port)),
        lambda: host.url(f"to/a?where={draw.choice(FORBIDDEN)}"),
        lambda: host.url("ok/photo"),
        lambda: b"http://" + draw.randbytes(draw.randrange(200)),
        lambda: host.url("ok/") + "".join(draw.choices("%.;/\\@?#a2f\0", k=draw.randrange(1, 60))),
        lambda: "http://" + "a" * draw.randrange(10_000),
    ]
    return [draw.choice(kinds)() for _ in range(draw.choice([1, 1, 1, 2, 5]))]


def run_hostile(server, host, count, seed=1, clients=16):
    """Sends so many hostile requests; how many pictures and errors came, and how much the memory has grown."""
    before, done = None, {"pictures": 0, "errors": 0}
    with triton.InferenceServerClient(server.grpc_url) as client, ThreadPoolExecutor(clients) as pool:
        expected = ask(client, [PHOTO])

        def one(number):
            draw = random.Random(f"{seed}-{number}")
            files = hostile(host, draw)
            found = ask(client, files)
            if isinstance(found, str):
                assert found and "internal" not in found.lower() and "panic" not in found, (files, found)
                return "errors"
            assert len(found) == len(files)
            np.testing.assert_array_equal(found[0], expected[0])
            return "pictures"

        for start in range(0, count, 500):
            for kind in pool.map(one, range(start, min(start + 500, count))):
                done[kind] += 1
            before = before or server.rss
        assert isinstance(ask(client, [PHOTO]), np.ndarray)
    return done, server.rss - before


def test_hostile_requests_leave_the_server_as_it_was(fetching, host):
    done, growth = run_hostile(fetching, host, 300)
    assert done["pictures"] > 10 and done["errors"] > 100
    assert growth < GROWTH_BYTES


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="requests (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    import tempfile

    with tempfile.TemporaryDirectory() as folder, Host(FILES) as host:
        with Server(write_repository(folder, host)) as server:
            done, growth = run_hostile(server, host, arguments.count, arguments.seed)
            print(f"{done['pictures']} pictures, {done['errors']} errors, memory grew by {growth / 1e6:.0f} MB")
            if growth > GROWTH_BYTES or not server.alive:
                raise SystemExit("the memory has grown")


if __name__ == "__main__":
    main()
