#!/usr/bin/env python3
"""Random pipelines, in real DALI and in Gesso: the same file, the same bytes, compared.

    fuzz.py [--cases N] [--seed S] [--only OPERATOR ...]     draws N pipelines, runs and compares them, makes failures smaller
            [--report docs/conformance.md]                   and writes the page of what was found
    fuzz.py --record N                                       keeps what agrees of the first N, with DALI's answers, in data/fuzz.zip

Needs the package nvidia-dali-cuda130 and cargo, and no GPU. What is drawn for which operator: draw.py, draw_media.py.
"""
import argparse
import collections
import copy
import io
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import nvidia.dali
from nvidia.dali import Pipeline, fn, types
from nvidia.dali._utils import dali_trace
from PIL import Image

import draw
import draw_media  # noqa: F401  (registers what it draws)

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Pixels are averages that may fall on the other side of a half.
ROUNDED = {"Resize", "ResizeCropMirror", "RandomResizedCrop", "TensorResize", "Filter", "GaussianBlur", "Rotate", "WarpAffine", "experimental__WarpPerspective", "PerFrame", "Sphere",
           "Water"}
# Sums whose order differs, of elements up to this.
RELATIVE = 2e-5


def drawn(number, seed, names):
    """Pipeline `number` of those drawn with `seed`."""
    name = names[number % len(names)]
    d = draw.Drawing(np.random.default_rng([seed, number]))
    draw.DRAWS[name](d, name)
    return dict(operator=name, seed=number, inputs=d.inputs, steps=d.steps)


