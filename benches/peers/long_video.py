"""A long video through `inputs.video`: when the first batch comes, how fast the others follow, and the most memory that
is taken meanwhile, of the host and of the GPU. `video.py --minutes` runs it."""

import contextlib
import importlib
import io
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "lib"), str(ROOT / "tests" / "server")]
LENGTH, SIDE, BATCH, RATE = 16, 224, 1, 25
# Between two looks at the memory.
PAUSE = 0.05


def repeated(file, minutes):
    """An MP4 whose packets are those of a short one over and over; and how many frames it has."""
    import av

    out = io.BytesIO()
    with av.open(io.BytesIO(file.tobytes())) as short, av.open(out, "w", format="mp4") as made:
        source = short.streams.video[0]
        stream = made.add_stream_from_template(source)
        packets = [
            (bytes(packet), packet.pts, packet.dts, packet.is_keyframe) for packet in short.demux(source) if packet.size
        ]
        step = round(1 / RATE / source.time_base)
        times = -(-minutes * 60 * RATE // len(packets))
        for i in range(times * len(packets)):
            data, pts, dts, is_key = packets[i % len(packets)]
            later = i // len(packets) * len(packets) * step
            packet = av.Packet(data)
            packet.pts, packet.dts, packet.time_base, packet.is_keyframe, packet.stream = (
                pts + later,
                dts + later,
                source.time_base,
                is_key,
                stream,
            )
            made.mux(packet)
    return np.frombuffer(out.getvalue(), np.uint8), times * len(packets)


class Watch:
    """The most that two measures have been above what they were at first: bytes of a process on the host, and of all on
    the GPU."""

    def __init__(self, resident, gpu):
        self._measures = [resident]
        if gpu:
            from cuda_driver import Driver

            self._driver = Driver()
            self._measures.append(self._driver.used_bytes)
        self._first = [measure() for measure in self._measures]
        self.most = list(self._first)
        self._ended, self._thread = threading.Event(), threading.Thread(target=self._look)

    def _look(self):
        if len(self._measures) > 1:
            self._driver.make_current()
        while not self._ended.wait(PAUSE):
            self.most = [max(most, measure()) for most, measure in zip(self.most, self._measures)]

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def __str__(self):
        names = ("of the host", "of the GPU")
        return ", ".join(
            f"{(most - first) / 2**20:.0f} MiB {name}" for most, first, name in zip(self.most, self._first, names)
        )


def _resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _define(package, gpu):
    module = importlib.import_module(package)
    settings = {"prefetch_queue_depth": 1, "exec_async": False, "exec_pipelined": False}
    pipe = module.Pipeline(BATCH, 4, 0 if gpu else None, **settings)
    with pipe:
        video = module.fn.experimental.inputs.video(
            name="VIDEO", sequence_length=LENGTH, device="mixed" if gpu else "cpu"
        )
        pipe.set_outputs(module.fn.resize(video, size=[SIDE, SIDE]))
    return pipe


def in_process(pipe, file):
    """Batches of a pipeline that was built: the number of frames of each."""
    pipe.feed_input("VIDEO", [file])
    while True:
        try:
            (out,) = pipe.run()
        except RuntimeError as error:
            if "No data was provided" in str(error):
                return
            raise
        yield sum(shape[0] for shape in out.shape())


def _through_server(server, model, given):
    """Batches of a model of the server: the number of frames of each."""
    from test_video_stream import Answers

    with Answers(server, model, {"VIDEO": given}) as answers:
        goes_on = True
        while goes_on:
            goes_on = answers.next()
            for result in answers.results:
                yield int(np.prod(result.get_response().outputs[0].shape[:2]))
            answers.results.clear()
        if answers.error is not None:
            raise RuntimeError(str(answers.error))


@contextlib.contextmanager
def _server(gpu, files):
    """A server with a model that is sent videos, and one that is sent the names of these `files`."""
    from harness import Server
    from recorded import write_model

    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as named:
        for name, file in files.items():
            (Path(named) / name).write_bytes(file)
        kind = "KIND_GPU" if gpu else "KIND_CPU"
        config = f'backend: "gesso"\ninstance_group [{{ kind: {kind} count: 1 }}]\n'
        serialized = _define("gesso", gpu).serialize()
        write_model(Path(folder), "video", serialized, config)
        write_model(
            Path(folder),
            "named",
            serialized,
            config + f'parameters {{ key: "files.VIDEO" value {{ string_value: "{named}" }} }}\n',
        )
        # Without it the server keeps every response until the last one; servers before 2025 do not know it.
        with _started(Server, folder, ["--grpc-max-response-pool-size=4"]) as server:
            yield server


@contextlib.contextmanager
def _started(server, folder, arguments):
    try:
        running = server(Path(folder), arguments=arguments).__enter__()
    except RuntimeError as error:
        print(f"without {' '.join(arguments)}: {str(error).splitlines()[0]}", file=sys.stderr)
        running = server(Path(folder)).__enter__()
    try:
        yield running
    finally:
        running.__exit__(None, None, None)


def _report(name, batches, resident, gpu, warm):
    """Takes all batches; `warm` has the same of a short video."""
    for _ in warm:
        pass
    with Watch(resident, gpu) as watch:
        begun, first, frames = time.perf_counter(), None, 0
        for count in batches:
            first = first or time.perf_counter() - begun
            frames += count
        took = time.perf_counter() - begun
    print(
        f"{name:<8} first batch after {first * 1000:.0f} ms; {frames} frames in {took:.1f} s, {frames / took:.0f} frames/s; at most {watch} more",
        flush=True,
    )


def measure(short, long, gpu, with_server):
    """Prints a line for each way: Gesso and DALI in this process, Gesso in Triton."""
    for name, package in (("Gesso", "gesso"), ("DALI", "nvidia.dali")):
        try:
            pipe = _define(package, gpu)
            pipe.build()
            _report(name, in_process(pipe, long), _resident, gpu, in_process(pipe, short))
        except (ImportError, RuntimeError, TypeError) as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
    if with_server:
        with _server(gpu, {"short.mp4": short, "long.mp4": long}) as server:
            for name, model, given in (
                ("Triton", "video", [file[None] for file in (short, long)]),
                ("by name", "named", [np.array([name], np.object_) for name in (b"short.mp4", b"long.mp4")]),
            ):
                warm, measured = (_through_server(server, model, one) for one in given)
                _report(name, measured, lambda: server.rss, gpu, warm)
