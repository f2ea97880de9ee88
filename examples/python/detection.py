"""Batches for training a detector, from images and annotations of the COCO kind; prints what comes.

    python examples/python/detection.py IMAGES instances_train2017.json

Images are resized to one size, mirrored at random with their boxes, and normalized; boxes are relative to the image, left, top, right, bottom.
"""

import argparse

from gesso import fn, pipeline_def, types
from gesso.plugin.pytorch import DALIRaggedIterator, LastBatchPolicy

MEAN, STD = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]


@pipeline_def(num_threads=2, seed=7)
def training(images, annotations, side):
    encoded, boxes, classes, ids = fn.readers.coco(
        file_root=images,
        annotations_file=annotations,
        ltrb=True,
        ratio=True,
        skip_empty=True,
        image_ids=True,
        random_shuffle=True,
        name="coco",
    )
    mirrored = fn.random.coin_flip()
    pixels = fn.resize(fn.decoders.image(encoded), size=[side, side])
    pixels = fn.crop_mirror_normalize(pixels, mirror=mirrored, mean=MEAN, std=STD, dtype=types.FLOAT, output_layout="CHW")
    return pixels, fn.bb_flip(boxes, ltrb=True, horizontal=mirrored), classes, ids


def batches(images, annotations, batch_size=8, side=320):
    """An epoch: images as one tensor; boxes and classes as lists, as each image has its own number of objects."""
    dense, ragged = DALIRaggedIterator.DENSE_TAG, DALIRaggedIterator.SPARSE_LIST_TAG
    iterator = DALIRaggedIterator(
        training(images, annotations, side, batch_size=batch_size),
        ["images", "boxes", "classes", "ids"],
        reader_name="coco",
        output_types=[dense, ragged, ragged, dense],
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
    for batch in iterator:
        yield batch[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images")
    parser.add_argument("annotations")
    options = parser.parse_args()
    for number, batch in enumerate(batches(options.images, options.annotations)):
        objects = sum(len(classes) for classes in batch["classes"])
        print(f"batch {number}: images {tuple(batch['images'].shape)}, {objects} objects")


if __name__ == "__main__":
    main()
