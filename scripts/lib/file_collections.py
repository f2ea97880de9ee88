"""Real files beside the decoders that everybody uses: a folder of files, a folder for each source below it, decoded by
Gesso and by its referees, and a page tells what became of them.

    GESSO_LIBRARY=... python scripts/lib/file_collections.py FOLDER [--report docs/reports/collections.md] [--list FILE]

The files are public test files of other projects. They are fetched by hand and never are part of this project. Referees
are Pillow with pillow-heif and pillow-jxl-plugin, tifffile with imagecodecs, soundfile and PyAV, which have to be
installed beside numpy; a file is equal where one of them agrees. Where none does, DALI is asked, too, if
`GESSO_DALI_PYTHON` names an interpreter that has it. Each side decodes in a process of its own, with limits of time and
memory: what ends one is seen and does not end the run.
"""

import argparse
import collections
import json
import os
import re
import resource
import select
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
REPORT = ROOT / "docs" / "reports" / "collections.md"
SECONDS, BYTES = 60, 6 << 30
# What referees take for a bomb, in pixels, as Gesso does.
MOST_PIXELS = 1 << 27
# What lossy files may differ by: levels of 255, or of 32,767 for sound.
LEVELS = 2
# Larger files are none that tests are made of.
MOST_BYTES = 20 << 20
WITHIN = ("equal", "within two levels", "luma within two levels")
REFUSED = ("refused by both", "refused by Gesso only", "decoded by Gesso only")
OUTCOMES = (*WITHIN, "differ", "not compared", *REFUSED)
NOTABLE = ("differ", "refused by Gesso only")
AVIF, HEIC = (b"avif", b"avis"), (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"mif2", b"msf1")
# By how a file begins. What is told by a length or a box in front is in `kind_of`.
MAGIC = (
    ("JPEG", b"\xff\xd8\xff"),
    ("PNG", b"\x89PNG\r\n\x1a\n"),
    ("BMP", b"BM"),
    ("GIF", b"GIF8"),
    ("TIFF", b"II*\0"),
    ("TIFF", b"MM\0*"),
    ("TIFF", b"II+\0"),
    ("TIFF", b"MM\0+"),
    ("JPEG 2000", b"\0\0\0\x0cjP  "),
    ("JPEG 2000", b"\xff\x4f\xff\x51"),
    ("JPEG XL", b"\xff\x0a"),
    ("JPEG XL", b"\0\0\0\x0cJXL "),
    ("FLAC", b"fLaC"),
    ("Ogg", b"OggS"),
    ("CAF", b"caff"),
    ("AU", b".snd"),
    ("AU", b"dns."),
    ("WAV", b"riff\x2e\x91\xcf\x11"),
    ("MP3", b"ID3"),
    ("sound of Matroska", b"\x1a\x45\xdf\xa3"),
)
SOUNDS = {"WAV", "FLAC", "Ogg", "CAF", "AU", "AIFF", "MP3", "AAC", "sound of MP4", "sound of Matroska"}
# Where chroma has fewer samples, libheif repeats the nearest one, and Gesso interpolates: luma is what can be told.
CHROMA = {"HEIC", "AVIF"}
LUMAS = np.array([(0.299, 0.587, 0.114), (0.2126, 0.7152, 0.0722)], np.float32)
# Whose RGB of inks and of 16 bits a referee may have.
ARITHMETIC = ("dali", "pillow13")
LOSSLESS = {"PNG", "BMP", "GIF", "PNM", "WAV", "FLAC", "AU", "AIFF", "CAF"}


class Outcome(NamedTuple):
    """What became of a file, and the words for it."""

    name: str
    words: str = ""


def kind_of(path):
    """What a file is by its first bytes, or None for what Gesso does not read."""
    with open(path, "rb") as file:
        head = file.read(64)
    for kind, magic in MAGIC:
        if head.startswith(magic):
            return kind
    if head[:4] in (b"RIFF", b"RIFX", b"RF64", b"BW64"):
        return {b"WEBP": "WebP", b"WAVE": "WAV"}.get(head[8:12])
    if head[:4] == b"FORM":
        return "AIFF" if head[8:12] in (b"AIFF", b"AIFC") else None
    if head[:1] == b"P" and head[1:2] in b"123456" and head[2:3].isspace():
        return "PNM"
    if head[4:8] == b"ftyp":
        brands = {head[8:12], *(head[i : i + 4] for i in range(16, min(len(head), int.from_bytes(head[:4])), 4))}
        return "AVIF" if brands & {*AVIF} else "HEIC" if brands & {*HEIC} else "sound of MP4"
    if head[:1] == b"\xff" and len(head) > 1 and head[1] & 0xE0 == 0xE0:
        return "AAC" if head[1] & 0xF6 == 0xF0 else "MP3"
    return None


