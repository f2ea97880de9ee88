"""What the server writes of single requests when it traces a model."""

import json

from feature_models import traces
from harness import wait_until
from protocols import Client


class TracedRequest:
    """One request: its id, and when it came to each point, in nanoseconds."""

    def __init__(self, entries):
        self.request = next((entry["request_id"] for entry in entries if "request_id" in entry), "")
        self.model = next((entry["model_name"] for entry in entries if "model_name" in entry), "")
        stamps = [stamp for entry in entries for stamp in entry.get("timestamps", [])]
        self.times = {stamp["name"]: stamp["ns"] for stamp in stamps}


class Traced:
    """The server traces every request to `model` in the block."""

    def __init__(self, server, model):
        self.server, self.model = server, model

    def __enter__(self):
        self.known = set(self.files())
        self.set(trace_level=["TIMESTAMPS"], trace_rate="1", trace_count="-1", log_frequency="1")
        return self

    def __exit__(self, *_):
        self.set(trace_level=["OFF"])

    def set(self, **settings):
        with Client("grpc", self.server) as client:
            client.connected.update_trace_settings(self.model, settings)

    def files(self):
        first = traces(self.server.repository)
        return first.parent.glob(f"{first.name}*")

    def requests(self, count):
        """The next `count` requests that the server has written."""
        found = {}

        def written():
            for path in set(self.files()) - self.known:
                try:
                    entries = json.loads(path.read_text())
                except ValueError:
                    # It is being written.
                    continue
                for entry in entries:
                    found.setdefault(entry["id"], []).append(entry)
                self.known.add(path)
            return len(found) >= count

        wait_until(written, f"{count} requests are traced")
        return [TracedRequest(entries) for entries in found.values()]
