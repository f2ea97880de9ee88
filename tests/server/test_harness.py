"""The harness itself: what it says of a server that does not start, and that it leaves nothing behind."""

import os
import signal
import subprocess
import sys
import urllib.request

import pytest
from harness import ROOT, Server, ServerError, free_ports, wait_until


def test_a_model_that_does_not_load_is_named(tmp_path):
    model = tmp_path / "broken"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text('backend: "nothing"\nmax_batch_size: 1\n')
    with pytest.raises(ServerError, match="nothing"):
        Server(tmp_path).__enter__()


def test_without_strict_the_server_lives_on(tmp_path):
    model = tmp_path / "broken"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text('backend: "nothing"\nmax_batch_size: 1\n')
    with Server(tmp_path, strict=False) as server:
        assert server.alive
        assert not server.model_ready("broken")
        assert "nothing" in server.log


def test_a_server_ends_with_its_block(tmp_path):
    with Server(tmp_path) as server:
        assert server.ready_seconds > 0
        assert server.rss > 1e6
        assert "nv_" in server.metrics
        url = server.http_url
    assert not server.alive
    assert server.stop() == 0
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://{url}/v2/health/live", timeout=1)


def test_a_server_goes_with_a_killed_owner(tmp_path):
    program = (
        "import sys, time; from harness import Server\n"
        "with Server(sys.argv[1]) as server: print(server.pid, flush=True); time.sleep(600)"
    )
    repository = tmp_path / "repository"
    repository.mkdir()
    owner = subprocess.Popen(
        [sys.executable, "-c", program, str(repository)],
        cwd=ROOT / "tests" / "server",
        env=dict(os.environ, TMPDIR=str(tmp_path)),  # its log outlives it
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        pid = int(owner.stdout.readline())
        owner.send_signal(signal.SIGKILL)
    wait_until(lambda: not _runs(pid), "the server is gone")


def test_a_repository_of_your_own_is_served(tmp_path):
    """What `scripts/serve` runs when all is built."""
    command = [sys.executable, str(ROOT / "scripts" / "lib" / "serve.py"), str(tmp_path)]
    http, grpc, metrics = free_ports(3)
    ports = [f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}"]
    with open(tmp_path / "log", "wb") as log, subprocess.Popen([*command, *ports], stdout=log, stderr=log) as server:
        try:
            wait_until(
                lambda: server.poll() is not None or _answers(f"http://127.0.0.1:{http}/v2/health/ready"),
                "the server is ready",
            )
            assert server.poll() is None, (tmp_path / "log").read_text()
        finally:
            server.kill()
    done = subprocess.run([ROOT / "scripts" / "serve", tmp_path / "none"], capture_output=True, text=True)
    assert done.returncode == 2 and "expected the folder of a model repository, found" in done.stderr


def _answers(url):
    try:
        return urllib.request.urlopen(url, timeout=5).status == 200
    except OSError:
        return False


def _runs(pid):
    try:
        # A process whose parent has gone may stay as a zombie where nothing reaps it.
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
