#!/usr/bin/env python3
"""Random pipelines, in real DALI and in Gesso: the same file, the same bytes, compared.

    fuzz.py [--cases N] [--seed S] [--only OPERATOR ...]  draws N pipelines, runs and compares them, reduces failures
            [--report docs/reports/conformance.md]        and writes the page of what was found
            [--keep FILE]                                 and writes those that differ as recordings of DALI's answers
            [--as-drawn]                                  and leaves failures as large as they are
    fuzz.py --gpu ...                                     the same on a GPU: files made for one, DALI's answers there
    fuzz.py [--gpu] --record N                            keeps what agrees of the first N, with DALI's answers, in
                                                          data/fuzz.zip (gpu/fuzz.zip)

Needs the package nvidia-dali-cuda130, and cargo or the program of these tests in $GESSO_CONFORMANCE. No GPU but for
--gpu. What is drawn for which operator: draw.py, draw_media.py, draw_regions.py, which also has what is drawn for none.
"""

import argparse
import collections
import copy
import functools
import io
import json
import multiprocessing.connection
import os
import pathlib
import subprocess
import sys
import tempfile
import wave
import zipfile

import draw
import draw_media  # noqa: F401  (registers what it draws)
import draw_regions  # noqa: F401
import numpy as np
import nvidia.dali
from nvidia.dali._utils import dali_trace
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Pixels are averages that may fall on the other side of a half.
ROUNDED = {
    "Resize",
    "ResizeCropMirror",
    "FastResizeCropMirror",
    "RandomResizedCrop",
    "TensorResize",
    "Filter",
    "GaussianBlur",
    "Rotate",
    "WarpAffine",
    "experimental__WarpPerspective",
    "PerFrame",
    "Sphere",
    "Water",
}
# Sums whose order differs, of elements up to this.
RELATIVE = 2e-5
# On a GPU, where what the JPEG engines refuse is decoded by other programs: largest and mean difference of 8-bit
# pixels.
DECODED = (255.0, 3.0)
# Operators whose answers on a GPU are others than on a CPU in DALI itself: Gesso has those of the CPU.
OTHER_ON_GPU = {
    "Clahe": "DALI's two operators differ, and Gesso has that of the CPU",
    "Debayer": "DALI takes NPP's algorithm there, Gesso OpenCV's",
    "MultiPaste": "DALI's two operators differ, and Gesso has that of the CPU",
    "experimental__WarpPerspective": "on a CPU it is OpenCV's, which interpolates in steps of 1/32 pixel",
    "noise__Shot": "DALI draws with cuRAND there",
}
REMAINDERS = "remainders of floats: DALI answers 0 there"
CMYK = "CMYK JPEGs: Gesso takes libjpeg-turbo and replicates their chroma; what DALI does is not known"
RESTARTS = "progressive JPEGs with restart intervals: DALI's decoder there is up to 159 levels from libjpeg-turbo"
GRAY = "gray JPEGs: DALI answers 0, or parts of the picture"
# What DALI's kernel for a lossy format may be off by, at most and on average: a frequency in the middle of two steps
# may be rounded to either, which changes a whole block.
LOSSY = 16.0, 1.0
# DALI answers more elements than this, or none for want of memory, to `x[:, 6:0:2]`, which is empty.
MOST_ELEMENTS = 1 << 40
# The end of the names of cases that tests load as made for one.
MADE_FOR_GPU = "_made_for_gpu"


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
        array = (
            rng.integers(0, 2, shape)
            if dtype.kind == "b"
            else rng.uniform(0 if dtype.kind == "u" else -100, 100, shape)
        )
        np.lib.format.write_array(
            out, np.ascontiguousarray(array.astype(dtype)) if shape else np.asarray(array).astype(dtype), version=(1, 0)
        )
        return np.frombuffer(out.getvalue(), np.uint8)
    if options["format"] == "clip":
        return np.fromfile(ROOT / "tests/data/video" / options["name"], np.uint8)
    if options["format"] == "WAV":
        bits = options["bits"]
        low, high = (0, 2**bits) if bits == 8 else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        with wave.open(out, "wb") as file:
            file.setparams((shape[1], bits // 8, options["rate"], 0, "NONE", ""))
            file.writeframes(
                rng.integers(low, high, shape).astype(f"<{'u' if bits == 8 else 'i'}{bits // 8}").tobytes()
            )
        return np.frombuffer(out.getvalue(), np.uint8)
    height, width = shape[:2]
    pixels = rng.integers(0, 256, (height // 4 + 1, width // 4 + 1, 3), dtype=np.uint8)
    image = Image.fromarray(pixels).resize((width, height), Image.BILINEAR)
    if options["mode"] == "I;16":
        image = Image.fromarray(np.array(image.convert("L"), np.uint16) * 257 + 13)
    else:
        image = image.convert(options["mode"])
    more = {
        k: v for k, v in options.items() if k in ("quality", "subsampling", "progressive", "lossless", "compression")
    }
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
        file = file[: max(1, int(options["cut"] * len(file)))]
    return np.frombuffer(bytes(file), np.uint8)


def other_on_gpu(spec):
    """Why DALI has another answer to this pipeline on a GPU, where it is known to."""
    if spec["operator"] in OTHER_ON_GPU:
        return f"`{spec['operator']}`: {OTHER_ON_GPU[spec['operator']]}"
    if any(step["args"].get("function") == "mod" for step in spec["steps"]):
        return REMAINDERS
    for entry in spec["inputs"]:
        for file in entry.get("files", []):
            if file["format"] == "JPEG" and file["mode"] == "CMYK":
                return CMYK
            if file["format"] == "JPEG" and file["progressive"] and file["restart"]:
                return RESTARTS
            if file["format"] == "JPEG" and file["mode"] == "L":
                return GRAY
    return None


def data(entry):
    """The samples of an input."""
    if "files" in entry:
        return [
            encoded(options, shape, entry["seed"] + i)
            for i, (options, shape) in enumerate(zip(entry["files"], entry["shapes"]))
        ]
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
        if entry.get("boxes"):
            begin, end = np.split(np.asarray(sample), 2, axis=1)
            sample = np.concatenate([np.minimum(begin, end), np.maximum(begin, end)], 1)
        samples.append(np.asarray(sample).astype(dtype))
    return samples


def apply(step, inputs, args, package=nvidia.dali):
    """One step in Python, of DALI or of a package like it."""
    types, fn = package.types, package.fn
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
        return calculate(package, args.pop("function"), *inputs, **args)
    if "a" in args:
        inputs = [args.pop("a"), *inputs]
    function = fn
    for part in step["op"].split("."):
        function = getattr(function, part)
    return function(*inputs, **args)


def calculate(package, function, x, y=None, constant=None, left=False):
    operands = [x] if y is None and constant is None else [x, constant if y is None else y]
    if left:
        operands.reverse()
    operators = dict(
        add="+",
        sub="-",
        mul="*",
        truediv="/",
        floordiv="//",
        eq="==",
        ne="!=",
        lt="<",
        le="<=",
        gt=">",
        ge=">=",
        xor="^",
        mod="%",
    )
    operators |= {"and": "&", "or": "|"}
    if function in operators:
        return eval(f"a {operators[function]} b", {}, dict(zip("ab", operands)))
    unary = dict(neg="-a", pos="+a", invert="~a")
    if function in unary:
        return eval(unary[function], {}, dict(a=x))
    return getattr(package.math, function)(*operands)


def on_host(spec):
    """Values that are arguments, which never lie on a device, and those they are made from."""

    def named(argument):
        if isinstance(argument, dict):
            return {argument["value"]}
        return set().union(*map(named, argument)) if isinstance(argument, list) else set()

    kept = set().union(*(named(v) for step in spec["steps"] for v in step["args"].values()))
    first = len(spec["inputs"]) + sum(step["outputs"] for step in spec["steps"])
    for step in reversed(spec["steps"]):
        first -= step["outputs"]
        if kept & set(range(first, first + step["outputs"])):
            kept |= set(step["inputs"])
    return kept


def authored(spec, gpu=False, package=nvidia.dali):
    """The pipeline, made by DALI's Python or by a package like it."""
    types, fn = package.types, package.fn
    pipe = package.Pipeline(
        batch_size=draw.BATCH, num_threads=1, device_id=0 if gpu else None, prefetch_queue_depth=1, seed=spec["seed"]
    )
    kept = on_host(spec) if gpu else set()
    with pipe:
        values = [
            fn.external_source(
                name=name,
                dtype=types.DALIDataType(draw.TYPES[entry["dtype"]]),
                ndim=1 if "files" in entry else len(entry["shapes"][0]),
                layout=entry["layout"] or None,
            )
            for name, entry in ((f"X{i}", entry) for i, entry in enumerate(spec["inputs"]))
        ]
        files = {i for i, entry in enumerate(spec["inputs"]) if "files" in entry}

        def moved(number):
            value = values[number]
            return value.gpu() if value.device == "cpu" and number not in files else value

        def resolved(argument):
            if isinstance(argument, dict):
                return values[argument["value"]]
            return [resolved(a) for a in argument] if isinstance(argument, list) else argument

        for step in spec["steps"]:
            args, inputs = {k: resolved(v) for k, v in step["args"].items()}, [values[i] for i in step["inputs"]]
            if gpu and not kept & set(range(len(values), len(values) + step["outputs"])):
                inputs = [moved(i) for i in step["inputs"]]
                if files & set(step["inputs"]):
                    args |= dict(device="mixed") if "image" in step["op"] or "video" in step["op"] else {}
                elif step["op"] not in ("_shape", "subscript", "arithmetic"):
                    args["device"] = "gpu"
            made = apply(step, inputs, args, package)
            values += made if isinstance(made, (list, tuple)) else [made]
        pipe.set_outputs(*values[-spec["steps"][-1]["outputs"] :])
    return pipe


def inputs_of(spec, file):
    """The samples of each input that the file has."""
    names = {f"X{i}": entry for i, entry in enumerate(spec["inputs"])}
    return {name: data(entry) for name, entry in names.items() if name.encode() in file}


def outputs_of(pipe, inputs):
    """The outputs of one batch, as arrays."""
    pipe.build()
    for name, batch in inputs.items():
        pipe.feed_input(name, batch)
    outputs = [out.as_cpu() for out in pipe.run()]
    if any(extent > MOST_ELEMENTS for out in outputs for shape in out.shape() for extent in shape):
        raise ValueError("an empty range with a step: DALI counts below zero")
    return [[np.array(out.at(i)) for i in range(draw.BATCH)] for out in outputs]


def answers(spec, gpu=False):
    """The file, the inputs by name, and DALI's outputs."""
    pipe = authored(spec, gpu)
    file = pipe.serialize()
    inputs = inputs_of(spec, file)
    return file, inputs, outputs_of(pipe, inputs)


def answer_all(specs, answer, connection):
    """Sends the answer to each; None when DALI refuses the pipeline."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for spec in specs:
        result = None
        try:
            result = answer(spec)
        except Exception as error:
            if os.environ.get("FUZZ_SHOW"):
                print(spec["operator"], json.dumps(spec["steps"]), str(error).replace("\n", " ")[-300:], flush=True)
        connection.send(result)


def in_children(specs, answer):
    """`answer` of all, in processes of their own, which DALI may take down; None where it did, or refused the
    pipeline."""
    results, running = [None] * len(specs), {}

    def start(share):
        if share:
            reader, writer = multiprocessing.Pipe(duplex=False)
            child = multiprocessing.get_context("fork").Process(
                target=answer_all, args=([specs[n] for n in share], answer, writer)
            )
            child.start()
            writer.close()
            running[reader] = child, share

    count = os.cpu_count()
    for first in range(count):
        start(list(range(first, len(specs), count)))
    while running:
        for reader in multiprocessing.connection.wait(running):
            child, share = running[reader]
            try:
                results[share[0]] = reader.recv()
                ended = len(share) == 1
            except EOFError:
                ended = True
            del share[0]
            if ended:
                del running[reader]
                reader.close()
                child.join()
                start(share)
    return results


def level_of(dtype):
    """The difference in numbers of a type that is one of 256 levels."""
    return {"f": 1 / 255, "b": 1.0}.get(dtype.kind) or np.iinfo(dtype).max / 255


def tolerance(spec, outputs, gpu=False):
    """The largest and the mean difference that are allowed; no limit on the mean where it is None."""
    arrays = [a for samples in outputs for a in samples if a.size]
    if gpu and any("files" in entry for entry in spec["inputs"]):
        level = max((level_of(a.dtype) for a in arrays), default=1)
        return tuple(limit * level for limit in DECODED)
    if gpu and spec["operator"] == "JpegCompressionDistortion":
        return LOSSY
    if all(a.dtype.kind != "f" for a in arrays):
        return 1.0 if spec["operator"] in ROUNDED else 0.0, None
    finite = [np.abs(a[np.isfinite(a)]).max(initial=0) for a in arrays]
    return float(max(finite, default=0)) * RELATIVE + 1e-6, None


def named(number, spec, gpu):
    return f"{number}_{spec['operator']}{MADE_FOR_GPU if gpu else ''}"


def write(cases, path, gpu=False):
    """`cases`: pairs of a pipeline and its answers, as record.py writes them."""
    arrays, index = {}, []

    def keep(array):
        array = np.ascontiguousarray(array) if array.ndim else array
        content = array.tobytes()
        key = arrays.setdefault(content, f"a{len(arrays)}")
        return dict(key=key, dtype=array.dtype.name, shape=list(array.shape))

    for number, (spec, (file, samples, outputs)) in enumerate(cases):
        largest, mean = tolerance(spec, outputs, gpu)
        index.append(
            dict(
                name=named(number, spec, gpu),
                tol=largest,
                mean=mean,
                pipeline=keep(np.frombuffer(file, np.uint8)),
                inputs={name: [keep(s) for s in batch] for name, batch in samples.items()},
                outputs=[[keep(s) for s in batch] for batch in outputs],
            )
        )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        content = json.dumps(dict(dali=nvidia.dali.__version__, cases=index), indent=1)
        archive.writestr(zipfile.ZipInfo("index.json"), content, zipfile.ZIP_DEFLATED)
        for content, key in arrays.items():
            archive.writestr(zipfile.ZipInfo(key), content, zipfile.ZIP_DEFLATED)


def build():
    if "GESSO_CONFORMANCE" in os.environ:
        return os.environ["GESSO_CONFORMANCE"]
    command = ["cargo", "test", "--test", "conformance", "--no-run", "--message-format=json"]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    made = [json.loads(line) for line in lines if line.startswith("{")]
    return next(m["executable"] for m in made if m.get("executable") and m["target"]["name"] == "conformance")


def compare(binary, cases, gpu):
    """What Gesso makes of `cases`: for each, its error or None, and the largest and mean difference."""
    with tempfile.TemporaryDirectory() as folder:
        write(cases, pathlib.Path(folder) / "fuzz.zip", gpu)
        report = pathlib.Path(folder) / "report.json"
        environment = os.environ | dict(GESSO_RECORDINGS=folder, GESSO_REPORT=str(report), RUST_BACKTRACE="0")
        test = "every_recorded_case_agrees_on_the_device" if gpu else "every_recorded_case_agrees_with_dali"
        ran = subprocess.run([binary, "--exact", test], cwd=ROOT, env=environment, capture_output=True, text=True)
        if not report.exists():
            sys.exit(f"the comparison failed:\n{ran.stdout}{ran.stderr}")
        found = {line["case"]: line for line in map(json.loads, report.read_text().splitlines())}
    return [found[named(number, spec, gpu)] for number, (spec, _) in enumerate(cases)]


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
        for dim in range(len(entry["shapes"][0]) - bool(entry.get("boxes"))):
            if any(shape[dim] > 1 for shape in entry["shapes"]):
                cut = copy.deepcopy(spec)
                for shape in cut["inputs"][i]["shapes"]:
                    shape[dim] = max(1, shape[dim] // 2)
                yield cut


def shrunk(binary, spec, error, gpu):
    for _ in range(30):
        specs = list(smaller(spec))
        tried = [(s, a) for s, a in zip(specs, in_children(specs, functools.partial(answers, gpu=gpu))) if a]
        failing = [
            (s, found["error"])
            for (s, _), found in zip(tried, compare(binary, tried, gpu) if tried else [])
            if found["error"]
        ]
        if not failing:
            break
        spec, error = failing[0]
    return spec, error


def gpu_name():
    found = subprocess.run(
        ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=True
    )
    return found.stdout.splitlines()[0]


def page(found, refused, others, options):
    """The report: one row an operator."""
    device, option, where = ("gpu", "--gpu ", f" on one {gpu_name()}") if options.gpu else ("cpu", "", "")
    lines = [
        f"# Conformance to DALI{where}",
        "",
        f"Random pipelines, run by DALI {nvidia.dali.__version__} and by Gesso on the same bytes. Made by",
        f"`tests/conformance/fuzz.py {option}--cases {options.cases} --seed {options.seed} --report docs/{options.report.name}`; not edited by hand.",
        "",
        "A difference is an absolute one between elements of outputs; of floats it is set against the largest element of the outputs of its",
        "pipeline. Pipelines that DALI itself refuses are not counted.",
        "",
        "| operator | device | pipelines | equal to the bit | largest difference | mean difference | wrong |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    wrong = 0
    for name in sorted(found):
        rows = found[name]
        good = [r for r in rows if not r["error"]]
        wrong += len(rows) - len(good)
        largest, mean = max((r["largest"] for r in good), default=0), sum(r["mean"] for r in good) / max(1, len(good))
        lines.append(
            f"| `{name}` | {device} | {len(rows)} | {sum(r['largest'] == 0 for r in good)} | {largest:.3g} | {mean:.3g} | {len(rows) - len(good)} |"
        )
    if others:
        lines += ["", "Not run, because DALI is known to have other answers on a GPU than on a CPU:", ""]
        lines += [f"- {count} times {reason}" for reason, count in sorted(others.items())]
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
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--as-drawn", action="store_true")
    options = parser.parse_args()
    dali_trace.set_tracing(enabled=False)
    names = options.only or list(draw.DRAWS)
    cases, refused, others = [], collections.Counter(), collections.Counter()
    number, wanted = 0, options.record or options.cases
    while len(cases) < wanted:
        specs = [drawn(n, options.seed, names) for n in range(number, number + wanted - len(cases))]
        number += len(specs)
        if options.gpu:
            others.update(filter(None, map(other_on_gpu, specs)))
            specs = [spec for spec in specs if not other_on_gpu(spec)]
        for spec, answer in zip(specs, in_children(specs, functools.partial(answers, gpu=options.gpu))):
            if answer:
                cases.append((spec, answer))
            else:
                refused[spec["operator"]] += 1
        if number > 40 + 4 * wanted:
            sys.exit("DALI refuses nearly everything")
    binary, found, failed = build(), collections.defaultdict(list), 0
    results = compare(binary, cases, options.gpu)
    if options.keep:
        write([case for case, result in zip(cases, results) if result["error"]], options.keep, options.gpu)
    if options.record:
        agreeing = [case for case, result in zip(cases, results) if not result["error"]]
        print(f"{len(agreeing)} pipelines, {len(cases) - len(agreeing)} left out that differ: the report has them")
        return write(agreeing, HERE / ("gpu" if options.gpu else "data") / "fuzz.zip", options.gpu)
    for (spec, (_, _, outputs)), result in zip(cases, results):
        is_float = any(a.dtype.kind == "f" for samples in outputs for a in samples)
        size = max(1.0, (tolerance(spec, outputs)[0] - 1e-6) / RELATIVE) if is_float else 1.0
        found[spec["operator"]].append(result | dict(largest=result["largest"] / size, mean=result["mean"] / size))
        if result["error"] and failed < 20:
            failed += 1
            least, error = (
                (spec, result["error"]) if options.as_drawn else shrunk(binary, spec, result["error"], options.gpu)
            )
            print(f"{spec['operator']}: {error}\n    {json.dumps(least)}")
    print(
        f"{len(cases)} pipelines, {sum(bool(r['error']) for r in results)} wrong; DALI refused {sum(refused.values())}: {dict(refused)}"
    )
    if options.report:
        options.report.write_text(page(found, sum(refused.values()), others, options))
    sys.exit(any(r["error"] for r in results))


if __name__ == "__main__":
    main()
