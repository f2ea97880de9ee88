"""`fn.experimental.readers.video`, the older `fn.readers.video`, and that with a resize behind it: sequences of frames.
The library reads them, the order is decided here."""

from .. import ops
from .._authoring import schema as _schema
from .library import OfLibrary, Samples
from .source import schema

_OWN = {
    "sequence_length": ("INT32", None),
    "filenames": ("_STRING_VEC", None),
    "file_root": ("STRING", None),
    "file_list": ("STRING", None),
    "labels": ("_INT32_VEC", None),
    "step": ("INT32", -1),
    "stride": ("INT32", 1),
    "enable_frame_num": ("STRING", "none"),
    "enable_timestamps": ("BOOL", False),
    "image_type": ("IMAGE_TYPE", 0),
}
_NEWER = {
    **_OWN,
    "file_list_format": ("STRING", "timestamps"),
    "file_list_rounding": ("STRING", "start_down_end_up"),
    "file_list_include_end": ("BOOL", True),
    "pad_mode": ("STRING", "none"),
    "fill_value": ("_INT32_VEC", [0]),
    "uniform_sample": ("BOOL", False),
}
_OLDER = {
    **_OWN,
    "file_list_frame_num": ("BOOL", False),
    "file_list_include_preceding_frame": ("BOOL", False),
    "pad_sequences": ("BOOL", False),
    "dtype": ("DATA_TYPE", 0),
    "normalized": ("BOOL", False),
    "channels": ("INT32", 3),
    "additional_decode_surfaces": ("INT32", 2),
    "skip_vfr_check": ("BOOL", False),
}


class _Sequences(Samples):
    def name(self, index):
        """What a sample is called."""
        return f"sequence {index}"

    def read(self, index, fed=None):
        arrays, _ = super().read(index, fed)
        return arrays, self.name(index)


class Video(OfLibrary):
    """Reads sequences of frames of video files: `[frames, height, width, 3]`, and labels, numbers of frames and times
    as they are asked for."""

    schema_name = "experimental__readers__Video"
    schema = named_schema = schema(
        schema_name, "Reads sequences of frames of videos.", _NEWER, required=("sequence_length",), outputs=1
    )

    def __init__(self, *, enable_frame_num=None, **keywords):
        if enable_frame_num is not None:
            # DALI takes truth values, too.
            keywords["enable_frame_num"] = str(enable_frame_num)
        super().__init__(**keywords)

    def known_layouts(self):
        """That of the frames."""
        return ["FHWC"]

    def begin(self, node):
        """Finds the sequences."""
        return _Sequences(node)


class OlderVideo(Video):
    """As `experimental.readers.video`, with the arguments of DALI's older reader."""

    schema_name = "readers__Video"
    schema = named_schema = schema(
        schema_name, "Reads sequences of frames of videos.", _OLDER, required=("sequence_length",), outputs=1
    )


# Arguments of `resize` that the reader has itself, or has no place for.
_NOT_RESIZED = {"dtype", "image_type", "save_attrs", "preserve", "seed", "bytes_per_sample_hint"}


def _resized():
    """The schema of `readers.video_resize`: the reader's arguments, and those of `resize`."""
    made = schema(
        "readers__VideoResize",
        "Reads sequences of frames of videos, resized as by `resize`.",
        _OLDER,
        required=("sequence_length",),
        outputs=1,
    )
    of_resize = _schema.find("Resize").arguments
    made.arguments.update(
        {name: argument for name, argument in of_resize.items() if name not in _NOT_RESIZED | made.arguments.keys()}
    )
    return made


class VideoResize(OlderVideo):
    """As `readers.video` with a `resize` behind it, whose arguments it takes along with its own. It is these two
    operators, also in files."""

    schema_name = "readers__VideoResize"
    schema = named_schema = _resized()

    def __init__(self, *, device="cpu", **keywords):
        resizing, reading = self.divided(keywords)
        shown = {name: reading[name] for name in ("_module", "_display_name") if name in reading}
        self._reader, self._resize = (
            OlderVideo(device=device, **reading),
            ops.Resize(device=device, **resizing, **shown),
        )

    def __call__(self, *inputs, **keywords):
        resizing, reading = self.divided(keywords)
        outputs = self._reader(*inputs, **reading)
        frames, *rest = outputs if isinstance(outputs, list) else [outputs]
        resized = self._resize(frames, **resizing)
        return [resized, *rest] if rest else resized

    @staticmethod
    def divided(keywords):
        """The arguments of `resize`, and the others."""
        of_resize = _schema.find("Resize").arguments.keys() - _NOT_RESIZED
        resizing = {name: value for name, value in keywords.items() if name in of_resize}
        return resizing, {name: value for name, value in keywords.items() if name not in resizing}
