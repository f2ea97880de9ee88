"""A real Triton server as a context manager: used by the demo, the load client and the tests of this folder.

The server comes from the wheel `nvidia-pytriton`, which carries `tritonserver`, its Python backend and the libraries
that both need; the wheel's own Python code is not used. Nothing here knows a model.

    with Server("model_repository") as server:
        client = tritonclient.grpc.InferenceServerClient(server.grpc_url)

Environment: `GESSO_PLUGIN` names another `libtriton_gesso.so` than the release build's; if that is built with
AddressSanitizer, `GESSO_SANITIZER` names the sanitizer's library, and a test in which it reports something fails.
"""

import ctypes
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
LOOPBACK = "127.0.0.1"
# All of these are bounds for a machine on which everything takes ten times as long: none is waited out where all is
# well.
READY_SECONDS = 300
# The server waits this long for requests in flight before it leaves.
EXIT_SECONDS = 60
GET_SECONDS = 60
# After Ctrl-C: long enough to unload the models; a call cut off in the middle would hold the server for `EXIT_SECONDS`.
INTERRUPTED_SECONDS = 4
TAIL_LINES = 20
REPORT_LENGTH = 6_000
# What the server logs before its address when it listens to HTTP.
STARTED = "Started HTTPService at "
# Another process can take a port between our choice and the server's bind.
PORT_ATTEMPTS = 5
# Ports are chosen from here to where those begin that the kernel gives to connections: no client can take one of them.
FIRST_PORT, EPHEMERAL_PORTS = 12_000, "/proc/sys/net/ipv4/ip_local_port_range"
# Asks the kernel for a signal when the process that started it ends (prctl's PR_SET_PDEATHSIG is 1), then becomes the
# program of its arguments. Not a `preexec_fn`: that makes Python fork, and gRPC's handlers of a fork crash now and then
# when a test before has left channels; without one, Python uses vfork, which runs no handlers.
# What the sanitizers report begins with.
REPORTS = re.compile(r"ERROR: AddressSanitizer|: runtime error: ")
ENDS_WITH_US = (
    f"import ctypes, os, sys; ctypes.CDLL(None).prctl(1, {signal.SIGTERM:d}); os.execv(sys.argv[1], sys.argv[1:])"
)


class ServerError(RuntimeError):
    """The server did not start, died or cannot be run here; the message says why and ends with its last log lines."""


def plugin_path():
    """The plugin under test: `$GESSO_PLUGIN`, or the release build."""
    if chosen := os.environ.get("GESSO_PLUGIN"):
        return Path(chosen).resolve()
    target = os.environ.get("CARGO_TARGET_DIR") or "target"
    return ROOT / target / "release" / "libtriton_gesso.so"


def wheel_path():
    """The folder of the wheel that holds `bin/tritonserver`."""
    spec = find_spec("pytriton")
    if spec is None:
        raise ServerError(
            "package `nvidia-pytriton` is not installed: run scripts/demo or scripts/test, which set up .venv"
        )
    return Path(spec.submodule_search_locations[0]) / "tritonserver"