class Child:
    """A process that answers lines of JSON, started anew when it ends or is late."""

    def __init__(self, role, folder, python=sys.executable):
        self.role, self.folder, self.python, self.process = role, folder, python, None

    def ask(self, **question):
        """Its answer; `lost` says why there is none."""
        if self.process is None:
            command = [self.python, __file__, str(self.folder), "--child", self.role]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self.process = subprocess.Popen(command, text=True, **pipes)
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], SECONDS)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.process.kill()
        status, self.process = self.process.wait(), None
        return {"lost": f"the process ended with status {status}" if ready else f"no answer in {SECONDS} s"}


# --- In the children


def gesso(path, sound, element, arithmetic):
    """What Gesso makes of a file: RGB, or sound as float32."""
    from gesso import Pipeline, fn, types

    pipe = Pipeline(1, 1, None, prefetch_queue_depth=1)
    with pipe:
        files = fn.external_source(name="file", dtype=types.UINT8, ndim=1)
        if sound:
            made, _ = fn.decoders.audio(files, dtype=types.FLOAT)
        else:
            kinds = {"uint8": types.UINT8, "uint16": types.UINT16}
            more = {} if arithmetic == "dali" else {"arithmetic": arithmetic}
            made = fn.decoders.image(files, output_type=types.RGB, dtype=kinds[element], **more)
        pipe.set_outputs(made)
    pipe.build()
    pipe.feed_input("file", [np.fromfile(path, np.uint8)])
    (batch,) = pipe.run()
    return [("gesso", np.array(batch.at(0)))]


def dali(path, sound):
    """What DALI makes of it, on the host."""
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def decoded():
        files = fn.external_source(source=lambda: [np.fromfile(path, np.uint8)], dtype=types.UINT8)
        if sound:
            return fn.decoders.audio(files, dtype=types.FLOAT)[0]
        return fn.decoders.image(files, output_type=types.RGB)

    pipe = decoded()
    pipe.build()
    return [("DALI", np.array(pipe.run()[0].at(0)))]


def pictures_of_pillow(path):
    from PIL import Image, ImageOps

    # It warns from here on, and refuses twice as many.
    Image.MAX_IMAGE_PIXELS = MOST_PIXELS
    with Image.open(path) as image:
        image.load()
        if image.format == "MPO":
            image.seek(0)
        image = ImageOps.exif_transpose(image)
        if image.mode in ("I;16", "I;16B", "I;16L", "I;16N"):
            return np.asarray(image).astype(np.uint16)
        if image.mode in ("I", "F"):
            return np.asarray(image)
        if image.mode == "P":
            image = image.convert("RGBA" if "transparency" in image.info else "RGB")
        return np.asarray(image.convert("RGB"))


