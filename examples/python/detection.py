"""Trains a small detector with PyTorch on images and annotations of the COCO kind; Gesso reads, decodes, crops and
mirrors images with their boxes.

    pip install torch tqdm
    python examples/python/detection.py IMAGES instances_train2017.json
    python examples/python/detection.py --made            on images that it makes itself

Crops are chosen as SSD does: each keeps a part of some object, and boxes follow their image. They are relative to it:
left, top, right, bottom."""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import torch
from gesso import fn, pipeline_def, types
from gesso.plugin.pytorch import DALIRaggedIterator, LastBatchPolicy

MEAN, STD = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]
# The network sees the image as this many cells in each direction.
CELLS = 8


@pipeline_def(num_threads=2, seed=7)
def training(images, annotations, side):
    encoded, boxes, classes = fn.readers.coco(
        file_root=images,
        annotations_file=annotations,
        ltrb=True,
        ratio=True,
        skip_empty=True,
        random_shuffle=True,
        pad_last_batch=True,
        shards="auto",
        name="coco",
    )
    anchor, shape, boxes, classes = fn.random_bbox_crop(
        boxes,
        classes,
        aspect_ratio=[0.5, 2.0],
        scaling=[0.3, 1.0],
        thresholds=[0.0, 0.1, 0.3, 0.5, 0.7, 0.9],
        bbox_layout="xyXY",
        num_attempts=20,
    )
    mirrored = fn.random.coin_flip()
    pixels = fn.decoders.image_slice(encoded, anchor, shape)
    pixels = fn.resize(pixels, size=[side, side])
    pixels = fn.crop_mirror_normalize(
        pixels, mirror=mirrored, mean=MEAN, std=STD, dtype=types.FLOAT, output_layout="CHW"
    )
    return pixels, fn.bb_flip(boxes, ltrb=True, horizontal=mirrored), classes


def batches(images, annotations, batch_size, side):
    """Images as one tensor; boxes and classes as lists, as each image has its own number of objects."""
    dense, ragged = DALIRaggedIterator.DENSE_TAG, DALIRaggedIterator.SPARSE_LIST_TAG
    return DALIRaggedIterator(
        training(str(images), str(annotations), side, batch_size=batch_size),
        ["images", "boxes", "classes"],
        reader_name="coco",
        output_types=[dense, ragged, ragged],
        last_batch_policy=LastBatchPolicy.PARTIAL,
        auto_reset=True,
    )


def network(classes):
    """For each cell: whether an object has its middle there, its class, its box."""
    layers, before = [], 3
    for channels in (16, 32, 64, 64):
        layers += [torch.nn.Conv2d(before, channels, 3, 2, 1), torch.nn.BatchNorm2d(channels), torch.nn.ReLU()]
        before = channels
    layers += [torch.nn.AdaptiveAvgPool2d(CELLS), torch.nn.Conv2d(before, 64, 3, 1, 1), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Conv2d(64, 1 + classes + 4, 1))


def loss_of(outputs, boxes, classes):
    """Of objects, classes and boxes together."""
    wanted = torch.zeros(len(boxes), CELLS, CELLS, device=outputs.device)
    places, kinds, targets = [], [], []
    for i, (own, labels) in enumerate(zip(boxes, classes)):
        middle = ((own[:, :2] + own[:, 2:]) / 2 * CELLS).long().clamp(0, CELLS - 1)
        places += [(i, y, x) for x, y in middle.tolist()]
        kinds.append(labels.flatten().long() - 1)
        targets.append(own)
    where = tuple(torch.tensor(places, device=outputs.device).T)
    wanted[where] = 1
    found = outputs.permute(0, 2, 3, 1)
    chosen = found[where]
    total = torch.nn.functional.binary_cross_entropy_with_logits(found[..., 0], wanted)
    total = total + torch.nn.functional.cross_entropy(chosen[:, 1:-4], torch.cat(kinds).to(outputs.device))
    return total + torch.nn.functional.smooth_l1_loss(
        chosen[:, -4:].sigmoid(), torch.cat(targets).to(outputs.device), beta=0.1
    )


def bar(iterator, epoch):
    try:
        from tqdm import tqdm
    except ImportError:
        return iterator
    return tqdm(iterator, f"epoch {epoch}", unit="batch")


def train(images, annotations, epochs, batch_size, side):
    """Trains; the mean loss of each epoch."""
    classes = len(json.loads(Path(annotations).read_text())["categories"])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = network(classes).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    iterator = batches(images, annotations, batch_size, side)
    means = []
    for epoch in range(epochs):
        losses = []
        for (batch,) in bar(iterator, epoch):
            loss = loss_of(model(batch["images"].to(device)), batch["boxes"], batch["classes"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        means.append(float(np.mean(losses)))
        print(f"epoch {epoch}: loss {means[-1]:.3f}")
    return means


def make_images(folder):
    """Bright and dark rectangles on grey: two classes."""
    from PIL import Image

    numbers, images, annotations = np.random.default_rng(0), [], []
    for i in range(160):
        pixels = numbers.normal(128, 12, (96, 128, 3))
        for _ in range(numbers.integers(1, 3)):
            (w, h), kind = numbers.integers(24, 48, 2).tolist(), int(numbers.integers(2))
            x, y = int(numbers.integers(0, 128 - w)), int(numbers.integers(0, 96 - h))
            pixels[y : y + h, x : x + w] = 230 if kind else 30
            box = {
                "id": len(annotations),
                "image_id": i,
                "category_id": kind,
                "bbox": [x, y, w, h],
                "area": w * h,
                "iscrowd": 0,
            }
            annotations.append(box)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{i}.jpg")
        images.append({"id": i, "file_name": f"{i}.jpg", "width": 128, "height": 96})
    content = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": 0, "name": "dark"}, {"id": 1, "name": "bright"}],
    }
    (folder / "instances.json").write_text(json.dumps(content))
    return folder / "instances.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", nargs="?", type=Path)
    parser.add_argument("annotations", nargs="?", type=Path)
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--side", type=int, default=128)
    options = parser.parse_args()
    if not options.made and options.annotations is None:
        parser.error("give images and annotations, or --made")
    with tempfile.TemporaryDirectory() as made:
        images, annotations = options.images, options.annotations
        if options.made:
            images, annotations = Path(made), make_images(Path(made))
        train(images, annotations, options.epochs, options.batch_size, options.side)


if __name__ == "__main__":
    main()