def stub_path(wheel):
    """The Python backend's executable for this interpreter: the two must agree on the minor version."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = wheel / "python_backend_stubs" / version / "triton_python_backend_stub"
    if not stub.is_file():
        offered = sorted((p.name for p in stub.parents[1].iterdir()), key=lambda name: int(name.split(".")[1]))
        raise ServerError(f"the Python backend has no stub for Python {version}, only for {', '.join(offered)}")
    return stub


def assemble_backends(folder=CACHE / "server" / "backends", plugin=None):
    """Makes or refreshes the folder for `--backend-directory`: `gesso`, `dali` (Gesso under DALI's name), `python`
    where the server has it."""
    plugin = plugin or plugin_path()
    wheel = wheel_path()
    for name in ("gesso", "dali"):
        _link(folder / name / f"libtriton_{name}.so", plugin)
    python = wheel / "backends" / "python"
    if not python.is_dir():
        return folder
    for name in ("libtriton_python.so", "triton_python_backend_utils.py"):
        _link(folder / "python" / name, python / name)
    # A copy: it must be executable, and its folder is where the backend looks for its utilities.
    source, stub = stub_path(wheel), folder / "python" / "triton_python_backend_stub"
    if (
        not stub.exists()
        or stub.stat().st_mtime != source.stat().st_mtime
        or stub.stat().st_size != source.stat().st_size
    ):
        shutil.copy2(source, stub)
        stub.chmod(0o755)
    return folder


def _link(link, target):
    if link.is_symlink() and Path(os.readlink(link)) == target:
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def _driver_folder(folder=CACHE / "server" / "driver"):
    """Folders for the loader's path: the Python backend looks for CUDA's driver under a name that only some packages of
    it bring, and without it leaves no tensor on a GPU."""
    for name in ("libcuda.so", "libcuda.so.1"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        if name == "libcuda.so":
            return []
        loaded = (line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines())
        _link(folder / "libcuda.so", next(Path(path) for path in loaded if Path(path).name.startswith("libcuda.so")))
        return [str(folder)]
    return []


def environment():
    """The Python backend finds the virtual environment by PATH, the wheel's programs their libraries by the loader's
    path."""
    libraries = [str(wheel_path().parents[1] / "nvidia_pytriton.libs"), *_driver_folder()]
    # A Python outside the system's folders has its shared library beside it.
    folder = Path(sysconfig.get_config_var("LIBDIR") or "")
    if (folder / f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0").is_file():
        libraries.append(str(folder))
    variables = dict(os.environ, VIRTUAL_ENV=sys.prefix)
    variables["PATH"] = os.pathsep.join([str(Path(sys.prefix) / "bin"), variables.get("PATH", "")])
    variables["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [*libraries, variables.get("LD_LIBRARY_PATH")]))
    variables.pop("PYTHONHOME", None)
    if sanitizer := os.environ.get("GESSO_SANITIZER"):
        # libjpeg-turbo does without its assembly, which is not instrumented. The server's own Python backend frees what
        # it has made by `new`.
        options = "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:detect_odr_violation=0:handle_segv=1:alloc_dealloc_mismatch=0"
        variables |= {"LD_PRELOAD": sanitizer, "ASAN_OPTIONS": options, "JSIMD_FORCENONE": "1"}
    return variables


def program():
    """The wheel's tritonserver, which a wheel may bring without the right to run it."""
    executable = wheel_path() / "bin" / "tritonserver"
    if not os.access(executable, os.X_OK):
        executable.chmod(executable.stat().st_mode | 0o111)
    return executable


def free_ports(count):
    try:
        last = int(Path(EPHEMERAL_PORTS).read_text().split()[0])
    except OSError:
        last = 32_768
    last = max(last, 2 * FIRST_PORT)
    found = []
    for port in random.sample(range(FIRST_PORT, last), 200):
        with socket.socket() as tried:
            try:
                tried.bind((LOOPBACK, port))
            except OSError:
                continue
            found.append(port)
        if len(found) == count:
            return found
    raise ServerError(f"no {count} free ports among {FIRST_PORT} to {last}")


class Server:
    """A server over `repository`, from `with` to the end of its block, on free ports of the loopback interface.

    - `models`: load only these (and what they consist of); all by default.
    - `arguments`: further arguments of `tritonserver`; `environment`: further variables.
    - `metrics`: wait for the metrics port, too.
    - `strict`: leave the block's start with an error when a model does not load; else see `model_ready`.
    """

    def __init__(
        self, repository, *, models=None, backends=None, arguments=(), environment=None, strict=True, metrics=True
    ):
        self.repository = Path(repository).resolve()
        self.models = models
        self.backends = backends
        self.arguments = list(arguments)
        self.environment = environment or {}
        self.strict = strict
        self.waits_for_metrics = metrics
        self.process = None
        self.ready_seconds = None

    def __enter__(self):
        if not self.repository.is_dir():
            raise ServerError(f"`{self.repository}` is not a directory of models")
        self.folder = tempfile.TemporaryDirectory(prefix="gesso-server-")
        self.log_path = Path(self.folder.name) / "server.log"
        try:
            for attempt in range(1, PORT_ATTEMPTS + 1):
                self._start()
                if self._wait_ready():
                    return self
                if "in use" not in self.log or attempt == PORT_ATTEMPTS:
                    raise ServerError(f"the server did not start:\n{self.log_tail()}")
            raise AssertionError("the last attempt returns or raises")
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def __exit__(self, kind=None, *_):
        interrupted = kind is not None and not issubclass(kind, Exception)
        self.stop(INTERRUPTED_SECONDS if interrupted else EXIT_SECONDS + 5)
        report = self.report
        self.folder.cleanup()
        if report and kind is None:
            raise ServerError(report)

    def _start(self):
        http, grpc, metrics = free_ports(3)
        self.http_url, self.grpc_url = f"{LOOPBACK}:{http}", f"{LOOPBACK}:{grpc}"
        self.metrics_url = f"{LOOPBACK}:{metrics}"
        command = [
            str(program()),
            f"--model-repository={self.repository}",
            f"--backend-directory={self.backends or assemble_backends()}",
            f"--exit-on-error={'true' if self.strict else 'false'}",
            f"--exit-timeout-secs={EXIT_SECONDS}",
            f"--http-address={LOOPBACK}",
            f"--http-port={http}",
            f"--grpc-address={LOOPBACK}",
            f"--grpc-port={grpc}",
            f"--metrics-address={LOOPBACK}",
            f"--metrics-port={metrics}",
        ]
        if self.models is not None:
            command += ["--model-control-mode=explicit", *(f"--load-model={name}" for name in self.models)]
        self.began, self.ready_seconds = time.monotonic(), None
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", ENDS_WITH_US, *command, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment() | self.environment,
                # Ctrl-C reaches only us: we stop the server, once. Should we be killed, it goes with us.
                start_new_session=True,
            )

    def _wait_ready(self):
        """True when ready; false when the process ended first."""
        # Without `strict`, a model that failed keeps the server from being ready: live is what can be had.
        path = "v2/health/ready" if self.strict else "v2/health/live"
        while time.monotonic() - self.began < READY_SECONDS:
            if self.process.poll() is not None:
                return False
            try:
                self.http(path)
                self.ready_seconds = self.ready_seconds or time.monotonic() - self.began
                # gRPC is up before HTTP, the metrics only after it.
                _ = self.waits_for_metrics and self.metrics
            except (OSError, HTTPException):
                time.sleep(0.01)
                continue
            # Another server may have taken the port, and answer in the place of ours.
            if STARTED + self.http_url in self.log:
                return True
            time.sleep(0.01)
        raise ServerError(f"the server was not ready after {READY_SECONDS} s:\n{self.log_tail()}")

    def stop(self, patience=EXIT_SECONDS + 5):
        """Ends the server, by force after `patience` seconds; returns its exit status, 0 when it left in order.

        May be called twice.
        """
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode

    @property
    def pid(self):
        return self.process.pid

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    @property
    def rss(self):
        """Resident memory of the server's process in bytes; Python models live in processes of their own."""
        return resident_bytes(self.pid)

    @property
    def log(self):
        return self.log_path.read_text(encoding="utf-8", errors="replace") if self.log_path.exists() else ""

    @property
    def report(self):
        """What a sanitizer reported, or None."""
        found = REPORTS.search(self.log)
        return self.log[found.start() :][:REPORT_LENGTH] if found else None

    def log_tail(self, lines=TAIL_LINES):
        """What went wrong, wherever it stands in the log, and the log's end; without the server's tables."""
        plain = [line for line in self.log.splitlines() if line.strip() and line[0] not in "+|"]
        errors = [line for line in plain[:-lines] if re.match(r"E\d{4} ", line)]
        return "\n".join(errors[-lines:] + plain[-lines:])

    def http(self, path):
        """The body of a GET; an `OSError` when the server refuses or is not there."""
        with urllib.request.urlopen(f"http://{self.http_url}/{path}", timeout=GET_SECONDS) as answer:
            return answer.read()

    @property
    def metrics(self):
        """Prometheus text."""
        with urllib.request.urlopen(f"http://{self.metrics_url}/metrics", timeout=GET_SECONDS) as answer:
            return answer.read().decode()

    def model_ready(self, name):
        try:
            self.http(f"v2/models/{name}/ready")
        except urllib.error.HTTPError:
            return False
        return True

    def model_config(self, name):
        """The configuration in force, after the backend completed it."""
        return json.loads(self.http(f"v2/models/{name}/config"))


def wait_until(done, what, seconds=120):
    """Waits until `done()` is true, for as long as only a fault takes: a busy machine may let any thread wait for
    seconds."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain until {what}"
        time.sleep(0.01)


def resident_bytes(pid):
    """Resident memory of a process in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024
