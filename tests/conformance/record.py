#!/usr/bin/env python3
"""Records what real DALI answers, for tests/conformance: small pipelines, their inputs and their outputs.

    record.py [MODULE ...]      records cases/MODULE.py (default: all) into data/MODULE.zip
    record.py --check           runs every recorded pipeline with the DALI that is installed and compares
    record.py --gpu             on a GPU: records what the pipelines made for one answer there, into gpu/MODULE.zip

A case whose name ends in `_on_the_host` has answers that DALI gives on a CPU alone: tests do not run it on a device.
A module whose cases have `batches` goes into batches/: what one pipeline answers run after run.

Cases of operators that DALI has on a GPU only are answered by OpenCV, LZ4 and numpy:
`pip install opencv-python-headless lz4`. Needs the package nvidia-dali-cuda130 and, but for --gpu, no GPU. The files in
data/ were recorded with the version that each of them names under `dali` in its index. Each is a zip of raw arrays, and
of `index.json` that says what each array is."""

import argparse
import importlib
import json
import pathlib
import sys
import zipfile

import numpy as np
import nvidia.dali
from nvidia.dali import Pipeline, fn, pipeline_def, types
from nvidia.dali._utils import dali_trace

HERE = pathlib.Path(__file__).parent
BATCH = 3
MADE_FOR_GPU = "_made_for_gpu"
CASES = []
SOURCES = {}


def case(tol=0.0, mean=None, inputs=None, devices=False, batches=None, answer=None, **pipeline):
    """Declares a case: a function that returns the outputs of a pipeline. `inputs` is a dict of name to list of arrays
    (one per sample). `tol`: largest allowed difference; `mean`: largest allowed mean difference. With `devices` the
    function takes the device, and a second case holds the file made for a GPU with the answers of the CPU. `batches`:
    how many of the samples each run gets, when there is more than one. `answer`: a function of the inputs that answers
    in DALI's place, for an operator that DALI has on a GPU only."""

    def register(function):
        def declare(name, serialized, answering):
            CASES.append(
                dict(
                    module=function.__module__,
                    name=name,
                    function=serialized,
                    answering=answering,
                    tol=tol,
                    mean=mean,
                    inputs=inputs or {},
                    batches=batches,
                    answer=answer,
                    pipeline=pipeline,
                )
            )

        name = function.__name__
        if devices:
            # No lambdas: conditionals are found in the source text.
            def on_cpu():
                return function("cpu")

            def on_gpu():
                return function("gpu")

            declare(name, on_cpu, on_cpu)
            declare(name + MADE_FOR_GPU, on_gpu, on_cpu)
        else:
            declare(name, function, function)
        return function

    return register


def source(name, dtype=types.UINT8, ndim=None, layout=None):
    """The input `name`; asked for again within a case, the same one."""
    if name not in SOURCES:
        SOURCES[name] = fn.external_source(device="cpu", name=name, dtype=dtype, ndim=ndim, layout=layout)
    return SOURCES[name]


def noise(*shapes, dtype=np.uint8, seed=1):
    """One array of random values per shape: smooth enough to survive JPEG, rough enough to show a shift by a pixel."""
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return [rng.integers(info.min, info.max, s, dtype=dtype, endpoint=True) for s in shapes]
    return [rng.normal(scale=50, size=s).astype(dtype) for s in shapes]


def run(serialized, inputs, device_id=None, batches=None):
    pipe = Pipeline.deserialize(
        serialized, prefetch_queue_depth=1, **({} if device_id is None else {"device_id": device_id})
    )
    pipe.build()
    first, outputs = 0, None
    for batch in batches or [len(next(iter(inputs.values()))) if inputs else BATCH]:
        for name, samples in inputs.items():
            pipe.feed_input(name, samples[first : first + batch])
        made = [out.as_cpu() for out in pipe.run()]
        outputs = outputs or [[] for _ in made]
        for samples, out in zip(outputs, made):
            samples += [np.array(out.at(i)) for i in range(batch)]
        first += batch
    return outputs