def encoded(options, shape, seed):
    """A file of a picture of `shape`, or of an array."""
    rng = np.random.default_rng(seed)
    out = io.BytesIO()
    if options["format"] == "numpy":
        dtype = np.dtype(options["dtype"])
        array = rng.integers(0, 2, shape) if dtype.kind == "b" else rng.uniform(0 if dtype.kind == "u" else -100, 100, shape)
        np.lib.format.write_array(out, np.ascontiguousarray(array.astype(dtype)) if shape else np.asarray(array).astype(dtype), version=(1, 0))
        return np.frombuffer(out.getvalue(), np.uint8)
    height, width = shape[:2]
    pixels = rng.integers(0, 256, (height // 4 + 1, width // 4 + 1, 3), dtype=np.uint8)
    image = Image.fromarray(pixels).resize((width, height), Image.BILINEAR)
    if options["mode"] == "I;16":
        image = Image.fromarray(np.array(image.convert("L"), np.uint16) * 257 + 13)
    else:
        image = image.convert(options["mode"])
    more = {k: v for k, v in options.items() if k in ("quality", "subsampling", "progressive", "lossless", "compression")}
    if options.get("orientation", 1) > 1:
        more["exif"] = Image.Exif()
        more["exif"][0x112] = options["orientation"]
    if options.get("restart"):
        more["restart_marker_blocks"] = options["restart"]
    image.save(out, options["format"], **more)
    file = bytearray(out.getvalue())
    if "changed" in options:
        place = int(options["changed"] * (len(file) - 1))
        file[place] ^= 1 << int(rng.integers(8))
    if "cut" in options:
        file = file[:max(1, int(options["cut"] * len(file)))]
    return np.frombuffer(bytes(file), np.uint8)


def data(entry):
    """The samples of an input."""
    if "files" in entry:
        return [encoded(options, shape, entry["seed"] + i) for i, (options, shape) in enumerate(zip(entry["files"], entry["shapes"]))]
    rng, dtype = np.random.default_rng(entry["seed"]), np.dtype(entry["dtype"])
    low, high, samples = entry["low"], entry["high"], []
    for shape in entry["shapes"]:
        if dtype.kind == "b":
            sample = rng.integers(0, 2, shape).astype(bool)
        elif dtype.kind == "f":
            sample = rng.normal(scale=60, size=shape) if low is None else rng.uniform(low, high, shape)
        else:
            info = np.iinfo(dtype)
            bounds = (info.min, info.max) if low is None else (max(low, info.min), min(high, info.max))
            sample = rng.integers(*bounds, shape, dtype=dtype, endpoint=True)
        samples.append(np.asarray(sample).astype(dtype))
    return samples


def apply(step, inputs, args):
    """One step in DALI's Python."""
    for name in args:
        if name == "dtype":
            args[name] = types.DALIDataType(args[name])
        if name in ("image_type", "output_type"):
            args[name] = types.DALIImageType(args[name])
        if name == "interp_type":
            args[name] = types.DALIInterpType(args[name])
    if step["op"] == "_shape":
        return inputs[0].shape(**args)
    if step["op"] == "subscript":
        return inputs[0][tuple(i[1] if i[0] == "at" else slice(*i[1:]) for i in args["indices"])]
    if step["op"] == "arithmetic":
        return calculate(args.pop("function"), *inputs, **args)
    if "a" in args:
        inputs = [args.pop("a"), *inputs]
    function = fn
    for part in step["op"].split("."):
        function = getattr(function, part)
    return function(*inputs, **args)


def calculate(function, x, y=None, constant=None, left=False):
    operands = [x] if y is None and constant is None else [x, constant if y is None else y]
    if left:
        operands.reverse()
    operators = dict(add="+", sub="-", mul="*", truediv="/", floordiv="//", eq="==", ne="!=", lt="<", le="<=", gt=">", ge=">=", xor="^", mod="%")
    operators |= {"and": "&", "or": "|"}
    if function in operators:
        return eval(f"a {operators[function]} b", {}, dict(zip("ab", operands)))
    unary = dict(neg="-a", pos="+a", invert="~a")
    if function in unary:
        return eval(unary[function], {}, dict(a=x))
    return getattr(nvidia.dali.math, function)(*operands)


def answers(spec):
    """The file, the inputs by name, and DALI's outputs."""
    samples = {f"X{i}": data(entry) for i, entry in enumerate(spec["inputs"])}
    pipe = Pipeline(batch_size=draw.BATCH, num_threads=1, device_id=None, prefetch_queue_depth=1, seed=spec["seed"])
    with pipe:
        values = [fn.external_source(name=name, dtype=types.DALIDataType(draw.TYPES[entry["dtype"]]), ndim=1 if "files" in entry else len(entry["shapes"][0]),
                                     layout=entry["layout"] or None)
                  for name, entry in zip(samples, spec["inputs"])]

        def resolved(argument):
            if isinstance(argument, dict):
                return values[argument["value"]]
            return [resolved(a) for a in argument] if isinstance(argument, list) else argument

        for step in spec["steps"]:
            made = apply(step, [values[i] for i in step["inputs"]], {k: resolved(v) for k, v in step["args"].items()})
            values += made if isinstance(made, (list, tuple)) else [made]
        pipe.set_outputs(*values[-spec["steps"][-1]["outputs"]:])
    file = pipe.serialize()
    pipe.build()
    used = {name: batch for name, batch in samples.items() if name.encode() in file}
    for name, batch in used.items():
        pipe.feed_input(name, batch)
    return file, used, [[np.array(out.at(i)) for i in range(draw.BATCH)] for out in pipe.run()]


def in_child(spec):
    """`answers` in a process of its own, which DALI may take down; None when it refuses the pipeline."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        result = None
        try:
            result = answers(spec)
        except Exception as error:
            if os.environ.get("FUZZ_SHOW"):
                print(spec["operator"], json.dumps(spec["steps"]), str(error).replace("\n", " ")[-300:])
                sys.stdout.flush()
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        content = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(content) if content else None


def tolerance(spec, outputs):
    arrays = [a for samples in outputs for a in samples if a.size]
    if all(a.dtype.kind != "f" for a in arrays):
        return 1.0 if spec["operator"] in ROUNDED else 0.0
    finite = [np.abs(a[np.isfinite(a)]).max(initial=0) for a in arrays]
    return float(max(finite, default=0)) * RELATIVE + 1e-6


def write(cases, path):
    """`cases`: pairs of a pipeline and its answers, as record.py writes them."""
    arrays, index = {}, []

    def keep(array):
        array = np.ascontiguousarray(array) if array.ndim else array
        content = array.tobytes()
        key = arrays.setdefault(content, f"a{len(arrays)}")
        return dict(key=key, dtype=array.dtype.name, shape=list(array.shape))

    for number, (spec, (file, samples, outputs)) in enumerate(cases):
        index.append(dict(name=f"{number}_{spec['operator']}", tol=tolerance(spec, outputs), mean=None, pipeline=keep(np.frombuffer(file, np.uint8)),
                          inputs={name: [keep(s) for s in batch] for name, batch in samples.items()},
                          outputs=[[keep(s) for s in batch] for batch in outputs]))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        content = json.dumps(dict(dali=nvidia.dali.__version__, cases=index), indent=1)
        archive.writestr(zipfile.ZipInfo("index.json"), content, zipfile.ZIP_DEFLATED)
        for content, key in arrays.items():
            archive.writestr(zipfile.ZipInfo(key), content, zipfile.ZIP_DEFLATED)


def build():
    command = ["cargo", "test", "--test", "conformance", "--no-run", "--message-format=json"]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    made = [json.loads(line) for line in lines if line.startswith("{")]
    return next(m["executable"] for m in made if m.get("executable") and m["target"]["name"] == "conformance")


def compare(binary, cases):
    """What Gesso makes of `cases`: for each, its error or None, and the largest and mean difference."""
    with tempfile.TemporaryDirectory() as folder:
        write(cases, pathlib.Path(folder) / "fuzz.zip")
        report = pathlib.Path(folder) / "report.json"
        environment = os.environ | dict(GESSO_RECORDINGS=folder, GESSO_REPORT=str(report), RUST_BACKTRACE="0")
        ran = subprocess.run([binary, "--exact", "every_recorded_case_agrees_with_dali"], cwd=ROOT, env=environment, capture_output=True, text=True)
        if not report.exists():
            sys.exit(f"the comparison failed:\n{ran.stdout}{ran.stderr}")
        found = {line["case"]: line for line in map(json.loads, report.read_text().splitlines())}
    return [found[f"{number}_{spec['operator']}"] for number, (spec, _) in enumerate(cases)]


def smaller(spec):
    """Pipelines that are a little simpler."""
    if len(spec["steps"]) > 1:
        yield spec | dict(steps=spec["steps"][:-1])
    for s, step in enumerate(spec["steps"]):
        for name in step["args"]:
            if name not in ("function", "indices", "a", "predicate"):
                cut = copy.deepcopy(spec)
                del cut["steps"][s]["args"][name]
                yield cut
    for i, entry in enumerate(spec["inputs"]):
        for dim in range(len(entry["shapes"][0])):
            if any(shape[dim] > 1 for shape in entry["shapes"]):
                cut = copy.deepcopy(spec)
                for shape in cut["inputs"][i]["shapes"]:
                    shape[dim] = max(1, shape[dim] // 2)
                yield cut


def shrunk(binary, spec, error):
    for _ in range(30):
        tried = [(s, a) for s, a in ((s, in_child(s)) for s in smaller(spec)) if a]
        failing = [(s, found["error"]) for (s, _), found in zip(tried, compare(binary, tried) if tried else []) if found["error"]]
        if not failing:
            break
        spec, error = failing[0]
    return spec, error


def page(found, refused, options):
    """The report: one row an operator."""
    lines = [
        "# Conformance to DALI", "",
        f"Random pipelines, run by DALI {nvidia.dali.__version__} and by Gesso on the same bytes. Made by",
        f"`tests/conformance/fuzz.py --cases {options.cases} --seed {options.seed} --report docs/conformance.md`; not edited by hand.", "",
        "A difference is an absolute one between elements of outputs; of floats it is set against the largest element of the outputs of its",
        "pipeline. Pipelines that DALI itself refuses are not counted.", "",
        "| operator | device | pipelines | equal to the bit | largest difference | mean difference | wrong |", "| --- | --- | --- | --- | --- | --- | --- |"]
    wrong = 0
    for name in sorted(found):
        rows = found[name]
        good = [r for r in rows if not r["error"]]
        wrong += len(rows) - len(good)
        largest, mean = max((r["largest"] for r in good), default=0), sum(r["mean"] for r in good) / max(1, len(good))
        lines.append(f"| `{name}` | cpu | {len(rows)} | {sum(r['largest'] == 0 for r in good)} | {largest:.3g} | {mean:.3g} | {len(rows) - len(good)} |")
    total = sum(map(len, found.values()))
    lines += ["", f"{total} pipelines, {wrong} wrong; DALI refused {refused} more."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--record", type=int)
    options = parser.parse_args()
    dali_trace.set_tracing(enabled=False)
    names = options.only or list(draw.DRAWS)
    cases, refused = [], collections.Counter()
    number = 0
    while len(cases) < (options.record or options.cases):
        spec = drawn(number, options.seed, names)
        answer = in_child(spec)
        if answer:
            cases.append((spec, answer))
        else:
            refused[spec["operator"]] += 1
        number += 1
        if number > 40 + 4 * (options.record or options.cases):
            sys.exit("DALI refuses nearly everything")
    binary, found, failed = build(), collections.defaultdict(list), 0
    results = compare(binary, cases)
    if options.record:
        agreeing = [case for case, result in zip(cases, results) if not result["error"]]
        print(f"{len(agreeing)} pipelines, {len(cases) - len(agreeing)} left out that differ: the report has them")
        return write(agreeing, HERE / "data" / "fuzz.zip")
    for (spec, (_, _, outputs)), result in zip(cases, results):
        is_float = any(a.dtype.kind == "f" for samples in outputs for a in samples)
        size = max(1.0, (tolerance(spec, outputs) - 1e-6) / RELATIVE) if is_float else 1.0
        found[spec["operator"]].append(result | dict(largest=result["largest"] / size, mean=result["mean"] / size))
        if result["error"] and failed < 20:
            failed += 1
            least, error = shrunk(binary, spec, result["error"])
            print(f"{spec['operator']}: {error}\n    {json.dumps(least)}")
    print(f"{len(cases)} pipelines, {sum(bool(r['error']) for r in results)} wrong; DALI refused {sum(refused.values())}: {dict(refused)}")
    if options.report:
        options.report.write_text(page(found, sum(refused.values()), options))
    sys.exit(any(r["error"] for r in results))


if __name__ == "__main__":
    main()
