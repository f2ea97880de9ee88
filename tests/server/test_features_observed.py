"""What watches a server sees of models of Gesso: traces of requests, a dashboard, and alerts of Prometheus."""

import json
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from contract_models import CLASSIFY, config
from harness import LOOPBACK, ROOT, Server, free_ports, wait_until
from protocols import Client
from recorded import write_model
from traced import Traced

IMAGE = {"IMAGE": CLASSIFY.inputs["IMAGE"][0][None]}
SPOILT = {"IMAGE": CLASSIFY.inputs["IMAGE"][0][None, :400]}
# What the server itself says of a request, in the order of time.
STAGES = ["REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]
# What Gesso says.
SPANS = ["gather", "decoders__Image + Resize", "CropMirrorNormalize", "answer"]
ALERTS = ROOT / "packaging/prometheus"
DASHBOARD = ROOT / "packaging/grafana/gesso.json"


def test_a_trace_tells_where_a_request_was(features):
    with Traced(features, "plain") as traced, Client("grpc", features) as client:
        client.infer("plain", IMAGE, request_id="order 9")
        (found,) = traced.requests(1)
    assert (found.request, found.model) == ("order 9", "plain")
    times = [found.times[stage] for stage in STAGES]
    assert times == sorted(times)
    starts = [found.times[f"{span}_START"] for span in SPANS]
    ends = [found.times[f"{span}_END"] for span in SPANS]
    assert starts == sorted(starts) and all(start <= end for start, end in zip(starts, ends))
    assert found.times["COMPUTE_START"] <= starts[0] and ends[-1] <= found.times["COMPUTE_END"]


class Collector:
    """Takes traces as OpenTelemetry sends them over HTTP."""

    def __enter__(self):
        self.spans = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                for resource in body["resourceSpans"]:
                    for scope in resource["scopeSpans"]:
                        outer.spans += scope["spans"]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"http://{LOOPBACK}:{self.server.server_port}/v1/traces"


def test_opentelemetry_gets_the_spans_of_a_request(tmp_path):
    """They belong to the trace that the client's header names."""
    write_model(tmp_path, "plain", CLASSIFY.pipeline, config("max_batch_size: 8", backend="gesso"))
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with Collector() as collector:
        arguments = ["mode=opentelemetry", "level=TIMESTAMPS", "rate=1", f"opentelemetry,url={collector.url}"]
        arguments = [f"--trace-config={each}" for each in [*arguments, "opentelemetry,bsp_schedule_delay=100"]]
        with Server(tmp_path, arguments=arguments) as server, Client("grpc", server) as client:
            client.infer("plain", IMAGE, headers={"traceparent": f"00-{trace}-{parent}-01"})
            wait_until(lambda: any(span["name"] == "InferRequest" for span in collector.spans), "spans are sent")
    spans = {span["name"]: span for span in collector.spans}
    assert {span["traceId"] for span in collector.spans} == {trace}
    assert spans["InferRequest"]["parentSpanId"] == parent
    assert spans["plain"]["parentSpanId"] == spans["InferRequest"]["spanId"]
    for name in ("compute", *SPANS):
        assert spans[name]["parentSpanId"] == spans["plain"]["spanId"]


def prometheus(name="prometheus"):
    """The program of Prometheus, or of its tools."""
    return shutil.which(name) or pytest.skip(f"no {name}: the package `prometheus` of Debian has it")


def test_alerts_come_when_they_should():
    done = subprocess.run(
        [prometheus("promtool"), "test", "rules", ALERTS / "alerts.test.yml"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def expressions():
    """The dashboard's, for all models and servers."""
    values = {"$model": ".*", "$instance": ".*", "$__rate_interval": "10s"}
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            expression = target["expr"]
            for name, value in values.items():
                expression = expression.replace(name, value)
            yield panel["title"], expression


def test_the_dashboard_and_the_alerts_name_metrics_that_there_are(features):
    text = (ALERTS / "alerts.yml").read_text() + "\n".join(expression for _, expression in expressions())
    named = set(re.findall(r"\b(?:gesso|nv)_\w+", text))
    shown = set(re.findall(r"^# TYPE (\w+) ", features.metrics, re.MULTILINE))
    assert len(named) > 10 and named <= shown, named - shown


def test_prometheus_shows_the_dashboard(features, tmp_path):
    """A real one, that reads the server every second and has the alerts."""
    program = prometheus()
    (tmp_path / "alerts.yml").write_text((ALERTS / "alerts.yml").read_text())
    jobs = [{"job_name": "triton", "scrape_interval": "1s", "static_configs": [{"targets": [features.metrics_url]}]}]
    # JSON is YAML.
    (tmp_path / "prometheus.yml").write_text(json.dumps({"rule_files": ["alerts.yml"], "scrape_configs": jobs}))
    (port,) = free_ports(1)
    address = f"{LOOPBACK}:{port}"
    options = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    with open(tmp_path / "log", "wb") as log:
        running = subprocess.Popen([program, *options, f"--web.listen-address={address}"], stdout=log, stderr=log)
    try:
        with Client("grpc", features) as client:

            def asked(query):
                client.infer("plain", IMAGE)
                assert "JPEG" in client.refusal("plain", SPOILT)
                return ask(address, query)

            missing = {expression: title for title, expression in expressions()}
            # No model of this server takes videos.
            missing = {expression: title for expression, title in missing.items() if "frames" not in expression}

            def complete():
                for expression in [expression for expression in missing if asked(expression)]:
                    del missing[expression]
                return not missing

            wait_until(complete, "every panel has a line")
        assert ask(address, 'up{job="triton"}')[0]["value"][1] == "1"
        assert len(ask(address, "gesso_input_bytes_total")) > 5
    finally:
        running.terminate()
        running.wait()


def ask(address, query):
    """The answer of Prometheus: a list of series; empty where it is not up yet."""
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}") as got:
            answer = json.load(got)
    except OSError:
        time.sleep(0.1)
        return []
    assert answer["status"] == "success", answer
    return answer["data"]["result"]
