"""Images/s of a classifier's training input: JPEG files, decode, random resized crop to 224, flip, normalize; Gesso
beside its peers.

    python benches/peers/training.py make FOLDER                     5,000 files of 500 x 375 in 10 classes, and the
                                                                     same in 10 tar archives
    python benches/peers/training.py PEER FOLDER                     one peer, with the interpreter that has it
    python benches/peers/training.py table FOLDER --peer gesso=PYTHON --peer dali=PYTHON ... [--rounds 3]
                                                                     all in turn, each by its own interpreter; medians
                                                                     as a table
    ... [--device cpu|gpu] [--workers 2] [--batch 64]                where images are decoded and worked on, by how
                                                                     many, in batches of how many

Peers: `gesso` and `dali`, the same definition on the files; `gesso-tar`, Gesso on the archives; `torch`, PyTorch's
`DataLoader` with torchvision's v2 transforms on Pillow's images, as torchvision's own recipe has them; `torch-jpeg`,
the same on tensors that torchvision's libjpeg decoded; `webdataset`, the package of that name on the archives, with the
transforms of `torch`. All use `--workers` workers: threads, or processes for torch's loaders. With `--device gpu` Gesso
and DALI decode and compute on GPU 0 and a batch is taken there as a tensor, without a copy; torch's loaders stay on the
host, pin their batches and copy them to the GPU. Every batch is waited for. `--keep FILE` adds the rounds to those of
earlier runs."""

import argparse
import io
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SIDE = 224
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
IMAGES, CLASSES, ARCHIVES = 5000, 10, 10
SECONDS = 15


@dataclass(frozen=True)
class Setting:
    """What all peers of a table share."""

    folder: Path
    device: str
    workers: int
    batch: int
    multiprocessors: int | None = None

    @property
    def is_gpu(self):
        return self.device == "gpu"


