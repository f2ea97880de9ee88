"""Needs the package soundfile, whose libsndfile is what DALI decodes with."""
import io

import soundfile
from record import case, fn, np, source, types


def sound(frames, channels, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(frames)[:, None] / 16000
    tones = np.sin(t * rng.uniform(800, 6000, channels)) * 0.6 + rng.normal(size=(frames, channels)) * 0.04
    return (tones if channels > 1 else tones[:, 0]).astype(np.float32)


def encoded(format, subtype):
    files = []
    for i, (frames, channels, rate) in enumerate(((300, 2, 16000), (433, 2, 11025), (257, 2, 44100))):
        out = io.BytesIO()
        soundfile.write(out, sound(frames, channels, i), rate, format=format, subtype=subtype)
        files.append(np.frombuffer(out.getvalue(), np.uint8))
    return {"X": files}


def x():
    return source("X", ndim=1)


for format, subtype in (("WAV", "PCM_16"), ("WAV", "PCM_U8"), ("WAV", "PCM_24"), ("WAV", "PCM_32"), ("WAV", "ULAW"), ("WAV", "ALAW"),
                        ("WAVEX", "PCM_16"), ("FLAC", "PCM_16"), ("FLAC", "PCM_24"), ("FLAC", "PCM_S8")):
    def declare(format=format, subtype=subtype):
        def function():
            return tuple(fn.decoders.audio(x())) + tuple(fn.decoders.audio(x(), dtype=t)[0] for t in (types.INT16, types.INT32))
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
    return tuple(fn.decoders.audio(x(), sample_rate=16000.)) + tuple(fn.decoders.audio(x(), sample_rate=8000., downmix=True, quality=80.))


@case(inputs=encoded("FLAC", "PCM_16"), tol=1, mean=0.01)
def to_integers_at_another_rate():
    return fn.decoders.audio(x(), sample_rate=22050., dtype=types.INT16)[0], fn.decoders.audio(x(), downmix=True, dtype=types.INT16)[0]


@case(inputs=encoded("WAV", "PCM_16") | {"R": [np.array(r, np.float32) for r in (8000, 0, 48000)]}, tol=2e-6)
def rates_per_sample():
    return tuple(fn.decoders.audio(x(), sample_rate=source("R", types.FLOAT, 0)))
