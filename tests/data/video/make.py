#!/usr/bin/env python3
"""Makes the clips beside it, and `index.json`: their sizes and a sum over the RGB values of every frame.

The clips are drawn here and encoded by the encoders in the package `av` (pip install av numpy imageio-ffmpeg), which
holds FFmpeg. The sums are made of the planes that FFmpeg decodes, by a conversion that is written here once more, in
plain numpy. FFmpeg's frames of Motion JPEG come from another transform than libjpeg's, so these have no sums; tests
compare them with DALI. MPEG-4 Part 2 leaves the transform to decoders, too: of it there are the means of blocks.
"""

import io
import json
import pathlib
import re
import struct
import subprocess
import tempfile
from fractions import Fraction

import av
import numpy as np

HERE = pathlib.Path(__file__).parent
WIDTH, HEIGHT, FRAMES = 48, 32, 12
X264 = {"g": "5", "bf": "2", "crf": "22", "x264-params": "scenecut=0"}
X265 = {"crf": "24", "x265-params": "keyint=5:bframes=2:scenecut=0:log-level=none:info=0"}
VP8 = {"crf": "10", "b": "1M", "g": "8", "threads": "1"}
VP9 = {"crf": "24", "b": "0", "g": "5", "auto-alt-ref": "1", "lag-in-frames": "8", "cpu-used": "4"}
# First bytes of units of AV1 that say how long they are.
SEQUENCE_HEADER, PADDING = 0x0A, 0x7A
AV1 = {"crf": "34", "g": "6", "preset": "8"}


