"""Random annotation files and arguments of `readers.coco`, in Gesso and in DALI: the same samples, and the same tables
of annotations that are saved; each reads those that the other one saved.

    GESSO_LIBRARY=target/release/libtriton_gesso.so PYTHONPATH=python python tests/conformance/fuzz_coco.py --cases 2000

Needs nvidia.dali in the interpreter; no GPU. Prints each case that differs; the same seed makes the same ones."""

import argparse
import json
import random
import sys
import tempfile
import warnings
from pathlib import Path

import gesso
import gesso.fn
import numpy as np
import nvidia.dali
import nvidia.dali.fn

KINDS = (2, 5, 9, 14)


def drawn_text(counts):
    """Runs as COCO's text."""
    text = ""
    for i, count in enumerate(counts):
        value, more = count - counts[i - 2] if i > 2 else count, True
        while more:
            digit, value = value & 31, value >> 5
            more = value != (-1 if digit & 16 else 0)
            text += chr(48 + digit + 32 * more)
    return text


def drawn_shape(numbers, width, height):
    """The segmentation of an object: polygons, or runs as numbers or as a text."""
    kind = numbers.random()
    if kind < 0.6:
        polygons = []
        for _ in range(numbers.randint(1, 3)):
            corners = numbers.randint(3, 8)
            whole = numbers.random() < 0.3
            polygon = []
            for _ in range(corners):
                for side in (width, height):
                    at = numbers.uniform(-2, side + 2) if numbers.random() < 0.2 else numbers.uniform(0, side)
                    polygon.append(round(at) if whole else round(at, 2))
            polygons.append(polygon)
        return polygons
    left, counts = width * height, []
    while left:
        counts.append(numbers.randint(0 if not counts else 1, min(left, 3 * height)))
        left -= counts[-1]
    return {"size": [height, width], "counts": counts if kind < 0.8 else drawn_text(counts)}


def drawn_file(numbers, folder):
    """An annotation file; the names of its images."""
    images, objects = [], []
    for i in numbers.sample(range(100), numbers.randint(1, 6)):
        width, height = numbers.randint(1, 40), numbers.randint(1, 40)
        images.append({"id": i, "file_name": f"{i}.jpg", "width": width, "height": height})
        (folder / f"{i}.jpg").write_bytes(b"%d" % i)
        for _ in range(numbers.randrange(5)):
            objects.append(
                {
                    "id": len(objects),
                    "image_id": i,
                    "category_id": numbers.choice(KINDS),
                    "bbox": [round(numbers.uniform(0, 20), numbers.randint(0, 2)) for _ in range(4)],
                    "iscrowd": int(numbers.random() < 0.3),
                    "segmentation": drawn_shape(numbers, width, height),
                }
            )
    numbers.shuffle(objects)
    content = {"images": images, "annotations": objects, "categories": [{"id": i} for i in KINDS]}
    (folder / "instances.json").write_text(json.dumps(content))
    return [image["file_name"] for image in images]


def drawn_options(numbers, names):
    """(arguments of annotation files alone, other arguments)"""
    of_file = {name: True for name in ("ltrb", "ratio", "skip_empty") if numbers.random() < 0.3}
    if numbers.random() < 0.4:
        of_file["size_threshold"] = numbers.choice([0.0, 1.0, 5.5])
    others = {"image_ids": True} if numbers.random() < 0.5 else {}
    masks = numbers.choice(["", "polygon_masks", "pixelwise_masks", "pixelwise_masks"])
    if masks:
        others[masks] = True
    for name, value in (("include_iscrowd", False), ("avoid_class_remapping", True)):
        if numbers.random() < 0.3:
            of_file[name] = value
    if numbers.random() < 0.2:
        of_file["images"] = numbers.sample(names, numbers.randint(1, len(names)))
    return of_file, others


def answer(package, size, **options):
    """The outputs of two batches, or "fails"."""
    pipeline = package.Pipeline(size, 1, None, prefetch_queue_depth=1)
    try:
        with pipeline:
            pipeline.set_outputs(*package.fn.readers.coco(**options))
        pipeline.build()
        runs = [pipeline.run() for _ in range(2)]
    except RuntimeError as error:
        return "fails", str(error)
    return [
        [[(array.shape, array.tobytes()) for array in map(np.asarray, map(output.at, range(size)))] for output in run]
        for run in runs
    ]


def saved(folder):
    """The tables of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def differences(numbers, folder):
    """What differs in one case, as a text."""
    names = drawn_file(numbers, folder)
    of_file, others = drawn_options(numbers, names)
    common = {"file_root": str(folder), **others}
    options = {**common, **of_file, "annotations_file": str(folder / "instances.json")}
    packages = {"gesso": gesso, "dali": nvidia.dali}
    found = [answer(package, 3, **options) for package in packages.values()]
    if "fails" in (found[0][0], found[1][0]):
        return "" if found[0][0] == found[1][0] else f"{options}: {found[0]} {found[1]}"
    if found[0] != found[1]:
        return f"{options}"
    if numbers.random() < 0.5:
        return ""
    places = {name: folder / name for name in packages}
    for name, package in packages.items():
        places[name].mkdir()
        saving = {"save_preprocessed_annotations": True, "save_preprocessed_annotations_dir": str(places[name])}
        if answer(package, 3, **options, **saving) != found[0]:
            return f"{options}, saving by {name}"
    tables = [saved(place) for place in places.values()]
    if tables[0] != tables[1]:
        both = tables[0].keys() | tables[1].keys()
        names = [name for name in sorted(both) if tables[0].get(name) != tables[1].get(name)]
        return f"{options}, tables {names}"
    for name, place in places.items():
        again = [answer(package, 3, **common, preprocessed_annotations=str(place)) for package in packages.values()]
        if again[0] != again[1]:
            return f"{options}, loading what {name} saved: {again[0][0]} {again[1][0]}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    wrong = 0
    for case in range(chosen.cases):
        with tempfile.TemporaryDirectory() as root:
            found = differences(random.Random(chosen.seed * 1_000_003 + case), Path(root))
        if found:
            wrong += 1
            print(f"case {case} differs: {found}", flush=True)
    print(f"{chosen.cases - wrong} of {chosen.cases} cases alike")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
