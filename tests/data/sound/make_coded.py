"""Makes coded.npz in this directory: sounds of MP3, AAC, ALAC and Opus, and what other decoders make of them.

    python make_coded.py     (needs numpy, PyAV, soundfile)

Files are written by FFmpeg 8.1.2 (LAME, its own AAC and ALAC, libopus) from PyAV 18.1.0. Samples of MP3 and Opus are
those of libsndfile 1.2.2 from soundfile 0.14.0, of AAC and ALAC those of FFmpeg.

Writes
    coded.npz    name -> file, 1-D uint8;  name + "_samples" -> its samples, float32, of ALAC int32;
                 name + "_rate" -> frames a second
"""

import io
import os
import struct

import av
import numpy as np
import soundfile

LAYOUTS = {1: "mono", 2: "stereo", 6: "5.1"}


def sound(rate, channels, seconds):
    time = np.arange(int(rate * seconds)) / rate
    noise = np.random.default_rng(channels).standard_normal((channels, time.size))
    tones = np.stack([np.sin(2 * np.pi * 210 * (1 + channel) * time) for channel in range(channels)])
    return np.ascontiguousarray(0.4 * tones + 0.02 * noise, np.float32)


def encoded(container, codec, rate, channels, seconds, sample_format=None, muxer=None, **options):
    file = io.BytesIO()
    with av.open(file, "w", container, options=muxer or {}) as output:
        stream = output.add_stream(codec, rate=rate, layout=LAYOUTS[channels])
        stream.options = {name: str(value) for name, value in options.items()}
        if sample_format:
            stream.codec_context.format = sample_format
        frame = av.AudioFrame.from_ndarray(sound(rate, channels, seconds), "fltp", LAYOUTS[channels])
        frame.rate, frame.pts = rate, 0
        resampler = av.AudioResampler(stream.codec_context.format, stream.layout, rate)
        for part in resampler.resample(frame) + resampler.resample(None):
            output.mux(stream.encode(part))
        output.mux(stream.encode(None))
    return file.getvalue()


def by_ffmpeg(file):
    with av.open(io.BytesIO(file)) as container:
        stream = container.streams.audio[0]
        frames = [frame.to_ndarray() for frame in container.decode(stream)]
        samples = np.concatenate(frames, axis=1)
        if not stream.format.is_planar:
            samples = samples.reshape(-1, stream.channels).T
        if samples.dtype == np.int16:
            samples = samples.astype(np.int32) << 16
        return samples.T, stream.rate


def by_libsndfile(file):
    return soundfile.read(io.BytesIO(file), dtype="float32", always_2d=True)


def ogg_sum(page):
    total = 0
    for byte in page:
        total ^= byte << 24
        for _ in range(8):
            total = (total << 1 ^ 0x04C11DB7 if total & 1 << 31 else total << 1) & 0xFFFFFFFF
    return total


def with_gain(file, decibels):
    """An Opus file whose header asks for another level."""
    file = bytearray(file)
    struct.pack_into("<h", file, file.find(b"OpusHead") + 16, int(decibels * 256))
    length = 27 + file[26] + sum(file[27 : 27 + file[26]])
    file[22:26] = bytes(4)
    struct.pack_into("<I", file, 22, ogg_sum(file[:length]))
    return bytes(file)


def box(name, body):
    return struct.pack(">I", 8 + len(body)) + name + body


def with_comment(file, text):
    """An MP4 without an edit list whose comment `iTunSMPB` is `text`, as Apple's encoders write it."""
    file = bytearray(file.replace(b"edts", b"free"))
    named = [(b"mean", b"com.apple.iTunes"), (b"name", b"iTunSMPB"), (b"data", bytes(4) + text)]
    kinds = {b"data": bytes([0, 0, 0, 1])}
    comment = box(b"----", b"".join(box(name, kinds.get(name, bytes(4)) + body) for name, body in named))
    at = 0
    for name in (b"moov", b"udta", b"meta", b"ilst"):
        while file[at + 4 : at + 8] != name:
            at += struct.unpack_from(">I", file, at)[0]
        end = at + struct.unpack_from(">I", file, at)[0]
        struct.pack_into(">I", file, at, end - at + len(comment))
        at += 12 if name == b"meta" else 8
    file[end:end] = comment
    return bytes(file)


def files():
    yield "mp3_stereo", encoded("mp3", "libmp3lame", 44100, 2, 0.09), by_libsndfile
    yield "mp3_mono", encoded("mp3", "libmp3lame", 22050, 1, 0.15), by_libsndfile
    yield "mp3_lowest", encoded("mp3", "libmp3lame", 8000, 1, 0.3), by_libsndfile
    yield "mp3_varied", encoded("mp3", "libmp3lame", 32000, 2, 0.1, compression_level=2, abr=1), by_libsndfile
    yield (
        "mp3_plain",
        encoded("mp3", "libmp3lame", 16000, 1, 0.2, muxer={"write_xing": "0", "id3v2_version": "0"}),
        by_libsndfile,
    )
    yield "aac_stereo", encoded("adts", "aac", 44100, 2, 0.1), by_ffmpeg
    yield "aac_mono", encoded("adts", "aac", 16000, 1, 0.2), by_ffmpeg
    yield "m4a_aac", encoded("ipod", "aac", 48000, 2, 0.1), by_ffmpeg
    yield "mov_aac", encoded("mov", "aac", 22050, 1, 0.2), by_ffmpeg
    pieces = {"movflags": "frag_keyframe+empty_moov+default_base_moof", "frag_duration": "50000"}
    yield "m4a_pieces", encoded("mp4", "aac", 16000, 1, 0.3, muxer=pieces), by_ffmpeg
    numbers = b" 00000000 00000840 000001CA 0000000000001234" + b" 00000000" * 8
    yield "m4a_comment", with_comment(encoded("ipod", "aac", 44100, 1, 0.1), numbers), by_ffmpeg
    yield "alac_16", encoded("ipod", "alac", 44100, 2, 0.1, "s16p"), by_ffmpeg
    yield "alac_24", encoded("mov", "alac", 16000, 1, 0.3, "s32p", bits_per_raw_sample=24), by_ffmpeg
    yield "alac_surround", encoded("ipod", "alac", 8000, 6, 0.1, "s16p"), by_ffmpeg
    yield "opus_stereo", encoded("ogg", "libopus", 48000, 2, 0.1), by_libsndfile
    yield "opus_speech", encoded("ogg", "libopus", 16000, 1, 0.3, b=12000, application="voip"), by_libsndfile
    yield "opus_surround", encoded("ogg", "libopus", 48000, 6, 0.06), by_libsndfile
    yield "opus_gain", with_gain(encoded("ogg", "libopus", 24000, 1, 0.1), -6), by_libsndfile


def main():
    arrays = {}
    for name, file, decode in files():
        samples, rate = decode(file)
        print(f"{name}: {len(file)} bytes, {samples.shape} {samples.dtype}, {rate} a second")
        arrays[name] = np.frombuffer(file, np.uint8)
        arrays[f"{name}_samples"] = np.ascontiguousarray(samples)
        arrays[f"{name}_rate"] = np.float64(rate)
    here = os.path.dirname(os.path.abspath(__file__))
    np.savez_compressed(os.path.join(here, "coded.npz"), **arrays)


if __name__ == "__main__":
    main()
