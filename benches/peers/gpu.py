#!/usr/bin/env python3
"""Decode + resize to 224x224 + normalize in process on a GPU: Gesso and the peers that are installed, in turn in the
same run.

    benches/peers/gpu.py                                  two sizes, batches 1, 8, 32 and 128
    benches/peers/gpu.py --batch 128 --instances 2 --rounds 5 --peers dali cvcuda
    benches/peers/gpu.py --sizes 1920x1080 --loads 0.5 0.65 0.8 1.0
    benches/peers/gpu.py --sizes 500x375-progressive --batch 128 512 --instances 1 4
    benches/peers/gpu.py --instances 1 2 4 --json FILE --svg FILE
    benches/peers/gpu.py --from FILE... --svg FILE        the table and the picture of what was measured before

Gesso is the program in $GESSO_BENCH or else `cargo bench --bench pipeline`. Peers (`gpu_peers.py`) are DALI (package
nvidia-dali-cuda130), torchvision, nvImageCodec with torchvision's resize (nvidia-nvimgcodec-cu13, nvidia-nvjpeg) and
with CV-CUDA's (cvcuda-cu13): each on one thread of Python that waits for every batch. DALI runs with each
`hw_decoder_load` asked for, waiting for every batch (depth 1) and with the next batch in flight (depth 2). A peer that
does not import, fails, or makes other images than Pillow is named and left out. Prints medians over the rounds, their
spread, and the ratio to the best peer; and the memory of the device that a process with one loaded pipeline takes after
batches of 128. Of rows in several files of `--from` the medians are shown. Images are made when they are not there."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import chart  # noqa: E402
import gpu_peers  # noqa: E402
import make_bench_images  # noqa: E402
import pipeline_bench  # noqa: E402
import records  # noqa: E402
from cuda_driver import CudaError, Driver  # noqa: E402

MEMORY_BATCH = 128
# Of DALI: batches in flight.
DEPTHS = (1, 2)
OWN = "Gesso"
FIGURES = ("images_per_second", "lowest", "highest", "p50_us", "p99_us")


# --- Measuring
# -----------------------------------------------------------------------------------------------------------------


def gesso(command, images, batch, seconds, options, instances):
    seconds = max(1, round(seconds))
    return pipeline_bench.measure(
        command, device="gpu", images=images, batch=batch, threads=options.threads, instances=instances, seconds=seconds
    )


def ways(name, options, depths=DEPTHS):
    """How a peer is measured: names of rows, each with what its job says besides."""
    if name != "dali":
        return {gpu_peers.LABELS[name]: {}}
    return {
        f"DALI {load:g} depth {depth}": {"load": load, "depth": depth} for load in options.loads for depth in depths
    }


def compare(command, workers, images, batch, options):
    """Rows of one size and batch: name to the rounds' answers."""
    measures = {
        f"{OWN} x{instances}": lambda instances=instances: gesso(
            command, images, batch, options.seconds, options, instances
        )
        for instances in options.instances
    }
    for name, worker in workers.items():
        for label, more in ways(name, options).items():
            job = dict(images=images, batch=batch, threads=options.threads, seconds=options.seconds, **more)
            measures[label] = lambda worker=worker, job=job: worker(**job)
    answers = {name: [] for name in measures}
    for _ in range(options.rounds):
        for name, measure in list(measures.items()):
            try:
                answers[name].append(measure())
            except RuntimeError as error:
                print(f"error: batch {batch}, {name}: {error}")
                del measures[name]
    return {name: rounds for name, rounds in answers.items() if rounds}


def summary(size, batch, answers):
    rows = []
    for name, rounds in answers.items():
        rates = [answer["images_per_second"] for answer in rounds]
        median = lambda key: statistics.median(answer[key] for answer in rounds)
        rows.append(
            {"peer": name, "size": size, "batch": batch, "images_per_second": statistics.median(rates), "lowest": min(rates),
             "highest": max(rates), "p50_us": median("p50_us"), "p99_us": median("p99_us"),
             "counters": rounds[-1].get("counters"), "gpu_bytes": rounds[-1].get("gpu_bytes"), "difference": rounds[-1].get("difference")}
        )  # fmt: skip
    return rows


