"""DALI decodes VP9 and Motion JPEG on a CPU; the clips are those of tests/data/video. Its Motion JPEG comes from
another inverse transform than libjpeg's, up to three levels away."""

import pathlib

from record import case, fn, np, source, types

CLIPS = pathlib.Path(__file__).parents[2] / "data/video"


def clips(*names):
    return {"X": [np.fromfile(CLIPS / name, np.uint8) for name in names]}


VP9 = clips("vp9.webm", "vp9.mp4", "vp9.ivf")


def x():
    return source("X", ndim=1)


@case(inputs=clips("vp9.webm", "vp9_422_full_range.webm"))
def all_of_vp9():
    return fn.decoders.video(x())


# Of odd sizes DALI places chroma a little differently.
@case(inputs=clips("vp9_odd_bt709.webm"), tol=1, mean=0.01)
def odd_sizes_and_another_matrix():
    return fn.decoders.video(x(), sequence_length=3)


@case(inputs=clips("mjpeg.mov", "mjpeg.mkv", "mjpeg.avi"), tol=3, mean=0.5)
def motion_jpeg():
    return fn.decoders.video(x(), stride=3)


@case(inputs=VP9)
def listed():
    return fn.decoders.video(x(), frames=[7, 0, 7, 11])


@case(inputs=VP9)
def an_older_name():
    return fn.experimental.decoders.video(x())[:1]


@case(inputs=VP9)
def strides():
    return fn.decoders.video(x(), start_frame=2, stride=4), fn.decoders.video(
        x(), start_frame=1, end_frame=10, stride=3
    )


@case(inputs=VP9)
def filled():
    return fn.decoders.video(x(), start_frame=10, sequence_length=4, fill_value=[10, 20, 30]), fn.decoders.video(
        x(), start_frame=-2, end_frame=1
    )


for mode in ("none", "edge", "repeat", "reflect_1001", "symmetric", "reflect_101", "reflect"):

    def declare(mode=mode):
        def function():
            return fn.decoders.video(x(), start_frame=9, stride=2, sequence_length=4, pad_mode=mode)

        function.__name__ = f"padded_{mode}"
        case(inputs=clips("vp9.webm"))(function)

    declare()


@case(inputs=VP9)
def reflected_twice():
    return fn.decoders.video(x(), frames=[-3, 13, 40], pad_mode="reflect_1001"), fn.decoders.video(
        x(), frames=[-3, 13, 40], pad_mode="reflect_101"
    )


@case(inputs=VP9 | {"START": [np.int32(i) for i in (0, 5, 11)], "LENGTH": [np.int32(i) for i in (2, 1, 3)]})
def for_each_sample():
    start, length = source("START", dtype=types.INT32, ndim=0), source("LENGTH", dtype=types.INT32, ndim=0)
    return fn.decoders.video(x(), start_frame=start, sequence_length=length)
