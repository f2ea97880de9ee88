"""Which configurations are recorded: every way to order samples, for every kind of reader, over sizes, batches and
states that take turns."""

import json
import zlib

# What orders samples, by name. Shards are of the smallest data set.
_WAYS = {
    "plain": {},
    "shard": {"num_shards": 3, "shard_id": 1},
    "stick": {"num_shards": 3, "shard_id": 2, "stick_to_shard": True},
    "pad": {"pad_last_batch": True},
    "shard_pad": {"num_shards": 4, "shard_id": 1, "pad_last_batch": True},
    "stick_pad": {"num_shards": 4, "shard_id": 0, "stick_to_shard": True, "pad_last_batch": True},
    "lazy": {"lazy_init": True, "num_shards": 2, "shard_id": 1},
    "ahead": {"read_ahead": True, "dont_use_mmap": True},
    "random": {"random_shuffle": True},
    "random_seed": {"random_shuffle": True, "seed": 12345},
    "random_fill_1": {"random_shuffle": True, "initial_fill": 1},
    "random_fill_3": {"random_shuffle": True, "initial_fill": 3},
    "random_fill_more": {"random_shuffle": True, "initial_fill": 40, "seed": 2**31 - 1},
    "random_shard": {"random_shuffle": True, "num_shards": 3, "shard_id": 0, "initial_fill": 5},
    "random_stick": {
        "random_shuffle": True,
        "num_shards": 3,
        "shard_id": 1,
        "stick_to_shard": True,
        "initial_fill": 4,
        "seed": 9,
    },
    "random_pad": {"random_shuffle": True, "pad_last_batch": True, "initial_fill": 6},
    "random_shard_pad": {"random_shuffle": True, "num_shards": 4, "shard_id": 3, "pad_last_batch": True},
    "random_stick_pad": {
        "random_shuffle": True,
        "num_shards": 2,
        "shard_id": 1,
        "stick_to_shard": True,
        "pad_last_batch": True,
    },
    "random_ahead": {
        "random_shuffle": True,
        "read_ahead": True,
        "lazy_init": True,
        "prefetch_queue_depth": 3,
        "initial_fill": 4,
    },
}
_AGAIN = {
    "again": {"shuffle_after_epoch": True},
    "again_seed": {"shuffle_after_epoch": True, "shuffle_after_epoch_seed": 2**40 + 3},
    "again_shard": {"shuffle_after_epoch": True, "num_shards": 3, "shard_id": 1},
    "again_pad": {"shuffle_after_epoch": True, "pad_last_batch": True, "shuffle_after_epoch_seed": 1},
    "again_shard_pad": {"shuffle_after_epoch": True, "num_shards": 2, "shard_id": 0, "pad_last_batch": True},
}
_AGAIN_AND_RANDOM = {
    "again_random": {"shuffle_after_epoch": True, "random_shuffle": True},
    "again_random_fill": {
        "shuffle_after_epoch": True,
        "random_shuffle": True,
        "initial_fill": 5,
        "num_shards": 2,
        "shard_id": 1,
    },
}
# Whose lists are shuffled as a whole; the others take `shuffle_after_epoch` and `random_shuffle` together.
LISTED = ("file", "numpy", "coco", "nemo_asr")
FILED = ("webdataset", "tfrecord", "mxnet")
# They have no `shuffle_after_epoch`.
OTHERS = ("sequence", "caffe", "caffe2", "video")

_SIZES = (12, 7, 23, 16, 5, 31, 18)
OF_CLIPS = (12, 8, 20, 16)
# Of which a quarter fills a batch.
_OF_ITERATORS = (17, 23, 19, 31, 18, 22, 16)
_BATCHES = (3, 4, 1, 8, 5, 2)
_DEPTHS = (2, 1, 3)


