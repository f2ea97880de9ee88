"""The proof of a conversion: the library's own answers beside the pipeline's, on the user's files or on photos,
sounds and clips that are made here."""

import os
import wave
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._comparison.compare import runner
from .._comparison.differences import Comparison
from .._comparison.words import in_one_line, told
from . import ahead, clips

_FRAMES = 4
_SHOWN = 3


@dataclass
class Proof:
    """How far a stage's outputs are from the library's."""

    library: str
    #: Output by output: its name, its `Comparison`, and the files for which it has another shape than the library's.
    outputs: list = field(default_factory=list)
    files: int = 0

    @property
    def is_equal(self):
        """Whether every output is equal to the bit on every file."""
        return all(
            not misshapen and all(not file.differing for file in found.files) for _, found, misshapen in self.outputs
        )

    def __str__(self):
        lines = []
        for name, found, misshapen in self.outputs:
            differing = [file for file in found.files if file.differing]
            equal = len(found.files) - len(differing)
            lines.append(f"{name}: equal to the bit on {equal} of {self.files}")
            if differing:
                lines.append(f"{name}: largest difference {found.largest:.6g}, mean {found.mean:.6g}")
                worst = sorted(differing, key=lambda file: -file.largest)[:_SHOWN]
                lines += [
                    f"  {in_one_line(file.path)}: {file.differing} of {file.elements} values differ, by {file.largest:.6g} at most"
                    for file in worst
                ]
            if misshapen:
                lines.append(f"{name}: another shape on {len(misshapen)} of {self.files}")
                lines += [
                    f"  {in_one_line(path)}: {ours} in place of {theirs}" for path, ours, theirs in misshapen[:_SHOWN]
                ]
        return "\n".join(lines)


def given_of(stage):
    """What makes of a path what the library is given."""
    return (lambda path: _clip(path)[1]) if stage.takes_frames else os.fspath


def made_for(stage):
    """What makes files for a stage, given a folder and how many."""
    if stage.takes_sounds:
        return partial(sounds, shortest=getattr(stage.steps[-1], "shortest", 20))
    return videos if stage.takes_videos else photos


def prove(made, files, run=None, reference=None):
    """Compares a converted pipeline with its library on files. `run` answers in the pipeline's place, as a server that
    has it does; `reference` in the library's, path by path."""
    stage, run = made.stage, run or runner(made())
    reference = reference or ahead.in_process(made, given_of(stage))
    names = [stage.output, *stage.extras]
    proof = Proof(stage.title, [(name, Comparison(stage.title), []) for name in names])
    for path in map(os.fspath, files):
        data = _clip(path)[0] if stage.takes_frames else np.fromfile(path, np.uint8)
        with told(f"{path}: the pipeline fails"):
            ours = run(data)
        with told(f"{path}: the library fails"):
            theirs = reference(path)
        proof.files += 1
        for (_, found, misshapen), mine, its in zip(proof.outputs, ours, theirs, strict=True):
            add(found, misshapen, path, mine, its)
    if not proof.files:
        raise ValueError("there are no files to compare")
    return proof


def add(found, misshapen, path, ours, theirs):
    """Counts an answer."""
    if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
        misshapen.append((path, f"{ours.shape} {ours.dtype}", f"{theirs.shape} {theirs.dtype}"))
    else:
        found.add(path, ours, theirs)


def _clip(path):
    """A clip of a photo that moves, as the pipeline takes it and as the library does."""
    from PIL import Image

    with Image.open(path) as file:
        image = np.asarray(file.convert("RGB"))
    frames = np.stack([np.roll(image, 3 * number, axis=(0, 1)) for number in range(_FRAMES)])
    return frames, list(frames)


def photos(folder, count, seed=1):
    """Writes photos: smooth colours with noise, as JPEGs of all kinds and PNGs; returns their paths."""
    from PIL import Image

    made = []
    for number in range(count):
        rng = np.random.default_rng([57, seed, number])
        height, width = (int(side) for side in np.exp(rng.uniform(np.log(40), np.log(900), 2)))
        image, kind = Image.fromarray(_smooth(rng, height, width)), _KINDS[number % len(_KINDS)]
        path = Path(folder) / f"{number:03}-{kind}{'.png' if kind.startswith('png') else '.jpg'}"
        options: dict[str, Any] = (
            {"quality": int(rng.integers(60, 98)), "subsampling": int(rng.integers(3))} if path.suffix == ".jpg" else {}
        )
        if kind == "turned":
            options["exif"] = Image.Exif()
            options["exif"][_ORIENTATION] = int(rng.integers(2, 9))
        if kind in ("gray", "png-gray"):
            image = image.convert("L")
        if kind == "png-alpha":
            image.putalpha(Image.fromarray(_smooth(rng, height, width)[..., 0]))
        image.save(path, **options, progressive=kind == "progressive")
        made.append(path)
    return made


def sounds(folder, count, seed=1, rate=16000, shortest=20):
    """Writes sounds of so many samples to forty seconds, as WAVs of one channel; returns their paths."""
    made = []
    for number in range(count):
        rng = np.random.default_rng([58, seed, number])
        length = int(np.exp(rng.uniform(np.log(shortest), np.log(40 * rate))))
        at = np.arange(length) / rate
        tones = sum(rng.uniform(0, 0.3) * np.sin(rng.uniform(300, 40_000) * at + rng.uniform(0, 6)) for _ in range(3))
        signal = tones * np.cos(rng.uniform(0, 9) * at) + rng.uniform(0, 0.05) * rng.standard_normal(length)
        path = Path(folder) / f"{number:03}.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(rate)
            file.writeframes(np.clip(signal * 32767, -32768, 32767).astype("<i2").tobytes())
        made.append(path)
    return made


def videos(folder, count, seed=1):
    """Writes clips of a moving picture, of 2 to 60 frames; returns their paths."""
    made = []
    for number in range(count):
        rng = np.random.default_rng([59, seed, number])
        height, width = (int(side) for side in np.exp(rng.uniform(np.log(40), np.log(400), 2)))
        picture = _smooth(rng, height, width)
        moved = [np.roll(picture, (2 * frame, 3 * frame), axis=(0, 1)) for frame in range(int(rng.integers(2, 61)))]
        path = Path(folder) / f"{number:03}.avi"
        path.write_bytes(clips.avi(moved, _RATES[number % len(_RATES)]))
        made.append(path)
    return made


# Frames by seconds.
_RATES = ((25, 1), (30, 1), (24000, 1001), (30000, 1001), (10, 1), (60, 1))
_KINDS = ("photo", "turned", "photo", "progressive", "photo", "png", "photo", "gray", "photo", "png-alpha")
_ORIENTATION = 0x112


def _smooth(rng, height, width):
    """Colours that change slowly, with some noise."""
    rows, columns = np.linspace(0, 1, height)[:, None, None], np.linspace(0, 1, width)[None, :, None]
    waves = 0
    for _ in range(4):
        # sin(down + across), of sines of rows and of columns alone.
        down, across = rng.uniform(1, 40, 3) * rows + rng.uniform(0, 6, 3), rng.uniform(1, 40, 3) * columns
        waves = waves + np.sin(down) * np.cos(across) + np.cos(down) * np.sin(across)
    noise = rng.standard_normal((height, width, 3), np.float32)
    return np.clip(128 + 40 * waves + 6 * noise, 0, 255).astype(np.uint8)
