"""Processes that train together, as torchrun starts them: each reads its part, and all of them every sample once an
epoch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import gesso
import pytest

SAMPLES = 23
SCRIPT = """
import json, sys
import torch.distributed as distributed
from gesso import fn, pipeline_def
from gesso.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy

folder, epochs, batches, state = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
distributed.init_process_group("gloo")

@pipeline_def(batch_size=3, num_threads=1, seed=5, enable_checkpointing=True)
def define():
    data, labels = fn.readers.file(
        file_root=folder, file_filters=["*"], shards="auto", random_shuffle=True, pad_last_batch=True, name="files"
    )
    return data, labels

try:
    saved = open(state, "rb").read()
except FileNotFoundError:
    saved = None
iterator = DALIClassificationIterator(
    define(checkpoint=saved), reader_name="files", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True
)
seen = []
for epoch in range(epochs):
    seen.append([int(v) for batch in iterator for v in batch[0]["data"].ravel()])
seen.append([int(v) for _ in range(batches) for v in next(iterator)[0]["data"].ravel()])
everyone = [None] * distributed.get_world_size()
distributed.all_gather_object(everyone, seen)
if distributed.get_rank() == 0:
    open(state, "wb").write(iterator.checkpoints()[0])
    print("SEEN", json.dumps(everyone))
distributed.destroy_process_group()
"""


def torchrun(script, processes, *words):
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        f"--nproc_per_node={processes}",
        str(script),
        *map(str, words),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(gesso.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("SEEN")]
    assert done.returncode == 0 and lines, done.stderr[-3000:]
    return json.loads(lines[0][4:])


def test_torchrun_with_two_processes_and_then_one(tmp_path):
    pytest.importorskip("torch")
    folder = tmp_path / "images" / "a"
    folder.mkdir(parents=True)
    for i in range(SAMPLES):
        (folder / f"{i:02}").write_bytes(bytes([i]))
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    everyone = torchrun(script, 2, folder.parent, 2, 2, tmp_path / "state")
    assert len(everyone) == 2
    for epoch in range(2):
        assert sorted(everyone[0][epoch] + everyone[1][epoch]) == list(range(SAMPLES))
    begun = everyone[0][2] + everyone[1][2]
    assert len(begun) == 12
    (alone,) = torchrun(script, 1, folder.parent, 2, 0, tmp_path / "state")
    assert sorted(begun + alone[0]) == list(range(SAMPLES)) == sorted(alone[1])