def memory(driver, command, images, options, names):
    """Bytes of the device that each process takes while its one pipeline is loaded, context and modules included."""
    taken = {}
    before = driver.used_bytes()
    for name in names:
        for label, more in ways(name, options, depths=(1,)).items():
            worker = gpu_peers.Worker(name)
            try:
                worker(images=images, batch=MEMORY_BATCH, threads=options.threads, seconds=1, **more)
                taken[label] = driver.used_bytes() - before
            except gpu_peers.PeerError as error:
                print(f"error: memory, {label}: {error}")
            worker.close()
    # Gesso's program ends by itself: look while it runs, the highest value is the one with everything loaded.
    flags = [
        "--device",
        "gpu",
        "--images",
        str(images),
        "--batch",
        str(MEMORY_BATCH),
        "--threads",
        str(options.threads),
    ]
    process = subprocess.Popen([*command, *flags, "--seconds", "2"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    highest = 0
    while process.poll() is None:
        highest = max(highest, driver.used_bytes() - before)
        time.sleep(0.02)
    if process.returncode == 0:
        taken[OWN] = highest
        taken[f"{OWN}, its pool alone"] = json.loads(process.stdout.read().splitlines()[-1])["gpu_bytes"]
    return taken


# --- Showing
# -------------------------------------------------------------------------------------------------------------------


def is_own(row):
    return row["peer"].startswith(OWN)


def heading():
    return f"{'size':>9} {'batch':>5}  {'peer':17} {'images/s':>9}  (spread)          {'p50 us':>8} {'p99 us':>8}"


def table(rows):
    """Lines about the rows of one size and batch; those of Gesso with the ratio to the best of the others."""
    best = max((row for row in rows if not is_own(row)), key=lambda row: row["images_per_second"], default=None)
    for row in rows:
        ratio = ""
        if is_own(row) and best:
            ratio = f"  {row['images_per_second'] / best['images_per_second']:5.2f} x {best['peer']}"
        yield (
            f"{row['size']:>9} {row['batch']:5}  {row['peer']:17} {row['images_per_second']:9.0f}"
            f"  ({row['lowest']:.0f} to {row['highest']:.0f})  {row['p50_us']:8.0f} {row['p99_us']:8.0f}{ratio}"
        )


def by_cell(rows):
    """The rows of each size and batch, in the order in which they came."""
    cells = {}
    for row in rows:
        cells.setdefault((row["size"], row["batch"]), []).append(row)
    return cells


def medians(rows):
    """One row for each peer, size and batch."""
    alike = {}
    for row in rows:
        alike.setdefault((row["peer"], row["size"], row["batch"]), []).append(row)
    return [
        found[0] | {name: statistics.median(row[name] for row in found) for name in FIGURES} for found in alike.values()
    ]


def lines_of(rows, figure):
    """Points of a panel by the name of their line. DALI has one, its best; a batch in flight beside another has no
    latency of its own."""
    best = max if figure == "images_per_second" else min
    found = {}
    for row in rows:
        name = row["peer"]
        if is_own(row):
            lanes = int(name.removeprefix(f"{OWN} x"))
            name = f"{OWN}, {lanes} lane{'s' if lanes > 1 else ''}"
        elif name.startswith("DALI"):
            if figure != "images_per_second" and not name.endswith("depth 1"):
                continue
            name = "DALI"
        points = found.setdefault(name, {})
        points[row["batch"]] = best(points.get(row["batch"], row[figure]), row[figure])
    return {name: sorted(points.items()) for name, points in found.items()}


def picture(rows, title):
    """For each size a panel of images/s and one of latency, by batch."""
    panels = []
    for size in dict.fromkeys(row["size"] for row in rows):
        own = [row for row in rows if row["size"] == size]
        panels.append(chart.Panel(size, "batch", "images/s", lines_of(own, "images_per_second"), log_y=True))
        latencies = {name: [(x, y / 1000) for x, y in line] for name, line in lines_of(own, "p50_us").items()}
        panels.append(chart.Panel(f"{size}, latency", "batch", "ms a batch, p50", latencies, log_y=True))
    return chart.panels(title, panels)


def recorded(rows):
    """Columns and rows of a record in benches/results: Gesso by its batches at a time, DALI at its best, the others."""
    words = {1: "Gesso, one", 2: "two", 4: "four", 8: "eight"}

    def label(peer):
        if peer.startswith(OWN):
            lanes = int(peer.removeprefix(f"{OWN} x"))
            return words.get(lanes, str(lanes))
        return "DALI 2.4, best" if peer.startswith("DALI") else peer

    columns = list(dict.fromkeys(label(row["peer"]) for row in rows))
    body = []
    for (size, batch), cell in by_cell(rows).items():
        best = {}
        for row in cell:
            best[label(row["peer"])] = max(best.get(label(row["peer"]), 0), round(row["images_per_second"]))
        body.append([f"{size.replace('x', ' x ')}, {batch}", *(best.get(column, "") for column in columns)])
    return ["images, batch", *columns], body


def described(head):
    return f"{head['gpu']}, {head['threads']} threads, {head['rounds']} rounds of {head['seconds']:g} s, in turn"


# --- The program
# ---------------------------------------------------------------------------------------------------------------


def arguments():
    peers = list(gpu_peers.PEERS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, default=ROOT / ".cache" / "bench-images")
    parser.add_argument(
        "--sizes", nargs="+", choices=list(make_bench_images.ALL_SIZES), default=list(make_bench_images.SIZES)
    )
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--peers", nargs="*", choices=peers, default=peers, help="(default: those that import)")
    parser.add_argument(
        "--loads", type=float, nargs="+", default=[0.65, 1.0], help="DALI's hw_decoder_load (default: 0.65 1.0)"
    )
    parser.add_argument(
        "--instances", type=int, nargs="+", default=[1], help="of Gesso, each with its own batches in flight"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement (default: %(default)s)")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything there")
    parser.add_argument(
        "--from", type=Path, nargs="+", metavar="FILE", dest="sources", help="measure nothing: show what these hold"
    )
    parser.add_argument(
        "--record", action="store_true", help="also keep the run in benches/results, which pages are made of"
    )
    parser.add_argument(
        "--svg", type=Path, metavar="FILE", help="also draw images/s and latency by batch, two panels for each size"
    )
    options = parser.parse_args()
    if options.svg and not chart.can_draw():
        parser.error("--svg needs matplotlib: measure with --json, then draw with --from where it is installed")
    return options


def measure_all(driver, options):
    """Prints while it measures; returns everything. What there is so far is in the file of `--json` after each size and
    batch."""
    head = {"gpu": driver.name, "threads": options.threads, "rounds": options.rounds, "seconds": options.seconds}
    make_bench_images.make(options.images, options.sizes)
    command = pipeline_bench.command()
    workers, lines = gpu_peers.importable(options.peers)
    print("\n".join([described(head), *lines, heading()]))
    everything = head | {"peers": lines, "rows": [], "memory": {}}

    def keep():
        if options.json:
            options.json.write_text(json.dumps(everything, indent=1))

    for size in options.sizes:
        for batch in options.batch:
            rows = summary(size, batch, compare(command, workers, options.images / size, batch, options))
            everything["rows"] += rows
            for line in table(rows):
                print(line)
            keep()
    for worker in workers.values():
        worker.close()
    for size in () if options.no_memory else options.sizes:
        taken = memory(driver, command, options.images / size, options, workers)
        everything["memory"][size] = taken
        figures = ", ".join(f"{name} {size_in_bytes / 1e6:.0f} MB" for name, size_in_bytes in taken.items())
        print(f"{size:>9} memory of the device, one pipeline at batch {MEMORY_BATCH}: {figures}")
    keep()
    return everything


def main():
    options = arguments()
    sys.stdout.reconfigure(line_buffering=True)
    if options.sources:
        found = [json.loads(path.read_text()) for path in options.sources]
        # Files of older versions do not say where they were measured.
        title = "; ".join(dict.fromkeys(described(one) for one in found if "gpu" in one))
        rows = medians([row for one in found for row in one["rows"]])
        print("\n".join([title, heading(), *(line for cell in by_cell(rows).values() for line in table(cell))]))
    else:
        try:
            driver = Driver()
        except CudaError as error:
            print(f"skipped: {error}")
            return
        everything = measure_all(driver, options)
        title, rows = described(everything), everything["rows"]
    if options.record and not options.sources:
        columns, body = recorded(rows)
        command = " ".join(["benches/peers/gpu.py", *(word for word in sys.argv[1:] if word != "--record")])
        print(
            records.write(
                "gpu-peers",
                "Beside others on one GPU, images/s",
                command,
                described(everything).partition(", ")[2],
                columns,
                body,
            )
        )
    if options.svg:
        options.svg.write_text(picture(rows, f"Decode, resize to 224 x 224, normalize: {title}"))


if __name__ == "__main__":
    main()