def picture(i, width, height):
    """Frame `i`: gradients that move, squares of noise, a bar."""
    rng = np.random.RandomState(i // 4)
    y, x = np.mgrid[0:height, 0:width]
    frame = np.stack([x * 5 + i * 7, y * 7 - i * 5, (x + y) * 3 + i * 3], -1) % 256
    noise = rng.randint(0, 256, (height // 8 + 1, width // 8 + 1, 3)).repeat(4, 0).repeat(4, 1)
    frame[height // 4 : height // 4 + height // 2, width // 4 : width // 4 + width // 2] = noise[
        : height // 2, : width // 2
    ]
    frame[:, (i * 5) % (width - 4) :][:, :4] = 255
    return frame.astype(np.uint8)


def encode(
    name,
    codec,
    options=None,
    pixels="yuv420p",
    size=(WIDTH, HEIGHT),
    frames=FRAMES,
    times=None,
    matrix=None,
    full=False,
    container=None,
):
    with av.open(str(HERE / name), "w", options=container or {}) as file:
        stream = file.add_stream(codec, rate=25, options=options or {})
        stream.width, stream.height, stream.pix_fmt = *size, pixels
        stream.codec_context.colorspace = matrix or 2
        stream.codec_context.color_range = 2 if full else 1
        stream.codec_context.thread_count = 1
        for i in range(frames):
            frame = av.VideoFrame.from_ndarray(picture(i, *size), format="rgb24").reformat(format=pixels)
            frame.pts, frame.time_base = times[i] if times else i, Fraction(1, 25)
            frame.colorspace, frame.color_range = matrix or 2, 2 if full else 1
            file.mux(stream.encode(frame))
        file.mux(stream.encode())


def box(data, *path):
    """Where a box begins, and its length."""
    at, end = 0, len(data)
    for depth, name in enumerate(path):
        while data[at + 4 : at + 8] != name:
            at += struct.unpack(">I", data[at : at + 4])[0]
            assert at < end, name
        if depth + 1 < len(path):
            at, end = at + 8, at + struct.unpack(">I", data[at : at + 4])[0]
    return at


def edit(source, name, first, count):
    """A copy of an MP4 whose edit list shows `count` frames from frame `first` on."""
    data = bytearray((HERE / source).read_bytes())
    movie = struct.unpack(">I", data[box(data, b"moov", b"mvhd") + 20 :][:4])[0]
    media = struct.unpack(">I", data[box(data, b"moov", b"trak", b"mdia", b"mdhd") + 20 :][:4])[0]
    at = box(data, b"moov", b"trak", b"edts", b"elst")
    start = struct.unpack(">i", data[at + 20 :][:4])[0]
    struct.pack_into(">Ii", data, at + 16, movie * count // 25, start + media * first // 25)
    (HERE / name).write_bytes(data)


def strip(source, name, filter):
    """The stream of a file, without its container."""
    with av.open(str(HERE / source)) as file:
        stream = file.streams.video[0]
        convert = av.BitStreamFilterContext(filter, stream)
        found = [made for packet in file.demux(stream) if packet.size for made in convert.filter(packet)]
        (HERE / name).write_bytes(b"".join(map(bytes, found)))


def without_headers(source, name):
    """A file whose sequence header is in the container alone, as the container's specification wants it: those in
    packets become padding."""
    data = bytearray((HERE / source).read_bytes())
    at = data.index(b"mdat") + 4
    header = bytes(data[at : at + 2 + data[at + 1]])
    config = data.index(b"av1C") + 8
    assert header[0] == SEQUENCE_HEADER and header[:2] == data[config : config + 2]
    data[config : config + len(header)] = header
    for at in range(len(data)):
        if at != config and data.startswith(header, at):
            data[at] = PADDING
    (HERE / name).write_bytes(data)


def by_program(name, options, frames, size=(WIDTH, HEIGHT), pixels="yuv420p"):
    """By the program FFmpeg (pip install imageio-ffmpeg), which has more than the package `av`: a second pass, VP9 of
    10 bits."""
    import imageio_ffmpeg

    pictures = b"".join(picture(i, *size).tobytes() for i in range(frames))
    subprocess.run(
        [
            imageio_ffmpeg.get_ffmpeg_exe(),
            "-y",
            "-loglevel",
            "error",
            "-f",
            "rawvideo",
            "-pix_fmt",
            "rgb24",
            "-r",
            "25",
            "-s",
            f"{size[0]}x{size[1]}",
            "-i",
            "-",
            "-pix_fmt",
            pixels,
            "-threads",
            "1",
            "-fflags",
            "+bitexact",
            *options,
            str(HERE / name),
        ],
        input=pictures,
        check=True,
    )


def two_passes(name, frames):
    """VP8 by an encoder that sees the clip twice."""
    with tempfile.TemporaryDirectory() as folder:
        for number in "12":
            by_program(
                name,
                [
                    "-c:v",
                    "libvpx",
                    "-b:v",
                    "100k",
                    "-auto-alt-ref",
                    "1",
                    "-lag-in-frames",
                    "16",
                    "-pass",
                    number,
                    "-passlogfile",
                    f"{folder}/log",
                ],
                frames,
            )


def renamed(source, name):
    """A QuickTime file with the packets of a VP8 file: FFmpeg writes none, so it is written as Motion JPEG and then
    called what it is."""
    with (
        av.open(str(HERE / source)) as file,
        av.open(str(HERE / "mjpeg.mov")) as like,
        av.open(str(HERE / name), "w") as made,
    ):
        stream = made.add_stream_from_template(like.streams.video[0])
        for packet in file.demux(video=0):
            if packet.size:
                packet.stream = stream
                made.mux(packet)
    data = (HERE / name).read_bytes()
    assert data.count(b"jpeg") == 1
    (HERE / name).write_bytes(data.replace(b"jpeg", b"vp08"))


def full_range(source, name):
    """A copy of a VP8 stream in IVF that says of its key frames that nothing needs to be clipped; FFmpeg takes that for
    the full range."""
    data = bytearray((HERE / source).read_bytes())
    at = 32
    while at < len(data):
        if data[at + 12] & 1 == 0:
            # The second decision of even odds behind the ten plain bytes of a key frame, the first of which was false.
            data[at + 22] ^= 0x40
        at += 12 + struct.unpack_from("<I", data, at)[0]
    (HERE / name).write_bytes(data)


def planes(frame):
    deep = "10" in frame.format.name
    for plane in frame.planes:
        rows = np.frombuffer(plane, np.uint16 if deep else np.uint8).reshape(plane.height, -1)
        yield rows[:, : plane.width].astype(np.int64) << (5 if deep else 7)


def stretched(rows, length, bits):
    """Rows between the centres of rows, in parts of `1 << bits`."""
    place = (np.arange(length) + 0.5) * len(rows) / length - 0.5
    first = np.floor(place).astype(int)
    part = np.rint((place - first) * (1 << bits)).astype(np.int64)[:, None]
    return rows[first.clip(0)] * ((1 << bits) - part) + rows[(first + 1).clip(max=len(rows) - 1)] * part


def rgb(frame, red, blue):
    """The frame in FFmpeg's integers, where luma is `red` and `blue` and the rest green."""
    luma, *chroma = planes(frame)
    height, width = luma.shape
    green, full = 1 - red - blue, frame.color_range == 2

    def factor(value):
        limited = int(np.rint(value * 255 / 224 * 65536))
        return ((limited * 224 // 255 if full else limited) + 4) >> 3

    across = [(stretched(plane.T, width, 14) >> 14).T if plane.shape[1] != width else plane for plane in chroma]
    u, v = ((stretched(plane, height, 12) + 512 - (128 << 19)) >> 10 for plane in across)
    y = luma * 4 * 8192 if full else (luma * 4 - 8192) * ((65536 * 255 // 219 + 4) >> 3)
    y = y + (1 << 21)
    channels = (
        y + v * factor(2 - 2 * red),
        y - v * factor(2 * red * (1 - red) / green) - u * factor(2 * blue * (1 - blue) / green),
        y + u * factor(2 - 2 * blue),
    )
    return (np.stack(channels, -1) >> 22).clip(0, 255).astype(np.uint8)


def checksum(pixels):
    """FNV-1a of 64 bits."""
    total = 0xCBF29CE484222325
    for value in pixels.tobytes():
        total = (total ^ value) * 0x100000001B3 % (1 << 64)
    return f"{total:016x}"


BLOCK = 16


def blocks(path):
    """The means of the blocks of every frame, in hundredths of a level."""
    with av.open(str(path)) as file:
        frames = [rgb(frame, 0.299, 0.114).astype(np.float64) for frame in file.decode(video=0)]
    parts = [frame.reshape(frame.shape[0] // BLOCK, BLOCK, -1, BLOCK, 3).mean((1, 3)) for frame in frames]
    return {
        "frames": len(frames),
        "size": [frames[0].shape[1], frames[0].shape[0]],
        "means": [np.rint(part * 100).astype(int).ravel().tolist() for part in parts],
    }


def describe(path):
    # FFmpeg's decoder takes no header of a container; the frames are the same.
    with av.open(str(path).replace("_bare.", ".")) as file:
        codec = file.streams.video[0].codec_context.name
        frames = list(file.decode(video=0))
    # As the stream says; of VP9 always BT.601, which is what DALI does.
    luma = (0.2126, 0.0722) if frames[0].colorspace == 1 and "vp9" not in codec else (0.299, 0.114)
    sums = None if codec == "mjpeg" else [checksum(rgb(frame, *luma)) for frame in frames]
    return {"size": [frames[0].width, frames[0].height], "frames": len(frames), "sums": sums}


def clip_to_try_with():
    """What the library tries an FFmpeg with: five frames in two slices each, and no messages between them."""
    options = "slices=2:bframes=1:b-adapt=0:keyint=5:scenecut=0:threads=1:ref=2:weightp=0"
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    out = io.BytesIO()
    with av.open(out, "w", format="h264") as file:
        stream = file.add_stream("libx264", rate=25, options={"crf": "30", "x264-params": options})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for i in range(5):
            pixels = np.stack([x * 5 + i * 9, y * 7 + x + i * 5, x * y // 8 + i * 20], -1) % 256
            frame = av.VideoFrame.from_ndarray(pixels.astype(np.uint8), format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = i, Fraction(1, 25)
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    units = [unit for unit in re.split(b"\0\0\0?\1", out.getvalue()) if unit]
    return b"".join(b"\0\0\1" + unit for unit in units if unit[0] & 31 in (1, 5, 7, 8))


def main():
    encode("h264.mp4", "libx264", X264)
    encode("h264_open.mp4", "libx264", X264 | {"x264-params": "scenecut=0:open_gop=1"}, frames=18)
    encode("h264_fragments.mp4", "libx264", X264, container={"movflags": "frag_keyframe+empty_moov+default_base_moof"})
    encode("h264_interlaced.mp4", "libx264", X264 | {"x264-params": "interlaced=1:scenecut=0"})
    encode("h264_10_bits.mp4", "libx264", X264, "yuv420p10le")
    encode("h264_422_bt709.mov", "libx264", X264, "yuv422p", matrix=1)
    encode("h264_cropped.mkv", "libx264", X264, size=(50, 38))
    encode("h264_full_range.mkv", "libx264", X264, full=True, times=[0, 1, 2, 5, 6, 9, 10, 15, 16, 17, 18, 30])
    encode("h264.h264", "libx264", X264)
    encode("h265.mp4", "libx265", X265, size=(64, 48))
    encode("h265_10_bits.mkv", "libx265", X265, "yuv420p10le", size=(64, 48))
    strip("h265.mp4", "h265.hevc", "hevc_mp4toannexb")
    encode("vp8.webm", "libvpx", VP8)
    encode("vp8.ivf", "libvpx", VP8 | {"slices": "4", "sharpness": "5"})
    renamed("vp8.webm", "vp8.mov")
    # Alternative references are frames of their own, which are not shown; only an encoder that sees the clip twice
    # makes them.
    two_passes("vp8_hidden.mkv", 30)
    encode("vp8_odd_bilinear.webm", "libvpx", VP8 | {"profile": "1", "b": "100k"}, size=(35, 29))
    encode("vp8_whole_chroma.webm", "libvpx", VP8 | {"profile": "3", "error-resilient": "1"}, size=(50, 38))
    full_range("vp8.ivf", "vp8_full_range.ivf")
    encode("vp9.webm", "libvpx-vp9", VP9)
    encode("vp9.mp4", "libvpx-vp9", VP9)
    encode("vp9.ivf", "libvpx-vp9", VP9)
    encode("vp9_odd_bt709.webm", "libvpx-vp9", VP9, size=(35, 29), matrix=1)
    encode("vp9_422_full_range.webm", "libvpx-vp9", VP9, "yuv422p", full=True)
    encode("av1.mp4", "libsvtav1", AV1, size=(64, 64), frames=8)
    encode("av1.webm", "libsvtav1", AV1, size=(64, 64), frames=8)
    without_headers("av1.mp4", "av1_bare.mp4")
    # Large enough for the video engines of a GPU.
    encode(
        "large_h264.mp4",
        "libx264",
        X264 | {"bf": "3", "crf": "32", "x264-params": "scenecut=0:b-adapt=0:b-pyramid=normal"},
        size=(322, 180),
        matrix=1,
    )
    encode("large_h265.mp4", "libx265", X265, size=(162, 146), matrix=1, frames=8)
    encode("large_h265_10_bits.mkv", "libx265", X265, "yuv420p10le", size=(160, 144), frames=8)
    # No decoder of ours takes it.
    encode("engines/h265_444.mp4", "libx265", X265, "yuv444p", size=(160, 144), frames=8)
    strip("large_h265.mp4", "large_h265.hevc", "hevc_mp4toannexb")
    encode("large_vp8_odd.webm", "libvpx", VP8, size=(67, 51), frames=8)
    encode("large_vp9.webm", "libvpx-vp9", VP9, size=(160, 144), frames=8)
    encode("large_vp9_odd.webm", "libvpx-vp9", VP9, size=(161, 145), frames=8, full=True)
    by_program(
        "large_vp9_10_bits.webm",
        ["-c:v", "libvpx-vp9", "-crf", "24", "-b:v", "0", "-g", "5"],
        8,
        (160, 144),
        "yuv420p10le",
    )
    encode("large_av1.mp4", "libsvtav1", AV1, size=(160, 144), frames=8, matrix=1)
    encode("large_av1_10_bits.webm", "libsvtav1", AV1, "yuv420p10le", size=(160, 144), frames=8)
    without_headers("large_av1.mp4", "large_av1_bare.mp4")
    encode("large_mjpeg.avi", "mjpeg", {"qscale": "6"}, "yuvj420p", size=(160, 144), frames=6, full=True)
    for ending in ("avi", "mkv", "mov"):
        encode(f"mjpeg.{ending}", "mjpeg", {"qscale": "6"}, "yuvj420p", frames=6, full=True)
    edit("h264.mp4", "h264_edited.mp4", 3, 6)
    for ending in ("mp4", "mkv", "avi"):
        encode(f"mpeg4/mpeg4.{ending}", "mpeg4", {"g": "5", "bf": "2", "qscale": "3"}, size=(176, 144))
    (HERE / "mpeg4/blocks.json").write_text(json.dumps(blocks(HERE / "mpeg4/mpeg4.mp4")) + "\n")
    (HERE.parents[2] / "src/cpu/video/ffmpeg/clip.h264").write_bytes(clip_to_try_with())
    for folder in (HERE, HERE / "engines"):
        clips = sorted(path for path in folder.iterdir() if path.is_file() and path.suffix not in (".py", ".json"))
        lines = ",\n".join(f"{json.dumps(path.name)}: {json.dumps(describe(path))}" for path in clips)
        (folder / "index.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
