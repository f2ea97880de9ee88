"""Steps of stages in front of vision-language and speech models, each with the lines of a program that it becomes
(`write`, given the writer of `source`). Beside `description`, it knows the operators of `fn.gesso`."""

from dataclasses import dataclass

from .code import Code
from .description import CHANNELS, SOUND
from .sizes import Varies


def _resize(writer, size, step):
    """Resizes `images` to a size that operators have worked out."""
    writer.call("images", "resize", "images", size=Code(f"fn.cast({size}, dtype=types.FLOAT)"), **writer.filters(step))


@dataclass(frozen=True)
class SmartResize:
    """Resizes to multiples of a factor, the area within bounds, as Qwen2-VL does."""

    factor: int
    min_pixels: int
    max_pixels: int
    #: As `fn.resize` names them.
    filter: str
    arithmetic: str

    def write(self, writer):
        bounds = {"min_pixels": self.min_pixels, "max_pixels": self.max_pixels}
        writer.call("size", "gesso.smart_resize", "images.shape()", factor=self.factor, **bounds)
        _resize(writer, "size", self)


@dataclass(frozen=True)
class MergedPatches:
    """Cuts the image into patches, a row each, in the order of Qwen2-VL; further output: the grid."""

    side: int
    depth: int
    merge: int

    def dims(self, layout):
        return (-1, CHANNELS * self.depth * self.side**2)

    def write(self, writer):
        patch = {"patch_size": self.side, "temporal_patch_size": self.depth}
        writer.call("image_grid_thw", "gesso.patch_grid", "size", **patch)
        writer.call("pixels", "gesso.patchify", "pixels", **patch, merge_size=self.merge)


@dataclass(frozen=True)
class WholePatches(Varies):
    """Pixtral's size: within a height and a width, then up to whole patches."""

    height: int
    width: int
    patch_height: int
    patch_width: int

    def lines(self):
        sides = (("height", self.patch_height), ("width", self.patch_width))
        return [
            f"ratio = math.max(math.max(height / {self.height}, width / {self.width}), 1)",
            *(f"new_{side} = (math.floor((math.floor({side} / ratio) - 1) / {of}) + 1) * {of}" for side, of in sides),
        ]


@dataclass(frozen=True)
class MeasureSize:
    """Further output: the image's height and width as they are here."""

    def write(self, writer):
        writer.measure("image_sizes")


class _MakesTiles:
    """Makes a sequence of tiles, from where on steps are for all of them."""

    makes_frames = True
    side: int

    def dims(self, layout):
        side = self.side
        return (-1, CHANNELS, side, side) if layout == "CHW" else (-1, side, side, CHANNELS)

    def overview(self, writer):
        writer.call("overview", "resize", "images", size=[self.side, self.side], **writer.filters(self))


@dataclass(frozen=True)
class CanvasTiles(_MakesTiles):
    """Cuts the image into tiles as LLaVA-NeXT does: on the canvas that keeps most of it; the whole image comes first.
    Further output: the image's own size."""

    side: int
    canvases: tuple
    filter: str
    arithmetic: str

    def write(self, writer):
        writer.measure("image_sizes")
        self.overview(writer)
        sides = [side for canvas in self.canvases for side in canvas]
        rule = {"rule": "llava-next", "tile_size": self.side, "canvases": sides}
        writer.call("content, canvas, grid", "gesso.tile_grid", "images.shape()", **rule)
        _resize(writer, "content", self)
        writer.line("height, width = (fn.cast(canvas[axis], dtype=types.FLOAT) for axis in range(2))")
        window = {"crop_h": Code("height"), "crop_w": Code("width"), "rounding": "truncate"}
        writer.call("images", "crop", "images", **window, out_of_bounds_policy="pad")
        writer.call("images", "gesso.tile", "images", "overview", tile_size=self.side, overview="first")


@dataclass(frozen=True)
class RatioTiles(_MakesTiles):
    """Cuts the image into tiles as InternVL does: in the ratio next to its own; the whole image comes last, where there
    are several. Further output: the number of tiles."""

    side: int
    min_tiles: int
    max_tiles: int
    filter: str
    arithmetic: str

    def write(self, writer):
        self.overview(writer)
        bounds = {"min_tiles": self.min_tiles, "max_tiles": self.max_tiles}
        rule = {"rule": "internvl", "tile_size": self.side, **bounds}
        writer.call("content, canvas, grid", "gesso.tile_grid", "images.shape()", **rule)
        _resize(writer, "content", self)
        writer.call("images", "gesso.tile", "images", "overview", tile_size=self.side, overview="last-of-several")
        writer.call("num_patches", "cast", "images.shape()[0]", dtype=Code("types.INT64"))


@dataclass(frozen=True)
class DecodeSound:
    """Makes samples of one channel of a sound's file."""

    sample_rate: int

    #: The name of the input.
    input = SOUND

    def write(self, writer):
        writer.call("encoded", "external_source", name=self.input, dtype=Code("types.UINT8"), ndim=1)
        options = {"sample_rate": self.sample_rate, "downmix": True, "dtype": Code("types.FLOAT")}
        writer.call("pixels, _", "decoders.audio", "encoded", **options)
        writer.pixels = "pixels"


@dataclass(frozen=True)
class LogMel:
    """Makes Whisper's features."""

    bands: int
    length: int
    step: int
    sample_rate: int
    samples: int

    type = "float32"

    def dims(self, layout):
        return (self.bands, self.samples // self.step)

    def write(self, writer):
        transform = {"nfilter": self.bands, "nfft": self.length, "window_step": self.step}
        rate = {"sample_rate": self.sample_rate, "samples": self.samples}
        writer.call("pixels", "gesso.log_mel", "pixels", **transform, **rate)


@dataclass(frozen=True)
class UnitVariance:
    """Makes the mean 0 and the variance 1, as wav2vec 2.0 has it."""

    type = "float32"

    def dims(self, layout):
        return (-1,)

    def write(self, writer):
        writer.call("pixels", "gesso.unit_variance", "pixels")
