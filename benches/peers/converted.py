"""A converted training definition (`gesso.convert.torchvision`) beside the same `Compose` in PyTorch's `DataLoader`.

    python benches/peers/converted.py speed FOLDER [--transforms plain|strong] [--workers 2] [--rounds 5]
    python benches/peers/converted.py loss [--seeds 3] [--epochs 5]

`speed`: images/s of a folder with a folder of files for each class, as `benches/peers/training.py make` writes it;
Gesso and torch in turn, medians. `plain` is a random crop and a flip, `strong` has `ColorJitter`, `RandAugment` and
`RandomErasing`, too. `loss`: a small network trained on six made classes, for each of some seeds of the model by each
loader; the means of the last epoch and their deviations. Needs torch, torchvision and the package `gesso`."""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torchvision import datasets, transforms

NORMALIZED = [transforms.ToTensor(), transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
SIDE, BATCH = 224, 64
# The made data set: stripes that differ by class, under noise and shades that do not.
CLASSES, IMAGES, LOSS_SIDE, LOSS_BATCH = 6, 80, 96, 32


def composed(kind, side):
    """The definition that both have."""
    first = [transforms.RandomResizedCrop(side), transforms.RandomHorizontalFlip()]
    if kind == "plain":
        return transforms.Compose([*first, *NORMALIZED])
    strong = [transforms.ColorJitter(0.4, 0.4, 0.4, 0.1), transforms.RandAugment()]
    return transforms.Compose([*first, *strong, *NORMALIZED, transforms.RandomErasing()])


def by_gesso(folder, transform, batch, workers, seed):
    """Batches of an epoch, each time that it is called."""
    from gesso import convert
    from gesso.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy

    made = convert.torchvision(transform, train=str(folder), batch_size=batch)
    batches = DALIClassificationIterator(
        made(num_threads=workers, seed=seed),
        reader_name="reader",
        auto_reset=True,
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
    return lambda: ((each[0]["data"], each[0]["label"].squeeze(-1).long()) for each in batches)


def by_torch(folder, transform, batch, workers, seed):
    """The same by a `DataLoader`."""
    loader = torch.utils.data.DataLoader(
        datasets.ImageFolder(str(folder), transform),
        batch,
        shuffle=True,
        num_workers=workers,
        persistent_workers=True,
        generator=torch.Generator().manual_seed(seed),
    )
    return lambda: iter(loader)


LOADERS = {"gesso": by_gesso, "torch": by_torch}


def speed(options):
    """Prints images/s."""
    torch.set_num_threads(1)
    transform = composed(options.transforms, SIDE)
    epochs = {name: make(options.folder, transform, BATCH, options.workers, 1) for name, make in LOADERS.items()}
    rates = {name: [] for name in epochs}
    for number in range(options.rounds + 1):
        for name, epoch in epochs.items():
            start = time.perf_counter()
            count = sum(len(images) for images, _ in epoch())
            # The first epoch starts workers and fills the page cache.
            if number:
                rates[name].append(count / (time.perf_counter() - start))
    for name, found in rates.items():
        print(f"{name}: {statistics.median(found):.0f} images/s ({min(found):.0f} to {max(found):.0f})")
    print(f"gesso / torch: {statistics.median(rates['gesso']) / statistics.median(rates['torch']):.2f}")


def make_data(folder):
    """Writes the data set."""
    from PIL import Image

    rng = np.random.default_rng(57)
    for kind in range(CLASSES):
        (folder / str(kind)).mkdir()
        for number in range(IMAGES):
            height, width = rng.integers(200, 400, 2)
            y, x = np.mgrid[:height, :width]
            waves = np.sin((0.05 + 0.03 * kind) * (x * np.cos(kind) + y * np.sin(kind)) + rng.uniform(0, 6))
            pixels = 128 + 50 * waves[..., None] + rng.normal(0, 45, (height, width, 3)) + rng.normal(0, 25, 3)
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / str(kind) / f"{number}.jpg", quality=90)


def network():
    """Three convolutions and a line."""
    layers = []
    for before, after, side, stride in ((3, 16, 5, 4), (16, 32, 3, 2), (32, 64, 3, 2)):
        layers += [nn.Conv2d(before, after, side, stride, side // 2), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))


def trained(epoch, seed, epochs):
    """The mean loss of the last epoch."""
    torch.manual_seed(seed)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(epochs):
        total = count = 0
        for images, labels in epoch():
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, count = total + float(loss.detach()) * len(labels), count + len(labels)
    return total / count


def loss(options):
    """Prints the losses."""
    with tempfile.TemporaryDirectory() as folder:
        make_data(Path(folder))
        transform = composed("plain", LOSS_SIDE)
        for name, make in LOADERS.items():
            found = [
                trained(make(folder, transform, LOSS_BATCH, options.workers, seed), seed, options.epochs)
                for seed in range(options.seeds)
            ]
            deviation = statistics.stdev(found) if len(found) > 1 else 0.0
            print(f"{name}: loss {statistics.mean(found):.3f} +- {deviation:.3f} of {options.seeds} seeds", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True, dest="kind")
    fast, exact = kinds.add_parser("speed"), kinds.add_parser("loss")
    fast.add_argument("folder", type=Path)
    fast.add_argument("--transforms", choices=("plain", "strong"), default="plain")
    fast.add_argument("--rounds", type=int, default=5)
    exact.add_argument("--seeds", type=int, default=3)
    exact.add_argument("--epochs", type=int, default=5)
    for each in (fast, exact):
        each.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    return {"speed": speed, "loss": loss}[options.kind](options)


if __name__ == "__main__":
    sys.exit(main())
