"""Makes the clips beside it, of several frame rates and units of time, and records which frames DALI reads of parts of
them that a list gives in seconds.

    pip install nvidia-dali-cuda130 av; cd tests/data/video/rates; python3 record.py

`answers.json` has for each clip and each rounding the first frame of a part, and the frame behind the last one, by the
seconds as they stand in the list. The frames of the parts end with the video: DALI takes what ends later for empty."""

import json
import pathlib
import tempfile
from fractions import Fraction

import av
import numpy as np
from nvidia.dali import Pipeline, fn

HERE = pathlib.Path(__file__).resolve().parent
FRAMES = 14
ROUNDINGS = ("start_down_end_up", "start_up_end_down", "all_up", "all_down")
CLIPS = {
    "25.mp4": ("libvpx-vp9", Fraction(25)),
    "25.webm": ("libvpx-vp9", Fraction(25)),
    "30.webm": ("libvpx-vp9", Fraction(30)),
    "29.97.mp4": ("libvpx-vp9", Fraction(30000, 1001)),
    "23.976.ivf": ("libvpx", Fraction(24000, 1001)),
    "15.avi": ("mjpeg", Fraction(15)),
}
# In frames, of which some lie between two.
PARTS = ((0, 5), (0, 1), (1, 5), (1, 6), (4, 7), (0, 9), (2, 3), (3, 8), (1.5, 6.5), (1.98, 3.02), (-10, 10))


def clip(name, codec, rate):
    with av.open(str(HERE / name), "w") as file:
        stream = file.add_stream(codec, rate=rate)
        stream.width, stream.height = 32, 32
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        for i in range(FRAMES):
            picture = np.full((32, 32, 3), 255 * i // FRAMES, np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")):
                file.mux(packet)
        for packet in stream.encode():
            file.mux(packet)


def parts(rate):
    """Seconds as people write them: with 2, 3 and 6 digits."""
    written = {
        f"{float(a / rate):.{digits}f} {float(b / rate):.{digits}f}": None
        for a, b in ((Fraction(a), Fraction(b)) for a, b in PARTS)
        for digits in (2, 3, 6)
    }
    return [part for part in written if len(set(part.split())) == 2]


def frames(name, listed, rounding):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "list.txt"
        path.write_text("".join(f"{HERE / name} {label} {part}\n" for label, part in enumerate(listed)))
        pipe = Pipeline(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
        with pipe:
            pipe.set_outputs(
                *fn.experimental.readers.video(
                    name="READER",
                    file_list=str(path),
                    file_list_rounding=rounding,
                    sequence_length=1,
                    enable_frame_num="scalar",
                )
            )
        pipe.build()
        found = [[] for _ in listed]
        for _ in range(pipe.epoch_size("READER")):
            _, label, number = (np.array(out[0]) for out in pipe.run())
            found[label[0]].append(int(number[0]))
    for numbers in found:
        assert numbers == list(range(numbers[0], numbers[-1] + 1)) if numbers else True
    return {part: [numbers[0], numbers[-1] + 1] if numbers else [0, 0] for part, numbers in zip(listed, found)}


def main():
    answers = {}
    for name, (codec, rate) in CLIPS.items():
        clip(name, codec, rate)
        answers[name] = {rounding: frames(name, parts(rate), rounding) for rounding in ROUNDINGS}
    (HERE / "answers.json").write_text(json.dumps(answers, separators=(",", ":")).replace('"start', '\n"start') + "\n")


if __name__ == "__main__":
    main()
