"""Preprocesses images with Ray Data: actors that hold a pipeline each get batches of encoded files and give arrays.

    pip install "ray[data]"
    python examples/python/ray_data.py FOLDER [--actors 4]

A file that is no image is left out of its batch.
"""

import argparse
import os

import numpy as np
import ray
from gesso import fn, pipeline_def, types


@pipeline_def(prefetch_queue_depth=1, on_error="skip")
def preprocess(side):
    images = fn.decoders.image(fn.external_source(name="encoded", dtype=types.UINT8, ndim=1))
    return fn.crop_mirror_normalize(fn.resize(images, size=[side, side]), dtype=types.FLOAT, mean=[127.5], std=[127.5])


class Preprocess:
    """What an actor runs: the pipeline is made once, in the actor's process."""

    def __init__(self, batch_size, side, num_threads):
        self.pipeline = preprocess(side, batch_size=batch_size, num_threads=num_threads)

    def __call__(self, batch):
        encoded = [np.frombuffer(data, np.uint8) for data in batch["bytes"]]
        (images,) = self.pipeline.run(encoded=encoded)
        good = [i for i in range(len(encoded)) if i not in self.pipeline.errors]
        return {"path": np.asarray(batch["path"])[good], "image": images.as_array()}


def dataset(folder, batch_size=32, side=224, actors=None, num_threads=1):
    """The images of a folder, as rows of `path` and `image`. Without a number of actors, all cores but one work: tasks
    that read files need one."""
    actors = actors or max(1, (os.cpu_count() or 2) // num_threads - 1)
    files = ray.data.read_binary_files(folder, include_paths=True)
    return files.map_batches(
        Preprocess,
        fn_constructor_kwargs={"batch_size": batch_size, "side": side, "num_threads": num_threads},
        batch_size=batch_size,
        compute=ray.data.ActorPoolStrategy(size=actors),
        num_cpus=num_threads,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--actors", type=int)
    options = parser.parse_args()
    count = 0
    for batch in dataset(options.folder, actors=options.actors).iter_batches(batch_size=256):
        count += len(batch["image"])
    print(f"{count} images of the shape {batch['image'].shape[1:]}")


if __name__ == "__main__":
    main()
