"""How far arrays are apart: for each file, and for all of them."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from . import picture
from .words import in_one_line

# Differences up to each of these are counted together: levels of whole numbers, and differences of floats.
_LEVELS = (0, 1, 2, 4, 8, 16, 32, 64, 128)
_POWERS = (0, *(10.0**power for power in range(-8, 1)))
_BAR = 40


@dataclass(frozen=True)
class FileDifference:
    """How far the pipeline's answer to one file is from the reference's."""

    path: str
    largest: float
    mean: float
    #: Elements that differ, and all of them.
    differing: int
    elements: int


@dataclass
class Comparison:
    """What `compare` found. `print` shows it, `within` decides, `save_picture` shows where the worst file differs."""

    reference: str
    is_float: bool = False
    files: list = field(default_factory=list)
    #: Elements for each part of the histogram.
    counts: np.ndarray = None
    #: What else than values is different, in words, and the number of files: the type, the order of dimensions.
    other: dict = field(default_factory=dict)
    _worst: tuple = None

    def add(self, path, ours, theirs, other=()):
        """Counts a file; `other` are words for what else than values is different."""
        for words in other:
            self.other[words] = self.other.get(words, 0) + 1
        far = distances(ours, theirs)
        if self.counts is None:
            self.is_float = np.issubdtype(ours.dtype, np.floating)
            self.counts = np.zeros(len(self._bounds()) + 1, int)
        self.counts += np.bincount(np.searchsorted(self._bounds(), far.ravel()), minlength=len(self.counts))
        found = FileDifference(
            str(path), float(far.max(initial=0)), float(far.mean()) if far.size else 0.0, int((far > 0).sum()), far.size
        )
        if not self.files or found.largest > self.largest:
            self._worst = (ours, theirs, far)
        self.files.append(found)

    @property
    def worst(self):
        """The file with the largest difference, the first of several."""
        return max(self.files, key=lambda file: file.largest)

    @property
    def largest(self):
        """The largest difference of an element."""
        return self.worst.largest

    @property
    def mean(self):
        """The mean difference of all elements."""
        elements = sum(file.elements for file in self.files)
        return sum(file.mean * file.elements for file in self.files) / max(elements, 1)

    @property
    def histogram(self):
        """Elements by their difference: pairs of the largest difference that is counted, and how many there are."""
        return [(float(most), int(count)) for most, count in zip((*self._bounds(), np.inf), self.counts, strict=True)]

    def within(self, tolerance=0, values_only=False):
        """Whether no element differs by more, and, but for `values_only`, type and order of dimensions are the same."""
        if not 0 <= tolerance < np.inf:
            raise ValueError(f"argument `tolerance` is {tolerance!r}, expected a number from 0 on")
        return self.largest <= tolerance and (values_only or not self.other)

    def save_picture(self, path):
        """Writes a PNG of the worst file: the pipeline's image, the reference's, and where they differ, black where not
        at all."""
        ours, theirs, far = self._worst
        Path(path).write_bytes(picture.png(picture.side_by_side(ours, theirs, far)))

    def _bounds(self):
        return _POWERS if self.is_float else _LEVELS

    def __str__(self):
        differing = [file for file in self.files if file.differing]
        elements, apart = (sum(getattr(file, name) for file in self.files) for name in ("elements", "differing"))
        lines = [
            f"{len(self.files)} files beside {self.reference}: {len(differing)} differ",
            f"elements that differ: {apart} of {elements} ({100 * apart / max(elements, 1):.3g} %)",
            f"largest difference: {self.largest:.6g}, mean {self.mean:.6g}",
        ]
        lines += [f"another {words} ({count} files)" for words, count in self.other.items()]
        if differing:
            lines += [f"worst file: {in_one_line(self.worst.path)} (mean {self.worst.mean:.6g})", "differences:"]
            most, shown = max(count for _, count in self.histogram), [row for row in self.histogram if row[1]]
            for bound, count in shown:
                name = "more" if np.isinf(bound) else "none" if bound == 0 else f"to {bound:g}"
                lines.append(f"  {name:>8} {count:>12} {'#' * -(-_BAR * count // most)}")
        return "\n".join(lines)


def distances(ours, theirs):
    """The difference of each element. Equal ones, two that are no numbers among them, have none; one that is no number
    is infinitely far from others."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    with np.errstate(invalid="ignore"):
        far = np.abs(ours - theirs)
    equal = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    return np.where(equal, 0, np.where(np.isnan(far), np.inf, far))
