#!/usr/bin/env python3
"""How long one image takes from bytes to a tensor, by each way that a program has: the C interface, and `Pipeline.run`
however it is fed; on a GPU left there, brought to the host, or handed to PyTorch.

    latency.py NAME=LIBRARY,FOLDER ... [--device cpu] [--runs 2000] [--rounds 2] [--sizes 500x375 1920x1080]
    latency.py before=a.so,old/python after=b.so,python
    latency.py gesso=a.so,python --rows "run(x=...)" "C, into the caller"     rows whose name has one of these texts

Each NAME is a Gesso: its library, and the folder that has its package. They run in turn, each in a process of its own,
and DALI where it imports. Rows: p50 and p99 in us of each round, the processor's time and how often threads were
switched. Each is printed when it is measured, and all of them as a table at the end.

The first line says what the host costs: a call of the system, and a thread that is woken and answers. Images are made:
smooth noise with grain, of quality 90."""

import argparse
import ctypes
import importlib
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

SIDE = 224
WARM = 100


def jpeg(width, height):
    """A photo's worth of bytes: smooth noise with grain."""
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(7)
    small = Image.fromarray(rng.integers(0, 256, (height // 24, width // 24, 3), np.uint8))
    smooth = np.asarray(small.resize((width, height), Image.Resampling.BICUBIC)).astype(np.int16)
    grain = rng.normal(0, 7, (height, width, 1)).astype(np.int16)
    file = io.BytesIO()
    Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
    return np.frombuffer(file.getvalue(), np.uint8)


def timed(once, runs):
    for _ in range(WARM):
        once()
    times, before = [], resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(runs):
        began = time.perf_counter()
        once()
        times.append(time.perf_counter() - began)
    after = resource.getrusage(resource.RUSAGE_SELF)
    times.sort()
    switches = after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [1e6 * times[runs // 2], 1e6 * times[runs * 99 // 100], 1e6 * cpu / runs, switches / runs]


def wanted(row, options):
    return not options.rows or any(text in row for text in options.rows)


def machine(runs=500):
    """What a call of the system costs here, and how long a thread that sleeps takes to wake."""
    began = time.perf_counter()
    for _ in range(2000):
        os.getppid()
    call = 1e6 * (time.perf_counter() - began) / 2000
    wakes, asked, woke = [], threading.Semaphore(0), threading.Semaphore(0)

    def serve():
        for _ in range(runs):
            asked.acquire()
            wakes.append(time.perf_counter())
            woke.release()

    thread = threading.Thread(target=serve)
    thread.start()
    took = []
    for _ in range(runs):
        time.sleep(0.0005)
        began = time.perf_counter()
        asked.release()
        woke.acquire()
        took.append(time.perf_counter() - began)
    thread.join()
    took.sort()
    return f"a call of the system {call:.2f} us; a thread woken and back {1e6 * took[runs // 2]:.0f} us (p99 {1e6 * took[runs * 99 // 100]:.0f})"


def defined(package, device, chain, how, depth, threads, data):
    fn, types = package.fn, package.types

    @package.pipeline_def(
        batch_size=1, num_threads=threads, device_id=0 if device == "gpu" else None, prefetch_queue_depth=depth
    )
    def define():
        encoded = (
            fn.external_source(source=lambda: [data], dtype=types.UINT8, ndim=1)
            if how == "source"
            else fn.external_source(name="x", dtype=types.UINT8, ndim=1)
        )
        image = fn.decoders.image(encoded, device="mixed" if device == "gpu" else "cpu")
        if chain == "decode":
            return image
        image = fn.resize(image, resize_x=SIDE, resize_y=SIDE)
        return fn.crop_mirror_normalize(
            image, dtype=types.FLOAT, output_layout="CHW", mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375]
        )

    pipeline = define()
    pipeline.build()
    return pipeline


def has_torch():
    try:
        import torch

        return torch.cuda.is_available()
    except ImportError:
        return False


def of_copies(package, device, data, size, options):
    """What a copy of an output to the host takes, into memory of numpy's, into pinned memory, and by way of that into
    numpy's."""
    if device != "gpu":
        return
    import numpy as np
    from gesso._tensors.device_array import driver

    count, address, pinned = 4 * 3 * SIDE * SIDE, ctypes.c_uint64(), ctypes.c_void_p()
    driver().run(0, "cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(count))
    driver().run(0, "cuMemAllocHost_v2", ctypes.byref(pinned), ctypes.c_size_t(count))

    def pageable():
        array = np.empty(count, np.uint8)
        driver().run(0, "cuMemcpyDtoH_v2", ctypes.c_uint64(array.ctypes.data), address, ctypes.c_size_t(count))

    def into_pinned():
        driver().run(0, "cuMemcpyDtoH_v2", pinned, address, ctypes.c_size_t(count))

    def by_pinned():
        array = np.empty(count, np.uint8)
        into_pinned()
        ctypes.memmove(array.ctypes.data, pinned, count)

    for row, once in (("", pageable), (", pinned", into_pinned), (", by pinned memory", by_pinned)):
        row = f"copy of {count} bytes to the host{row}"
        if wanted(row, options):
            yield row, timed(once, options.runs)


def of_python(package, device, data, size, options):
    ways = [
        ("run(x=...)", 1),
        ("feed_input, run", 1),
        ("feed_input, run", 2),
        ("external_source", 1),
        ("external_source", 2),
    ]
    for chain in ("decode", "decode+resize+cmn"):
        for way, depth in ways if chain != "decode" else ways[:1]:
            for on_host in (False, True, "torch") if device == "gpu" else (False,):
                if on_host == "torch" and (chain == "decode" or not has_torch()):
                    continue
                place = {False: "", True: ", as_cpu", "torch": ", as torch"}[on_host]
                row = f"{size} {chain}: {way}, depth {depth}{place}"
                if not wanted(row, options):
                    continue
                how = "source" if way == "external_source" else "fed"
                pipeline = defined(package, device, chain, how, depth, options.threads, data)
                if how == "fed":
                    for _ in range(depth - 1):
                        pipeline.feed_input("x", [data])

                def once(pipeline=pipeline, way=way, on_host=on_host):
                    if way == "run(x=...)":
                        (out,) = pipeline.run(x=[data])
                    else:
                        if way != "external_source":
                            pipeline.feed_input("x", [data])
                        (out,) = pipeline.run()
                    if on_host == "torch":
                        import torch

                        return torch.from_dlpack(out.as_tensor() if package.__name__ == "gesso" else out[0])
                    return out.as_cpu().at(0) if on_host else out

                assert once() is not None
                yield row, timed(once, options.runs)
                del once, pipeline


# --- the C interface
# -----------------------------------------------------------------------------------------------------


class Target(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("data", ctypes.c_void_p), ("device", ctypes.c_int32)]


def of_c(package, device, data, size, options):
    from gesso._native import declarations as declared
    from gesso._native import library as native

    lib, device_number = native.library(), 1 if device == "gpu" else 0
    allocate_type = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p, ctypes.POINTER(Target)
    )
    lib.gesso_instance_run_into.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(declared.Input), ctypes.c_size_t, allocate_type, ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_void_p),
    ]  # fmt: skip
    for chain in ("decode", "decode+resize+cmn"):
        file = defined(package, device, chain, "fed", 1, options.threads, data).serialize()
        pipeline, instance, result = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        native.call("gesso_pipeline_load", file, len(file), device_number, ctypes.byref(pipeline))
        asked = declared.InstanceOptions(ctypes.sizeof(declared.InstanceOptions), options.threads, 0, 0, 0, 0, 0, None)
        native.call("gesso_instance_create", pipeline, ctypes.byref(asked), ctypes.byref(instance))
        # As Python asks for it.
        careful, asked.inputs_may_change = ctypes.c_void_p(), 1
        native.call("gesso_instance_create", pipeline, ctypes.byref(asked), ctypes.byref(careful))
        shape = (ctypes.c_int64 * 1)(len(data))
        sample = declared.Sample(ctypes.sizeof(declared.Sample), data.ctypes.data, shape, 1)
        given = (declared.Input * 1)()
        given[0] = declared.Input(ctypes.sizeof(declared.Input), b"x", 0, 0, ctypes.pointer(sample))
        most = max(4 * 3 * SIDE * SIDE, 3 * 1920 * 1088)
        if device == "gpu":
            from gesso._tensors.device_array import driver

            address = ctypes.c_uint64()
            driver().run(0, "cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(most))
            memory, place = None, address.value
        else:
            memory = ctypes.create_string_buffer(most + 64)
            place = (ctypes.addressof(memory) + 63) // 64 * 64

        def give(user, output, index, tensor, target, place=place):
            target[0].data, target[0].device = place, device_number
            return 0

        allocate = allocate_type(give)

        def into():
            if lib.gesso_instance_run_into(instance, 1, given, 1, allocate, None, ctypes.byref(result)):
                raise RuntimeError(native.last_error())
            if lib.gesso_result_sample_status(result, 0, None):
                raise RuntimeError(native.sample_error(result, 0))
            lib.gesso_result_free(result)

        def own(instance=instance):
            if lib.gesso_instance_run(instance, 1, given, 1, ctypes.byref(result)):
                raise RuntimeError(native.last_error())
            lib.gesso_result_free(result)

        for row, once in (
            (f"{size} {chain}: C, into the caller's memory", into),
            (f"{size} {chain}: C, into its own", own),
            (f"{size} {chain}: C, into its own, inputs may change", lambda: own(careful)),
        ):
            if wanted(row, options):
                yield row, timed(once, options.runs)
        lib.gesso_instance_free(instance)
        lib.gesso_instance_free(careful)
        lib.gesso_pipeline_free(pipeline)
        del memory


def measure(name, options):
    package = importlib.import_module("nvidia.dali" if name == "DALI" else "gesso")
    for size in options.sizes:
        data = jpeg(*map(int, size.split("x")))
        print(json.dumps(["note", f"{size}: {len(data)} bytes"]), flush=True)
        kinds = (
            [of_python]
            if name == "DALI"
            else [of_copies, of_c, of_python]
            if size == options.sizes[0]
            else [of_c, of_python]
        )
        for kind in kinds:
            for row, found in kind(package, options.device, data, size, options):
                print(json.dumps([row, found]), flush=True)


def child(name, options, variables):
    """The rows of a process of its own, each as soon as it is there."""
    arguments = [sys.executable, __file__, "--measure", name, "--device", options.device, "--runs", str(options.runs)]
    arguments += ["--threads", str(options.threads), "--sizes", *options.sizes, "--rows", *options.rows]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            arguments, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        for line in process.stdout:
            if line.startswith("["):
                yield json.loads(line)
        if process.wait():
            errors.seek(0)
            print(f"{name}: ended with {process.returncode}: {errors.read().strip()[-1500:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="*", metavar="NAME=LIBRARY,FOLDER")
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sizes", nargs="+", default=["500x375", "1920x1080"])
    parser.add_argument(
        "--rows", nargs="*", default=[], metavar="TEXT", help="only rows whose name has one of these texts"
    )
    parser.add_argument("--no-dali", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options.measure, options)
    sys.stdout.reconfigure(line_buffering=True)
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}; {machine()}")
    variants = {}
    for variant in options.variants:
        name, _, rest = variant.partition("=")
        library, _, folder = rest.partition(",")
        variants[name] = {"GESSO_LIBRARY": os.path.abspath(library), "PYTHONPATH": os.path.abspath(folder)}
    if not options.no_dali:
        probe = subprocess.run([sys.executable, "-c", "import nvidia.dali"], capture_output=True)
        if probe.returncode == 0:
            variants["DALI"] = {}
    best = {}
    for number in range(options.rounds):
        for name, variables in variants.items():
            for row, found in child(name, options, variables):
                if row == "note":
                    if not number and name == next(iter(variants)):
                        print(found)
                    continue
                print(f"{name}: {row}: {found[0]:.0f} ({found[1]:.0f})")
                best.setdefault(row, {}).setdefault(name, []).append(found)
    lines = [["p50 (p99) us of each round; the processor's us; switches", *variants]]
    for row, found in best.items():
        cells = []
        for name in variants:
            rounds = found.get(name, [])
            text = " ".join(f"{p50:.0f} ({p99:.0f})" for p50, p99, _, _ in rounds)
            least = [min(one[i] for one in rounds) for i in (2, 3)] if rounds else []
            cells.append(f"{text}; {least[0]:.0f}; {least[1]:.1f}" if rounds else "")
        lines.append([row, *cells])
    widths = [max(map(len, column)) for column in zip(*lines)]
    print()
    for first, *cells in lines:
        print(first.ljust(widths[0]) + "".join("   " + cell.rjust(width) for cell, width in zip(cells, widths[1:])))
    return None


if __name__ == "__main__":
    main()
