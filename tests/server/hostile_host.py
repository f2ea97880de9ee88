"""A host for files by their address, on the loopback interface, that answers as no host should: by the path that it is
asked for. Nothing here knows a server of models."""

import re
import socket
import socketserver
import threading
import time
from urllib.parse import parse_qs, unquote, urlsplit

from harness import LOOPBACK

# So long answers drip that are never whole.
FOREVER_SECONDS = 3_600
# Bytes of an answer without an end.
PART = b"x" * 65_536


class Host(socketserver.ThreadingTCPServer):
    """Answers from `with` to the end of its block. `files`: bytes by name, behind /ok/. `asked` counts by path; `heads`
    keeps what came before the bytes. With a `context` it speaks TLS."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 1_024

    def __init__(self, files, context=None):
        super().__init__((LOOPBACK, 0), Handler)
        self.files, self.context = files, context
        self.asked, self.heads, self.lock = {}, [], threading.Lock()
        self.closing = threading.Event()
        # Behind /held/ files come once this is set; how many have waited at a time.
        self.released, self.held, self.most_held = threading.Event(), 0, 0

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.released.set()
        self.shutdown()
        self.server_close()

    @property
    def port(self):
        return self.server_address[1]

    def url(self, path):
        return f"http://{LOOPBACK}:{self.port}/{path}"

    def get_request(self):
        connection, address = super().get_request()
        if self.context:
            # The handshake is its own thread's.
            connection = self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def handle_error(self, *_):
        """A client that goes is none."""


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        head = b""
        while b"\r\n\r\n" not in head:
            part = self.request.recv(65_536)
            if not part:
                return
            head += part
        first, *lines = head.decode("latin-1").split("\r\n")
        path = urlsplit(first.split(" ")[1])
        with self.server.lock:
            self.server.asked[path.path] = self.server.asked.get(path.path, 0) + 1
            self.server.heads = [*self.server.heads[-99:], head.decode("latin-1")]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        kind, _, name = path.path.lstrip("/").partition("/")
        query = {key: values[0] for key, values in parse_qs(path.query).items()}
        answer = getattr(self, re.sub(r"\W", "_", f"answer_{kind}"), self.answer_none)
        answer(unquote(name), query, headers)

    def send(self, status, body=b"", **headers):
        lines = [f"HTTP/1.1 {status} X"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if not any(name.lower() == "content_length" for name in headers):
            lines.append(f"Content-Length: {len(body)}")
        self.request.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def drip(self, data):
        """Sends a byte now and then until the other side goes."""
        end = time.monotonic() + FOREVER_SECONDS
        while time.monotonic() < end and not self.server.closing.wait(0.05):
            self.request.sendall(data)

    def answer_none(self, *_):
        self.send(404, b"secret of the host")

    def answer_ok(self, name, query, headers):
        body = self.server.files.get(name)
        if body is None:
            return self.answer_none()
        if "wait" in query:
            self.server.closing.wait(float(query["wait"]))
        self.send(200, body)

    def answer_held(self, name, query, headers):
        with self.server.lock:
            self.server.held += 1
            self.server.most_held = max(self.server.held, self.server.most_held)
        while not (self.server.released.wait(0.05) or self.server.closing.is_set()):
            pass
        with self.server.lock:
            self.server.held -= 1
        self.send(200, self.server.files[name])

    def answer_tagged(self, name, query, headers):
        """With a version, which a client may ask by."""
        if headers.get("if-none-match") == '"1"':
            return self.send(304)
        self.send(200, self.server.files[name], ETag='"1"')

    def answer_moved(self, name, query, headers):
        """With a version at first; then it leads to another file, whose host has a version of that name, too."""
        with self.server.lock:
            is_first = self.server.asked[f"/moved/{name}"] == 1
        if is_first:
            return self.send(200, self.server.files[name], ETag='"1"')
        self.send(302, b"", Location="/tagged/" + query["where"])

    def answer_gs_files(self, name, query, headers):
        """A bucket, for those that it knows."""
        if not headers.get("authorization", "").startswith("Bearer "):
            return self.send(401)
        self.send(200, self.server.files[name])

    def answer_status(self, name, query, headers):
        self.send(int(name), b"secret of the host")

    def answer_to(self, name, query, headers):
        """Leads to `where`, in which PORT is our own."""
        self.send(302, b"", Location=query["where"].replace("PORT", str(self.server.port)))

    def answer_loop(self, name, query, headers):
        self.send(302, b"", Location="/loop/" + name + "x")

    def answer_slow_head(self, *_):
        self.request.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        self.drip(b"x")

    def answer_slow_body(self, *_):
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        self.drip(b"x")

    def answer_silent(self, *_):
        self.server.closing.wait(FOREVER_SECONDS)

    def answer_endless(self, *_):
        self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while not self.server.closing.is_set():
            self.request.sendall(PART)

    def answer_endless_head(self, *_):
        self.request.sendall(b"HTTP/1.1 200 OK\r\n")
        while not self.server.closing.is_set():
            self.request.sendall(b"X-Y: " + PART + b"\r\n")

    def answer_endless_chunks(self, *_):
        self.request.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not self.server.closing.is_set():
            self.request.sendall(b"10000\r\n" + PART + b"\r\n")

    def answer_says_more(self, *_):
        self.send(200, b"short", Content_Length=100)

    def answer_says_huge(self, *_):
        self.send(200, b"short", Content_Length=10**15)

    def answer_says_less(self, name, query, headers):
        self.send(
            200, self.server.files[name] + b"HTTP/1.1 200 OK\r\n\r\nevil", Content_Length=len(self.server.files[name])
        )

    def answer_says_nonsense(self, *_):
        self.send(200, b"short", Content_Length="-1, 5")

    def answer_compressed(self, *_):
        self.send(200, b"\x1f\x8b" + b"\0" * 100, Content_Encoding="gzip")

    def answer_garbage(self, *_):
        self.request.sendall(b"\0\xff\x16\x03" * 999)

    def answer_nothing(self, *_):
        pass

    def answer_reset(self, *_):
        """Ends the connection in the middle, without a word."""
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx")
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


# Paths of a host and what the client is told. Each is allowed by its address.
ANSWERS = {
    "ok/none": "status 404",
    "status/403": "status 403",
    "status/500": "status 500",
    "status/204": "status 204",
    "status/101": "",
    "loop/a": "too many redirects",
    "slow_head/a": "took longer than 1 s",
    "slow_body/a": "took longer than 1 s",
    "silent/a": "took longer than 1 s",
    "endless/a": "is larger than 1048576 bytes",
    "endless_chunks/a": "is larger than 1048576 bytes",
    "endless_head/a": "cut off or malformed",
    "says_more/a": "cut off or malformed",
    "says_huge/a": "is larger than 1048576 bytes",
    "says_nonsense/a": "",
    "compressed/a": "cut off or malformed",
    "garbage/a": "cut off or malformed",
    "nothing/a": "cut off or malformed",
    "reset/a": "cut off or malformed",
}
# Where hosts lead to that nobody may be led to.
FORBIDDEN = [
    "http://127.0.0.1:PORT/secret/a",
    "http://127.0.0.1:PORT/ok/../secret/a",
    "http://127.0.0.1:PORT/ok/..%2fsecret/a",
    "http://127.0.0.2:PORT/ok/photo",
    "http://localhost:PORT/ok/photo",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:127.0.0.1]:PORT/ok/photo",
    "http://[::1]:PORT/ok/photo",
    "http://u:p@127.0.0.1:PORT/ok/photo",
    "http://2852039166/",
    "https://127.0.0.1:PORT/ok/photo",
    "file:///etc/passwd",
    "gopher://127.0.0.1:PORT/ok/photo",
    "s3://bucket/ok/photo",
]
# Addresses that are refused as they are.
REFUSED = [*FORBIDDEN[:9], "http://127.0.0.1/ok/photo", "http://127.0.0.1:PORT", "http://", "http://%00/", "http://[/"]
