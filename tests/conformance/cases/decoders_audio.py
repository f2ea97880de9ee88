"""Needs the package soundfile, whose libsndfile is what DALI decodes with."""

import io
import struct

import soundfile
from record import case, fn, np, source, types


def sound(frames, channels, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(frames)[:, None] / 16000
    tones = np.sin(t * rng.uniform(800, 6000, channels)) * 0.6 + rng.normal(size=(frames, channels)) * 0.04
    return (tones if channels > 1 else tones[:, 0]).astype(np.float32)


def encoded(format, subtype, channels=2, endian="FILE"):
    files = []
    for i, (frames, rate) in enumerate(((300, 16000), (433, 11025), (257, 44100))):
        out = io.BytesIO()
        soundfile.write(out, sound(frames, channels, i), rate, format=format, subtype=subtype, endian=endian)
        files.append(np.frombuffer(out.getvalue(), np.uint8))
    return {"X": files}


def x():
    return source("X", ndim=1)


def of(*files):
    return {"X": [np.frombuffer(file, np.uint8) for file in files]}


def vorbis_of(channels, loud=1):
    files = []
    for i, (frames, rate) in enumerate(((700, 16000), (1433, 11025), (257, 44100))):
        out = io.BytesIO()
        soundfile.write(out, sound(frames, channels, i) * loud, rate, format="OGG", subtype="VORBIS")
        files.append(out.getvalue())
    return of(*files)


for format, subtype, endian in (
    ("W64", "PCM_16", "FILE"),
    ("RF64", "PCM_16", "FILE"),
    ("WAV", "PCM_24", "BIG"),
    ("WAV", "PCM_16", "BIG"),
    ("WAV", "IMA_ADPCM", "FILE"),
    ("WAV", "MS_ADPCM", "FILE"),
    ("AIFF", "PCM_16", "FILE"),
    ("AIFF", "PCM_S8", "FILE"),
    ("AIFF", "PCM_U8", "FILE"),
    ("AIFF", "PCM_16", "LITTLE"),
    ("AIFF", "PCM_24", "LITTLE"),
    ("AIFF", "ULAW", "FILE"),
    ("AIFF", "IMA_ADPCM", "FILE"),
    ("AU", "PCM_16", "FILE"),
    ("AU", "PCM_24", "LITTLE"),
    ("AU", "ALAW", "FILE"),
    ("CAF", "PCM_16", "BIG"),
    ("CAF", "PCM_24", "LITTLE"),
    ("CAF", "ULAW", "FILE"),
):

    def declare_other(format=format, subtype=subtype, endian=endian):
        def function():
            return fn.decoders.audio(x())[0], fn.decoders.audio(x(), dtype=types.INT16)[0]

        function.__name__ = f"{format}_{subtype}_{endian}".lower()
        case(inputs=encoded(format, subtype, 2 if subtype != "IMA_ADPCM" or format != "AIFF" else 1, endian))(function)

    declare_other()


for format, subtype in (("AIFF", "FLOAT"), ("AIFF", "DOUBLE"), ("AU", "FLOAT"), ("CAF", "DOUBLE"), ("W64", "FLOAT")):

    def declare_floats(format=format, subtype=subtype):
        def function():
            return tuple(fn.decoders.audio(x()))

        function.__name__ = f"{format}_{subtype}".lower()
        case(inputs=encoded(format, subtype))(function)

    declare_floats()


for channels, loud in ((1, 1), (3, 1), (6, 1), (2, 4)):

    def declare_vorbis(channels=channels, loud=loud):
        def function():
            return tuple(fn.decoders.audio(x()))

        function.__name__ = f"vorbis_of_{channels}" + ("_loud" if loud > 1 else "")
        case(inputs=vorbis_of(channels, loud), tol=2e-5)(function)

    declare_vorbis()


def wav(bits, channels, data, sizes=None, width=None, kind=1):
    width = width or (bits + 7) // 8
    head = struct.pack("<HHIIHH", kind, channels, 16000, 16000 * channels * width, channels * width, bits)
    sizes = sizes or (36 + len(data), len(data))
    return (
        b"RIFF"
        + struct.pack("<I", sizes[0])
        + b"WAVEfmt "
        + struct.pack("<I", 16)
        + head
        + b"data"
        + struct.pack("<I", sizes[1])
        + data
    )


NOISE = np.random.default_rng(7).bytes(600)


@case(inputs=of(*(wav(bits, 1, NOISE) for bits in (5, 12, 20))))
def wav_of_odd_bits():
    return tuple(fn.decoders.audio(x()))


@case(inputs=of(*(wav(8, 2, NOISE, kind=kind) for kind in (6, 7, 7))))
def wav_of_laws_in_16_bytes():
    return tuple(fn.decoders.audio(x()))


@case(inputs=of(wav(16, 1, NOISE, (0xFFFFFFFF, 0xFFFFFFFF)), wav(16, 1, NOISE, (4, 600)), wav(16, 1, NOISE, (0, 600))))
def wav_with_odd_sizes():
    return tuple(fn.decoders.audio(x()))


for format, subtype in (
    ("WAV", "PCM_16"),
    ("WAV", "PCM_U8"),
    ("WAV", "PCM_24"),
    ("WAV", "PCM_32"),
    ("WAV", "ULAW"),
    ("WAV", "ALAW"),
    ("WAVEX", "PCM_16"),
    ("FLAC", "PCM_16"),
    ("FLAC", "PCM_24"),
    ("FLAC", "PCM_S8"),
):

    def declare(format=format, subtype=subtype):
        def function():
            return tuple(fn.decoders.audio(x())) + tuple(
                fn.decoders.audio(x(), dtype=t)[0] for t in (types.INT16, types.INT32)
            )

        function.__name__ = f"{format}_{subtype}".lower()
        case(inputs=encoded(format, subtype))(function)

    declare()


@case(inputs=encoded("WAV", "FLOAT"))
def floats():
    return tuple(fn.decoders.audio(x()))


@case(inputs=encoded("WAV", "DOUBLE"))
def doubles():
    return tuple(fn.decoders.audio(x()))


@case(inputs=encoded("OGG", "VORBIS"), tol=2e-5)
def vorbis():
    return tuple(fn.decoders.audio(x()))


@case(inputs=encoded("OGG", "VORBIS"), tol=1, mean=0.05)
def vorbis_to_integers():
    return fn.decoders.audio(x(), dtype=types.INT16)[0]


@case(inputs=encoded("WAV", "PCM_16"), tol=2e-7)
def mixed():
    return tuple(fn.decoders.audio(x(), downmix=True))


@case(inputs=encoded("FLAC", "PCM_16"), tol=2e-6)
def at_another_rate():
    return tuple(fn.decoders.audio(x(), sample_rate=16000.0)) + tuple(
        fn.decoders.audio(x(), sample_rate=8000.0, downmix=True, quality=80.0)
    )


@case(inputs=encoded("FLAC", "PCM_16"), tol=1, mean=0.01)
def to_integers_at_another_rate():
    return fn.decoders.audio(x(), sample_rate=22050.0, dtype=types.INT16)[0], fn.decoders.audio(
        x(), downmix=True, dtype=types.INT16
    )[0]


@case(inputs=encoded("WAV", "PCM_16") | {"R": [np.array(r, np.float32) for r in (8000, 0, 48000)]}, tol=2e-6)
def rates_per_sample():
    return tuple(fn.decoders.audio(x(), sample_rate=source("R", types.FLOAT, 0)))
