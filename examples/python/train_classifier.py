"""Trains a small classifier of images with PyTorch; Gesso reads, decodes and augments.

pip install torch tqdm
python examples/python/train_classifier.py FOLDER            a folder of images for each class
python examples/python/train_classifier.py --made            on images that it makes itself
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from gesso import fn, pipeline_def, types
from gesso.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy

MEAN, STD = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]


@pipeline_def(num_threads=2, seed=7)
def training(folder, side):
    encoded, labels = fn.readers.file(
        file_root=folder, random_shuffle=True, pad_last_batch=True, shards="auto", name="images"
    )
    images = fn.decoders.image_random_crop(encoded, random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3])
    images = fn.resize(images, size=[side, side])
    images = fn.crop_mirror_normalize(
        images, mirror=fn.random.coin_flip(), mean=MEAN, std=STD, dtype=types.FLOAT, output_layout="CHW"
    )
    return images, labels


def make_images(folder):
    """Stripes that lie or stand: two classes that a small network tells apart."""
    from PIL import Image

    numbers = np.random.default_rng(0)
    for label in range(2):
        (folder / f"class{label}").mkdir(parents=True)
        for i in range(120):
            wave = np.sin(np.arange(120) * numbers.uniform(0.3, 0.8) + numbers.uniform(0, 6)) * 90 + 128
            stripes = np.broadcast_to(wave if label else wave[:, None], (120, 120))
            pixels = (stripes[..., None] + numbers.normal(0, 20, (120, 120, 3))).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"class{label}" / f"{i:03}.jpg")


def network(classes):
    layers, before = [], 3
    for channels in (16, 32, 64):
        layers += [torch.nn.Conv2d(before, channels, 3, 2, 1), torch.nn.BatchNorm2d(channels), torch.nn.ReLU()]
        before = channels
    return torch.nn.Sequential(
        *layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(before, classes)
    )


def bar(batches, epoch):
    try:
        from tqdm import tqdm
    except ImportError:
        return batches
    return tqdm(batches, f"epoch {epoch}", unit="batch")


def train(folder, epochs, batch_size, side):
    """Trains; the mean loss of each epoch."""
    classes = sum(path.is_dir() for path in Path(folder).iterdir())
    batches = DALIClassificationIterator(
        training(str(folder), side, batch_size=batch_size),
        reader_name="images",
        last_batch_policy=LastBatchPolicy.PARTIAL,
        auto_reset=True,
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = network(classes).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    means = []
    for epoch in range(epochs):
        losses = []
        for batch in bar(batches, epoch):
            images, labels = batch[0]["data"].to(device), batch[0]["label"].flatten().long().to(device)
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        means.append(float(np.mean(losses)))
        print(f"epoch {epoch}: loss {means[-1]:.3f}")
    return means


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--side", type=int, default=64)
    options = parser.parse_args()
    if not options.made and options.folder is None:
        parser.error("give a folder, or --made")
    with tempfile.TemporaryDirectory() as made:
        if options.made:
            make_images(Path(made))
        train(made if options.made else options.folder, options.epochs, options.batch_size, options.side)


if __name__ == "__main__":
    main()
