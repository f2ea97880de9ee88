"""Records what DALI makes of the clips with `experimental.inputs.video` and `experimental.readers.video`, and pipelines
that it serialized.

    pip install nvidia-dali-cuda130; cd tests/data/video/streams; python3 record.py

`answers.json`: `inputs` has for each length and policy the batches of a clip; `readers` for each case its arguments
(`CLIP:` stands for the folder of the clips, `LIST:` for the lines of a list), how many samples there are and what each
has: the frames' shape and sum, then the other outputs."""

import json
import pathlib
import tempfile

import numpy as np
from nvidia.dali import Pipeline, fn, types
from nvidia.dali._utils import dali_trace

HERE = pathlib.Path(__file__).resolve().parent
CLIPS = HERE.parent
BATCH = 3


def video_of(name, **arguments):
    pipe = Pipeline(batch_size=BATCH, num_threads=2, device_id=None, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(fn.experimental.inputs.video(name=name, **arguments))
    return pipe


def batches(clip, **arguments):
    pipe = video_of("VIDEO", **arguments)
    pipe.build()
    pipe.feed_input("VIDEO", np.fromfile(CLIPS / clip, np.uint8)[None])
    found = []
    try:
        while True:
            (out,) = pipe.run()
            found.append([[list(sample.shape()), int(np.array(sample).astype(np.int64).sum())] for sample in out])
    except RuntimeError:
        return found


def resolved(value, folder):
    if isinstance(value, list):
        return [resolved(one, folder) for one in value]
    if isinstance(value, str) and value.startswith("LIST:"):
        path = folder / "list.txt"
        path.write_text(value[5:].replace("CLIP:", f"{CLIPS}/"))
        return str(path)
    return value.replace("CLIP:", f"{CLIPS}/") if isinstance(value, str) else value


def samples(arguments, batch=2):
    with tempfile.TemporaryDirectory() as folder:
        given = {name: resolved(value, pathlib.Path(folder)) for name, value in arguments.items()}
        pipe = Pipeline(batch_size=batch, num_threads=2, device_id=None, prefetch_queue_depth=1)
        with pipe:
            out = fn.experimental.readers.video(name="READER", **given)
            pipe.set_outputs(*(out if isinstance(out, (list, tuple)) else [out]))
        pipe.build()
        size, found = pipe.epoch_size("READER"), []
        # One and a half epochs, at least.
        while len(found) < size * 3 / 2:
            outs = [out.as_cpu() if hasattr(out, "as_cpu") else out for out in pipe.run()]
            for i in range(batch):
                frames = np.array(outs[0].at(i)).astype(np.int64)
                found.append(
                    [
                        [list(frames.shape), int(frames.sum())],
                        *[np.round(np.array(out.at(i)), 6).tolist() for out in outs[1:]],
                    ]
                )
        return size, found


WEBM, MP4 = "CLIP:vp9.webm", "CLIP:vp9.mp4"
BOTH = {"filenames": [WEBM, MP4], "labels": [4, 7], "enable_frame_num": "sequence", "enable_timestamps": True}
ONE = {"filenames": [WEBM], "enable_frame_num": "sequence", "enable_timestamps": True}


def listed(lines, **more):
    return {"file_list": "LIST:" + lines, "enable_frame_num": "sequence", "enable_timestamps": True, **more}


READERS = [
    {"filenames": [WEBM], "sequence_length": 5},
    {**BOTH, "sequence_length": 5},
    {**BOTH, "sequence_length": 3, "step": 2, "stride": 3},
    {**BOTH, "sequence_length": 3, "enable_frame_num": "scalar", "random_shuffle": True, "initial_fill": 5, "seed": 42},
    {**BOTH, "sequence_length": 3, "num_shards": 3, "shard_id": 1, "pad_last_batch": True, "stick_to_shard": True},
    *[
        {**ONE, "sequence_length": 5, "pad_mode": mode, "fill_value": [10, 20, 30]}
        for mode in ("constant", "edge", "reflect_1001", "reflect_101")
    ],
    {**ONE, "sequence_length": 20, "pad_mode": "constant"},
    {**ONE, "sequence_length": 4, "stride": 4, "step": 3, "pad_mode": "edge"},
    {**ONE, "sequence_length": 5, "uniform_sample": True},
    {**ONE, "sequence_length": 20, "uniform_sample": True},
    listed(f"{WEBM} 3\n{MP4} 4\n", sequence_length=6),
    listed(
        f"{WEBM} 3 2 7\n{MP4} 4 -4 -1\n{WEBM} 5 2.5 6.5\n{WEBM} 1 3 3\n", sequence_length=1, file_list_format="frames"
    ),
    listed(f"{WEBM} 3 2 7\n", sequence_length=8, file_list_format="frames", pad_mode="reflect_101"),
    *[
        listed(
            f"{WEBM} 3 0.1 0.25\n{MP4} 4 0.08 0.24\n{WEBM} 5 0 0.44\n", sequence_length=1, file_list_rounding=rounding
        )
        for rounding in ("start_down_end_up", "start_up_end_down", "all_up", "all_down")
    ],
]


def parts():
    """Whole videos as sequences of five frames, and as frames: samples that a server splits along their first
    dimension."""
    pipe = Pipeline(
        batch_size=4,
        num_threads=2,
        device_id=None,
        prefetch_queue_depth=1,
        output_dtype=types.UINT8,
        output_ndim=[5, 4],
    )
    with pipe:
        video = fn.external_source(name="VIDEO", dtype=types.UINT8, ndim=1)
        frames = fn.resize(fn.decoders.video(video), size=[20, 30])
        parts = fn.reshape(fn.pad(frames, axis_names="F", align=5), shape=[-1, 5, 20, 30, 3], name="PARTS")
        pipe.set_outputs(parts, fn.reinterpret(frames, layout="FHWC", name="FRAMES"))
    return pipe


def sums_of_parts(clips):
    pipe = parts()
    pipe.build()
    pipe.feed_input("VIDEO", [np.fromfile(CLIPS / clip, np.uint8) for clip in clips])
    sums = lambda sample: sample.astype(np.int64).reshape(len(sample), -1).sum(1).tolist()
    return [[sums(np.array(sample)) for sample in out] for out in pipe.run()]


def main():
    # DALI otherwise stores the names of files of the machine that records.
    dali_trace.set_tracing(enabled=False)
    answers = {"inputs": [], "readers": []}
    for clip in ("vp9.webm", "vp9.mp4"):
        for length in (1, 2, 3, 5, 7, 12, 13):
            for policy in ("partial", "pad"):
                arguments = {"sequence_length": length, "last_sequence_policy": policy}
                answers["inputs"].append({"clip": clip, "arguments": arguments, "batches": batches(clip, **arguments)})
    for arguments in READERS:
        size, found = samples(arguments)
        answers["readers"].append({"arguments": arguments, "size": size, "samples": found})
    clips = ["vp9.mp4", "vp8.webm", "vp9_odd_bt709.webm"]
    answers["parts"] = {"clips": clips, "sums": sums_of_parts(clips)}
    parts().serialize(filename=str(HERE / "parts.dali"))
    (HERE / "answers.json").write_text(json.dumps(answers, separators=(",", ":")).replace('{"', '\n{"') + "\n")
    for policy in ("partial", "pad"):
        video_of("VIDEO", sequence_length=7, last_sequence_policy=policy).serialize(
            filename=str(HERE / f"{policy}.dali")
        )
    # What stands beside a video: how it is moved, and a number.
    pipe = Pipeline(batch_size=BATCH, num_threads=2, device_id=None)
    with pipe:
        video = fn.experimental.inputs.video(name="VIDEO", sequence_length=5)
        number = fn.external_source(name="NUMBER", dtype=types.INT32, ndim=1, repeat_last=True)
        pipe.set_outputs(fn.resize(video, size=[16, 24]), number)
    pipe.serialize(filename=str(HERE / "beside.dali"))
    # Large frames of a small video.
    pipe = Pipeline(batch_size=BATCH, num_threads=2, device_id=None)
    with pipe:
        pipe.set_outputs(fn.resize(fn.experimental.inputs.video(name="VIDEO", sequence_length=7), size=[320, 480]))
    pipe.serialize(filename=str(HERE / "large.dali"))


if __name__ == "__main__":
    main()
