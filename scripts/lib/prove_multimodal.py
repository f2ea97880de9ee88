#!/usr/bin/env python3
"""The proof of the stages in front of vision-language and speech models: every preset on many files beside
transformers on the CPU, value by value. Ends with 1 if one is further away than its bound.

    prove_multimodal.py [PRESET...] [--images 200] [--clips 40] [--sounds 60] [--pixels 12000000] [--json FILE]
    prove_multimodal.py --record FILE    benches/results gets the rows of such a file, for docs/reports/multimodal.md

Presets are those of tests/data/multimodal/definitions.py, by default all. It needs transformers, torch, torchvision,
Pillow and the package `gesso`. Rows that are in --json already stay, but for those of presets that run: a run can be
made in parts. Images have 1 x 1 to 4,000 x 3,000 pixels, a fourth of them is thin; `--pixels` leaves out those that
have more. An image is a PPM, a PNG, or a JPEG of one of several kinds."""

import argparse
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "scripts" / "lib"), str(ROOT / "tests" / "data" / "multimodal")]

import definitions  # noqa: E402
import records  # noqa: E402

SERIES = "multimodal-proof"
COLUMNS = ("preset", "beside", "files", "equal to the bit", "refused by both", "differ", "largest difference")
WIDEST, HIGHEST, THIN = 4000, 3000, 12
OTHERS = 140
CLIPS = ROOT / "tests" / "data" / "video"
#: Sounds alone differ. By how much at most: the last bit of a logarithm, that bit by a band's deviation, and torch's
#: transform beside numpy's.
BOUNDS = {"whisper, numpy": 2.0**-23, "whisper, torch": 1e-4, "seamless": 2e-6}


def sizes(count, most):
    """Heights and widths: those of the recorded answers, then random ones, all but a few of the same on every run."""
    found, rng = list(definitions.SIZES), np.random.default_rng(58)
    while len(found) < count:
        height, width = (int(side) for side in np.exp(rng.uniform(0, np.log((HIGHEST, WIDEST)))))
        if len(found) % 4 == 0:
            thin = int(rng.integers(1, THIN + 1))
            height, width = (thin, width) if len(found) % 8 else (height, thin)
        elif len(found) % 10 == 1:
            height, width = (int(side) for side in rng.uniform(0.2, 1, 2) * (HIGHEST, WIDEST))
        found.append((height, width))
    return [(height, width) for height, width in found[:count] if height * width <= most]


def write_image(folder, number, height, width):
    """A file of the kind that is the number's turn."""
    from PIL import Image

    pixels = definitions.picture(height, width)
    options = [
        {"quality": 92, "subsampling": 2},
        {"quality": 75, "subsampling": 0, "progressive": True},
        None,
        {"quality": 88, "subsampling": 1},
        {"mode": "L", "quality": 95},
        {"exif": 2 + number % 7, "subsampling": 2},
        {"mode": "RGBA"},
    ][number % 7]
    if options is None:
        path = folder / f"{number:03}-{height}x{width}.ppm"
        path.write_bytes(definitions.as_file(pixels))
        return path
    image, mode = Image.fromarray(pixels), options.pop("mode", "RGB")
    if mode == "RGBA":
        image.putalpha(Image.fromarray(pixels[..., 1]))
    elif mode == "L":
        image = image.convert("L")
    if turned := options.pop("exif", None):
        options["exif"] = Image.Exif()
        options["exif"][0x112] = turned
    path = folder / f"{number:03}-{height}x{width}.{'png' if mode == 'RGBA' else 'jpg'}"
    image.save(path, **options)
    return path


class Tally:
    """How many files are equal, are refused by both, or differ; and by how much."""

    def __init__(self):
        self.files = self.equal = self.refused = self.largest = 0
        self.differing = []

    def add(self, path, ours, theirs):
        """Counts a file; an error in place of outputs is a refusal."""
        self.files += 1
        if isinstance(ours, Exception) or isinstance(theirs, Exception):
            if isinstance(ours, Exception) and isinstance(theirs, Exception):
                self.refused += 1
            else:
                self.largest = float("inf")
                self.differing.append(f"{path.name}: ours {said(ours)}, transformers' {said(theirs)}")
            return
        if [(one.shape, one.dtype) for one in ours] != [(one.shape, one.dtype) for one in theirs]:
            self.largest = float("inf")
            self.differing.append(f"{path.name}: {[one.shape for one in ours]}, {[one.shape for one in theirs]}")
            return
        far = max(map(distance, ours, theirs))
        if far:
            self.largest = max(self.largest, far)
            self.differing.append(f"{path.name}: {far:.3g}")
        else:
            self.equal += 1

    def row(self, name, beside, what):
        """Cells of the table."""
        largest = f"{self.largest:.2g}" if self.largest else 0
        return [f"`{name}`", beside, f"{self.files} {what}", self.equal, self.refused, len(self.differing), largest]


def said(outcome):
    return f"{type(outcome).__name__}: {outcome}" if isinstance(outcome, Exception) else "answers"


def distance(one, other):
    """The largest difference of two arrays of one shape and type; 0 where they are the same to the bit."""
    one, other = np.ascontiguousarray(one), np.ascontiguousarray(other)
    if one.tobytes() == other.tobytes():
        return 0
    # The zeros that differ in their sign differ, too.
    return float(np.abs(one.astype(np.float64) - other).max()) or sys.float_info.min


