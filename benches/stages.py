#!/usr/bin/env python3
"""What each kernel takes that decodes JPEGs on a device's SMs and resizes them, alone: CUDA events, medians of 20
runs.

    benches/stages.py --images FOLDER [--batch 1 8 32 128 512] [--early 0 65536]

FOLDER holds JPEGs of one size that fit the kernels; `scripts/lib/make_bench_images.py` makes some. Needs cupy and
CUDA's NVRTC. The resize is to 224 x 224, normalised: of pixels, and of the planes that the decoder leaves to it. Prints
microseconds; `early N` is the whole chain, where launches of up to N threads may begin early."""

import argparse
import ctypes
import sys
from pathlib import Path

import cupy
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "kernels"))
import batch  # noqa: E402
import test_resample_kernel as resampling  # noqa: E402

KERNELS = ROOT / "kernels"
LAYOUT = resampling.LAYOUT
# As src/ops/geometry/resize/gpu.rs has it: tiles down and across, and how many blocks of threads are enough.
SIDE, MAX_TAPS, ENOUGH_BLOCKS, THREADS, MAX_TILES = 224, 48, 8192, LAYOUT.THREADS, LAYOUT.MAX_TILES
DOWN, ACROSS = SIDE // LAYOUT.TILE_H, SIDE // LAYOUT.TILE_W
RUNS, WARM_UP = 20, 3
# As src/gpu/jpeg/sm/rows.rs cuts batches of few bytes and of many, and deals threads out among warps of an SM.
SMALL_BYTES, CUTS, DEALT_WARPS_OF_AN_SM = 3 << 20, ((544, 6), (1056, 1)), 8
BLOCKS_OF_A_TASK = 256

driver, nvrtc = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvrtc.so.13")


def check(status, what):
    if status:
        raise SystemExit(f"{what}: error {status}")


def compiled(name, **definitions):
    """Function `name` of kernels/`name`.cu, compiled as the plugin does it."""
    paths = KERNELS.rglob("*.cuh")
    headers = [(path.relative_to(KERNELS).as_posix().encode(), path.read_bytes()) for path in paths]
    names, texts = ((ctypes.c_char_p * len(headers))(*column) for column in zip(*headers))
    program = ctypes.c_void_p()
    source = (KERNELS / f"{name}.cu").read_bytes()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), len(headers), texts, names), "nvrtc")
    capability = cupy.cuda.Device().compute_capability
    definitions |= {"EARLY": 1}
    options = [f"--gpu-architecture=sm_{capability}", "--std=c++17", "--fmad=false", "-default-device"]
    options = [option.encode() for option in options + [f"-D{key}={value}" for key, value in definitions.items()]]
    check(
        nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options)),
        f"compiling {name}",
    )
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, code)
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    check(driver.cuModuleLoadData(ctypes.byref(module), code), f"loading {name}")
    check(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), f"finding {name}")
    return function


class Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = [("id", ctypes.c_int), ("value", ctypes.c_int * 17)]


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        (name, ctypes.c_uint)
        for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared_bytes")
    ]
    _fields_ += [("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]


# CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: 1, which lies behind four bytes of padding.
EARLY = Attribute(6, (0, 1))


def launch(function, grid, threads, rows, count, params, early_threads=0):
    """With `early_threads`, a launch of no more threads may begin before what is ahead of it is done."""
    values = [ctypes.c_uint64(rows.data.ptr), ctypes.c_uint32(count)]
    pointers = (ctypes.c_void_p * 3)(*map(ctypes.addressof, values), params.ctypes.data)
    early = grid[0] * grid[1] * threads <= early_threads
    config = Config(*grid, 1, threads, 1, 1, 0, None, ctypes.addressof(EARLY), early)
    check(driver.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None), "a launch")


def microseconds(work):
    """The median of runs of `work`, and of each the same memory."""
    times = []
    for _ in range(WARM_UP + RUNS):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(1e3 * cupy.cuda.get_elapsed_time(begin, end))
    return np.median(times[WARM_UP:])


def on_device(data):
    return cupy.asarray(np.frombuffer(data or bytes(256), np.uint8))


class Batch:
    """Tables and memory of the kernels for some files."""

    def __init__(self, jpegs):
        self.jpegs, self.weights = jpegs, None
        size = sum(len(jpeg.data) for jpeg in jpegs)
        bits, count = CUTS[size >= SMALL_BYTES]
        room = cupy.cuda.Device().attributes["MultiProcessorCount"] * DEALT_WARPS_OF_AN_SM
        of_a_warp = [min(-(-8 * size * each // bits // room), 32) for each in (count, 1)]
        images, arrays = batch.tables_of(jpegs, bits, count, of_a_warp)
        _, segments, tables, quantisation, data, pairs, guesses, decodes, _, pixels, *_, sizes = arrays
        pieces, blocks, _, pixel_bytes = map(int, np.frombuffer(sizes, np.uint64))
        self.pixels = cupy.zeros(pixel_bytes, np.uint8)
        self.data, images = on_device(data), images.copy()
        images["data"] += self.data.data.ptr
        images["pixels"] += self.pixels.data.ptr
        self.images = images
        planes, work, samples = [], [], 0
        for number, (jpeg, image) in enumerate(zip(jpegs, images)):
            image["first_plane"] = len(planes)
            for component, (plane, (across, down)) in enumerate(batch.View(jpeg).planes):
                plane["samples"], samples = samples, samples + (int(plane["stride"]) * down * 8 + 255 & ~255)
                planes.append(plane)
                firsts = range(0, across * down, BLOCKS_OF_A_TASK)
                work += [(number, first, min(BLOCKS_OF_A_TASK, across * down - first), component) for first in firsts]
        self.samples, self.planes = cupy.zeros(samples, np.uint8), np.array(planes, batch.PLANE)
        self.planes["samples"] += self.samples.data.ptr
        zeros = lambda count, dtype: cupy.zeros(count, dtype)
        self.memory = dict(
            images=on_device(images.tobytes()),
            tables=on_device(tables),
            pairs=zeros(len(pairs) // 16 * batch.PAIRS_BYTES, np.uint8),
            segments=on_device(segments),
            quantisation=on_device(quantisation),
            exits=zeros(pieces * batch.LAYOUT.SLOT_ROOM, np.uint32),
            links=zeros(pieces * batch.LAYOUT.SLOT_ROOM, np.uint8),
            passed=zeros(pieces * batch.LAYOUT.SLOT_ROOM, np.uint16),
            starts=zeros(pieces * batch.LAYOUT.Start.itemsize, np.uint8),
            coefficients=zeros(blocks * 64, np.int16),
            dcs=zeros(blocks, np.int16),
            status=zeros(len(jpegs), np.uint32),
            planes=on_device(self.planes.tobytes()),
        )
        self.params = np.zeros(1, batch.LAYOUT.Params)
        for name, memory in self.memory.items():
            self.params[name] = memory.data.ptr
        self.params["channels"] = 3
        tasks = dict(
            pairs=pairs,
            guess=guesses,
            link=guesses,
            decode=decodes,
            pixels=pixels,
            planes=batch.rows_of(batch.TASK, "image first count component", work).tobytes(),
        )
        threads = dict(guess=batch.SKIP_THREADS, link=batch.SKIP_THREADS, decode=batch.DECODE_THREADS)
        self.work = {
            stage: (on_device(rows), len(rows) // 16, threads.get(stage, 256)) for stage, rows in tasks.items()
        }
        self.work["resolve"] = self.work["dc"] = (self.memory["images"], len(jpegs), 1024)

    def run(self, function, stage, early_threads=0):
        rows, count, threads = self.work[stage]
        blocks = count * (batch.LAYOUT.PAIRS_PARTS if stage == "pairs" else 1)
        launch(function, (blocks, 1), threads, rows, count, self.params, early_threads)

    def axes_of(self, rows):
        """The axes of `rows`, with a place for the weights of each; the same for pixels and for planes."""
        axes = np.concatenate([rows["y"], rows["x"]])
        axes["is_split"][: len(rows)] = axes["is_merged"][len(rows) :] = 1
        if self.weights is None:
            self.weights = cupy.zeros((len(axes), (2 + MAX_TAPS) * SIDE), np.float32)
        axes["made"] = self.weights.data.ptr + np.arange(len(axes)) * self.weights[0].nbytes
        self.axes = on_device(axes.tobytes())
        return axes

    def resize_rows(self, output, of_planes):
        rows = np.zeros(len(self.jpegs), LAYOUT.Normalized)
        rows["src"], rows["dst"] = self.images["pixels"], output.data.ptr + np.arange(len(rows)) * SIDE * SIDE * 12
        described = np.zeros(len(rows), LAYOUT.Planes)
        for row, planes, image, jpeg in zip(rows, described, self.images, self.jpegs):
            y, x = resampling.axis(jpeg.height, SIDE), resampling.axis(jpeg.width, SIDE)
            own = resampling.described(LAYOUT.Normalized, y, x, 3)
            for name in ("y", "x", "pitch", "step"):
                row[name] = own[name][0]
            own = self.planes[int(image["first_plane"]) :][: len(jpeg.components)]
            for name, values in (
                ("samples", "samples"),
                ("stride", "stride"),
                ("factor_x", "factor_x"),
                ("factor_y", "factor_y"),
            ):
                planes[name][: len(own)] = own[values]
        described["color"] = self.images["color"]
        self.described = on_device(described.tobytes())
        rows["y"], rows["x"] = np.split(self.axes_of(rows), 2)
        rows["channels"], rows["window"] = 3, SIDE
        rows["planar"], rows["factor"], rows["bias"] = 1, 1 / 58, -2
        if of_planes:
            rows["planes"] = self.described.data.ptr + np.arange(len(rows)) * described.itemsize
        return on_device(rows.tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32, 128, 512])
    parser.add_argument(
        "--early",
        type=int,
        nargs="+",
        default=[0, 64 << 10],
        metavar="THREADS",
        help="launches up to so large may begin early",
    )
    options = parser.parse_args()
    files = [batch.Jpeg(path.read_bytes()) for path in sorted(options.images.glob("*.jpg"))]
    cupy.zeros(1)  # Makes the context.
    functions = {
        stage: compiled(f"jpeg_{stage}")
        for stage in ("pairs", "guess", "link", "resolve", "decode", "dc", "pixels", "planes")
    }
    flags = dict(SRC="uint8_t", MID="uint8_t", DST="float", CH=3, NORMALIZE=1)
    if any(resampling.has_many_rows(resampling.axis(file.height, SIDE)) for file in files):
        flags["MANY_ROWS"] = 1
    resize, resize_planes = compiled("resample", **flags), compiled("resample", PLANES=1, **flags)
    weights = compiled("resample_weights")
    print(
        "images "
        + "".join(
            f"{name:>13}"
            for name in [*functions, "weights", "resize", "of planes", *map("early {}".format, options.early)]
        )
    )
    for count in options.batch:
        made = Batch([files[i % len(files)] for i in range(count)])
        output = cupy.zeros((2, count, 3, SIDE, SIDE), np.float32)
        rows = [made.resize_rows(to, of_planes) for to, of_planes in zip(output, (False, True))]
        none, at_once = np.zeros(1, np.uint32), min(MAX_TILES, -(-DOWN * ACROSS * count // ENOUGH_BLOCKS))
        grid, tiles = (-(-DOWN // at_once) * ACROSS, count), np.array([at_once], np.uint32)
        times = {}
        for stage, function in functions.items():
            # Links change what was guessed.
            before = (lambda: made.run(functions["guess"], "guess")) if stage == "link" else (lambda: None)
            times[stage] = microseconds(lambda: (before(), made.run(function, stage)))
        times["link"] -= times["guess"]
        weigh = lambda: launch(weights, (1, 2 * count), 256, made.axes, 2 * count, none)
        times["weights"] = microseconds(weigh)
        for name, function, table in (("resize", resize, rows[0]), ("of planes", resize_planes, rows[1])):
            times[name] = microseconds(lambda: launch(function, grid, THREADS, table, count, tiles))
        if (made.memory["status"] != 0).any() or not (output[0] == output[1]).all():
            raise SystemExit("not decoded, or not the same of planes as of pixels")
        chain = [(functions[stage], stage) for stage in ("pairs", "guess", "link", "resolve", "decode", "dc", "planes")]
        for early in options.early:

            def together():
                for function, stage in chain:
                    made.run(function, stage, early)
                launch(weights, (1, 2 * count), 256, made.axes, 2 * count, none, early)
                launch(resize_planes, grid, THREADS, rows[1], count, tiles, early)

            times[f"early {early}"] = microseconds(together)
        print(f"{count:6} " + "".join(f"{time:13.1f}" for time in times.values()), flush=True)


if __name__ == "__main__":
    main()
