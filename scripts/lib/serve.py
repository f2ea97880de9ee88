"""Becomes the demo's tritonserver over a model repository: `serve.py MODELS [ARGUMENT...]`; arguments are
tritonserver's."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "server"))
from harness import LOOPBACK, ServerError, assemble_backends, environment, program


def main():
    models, *arguments = sys.argv[1:]
    try:
        server, backends = program(), assemble_backends()
    except ServerError as error:
        raise SystemExit(f"error: {error}") from None
    addresses = [f"--{service}-address={LOOPBACK}" for service in ("http", "grpc", "metrics")]
    # Of an argument that comes twice, the last one counts.
    words = [str(server), f"--model-repository={models}", f"--backend-directory={backends}", *addresses, *arguments]
    os.execve(server, words, environment())


if __name__ == "__main__":
    main()