def pictures_of_tifffile(path):
    import tifffile

    with tifffile.TiffFile(path) as file:
        page = file.pages[0]
        if page.imagewidth * page.imagelength > MOST_PIXELS:
            raise ValueError(f"{page.imagewidth} x {page.imagelength} pixels are too many")
        kinds = tifffile.PHOTOMETRIC
        if page.photometric in (kinds.SEPARATED, kinds.CIELAB, kinds.ICCLAB, kinds.ITULAB):
            raise ValueError("it makes no RGB of other colours")
        pixels = page.asarray()
        if page.photometric == kinds.PALETTE:
            return (page.colormap[:, pixels].transpose(1, 2, 0) >> 8).astype(np.uint8)
        if page.planarconfig == tifffile.PLANARCONFIG.SEPARATE and pixels.ndim == 3:
            pixels = pixels.transpose(1, 2, 0)
        if page.bitspersample not in (8, 16) and page.bitspersample < 16 and pixels.dtype.kind in "bu":
            # Of other depths come the numbers of the file.
            wide = np.uint8 if page.bitspersample < 8 else np.uint16
            pixels = (pixels.astype(np.uint32) * np.iinfo(wide).max // (2**page.bitspersample - 1)).astype(wide)
        if page.photometric == kinds.MINISWHITE and pixels.dtype == np.uint8:
            pixels = 255 - pixels
        return pixels


def sound_of_soundfile(path):
    import soundfile

    return soundfile.read(path, dtype="float32", always_2d=True)[0]


def sound_of_av(path):
    import av

    parts = []
    with av.open(str(path)) as file:
        stream = file.streams.audio[0]
        for frame in file.decode(stream):
            part = frame.to_ndarray()
            if not frame.format.is_planar:
                part = part.reshape(-1, stream.codec_context.channels)
            else:
                part = part.T
            if part.dtype.kind == "i":
                part = part / np.float32(2 ** (8 * part.dtype.itemsize - 1))
            parts.append(part)
    return np.concatenate(parts).astype(np.float32)


def referees(path, kind):
    """What each referee makes of a file, and why others make nothing."""
    if kind in SOUNDS:
        tried = {"soundfile": sound_of_soundfile, "PyAV": sound_of_av}
    else:
        import pillow_heif
        import pillow_jxl  # noqa: F401 -- which teaches Pillow that format

        pillow_heif.register_heif_opener()
        tried = {"Pillow": pictures_of_pillow} | ({"tifffile": pictures_of_tifffile} if kind == "TIFF" else {})
    found, errors = [], []
    for name, decode in tried.items():
        try:
            found.append((name, decode(path)))
        except Exception as error:
            errors.append(f"{name}: {error!r}")
    if not found:
        raise ValueError("; ".join(errors))
    return found


def child(role, folder):
    """Answers one line for each line, until there is no more."""
    work = {"gesso": gesso, "referees": referees, "dali": dali}[role]
    if role != "dali":
        # DALI reserves more than it takes.
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    answers = sys.stdout
    # What libraries print is no answer.
    sys.stdout = sys.stderr
    for line in sys.stdin:
        try:
            made = []
            for name, array in work(**json.loads(line)):
                np.save(folder / f"{role}-{len(made)}.npy", array)
                made.append(name)
            told = {"made": made}
        except Exception as error:
            # Of Gesso's the sentence, without where in this program it was.
            told = {
                "error": str(error).rpartition("encountered:\n\n")[2].removeprefix("Sample 0 of the batch failed: ")
            }
            told["error"] = told["error"] or repr(error)
        answers.write(json.dumps(told) + "\n")
        answers.flush()


# --- The comparison


def as_rgb(pixels):
    """Height, width and three colours: gray is repeated, what is behind the colours is dropped; None for others."""
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.ndim != 3 or pixels.dtype not in (np.uint8, np.uint16):
        return None
    return np.repeat(pixels[..., :1], 3, 2) if pixels.shape[2] < 3 else pixels[..., :3]


class Bench:
    """Both children and the folder that their arrays lie in."""

    def __init__(self, folder):
        self.folder = folder
        self.gesso, self.referees = Child("gesso", folder), Child("referees", folder)
        python = os.environ.get("GESSO_DALI_PYTHON")
        self.dali = Child("dali", folder, python) if python else None

    def load(self, role, told):
        return [(name, np.load(self.folder / f"{role}-{i}.npy")) for i, name in enumerate(told.get("made", []))]

    def outcome(self, path, kind):
        """What became of one file."""
        found = self.beside("referees", self.referees.ask(path=str(path), kind=kind), path, kind)
        if found.name in WITHIN or self.dali is None:
            return found
        told = self.dali.ask(path=str(path), sound=kind in SOUNDS)
        if "made" not in told:
            return found._replace(words=f"{found.words}; DALI refuses")
        other = self.beside("dali", told, path, kind)
        if other.name in WITHIN or "refused by both" == found.name or "decoded by Gesso only" == found.name:
            return other
        words = "DALI decodes" if "refused" in other.name else f"DALI: {other.words}"
        return found._replace(words=f"{found.words}; {words}")

    def beside(self, role, told, path, kind):
        """What became of it, by what these made of it."""
        others, sound = self.load(role, told), kind in SOUNDS
        if "lost" in told:
            told["error"] = told["lost"]
        candidates = [(name, made if sound else as_rgb(made)) for name, made in others]
        wide = any(made is not None and made.dtype == np.uint16 for _, made in candidates)
        tries = [("uint8", each) for each in ARITHMETIC[: 1 if kind in CHROMA or sound else None]]
        best, refusal = None, None
        for element, arithmetic in [*tries, *([("uint16", ARITHMETIC[0])] if wide else [])]:
            answer = self.gesso.ask(path=str(path), sound=sound, element=element, arithmetic=arithmetic)
            if "lost" in answer:
                return Outcome("refused by Gesso only", answer["lost"])
            if "error" in answer:
                refusal = refusal or answer["error"]
                continue
            ((_, own),) = self.load("gesso", answer)
            for name, made in candidates:
                found = compare(own, made, kind, name)
                best = found if best is None or OUTCOMES.index(found.name) < OUTCOMES.index(best.name) else best
            if not candidates:
                return Outcome("decoded by Gesso only", told["error"])
            if best.name == "equal":
                return best
        if best:
            return best
        return Outcome("refused by Gesso only" if candidates else "refused by both", refusal)


def compare(own, other, kind, name):
    """How far apart two answers are."""
    if other is None or (other.dtype != own.dtype and kind not in SOUNDS):
        return Outcome("not compared", f"{name} gives another type")
    if own.shape != other.shape:
        return Outcome("differ", f"shape {list(own.shape)}, by {name} {list(other.shape)}")
    difference = own.astype(np.int32 if own.dtype.kind == "u" else np.float64) - other
    apart = np.abs(difference)
    if not apart.size or apart.max() == 0:
        return Outcome("equal")
    level = 1 / 32_767 if kind in SOUNDS else 1 if own.dtype == np.uint8 else 257
    words = f"up to {apart.max() / level:.4g} levels from {name}, {apart.mean() / level:.2g} on average"
    # Numbers as floats have rounding errors.
    if kind in SOUNDS and apart.max() <= level / 100:
        return Outcome("equal")
    most = 0 if kind in LOSSLESS else LEVELS
    if apart.max() <= most * level:
        return Outcome("within two levels", words)
    if kind in CHROMA:
        # A colour that is cut off at 0 or 255 takes luma with it.
        whole = difference[((own % 255 != 0) & (other % 255 != 0)).all(2)]
        if min(np.abs(whole @ each).max(initial=0) for each in LUMAS) <= most * level:
            return Outcome("luma within two levels", words)
    return Outcome("differ", words)


def write(path, found, folder):
    """The page: what became of the files of each source and kind, and why some differ or are refused."""
    table = collections.defaultdict(collections.Counter)
    for file, kind, outcome in found:
        table[file.relative_to(folder).parts[0], kind][outcome.name] += 1
    total = collections.Counter(outcome.name for _, _, outcome in found)
    lines = [
        "# Real files of other projects",
        "",
        "Made by `scripts/lib/file_collections.py`; not edited by hand. Public test files, among them broken ones, decoded by",
        "Gesso and by its referees: Pillow (with pillow-heif and pillow-jxl-plugin), tifffile, soundfile and PyAV. Where none",
        "of them agrees, DALI 2.4 was asked, too. Equal is equal to one of these in every sample. Lossy files may be",
        f"{LEVELS} levels away. Where AVIF and HEIC have less chroma than luma, Gesso interpolates it and libheif repeats it:",
        "there luma may. Formats that Gesso does not read are left out.",
        "",
        f"| source | kind | files | {' | '.join(OUTCOMES)} |",
        f"| --- | --- |{' --- |' * (len(OUTCOMES) + 1)}",
    ]
    rows = [((source, kind), counts) for (source, kind), counts in sorted(table.items())]
    for (source, kind), counts in [*rows, (("all", ""), total)]:
        shown = " | ".join(str(counts[name]) for name in OUTCOMES)
        lines.append(f"| {source} | {kind} | {sum(counts.values())} | {shown} |")
    for name in NOTABLE:
        lines += ["", f"## {name[0].upper()}{name[1:]}", "", "| file | kind | |", "| --- | --- | --- |"]
        for file, kind, outcome in found:
            if outcome.name == name:
                words = re.sub(r"operator `\w+` \(`\w+`\): ", "", " ".join(outcome.words.split())).replace("|", "\\|")[
                    :240
                ]
                lines.append(f"| {str(file.relative_to(folder))[-80:]} | {kind} | {words} |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--list", type=Path, help="a line of JSON for each file; those that it has are not done again")
    parser.add_argument("--jobs", type=int, default=2, help="files at the same time")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        sys.path.insert(0, str(ROOT / "python"))
        child(options.child, options.folder)
        return
    files = [path for path in sorted(options.folder.rglob("*")) if path.is_file() and path.stat().st_size <= MOST_BYTES]
    # Small ones first, so that a list that is looked at early has many.
    files.sort(key=lambda path: path.stat().st_size)
    files = [(path, kind) for path in files if (kind := kind_of(path))]
    own, lock, known = threading.local(), threading.Lock(), {}
    if options.list and options.list.exists():
        rows = (json.loads(line) for line in options.list.read_text(encoding="utf-8").splitlines())
        known = {name: Outcome(*outcome) for name, _, *outcome in rows}

    def one(path, kind):
        if outcome := known.get(str(path.relative_to(options.folder))):
            return path, kind, outcome
        if not hasattr(own, "bench"):
            own.bench = Bench(Path(tempfile.mkdtemp(dir=folder)))
        outcome = own.bench.outcome(path, kind)
        if options.list:
            with lock, open(options.list, "a", encoding="utf-8") as list_:
                list_.write(json.dumps([str(path.relative_to(options.folder)), kind, *outcome]) + "\n")
        return path, kind, outcome

    with tempfile.TemporaryDirectory(prefix="gesso-files-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        found = sorted(pool.map(one, *zip(*files)))
    write(options.report, found, options.folder)


if __name__ == "__main__":
    main()