def picture(i):
    """The i-th JPEG: soft colors, waves and noise, in three qualities; 70 kB on average."""
    from PIL import Image

    width, height = 500, 375
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    rng = np.random.default_rng(i)
    coarse = rng.normal(0, 40, (height // 12 + 1, width // 12 + 1, 3)).clip(-120, 120)
    coarse = np.asarray(Image.fromarray((coarse + 128).astype(np.uint8)).resize((width, height), Image.BICUBIC))
    wave = 30 * np.sin(x * rng.uniform(0.02, 0.2) + y * rng.uniform(0.02, 0.2))
    pixels = coarse + wave[..., None] + rng.normal(0, 7, (height, width, 1))
    data = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(data, "JPEG", quality=(75, 88, 95)[i % 3])
    return data.getvalue()


def add(archive, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def make(folder):
    for label in range(CLASSES):
        (folder / "images" / f"class{label}").mkdir(parents=True, exist_ok=True)
    (folder / "archives").mkdir(exist_ok=True)
    archives = [tarfile.open(folder / "archives" / f"{number}.tar", "w") for number in range(ARCHIVES)]
    for i in range(IMAGES):
        data, label = picture(i), i % CLASSES
        (folder / "images" / f"class{label}" / f"{i:04}.jpg").write_bytes(data)
        # Whole blocks go to an archive, so that it has all classes.
        archive = archives[i * ARCHIVES // IMAGES]
        add(archive, f"{i:04}.jpg", data)
        add(archive, f"{i:04}.cls", str(label).encode())
    for archive in archives:
        archive.close()


def archives_of(folder):
    return sorted(str(path) for path in (folder / "archives").glob("*.tar"))


# --- Gesso and DALI


def pipeline(package, setting, read, **settings):
    fn, types = package.fn, package.types

    @package.pipeline_def(
        batch_size=setting.batch,
        num_threads=setting.workers,
        device_id=0 if setting.is_gpu else None,
        seed=1,
        **settings,
    )
    def define():
        encoded, labels = read(fn)
        decoder = "mixed" if setting.is_gpu else "cpu"
        image = fn.decoders.image_random_crop(
            encoded, device=decoder, random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3]
        )
        image = fn.resize(image, size=[SIDE, SIDE])
        image = fn.crop_mirror_normalize(
            image,
            dtype=types.FLOAT,
            output_layout="CHW",
            mean=[255 * value for value in MEAN],
            std=[255 * value for value in STD],
            mirror=fn.random.coin_flip(),
        )
        return image, labels

    made = define()
    made.build()
    while True:
        images, _ = made.run()
        taken = images.as_tensor()
        if setting.is_gpu:
            # As a framework takes it: where it lies, ready to be read.
            assert taken.__cuda_array_interface__["data"][0]
        yield setting.batch


def of_files(folder):
    return lambda fn: fn.readers.file(
        file_root=str(folder / "images"), random_shuffle=True, name="reader", prefetch_queue_depth=2
    )


def of_archives(folder):
    return lambda fn: fn.readers.webdataset(
        paths=archives_of(folder), ext=["jpg", "cls"], random_shuffle=True, name="reader"
    )


def gesso(setting):
    import gesso

    return pipeline(gesso, setting, of_files(setting.folder), gpu_multiprocessors=setting.multiprocessors)


def gesso_tar(setting):
    import gesso

    return pipeline(gesso, setting, of_archives(setting.folder))


def dali(setting):
    import nvidia.dali
    import nvidia.dali.fn  # its functions are there when they were imported

    return pipeline(nvidia.dali, setting, of_files(setting.folder))


# --- PyTorch


def transforms(decoded):
    """torchvision's recipe of a classifier, v2; `decoded`: whether it begins with tensors."""
    import torch
    from torchvision.transforms import v2

    steps = [v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip()]
    steps += [] if decoded else [v2.PILToTensor()]
    return v2.Compose([*steps, v2.ToDtype(torch.float, scale=True), v2.Normalize(MEAN, STD), v2.ToPureTensor()])


def batches_of(loader, setting):
    import torch

    while True:
        for images, labels in loader:
            if setting.is_gpu:
                images, _ = images.to("cuda", non_blocking=True), labels.to("cuda", non_blocking=True)
                torch.cuda.synchronize()
            yield len(images)


def of_folder(setting, **options):
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder

    data = ImageFolder(str(setting.folder / "images"), **options)
    settings = {"num_workers": setting.workers, "persistent_workers": True, "pin_memory": setting.is_gpu}
    return batches_of(DataLoader(data, setting.batch, shuffle=True, drop_last=True, **settings), setting)


def torch(setting):
    return of_folder(setting, transform=transforms(decoded=False))


def decode_jpeg(path):
    from torchvision import io

    return io.decode_jpeg(io.read_file(path), mode=io.ImageReadMode.RGB)


def torch_jpeg(setting):
    return of_folder(setting, transform=transforms(decoded=True), loader=decode_jpeg)


def webdataset(setting):
    import webdataset as wds

    steps, archives = transforms(decoded=False), archives_of(setting.folder)
    data = wds.WebDataset(archives, shardshuffle=ARCHIVES, nodesplitter=wds.split_by_node, empty_check=False).shuffle(
        1000
    )
    data = data.decode("pil").to_tuple("jpg", "cls").map_tuple(steps, int).batched(setting.batch, partial=False)
    settings = {"num_workers": setting.workers, "persistent_workers": True, "pin_memory": setting.is_gpu}
    return batches_of(wds.WebLoader(data, batch_size=None, **settings), setting)


PEERS = {
    "gesso": gesso,
    "gesso-tar": gesso_tar,
    "dali": dali,
    "torch": torch,
    "torch-jpeg": torch_jpeg,
    "webdataset": webdataset,
}


# --- measuring


def cpu_seconds():
    """What this process and its workers have computed."""
    total = sum(os.times()[:2])
    for child in multiprocessing.active_children():
        with open(f"/proc/{child.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def measure(peer, setting, seconds):
    batches = PEERS[peer](setting)
    for _ in range(4):
        next(batches)
    began, used, count = time.perf_counter(), cpu_seconds(), 0
    while time.perf_counter() - began < seconds:
        count += next(batches)
    wall, used = time.perf_counter() - began, cpu_seconds() - used
    print(f"{peer}: {count / wall:.0f} images/s, {1000 * used / count:.3f} ms of a core for an image", flush=True)


# Names of peers in the records of benches/results.
NAMES = {"gesso": "Gesso, files", "gesso-tar": "Gesso, tar archives", "dali": "DALI 2.4, CPU, files"}


def in_turn(program, setting, interpreters, options):
    """Measures peers in turn, each by `program` in its own interpreter: speed and cost of each round. `--keep` holds
    those of earlier runs."""
    found = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    for _ in range(options.rounds):
        for peer, python in interpreters.items():
            command = [python, program, peer, str(setting.folder), "--seconds", str(options.seconds)]
            command += ["--device", setting.device, "--workers", str(setting.workers), "--batch", str(setting.batch)]
            command += ["--multiprocessors", str(setting.multiprocessors)] if setting.multiprocessors else []
            done = subprocess.run(command, capture_output=True, text=True)
            figures = re.search(r": (\d+) images/s, ([0-9.]+) ms", done.stdout)
            if figures is None:
                sys.exit(f"{peer} failed:\n{done.stdout}{done.stderr}")
            print(done.stdout.strip(), flush=True)
            found.setdefault(peer, []).append([float(figure) for figure in figures.groups()])
        if options.keep:
            options.keep.write_text(json.dumps(found))
    return found


def table(setting, interpreters, options):
    """Measures all in turn and prints the medians. With `--record` the table is kept in benches/results."""
    found = in_turn(__file__, setting, interpreters, options)
    speeds = {peer: statistics.median(speed for speed, _ in each) for peer, each in found.items()}
    print("\n| | images/s | rounds | ms of a core for an image | |\n| --- | --- | --- | --- | --- |")
    body = []
    for peer, each in found.items():
        rows = ", ".join(f"{speed:,.0f}" for speed, _ in each)
        slower = (
            ""
            if "gesso" not in speeds or peer.startswith("gesso")
            else f"{speeds['gesso'] / speeds[peer]:.1f} times slower"
        )
        cost = f"{statistics.median(cost for _, cost in each):.3g}"
        print(f"| {peer} | {speeds[peer]:,.0f} | {rows} | {cost} | {slower} |")
        body.append([NAMES.get(peer, peer), round(speeds[peer]), rows, cost, slower])
    if options.record:
        sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts" / "lib"))
        import records

        series = f"training-{setting.device}"
        command = f"benches/peers/training.py table FOLDER --device {setting.device} --batch {setting.batch}"
        command += f" --rounds {options.rounds} --peer NAME=PYTHON ..."
        spread = f"medians of {len(next(iter(found.values())))} rounds of {options.seconds:g} s in turn"
        columns = ["", "images/s", "rounds", "ms of a core for an image", ""]
        print(records.write(series, f"A classifier's training input, {setting.device}", command, spread, columns, body))


def add_options(parser):
    """What all programs that measure so take."""
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each peer and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument(
        "--record", action="store_true", help="also keep the table in benches/results, which pages are made of"
    )
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument(
        "--multiprocessors", type=int, metavar="N", help="of the GPU, that `gesso` may take (default: all)"
    )


def setting_of(options):
    return Setting(options.folder, options.device, options.workers, options.batch, options.multiprocessors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "table", *PEERS])
    add_options(parser)
    options = parser.parse_args()
    setting = setting_of(options)
    if options.what == "make":
        make(options.folder)
    elif options.what == "table":
        interpreters = dict(peer.split("=", 1) for peer in options.peer)
        if not interpreters or not interpreters.keys() <= PEERS.keys():
            parser.error(f"give peers as NAME=PYTHON, of {', '.join(PEERS)}")
        table(setting, interpreters, options)
    else:
        measure(options.what, setting, options.seconds)


if __name__ == "__main__":
    main()
