"""`LoaderEvaluator`: how long a loop waits for its loader, and how fast it is with batches that are there already."""

import json
import time
from collections import deque


class LoaderEvaluator:
    """Wraps a `DataLoader`, or anything with a length that is iterated over.

    mode: "log" notes how long each batch took; "replay" keeps the last `num_cached_batches` batches of one pass, and
    gives them again and again. The difference is what the loader costs. metrics_file: where `save_metrics` writes.
    """

    def __init__(self, dataloader, mode="log", num_cached_batches=20, metrics_file=None):
        self.dataloader, self.mode = dataloader, mode
        self.num_cached_batches, self.metrics_file = num_cached_batches, metrics_file
        self.cached_batches = deque(dataloader if mode == "replay" else (), maxlen=num_cached_batches)
        self.cache_ready = bool(self.cached_batches)
        self.batch_times, self.start_time, self.end_time = [], None, None

    def __len__(self):
        return len(self.dataloader)

    def __iter__(self):
        self.batch_times, self.start_time, self.end_time = [], time.time(), None
        batches = self._replayed() if self.mode == "replay" else iter(self.dataloader)
        while True:
            begun = time.time()
            try:
                batch = next(batches)
            except StopIteration:
                break
            self.batch_times.append(time.time() - begun)
            yield batch
        self.end_time = time.time()

    def _replayed(self):
        if not self.cached_batches:
            raise RuntimeError("there is no batch to replay: the loader gave none")
        for i in range(len(self)):
            yield self.cached_batches[i % len(self.cached_batches)]

    def get_metrics(self):
        """What was measured, as a dictionary; empty before the first batch."""
        times = self.batch_times
        if not times:
            return {}
        return {
            "mode": self.mode,
            "total_batches": len(times),
            "total_time": self.end_time - self.start_time if self.end_time else 0,
            "avg_batch_time": sum(times) / len(times),
            "min_batch_time": min(times),
            "max_batch_time": max(times),
            "batch_times": list(times),
            "cached_batches": len(self.cached_batches),
            "cache_ready": self.cache_ready,
        }

    def save_metrics(self, filename=None):
        """Writes what was measured as JSON."""
        filename = filename or self.metrics_file
        if filename is None:
            print("no file was named: give `filename`, or `metrics_file` to the evaluator")
            return
        with open(filename, "w") as file:
            json.dump(self.get_metrics(), file, indent=2)
        print(f"{filename}: written")

    def print_summary(self):
        """Prints what was measured."""
        print(f"mode: {self.mode}")
        print(
            f"samples: {len(self.dataloader.dataset)}" if hasattr(self.dataloader, "dataset") else "samples: not known"
        )
        print(f"batches: {len(self)}, kept: {len(self.cached_batches)} of at most {self.num_cached_batches}")
        for name, value in self.get_metrics().items():
            if name.endswith(("_time", "_batches")) and name != "cached_batches":
                print(f"{name}: {value:.4f}" if isinstance(value, float) else f"{name}: {value}")
