"""Makes matroska.npz in this directory: sounds in Matroska and WebM, and what FFmpeg makes of them.

    python make_matroska.py     (needs numpy, PyAV, soundfile)

Files are written by FFmpeg 8.1.2 from PyAV 18.1.0, which puts one packet in a block; Vorbis is by
libsndfile 1.2.2. Those whose blocks have several are put together here. Samples are FFmpeg's; those of Opus at 48,000 a
second, which is what it always gives.

Writes
    matroska.npz    as coded.npz: name -> file; name + "_samples"; name + "_rate"
"""

import io
import os
import struct

import av
import numpy as np
import soundfile
from make_coded import by_ffmpeg, encoded, sound


def vorbis(rate, channels, seconds):
    """Vorbis by libsndfile, whose packets go from Ogg into WebM."""
    inside, outside = io.BytesIO(), io.BytesIO()
    soundfile.write(inside, sound(rate, channels, seconds).T, rate, "VORBIS", format="OGG")
    with av.open(io.BytesIO(inside.getvalue())) as source, av.open(outside, "w", "webm") as output:
        stream = output.add_stream_from_template(source.streams.audio[0])
        for packet in source.demux(source.streams.audio[0]):
            if packet.size:
                packet.stream = stream
                output.mux(packet)
    return outside.getvalue()


def with_picture(codec, **options):
    """A WebM with a video in front of its sound."""
    file = io.BytesIO()
    with av.open(file, "w", "webm") as output:
        video = output.add_stream("libvpx", rate=10)
        video.width, video.height, video.pix_fmt = 32, 16, "yuv420p"
        sound = output.add_stream(codec, rate=48000, layout="mono")
        sound.options = options
        picture = av.VideoFrame.from_ndarray(np.full((24, 32), 99, np.uint8), "yuv420p")
        picture.pts = 0
        output.mux(video.encode(picture))
        output.mux(video.encode(None))
        wave = np.sin(np.arange(4800) / 20).astype(np.float32)[None] / 2
        frame = av.AudioFrame.from_ndarray(wave, "fltp", "mono")
        frame.rate, frame.pts = 48000, 0
        resampler = av.AudioResampler(sound.codec_context.format, sound.layout, 48000)
        for part in resampler.resample(frame) + resampler.resample(None):
            output.mux(sound.encode(part))
        output.mux(sound.encode(None))
    return file.getvalue()


def element(name, *parts):
    body = b"".join(parts)
    return bytes.fromhex(name) + struct.pack(">Q", 1 << 56 | len(body)) + body


def laced(kind, packets):
    """Packets as one block's content: one, or several with their lengths told in one of three ways."""
    lengths = [len(packet) for packet in packets]
    told = bytes([len(packets) - 1]) if kind else b""
    if kind == 1:
        told += b"".join(b"\xff" * (length // 255) + bytes([length % 255]) for length in lengths[:-1])
    elif kind == 3:
        told += struct.pack(">H", 0x4000 | lengths[0])
        told += b"".join(
            struct.pack(">H", 0x4000 | (b - a + 0x1FFF)) for a, b in zip(lengths[:-1], lengths[1:-1], strict=False)
        )
    return b"\x81\0\0" + bytes([0x80 | kind << 1]) + told + b"".join(packets)


def put_together(file, kinds):
    """The packets of a file again, several in a block, in clusters and a segment of unknown size."""
    with av.open(io.BytesIO(file)) as container:
        stream = container.streams.audio[0]
        private = bytes(stream.codec_context.extradata or b"")
        packets = [bytes(packet) for packet in container.demux(stream) if packet.size]
    if stream.codec_context.name == "flac":
        private = b"fLaC\x80\0\0\x22" + private
    name = {"mp3": b"A_MPEG/L3", "vorbis": b"A_VORBIS", "flac": b"A_FLAC"}[
        stream.codec_context.name.removesuffix("float")
    ]
    track = element("ae", element("d7", b"\1"), element("83", b"\2"), element("86", name), element("63a2", private))
    out = element("1a45dfa3", element("4282", b"matroska")) + bytes.fromhex("18538067") + b"\x01" + b"\xff" * 7
    out += element("1654ae6b", track)
    while packets:
        out += bytes.fromhex("1f43b675") + b"\x01" + b"\xff" * 7 + element("e7", b"\0")
        for kind in kinds:
            count = min(1 if kind == 0 else 4, len(packets))
            if kind == 2:
                # Those of one length are told of as such.
                count = next((i for i in range(count) if len(packets[i]) != len(packets[0])), count)
            if count:
                out += element("a3", laced(kind if count > 1 else 0, packets[:count]))
            packets = packets[count:]
    return out


def files():
    yield "opus", encoded("webm", "libopus", 48000, 2, 0.1)
    yield "opus_video", with_picture("libopus")
    yield "vorbis", vorbis(44100, 2, 0.1)
    yield "flac", encoded("matroska", "flac", 16000, 2, 0.3, "s16")
    yield "aac", encoded("matroska", "aac", 44100, 2, 0.1)
    yield "alac", encoded("matroska", "alac", 16000, 1, 0.3, "s16p")
    yield "mp3", encoded("matroska", "libmp3lame", 22050, 1, 0.3)
    yield (
        "mp3_laced",
        put_together(encoded("matroska", "libmp3lame", 16000, 1, 0.5, muxer={"write_xing": "0"}), [2, 0, 3]),
    )
    yield "vorbis_laced", put_together(vorbis(16000, 1, 0.5), [1, 3, 1])
    yield "flac_laced", put_together(encoded("matroska", "flac", 16000, 1, 0.5, "s16", frame_size=800), [3, 1, 0])


def main():
    arrays = {}
    for name, file in files():
        samples, rate = by_ffmpeg(file)
        print(f"{name}: {len(file)} bytes, {samples.shape} {samples.dtype}, {rate} a second")
        arrays[name] = np.frombuffer(file, np.uint8)
        arrays[f"{name}_samples"] = np.ascontiguousarray(samples)
        arrays[f"{name}_rate"] = np.float64(rate)
    here = os.path.dirname(os.path.abspath(__file__))
    np.savez_compressed(os.path.join(here, "matroska.npz"), **arrays)


if __name__ == "__main__":
    main()
