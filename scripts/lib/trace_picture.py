"""The picture of docs/guides/triton-features.md: one request's trace over time, the server's stages above, Gesso's
spans below.

    .venv/bin/python scripts/lib/trace_picture.py             draws the recorded trace anew
    .venv/bin/python scripts/lib/trace_picture.py --record    asks a real server first; --gpu: of an instance on a GPU

The recorded trace is the server's own file, tests/benches/trace.json. The same trace makes the same bytes. `--trace`
and `--picture` name other files.
"""

import argparse
import json
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "tests" / "benches" / "trace.json"
PICTURE = ROOT / "docs" / "guides" / "trace-of-a-request.svg"
PHOTOS, WARM_REQUESTS = 4, 5
# What the server says of a request: a name, where it begins and where it ends.
STAGES = (
    ("whole request", "REQUEST_START", "REQUEST_END"),
    ("queue", "QUEUE_START", "COMPUTE_START"),
    ("compute", "COMPUTE_START", "COMPUTE_END"),
)
# In pixels: names stand left of `LEFT`, durations right of `RIGHT`.
WIDTH, LEFT, RIGHT, ROW, TOP = 860, 230, 750, 26, 44
STYLE = """<style>
.ground { fill: #ffffff } .text { fill: #1f2328 } .line { stroke: #d0d7de } .server { fill: #8c959f } .gesso { fill: #1f6feb }
@media (prefers-color-scheme: dark) {
.ground { fill: #0d1117 } .text { fill: #e6edf3 } .line { stroke: #30363d } .server { fill: #768390 } .gesso { fill: #58a6ff }
}
</style>"""


class Span(NamedTuple):
    """A line of the picture, in microseconds from the beginning of the request."""

    name: str
    owner: str
    start: float
    end: float


def spans(entries):
    """The spans of the first request in a trace of Triton's: the server's, then Gesso's in the order of time."""
    first = entries[0]["id"]
    stamps = [stamp for entry in entries if entry["id"] == first for stamp in entry.get("timestamps", [])]
    times = {stamp["name"]: stamp["ns"] for stamp in stamps}
    missing = {name for _, *ends in STAGES for name in ends} - times.keys()
    if missing:
        raise ValueError(f"expected a trace with level TIMESTAMPS, found none of {', '.join(sorted(missing))}")
    zero = times["REQUEST_START"]

    def span(name, owner, start, end):
        return Span(name, owner, (times[start] - zero) / 1e3, (times[end] - zero) / 1e3)

    own = [
        span(name, "gesso", f"{name}_START", f"{name}_END")
        for name in (stamp.removesuffix("_START") for stamp in times if stamp.endswith("_START"))
        if not name.isupper() and f"{name}_END" in times
    ]
    return [span(name, "server", *ends) for name, *ends in STAGES] + sorted(own, key=lambda each: each.start)


def step(longest):
    """A round distance of the scale's lines, so that there are at most ten."""
    sizes = (base * 10**power for power in range(12) for base in (1, 2, 5))
    return next(size for size in sizes if longest / size <= 10)


def picture(entries):
    """The SVG of a trace."""
    lines = spans(entries)
    longest = max(each.end for each in lines)
    bottom = TOP + ROW * len(lines) + 8

    def across(microseconds):
        return LEFT + (RIGHT - LEFT) * microseconds / longest

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 30}" width="{WIDTH}" '
        f'height="{bottom + 30}" font-family="sans-serif" font-size="13">',
        STYLE,
        '<rect class="ground" width="100%" height="100%"/>',
        '<rect class="server" x="12" y="14" width="12" height="12"/><text class="text" x="30" y="25">the server</text>',
        '<rect class="gesso" x="122" y="14" width="12" height="12"/><text class="text" x="140" y="25">Gesso</text>',
    ]
    every = step(longest)
    for tick in range(0, int(longest) + 1, every):
        x = f"{across(tick):.1f}"
        parts.append(f'<path class="line" d="M{x} {TOP - 6}V{bottom}"/>')
        unit = " µs" if tick + every > longest else ""
        parts.append(f'<text class="text" x="{x}" y="{bottom + 18}" text-anchor="middle">{tick:,}{unit}</text>')
    for number, each in enumerate(lines):
        top = TOP + ROW * number
        start, end = across(each.start), across(each.end)
        parts.append(f'<text class="text" x="{LEFT - 10}" y="{top + 14}" text-anchor="end">{escape(each.name)}</text>')
        # A span that is shorter than a pixel is still seen.
        size = f'x="{start:.1f}" y="{top + 2}" width="{max(end - start, 1):.1f}" height="{ROW - 8}"'
        parts.append(f'<rect class="{each.owner}" {size}/>')
        parts.append(f'<text class="text" x="{end + 6:.1f}" y="{top + 14}">{each.end - each.start:,.0f} µs</text>')
    return "\n".join([*parts, "</svg>", ""])


def record(path, gpu):
    """Writes the trace of one request to a real server: JPEGs that are decoded, resized and normalized."""
    sys.path[:0] = [str(ROOT / "tests" / "server"), str(ROOT / "python")]
    import numpy as np
    import tritonclient.grpc as triton
    from contract_models import CLASSIFY, config, tensor
    from harness import CACHE, Server
    from recorded import write_model
    from sending import strings

    photos = [file.read_bytes() for file in sorted((CACHE / "photos").glob("*.jpg"))[:PHOTOS]]
    with tempfile.TemporaryDirectory(prefix="gesso-trace-") as folder:
        kind = f"instance_group [ {{ kind: {'KIND_GPU' if gpu else 'KIND_CPU'} count: 1 }} ]"
        lines = ["max_batch_size: 8", tensor("input", "IMAGE", "STRING", 1), kind]
        write_model(Path(folder) / "models", "photos", CLASSIFY.pipeline, config(*lines, backend="gesso"))
        written = Path(folder) / "trace.json"
        arguments = [f"--trace-config=triton,file={written}", "--trace-config=level=TIMESTAMPS"]
        # Only the last one of them.
        arguments += [f"--trace-config=rate={WARM_REQUESTS}", "--trace-config=count=1"]
        with Server(Path(folder) / "models", arguments=arguments) as server:
            with triton.InferenceServerClient(server.grpc_url) as client:
                for number in range(WARM_REQUESTS):
                    answer = client.infer("photos", [strings("IMAGE", photos)], request_id=f"request {number + 1}")
                    assert np.isfinite(answer.as_numpy("PIXELS")).all()
            # Then it writes what it has.
            server.stop()
        path.write_text(json.dumps(json.loads(written.read_text()), indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="ask a real server first")
    parser.add_argument("--gpu", action="store_true", help="of an instance on a GPU")
    parser.add_argument("--trace", type=Path, default=TRACE)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    if options.record:
        record(options.trace, options.gpu)
    options.picture.write_text(picture(json.loads(options.trace.read_text())), encoding="utf-8")


if __name__ == "__main__":
    main()
