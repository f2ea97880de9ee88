"""Recorded pipelines of tests/conformance as models in a repository: their files, inputs and DALI's answers."""

import json
import zipfile
from pathlib import Path

import numpy as np
from harness import ROOT

DATA = ROOT / "tests" / "conformance" / "data"
GPU_DATA = ROOT / "tests" / "conformance" / "gpu"


class Case:
    """One recorded pipeline: `pipeline` is the serialized file; `inputs` and `outputs` hold an array per sample."""

    def __init__(self, archive, entry):
        def load(a):
            return np.frombuffer(archive.read(a["key"]), a["dtype"]).reshape(a["shape"])

        self.name = entry["name"]
        self.tol = entry["tol"]
        self.pipeline = load(entry["pipeline"]).tobytes()
        self.inputs = {name: [load(s) for s in samples] for name, samples in entry["inputs"].items()}
        self.outputs = [[load(s) for s in samples] for samples in entry["outputs"]]

    @property
    def samples(self):
        return range(len(self.outputs[0]))


def recorded_on_gpu(module):
    """The cases of gpu/MODULE.zip by name, with what DALI answered on a GPU; None where that was not recorded."""
    return cases(module, GPU_DATA) if (GPU_DATA / f"{module}.zip").is_file() else None


def cases(module, folder=DATA):
    """The cases of data/MODULE.zip by name."""
    with zipfile.ZipFile(folder / f"{module}.zip") as archive:
        index = json.loads(archive.read("index.json"))
        return {entry["name"]: Case(archive, entry) for entry in index["cases"]}


def write_model(repository, name, pipeline, config='backend: "gesso"\n', version=1, filename="model.dali"):
    """Makes the directory of a model; `config=None` writes no config.pbtxt."""
    folder = Path(repository) / name
    (folder / str(version)).mkdir(parents=True)
    (folder / str(version) / filename).write_bytes(pipeline)
    if config is not None:
        (folder / "config.pbtxt").write_text(config)
    return folder