def _per_epoch(size, shards, batch):
    of_shard = -(-size // shards)
    return -(-of_shard // batch)


def _states(number, per_epoch):
    """Behind how many batches states are taken: in a sixth of the configurations once, in the middle of the first or
    second epoch, in a sixth twice."""
    middle = max(per_epoch // 2, 1)
    if number % 6 == 1:
        return [middle + per_epoch * (number // 6 % 2)]
    return [middle, per_epoch * 2 + middle] if number % 6 == 4 else []


def _way(number, kind, options, sizes=_SIZES):
    size, batch = sizes[number % len(sizes)], _BATCHES[number % len(_BATCHES)]
    per_epoch = _per_epoch(size, options.get("num_shards", 1), batch)
    settings = {"batch_size": batch, "seed": 1000 + 37 * number, "prefetch_queue_depth": _DEPTHS[number % len(_DEPTHS)]}
    # More than three epochs, so that the fourth one's beginning is seen, too.
    count = 3 * per_epoch + 2
    states = _states(number // 5 + number, per_epoch)
    return {"kind": kind, "size": size, "options": options, "settings": settings, "count": count, "states": states}


def _of_readers():
    number = 0
    for kind in (*LISTED, *FILED, *OTHERS):
        ways = {**_WAYS, **(_AGAIN if kind not in OTHERS else {}), **(_AGAIN_AND_RANDOM if kind in FILED else {})}
        for name, options in ways.items():
            yield f"{kind}-{name}", _way(number, kind, options, OF_CLIPS if kind == "video" else _SIZES)
            number += 1


def _of_more_readers():
    """The file reader, which has two ways to run, with more seeds; several readers, whose seeds differ; lists that are
    too long for pairs of draws."""
    for number, seed in enumerate((0, 1, 42, 2**31, 2**40 + 7, 2**62)):
        options = {"random_shuffle": True, "initial_fill": 3 + number, "seed": seed, "num_shards": 1 + number % 3}
        yield f"file-seed_{seed}", _way(number, "file", options)
        options = {"shuffle_after_epoch": True, "shuffle_after_epoch_seed": seed, "num_shards": 1 + number % 2}
        yield f"file-again_seed_{seed}", _way(number + 2, "file", options)
    yield "file-skip_cached", _way(number, "file", {"random_shuffle": True, "skip_cached_images": True})
    for number, kinds in enumerate(("file+file", "file+numpy", "webdataset+caffe", "coco+file+tfrecord")):
        yield f"{kinds}-random", _way(number, kinds, {"random_shuffle": True, "initial_fill": 5})
        yield f"{kinds}-random_state", {**_way(number + 4, kinds, {"random_shuffle": True}), "states": [2]}
    for size in (65535, 65536, 70001):
        for name, options in {
            "random": {"random_shuffle": True, "seed": 3},
            "again": {"shuffle_after_epoch": True},
        }.items():
            settings = {"batch_size": 40, "seed": 1, "prefetch_queue_depth": 1}
            yield (
                f"labels-{size}_{name}",
                {"kind": "labels", "size": size, "options": options, "settings": settings, "count": 5, "states": []},
            )


def _of_iterators():
    number = 0
    for shards, read in ((1, [0]), (3, [1]), (2, [0, 1]), (4, [3, 0, 1])):
        for policy in ("FILL", "DROP", "PARTIAL"):
            for pads in (False, True):
                for sticks in (False, True):
                    kind = ("file", "numpy", "webdataset")[number % 3]
                    options = {
                        "num_shards": shards,
                        "pad_last_batch": pads,
                        "stick_to_shard": sticks,
                        "random_shuffle": number % 4 > 1,
                    }
                    way = _way(number, kind, options, _OF_ITERATORS)
                    way["settings"]["batch_size"] = (2, 3, 4)[number % 3]
                    del way["count"]
                    # Some states are of the middle of an epoch, some of its beginning.
                    way["states"] = (
                        [[], [[1, 1]], [[2, 0]], [[0, 1], [2, 1]], []][number % 5] if way["size"] // shards > 4 else []
                    )
                    way["iterator"] = {
                        "shards": read,
                        "policy": policy,
                        "reader_name": "reader0",
                        "auto_reset": number % 2 == 0,
                    }
                    way["iterator"]["prepare_first_batch"] = number % 7 != 0
                    name = "_".join(
                        ["all" if shards == 1 else f"{len(read)}_of_{shards}", "pad"[: 3 * pads], "stick"[: 5 * sticks]]
                    ).strip("_")
                    yield f"iterator-{policy}_{name.replace('__', '_')}", way
                    number += 1
    for number, policy in enumerate(("FILL", "DROP", "PARTIAL") * 2):
        way = _way(number, "file", {"random_shuffle": number % 2 == 0, "num_shards": 2}, _OF_ITERATORS)
        del way["count"]
        way["states"] = []
        way["settings"]["batch_size"] = 3
        way["iterator"] = {"shards": [0, 1] if number > 2 else [0], "policy": policy, "size": 11, "auto_reset": True}
        yield f"iterator-{policy}_size_{len(way['iterator']['shards'])}", way


def configurations():
    """All of them, by name."""
    return {**dict(_of_readers()), **dict(_of_more_readers()), **dict(_of_iterators())}


def fingerprint(way):
    """What tells a configuration that was changed behind its record."""
    return f"{zlib.crc32(json.dumps(way, sort_keys=True).encode()):08x}"