def record(module, gpu=False):
    CASES.clear()
    # A module that another one borrows from declares its cases again.
    for name in [name for name in sys.modules if name.startswith("cases.")]:
        del sys.modules[name]
    # DALI otherwise stores the Python stack of every operator, with file names of the machine that records.
    dali_trace.set_tracing(enabled=False)
    importlib.import_module(f"cases.{module}")
    arrays, index = {}, []

    def keep(array):  # equal arrays are stored once
        data = np.ascontiguousarray(array).tobytes()
        key = next((key for key, known in arrays.items() if known == data), f"a{len(arrays)}")
        arrays[key] = data
        return dict(key=key, dtype=array.dtype.name, shape=list(array.shape))

    # A module may borrow from another one, whose cases are then declared too.
    chosen = [c for c in CASES if c["module"] == f"cases.{module}" and (not gpu or c["name"].endswith(MADE_FOR_GPU))]
    if not chosen:
        return
    for c in chosen:
        kwargs = dict(batch_size=BATCH, num_threads=1, device_id=None, prefetch_queue_depth=1) | c["pipeline"]

        def serialize(function):
            SOURCES.clear()
            return pipeline_def(**kwargs)(function)().serialize()

        try:
            serialized = serialize(c["function"])
            if c["answer"]:
                outputs = c["answer"](**c["inputs"])
            else:
                outputs = (
                    run(serialized, c["inputs"], 0)
                    if gpu
                    else run(serialize(c["answering"]), c["inputs"], batches=c["batches"])
                )
        except Exception as error:
            if not gpu:
                sys.exit(f"{module}.{c['name']}: {error}")
            print(f"{module}.{c['name']} has no answer on a GPU: {error}")
            continue
        index.append(
            dict(
                name=c["name"],
                tol=c["tol"],
                mean=c["mean"],
                pipeline=keep(np.frombuffer(serialized, np.uint8)),
                inputs={name: [keep(np.asarray(s)) for s in samples] for name, samples in c["inputs"].items()},
                outputs=[[keep(s) for s in samples] for samples in outputs],
            )
            | ({"batches": c["batches"]} if c["batches"] else {})
            | ({"answered_by": c["answer"].__doc__} if c["answer"] else {})
        )
    path = HERE / ("gpu" if gpu else "batches" if chosen[0]["batches"] else "data") / f"{module}.zip"
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def write(name, data):  # with a fixed date, so that recording twice gives the same file
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)

        write("index.json", json.dumps(dict(dali=nvidia.dali.__version__, cases=index), indent=1))
        for key, data in arrays.items():
            write(key, data)
    print(f"{module}: {len(index)} cases, {path.stat().st_size >> 10} KiB")


def check():
    count = 0
    for path in sorted([*(HERE / "data").glob("*.zip"), *(HERE / "batches").glob("*.zip")]):
        archive = zipfile.ZipFile(path)
        index = json.loads(archive.read("index.json"))
        load = lambda a: np.frombuffer(archive.read(a["key"]), a["dtype"]).reshape(a["shape"])
        for c in index["cases"]:
            if c["name"].endswith(MADE_FOR_GPU) or "answered_by" in c:
                continue
            inputs = {name: [load(s) for s in samples] for name, samples in c["inputs"].items()}
            outputs = run(load(c["pipeline"]).tobytes(), inputs, batches=c.get("batches"))
            for k, samples in enumerate(c["outputs"]):
                for i, sample in enumerate(samples):
                    live, recorded = outputs[k][i], load(sample)
                    assert live.dtype == recorded.dtype and live.shape == recorded.shape, (path.stem, c["name"], k, i)
                    # Reciprocal roots are as the processor approximates them.
                    np.testing.assert_allclose(
                        live,
                        recorded,
                        rtol=1e-6,
                        atol=c["tol"],
                        err_msg=f"{path.stem}.{c['name']} output {k} sample {i}",
                    )
            count += 1
    print(f"{count} passed, 0 failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args()
    if options.check:
        return check()
    for module in options.modules or sorted(p.stem for p in (HERE / "cases").glob("*.py")):
        record(module, options.gpu)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    # A case module imports `record`; it must be this one, not a second copy.
    sys.modules["record"] = sys.modules["__main__"]
    main()