def outcome(function, given):
    """What a function returns or raises."""
    try:
        return function(given)
    except (ValueError, RuntimeError, ZeroDivisionError) as error:
        return error


def compared(made, references, paths):
    """A tally for each reference."""
    from gesso._comparison.compare import runner

    run, tallies = runner(made()), [Tally() for _ in references]
    for path in paths:
        ours = outcome(run, np.fromfile(path, np.uint8))
        for tally, reference in zip(tallies, references):
            tally.add(path, ours, outcome(reference, path))
    return tallies


def images(name, paths):
    """The rows of a preset of images: both forms of the class."""
    from gesso import convert

    fields = definitions.PROCESSORS[name]
    for backend in ("torchvision", "pil"):
        try:
            made = convert.transformers(fields, backend=backend)
        except convert.ConversionError:
            continue
        (tally,) = compared(made, [made.reference()], paths)
        yield tally, tally.row(name, f"`{fields['image_processor_type']}` by {backend}", "images"), 0


def clips(name, paths):
    """The row of a preset of videos."""
    from gesso import convert

    fields = definitions.VIDEOS[name]
    made = convert.transformers(fields)
    (tally,) = compared(made, [made.reference()], paths)
    yield tally, tally.row(name, f"`{fields['video_processor_type']}`, on the same frames", "clips"), 0


def sounds(name, paths):
    """The rows of a preset of sounds: the class's numpy code, and that of torch where there are both."""
    from gesso import convert

    fields, _ = definitions.EXTRACTORS[name]
    # Short chunks are for small recordings.
    fields = {field: value for field, value in fields.items() if field != "chunk_length"}
    made = convert.transformers(fields)
    references = {"numpy": made.reference()}
    if name.startswith("whisper"):
        references["torch"] = by_torch(fields)
    tallies = compared(made, list(references.values()), paths)
    for (library, _), tally in zip(references.items(), tallies):
        kind = f"{name.split('-')[0]}{f', {library}' if 'torch' in references else ''}"
        row = tally.row(name, f"`{fields['feature_extractor_type']}` by {library}", "sounds")
        yield tally, row, BOUNDS.get(kind, 0)


def by_torch(fields):
    """Whisper's extractor as it is where torch is installed."""
    import transformers
    from gesso.convert import from_hf_multimodal

    extractor = transformers.WhisperFeatureExtractor(
        **{field: value for field, value in fields.items() if not field.endswith("_type")}
    )

    def answer(path):
        signal = from_hf_multimodal.samples(path, extractor.sampling_rate)
        found = extractor(signal, sampling_rate=extractor.sampling_rate, return_tensors="np")
        return [found["input_features"][0]]

    return answer


def files(kind, options, folder):
    """The files of a kind of presets."""
    from gesso.convert import proof

    if kind is images:
        found = sizes(options.images, options.pixels)
        return [write_image(folder, number, *size) for number, size in enumerate(found)]
    if kind is clips:
        recorded = [CLIPS / clip for clip in definitions.CLIPS]
        return [*recorded, *proof.videos(folder, max(options.clips - len(recorded), 0))][: options.clips]
    return proof.sounds(folder, options.sounds, shortest=560)


def prove(names, options):
    """Runs presets, prints and keeps their rows; whether all are within their bounds."""
    kinds = {images: definitions.PROCESSORS, clips: definitions.VIDEOS, sounds: definitions.EXTRACTORS}
    kept = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    is_within = True
    for kind, known in kinds.items():
        asked = [name for name in known if not names or name in names]
        if not asked:
            continue
        with tempfile.TemporaryDirectory() as folder:
            paths = files(kind, options, Path(folder))
            for name in asked:
                kept[name] = []
                for tally, row, bound in kind(name, paths):
                    print("  ".join(map(str, row)), *tally.differing[:5], sep="\n  ", flush=True)
                    is_within &= tally.largest <= bound
                    kept[name].append(row)
                if options.json:
                    options.json.write_text(json.dumps(kept, indent=1))
    return is_within


def main(words):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [*definitions.PROCESSORS, *definitions.VIDEOS, *definitions.EXTRACTORS]
    parser.add_argument("presets", nargs="*", metavar="PRESET", choices=[[], *every], help="by default all")
    for name, count in (("images", 200), ("clips", 40), ("sounds", 60), ("pixels", WIDEST * HIGHEST)):
        parser.add_argument(f"--{name}", type=int, default=count, help=f"[{count}]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keeps the rows")
    parser.add_argument("--record", type=Path, metavar="FILE", help="runs nothing, records the rows of a file")
    options = parser.parse_args(words)
    if not options.record:
        return 0 if prove(options.presets, options) else 1
    kept = json.loads(options.record.read_text())
    if missing := [name for name in every if name not in kept]:
        print(f"{options.record} has no rows of {', '.join(missing)}: they were not run")
    rows = [row for name in every for row in kept.get(name, ())]
    packages = ", ".join(f"{name} {version(name)}" for name in ("transformers", "torch", "torchvision", "pillow"))
    title = f"stages in front of vision-language and speech models beside {packages}, on the CPU"
    print(records.write(SERIES, title, "scripts/lib/prove_multimodal.py --json FILE", None, list(COLUMNS), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
