"""Steps of stages in front of vision-language and speech models, each with the lines of a program that it becomes
(`write`, given the writer of `source`). Beside `description`, it knows the operators of `fn.gesso`."""

from dataclasses import dataclass

from .code import Code
from .description import CHANNELS, SOUND, VIDEO
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
    """Cuts an image or a clip into patches, a row each, in the order of Qwen2-VL; further output: the grid."""

    side: int
    depth: int
    merge: int
    #: The name of the grid.
    grid: str = "image_grid_thw"
    #: Of a clip, the name of what says how many frames it has.
    frames: str | None = None

    def dims(self, layout):
        return (-1, CHANNELS * self.depth * self.side**2)

    def write(self, writer):
        patch = {"patch_size": self.side, "temporal_patch_size": self.depth}
        counted = {} if self.frames is None else {"frames": Code(self.frames)}
        writer.call(self.grid, "gesso.patch_grid", "size", **patch, **counted)
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

    def overview(self, writer, target="overview"):
        """The whole image as a tile."""
        writer.call(target, "resize", "images", size=[self.side, self.side], **writer.filters(self))


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
class LongestSideTiles(_MakesTiles):
    """Cuts the image into tiles as Idefics 3 does: it gets a longest side, then sides of whole tiles; the whole image
    comes last, where there are several. Further outputs: the mask, and rows and columns of tiles."""

    side: int
    longest: int
    is_cut: bool
    has_mask: bool
    has_grid: bool
    filter: str
    arithmetic: str

    @property
    def extras(self):
        return {"pixel_attention_mask": ("int64", (-1, self.side, self.side))}

    def write(self, writer):
        rule = {"rule": "idefics3", "tile_size": self.side, "longest_side": self.longest}
        writer.call("content, canvas, grid", "gesso.tile_grid", "images.shape()", **rule)
        _resize(writer, "content", self)
        if self.is_cut:
            _resize(writer, "canvas", self)
            self.overview(writer)
            writer.call("images", "gesso.tile", "images", "overview", tile_size=self.side, overview="last-of-several")
        else:
            self.overview(writer, "images")
            writer.call("images", "gesso.tile", "images", tile_size=self.side)
        if self.has_mask:
            ones = "images[:, :, :, 0] * 0 + 1"
            writer.call("pixel_attention_mask", "cast", ones, dtype=Code("types.INT64"))
        if self.has_grid:
            writer.line(f"is_cut = {'grid[0] * grid[1] > 1' if self.is_cut else 'grid[0] < 0'}")
            for axis, name in enumerate(("rows", "cols")):
                writer.call(name, "cast", f"grid[{axis}:{axis + 1}] * is_cut", dtype=Code("types.INT64"))


@dataclass(frozen=True)
class LeastScaledTiles(_MakesTiles):
    """Cuts the image into tiles as Llama 4 does: on the canvas for which it is scaled least, with zeros below and at
    the right; the whole image comes last, where there are several. Further output: rows and columns of tiles."""

    side: int
    max_tiles: int
    fills_canvas: bool
    filter: str
    arithmetic: str

    def write(self, writer):
        self.overview(writer)
        fills = True if self.fills_canvas else None
        rule = {"rule": "llama4", "tile_size": self.side, "max_tiles": self.max_tiles, "fills_canvas": fills}
        writer.call("content, canvas, grid", "gesso.tile_grid", "images.shape()", **rule)
        _resize(writer, "content", self)
        writer.call("images", "pad", "images", axes=[0, 1], shape=Code("fn.cast(canvas, dtype=types.INT32)"))
        writer.call("images", "gesso.tile", "images", "overview", tile_size=self.side, overview="last-of-several")
        writer.call("aspect_ratios", "copy", "grid")


@dataclass(frozen=True)
class SliceStrip:
    """Makes a strip of patches of the image and of its slices as MiniCPM-V does: rows of patches, one beside the other.
    Further outputs: patches along the sides of each part, rows and columns of slices, the number of parts."""

    side: int
    patch: int
    factor: int
    max_slices: int
    filter: str
    arithmetic: str

    def dims(self, layout):
        return (CHANNELS, self.patch, -1) if layout == "CHW" else (self.patch, -1, CHANNELS)

    def write(self, writer):
        rule = {"rule": "minicpm-v", "tile_size": self.side, "factor": self.factor, "max_tiles": self.max_slices}
        writer.call("content, canvas, grid", "gesso.tile_grid", "images.shape()", **rule)
        for target, size in (("whole", "content"), ("images", "canvas")):
            size = Code(f"fn.cast({size}, dtype=types.FLOAT)")
            writer.call(target, "resize", "images", size=size, **writer.filters(self))
        patch = self.patch
        writer.line("count = grid[0] * grid[1]")
        writer.line("down, across = math.max(grid[0], 1), math.max(grid[1], 1)")
        writer.line(f"rows, columns = content[0] // {patch}, content[1] // {patch}")
        writer.line(f"high, wide = canvas[0] // down // {patch}, canvas[1] // across // {patch}")
        # Rows of patches lie one beside the other: of the whole image, and of each slice of what is cut.
        for target, parts, order in (
            ("whole", f"rows, {patch}, content[1], {CHANNELS}", [1, 0, 2, 3]),
            ("images", f"down, high, {patch}, across, wide * {patch}, {CHANNELS}", [2, 0, 3, 1, 4, 5]),
        ):
            writer.line(f"parts = [grid[0] * 0 + part for part in ({parts})]")
            writer.call(target, "reshape", target, shape=Code("fn.cast(fn.stack(*parts), dtype=types.INT32)"))
            writer.call(target, "transpose", target, perm=order, transpose_layout=False)
            writer.call(target, "reshape", target, shape=[patch, -1, CHANNELS], layout="HWC")
        writer.line("width = fn.cast((count > 0) * images.shape()[1], dtype=types.INT32)")
        writer.call("images", "slice", "images", start=[0], shape=Code("fn.stack(width)"), axes=[1])
        writer.call("images", "cat", "whole", "images", axis=1)
        self._write_extras(writer)

    def _write_extras(self, writer):
        writer.line(f"ones = fn.constant(idata=[1] * {self.max_slices}, shape=[{self.max_slices}])")
        slices = {"start": [0], "shape": Code("fn.stack(fn.cast(count, dtype=types.INT32))"), "axes": [0]}
        writer.call("ones", "slice", "ones", **slices)
        writer.line("slices = fn.stack(ones * high, ones * wide, axis=1)")
        writer.line("sizes = fn.cat(fn.reshape(fn.stack(rows, columns), shape=[1, 2]), slices, axis=0)")
        writer.call("target_sizes", "cast", "sizes", dtype=Code("types.INT32"))
        writer.call("grids", "copy", "grid")
        writer.call("num_patches_per_image", "cast", "count + 1", dtype=Code("types.INT64"))


@dataclass(frozen=True)
class DecodeVideo:
    """Makes frames of a video's file. Further output: when each is shown."""

    #: As `fn.gesso.sample_frames` names it.
    rule: str
    fps: float = None
    num_frames: int = None
    min_frames: int = None
    max_frames: int = None
    depth: int = None

    #: The name of the input.
    input = VIDEO
    makes_frames = True

    def write(self, writer):
        writer.call("encoded", "external_source", name=self.input, dtype=Code("types.UINT8"), ndim=1)
        writer.call("extents, rate", "gesso.peek_video", "encoded")
        asked = {"fps": self.fps, "num_frames": self.num_frames}
        if self.fps is not None:
            asked |= {"min_frames": self.min_frames, "max_frames": self.max_frames}
        asked |= {"temporal_patch_size": self.depth}
        writer.call("frames, times", "gesso.sample_frames", "extents", "rate", rule=self.rule, **asked)
        device = None if writer.stage.device == "cpu" else writer.stage.device
        writer.call("images", "decoders.video", "encoded", device=device, frames=Code("frames"))
        writer.call("timestamps", "copy", "times")


@dataclass(frozen=True)
class ClipResize:
    """Resizes frames to multiples of a factor, the area of each, or of all together, within bounds."""

    factor: int
    min_pixels: int
    max_pixels: int
    depth: int
    #: Whether the areas of all frames count together.
    is_of_all: bool
    #: Tokens that bound the area of a frame, or none.
    tokens: int
    filter: str
    arithmetic: str

    def write(self, writer):
        least, most, square = int(self.min_pixels * 1.05), self.max_pixels, self.factor**2
        writer.line("extents = images.shape()")
        writer.line("count = extents[0]")
        if self.tokens is not None:
            if self.is_of_all:
                share = f"math.min({most} // count, {self.tokens * square})"
                writer.line(f"most = math.max({share}, {least}) * count")
            else:
                total = int(self.tokens * square * 0.9) * self.depth
                writer.line(f"most = math.max(math.min({total} // count, {most}), {least})")
            most = Code("most")
        bounds = {"factor": self.factor, "min_pixels": self.min_pixels, "max_pixels": most}
        if self.is_of_all:
            bounds |= {"frames": Code("count"), "temporal_patch_size": self.depth}
        writer.call("size", "gesso.smart_resize", "extents[1:3]", **bounds)
        _resize(writer, "size", self)


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


@dataclass(frozen=True)
class SeamlessFeatures:
    """Makes SeamlessM4T's features; further output: the mask."""

    bands: int
    sample_rate: int
    stride: int

    type = "float32"
    #: Samples of the shortest sound that has features.
    shortest = 560

    def dims(self, layout):
        return (-1, self.bands * self.stride)

    def write(self, writer):
        options = {"nfilter": self.bands, "sample_rate": self.sample_rate, "stride": self.stride}
        writer.call("features, mask", "gesso.seamless_features", "pixels", **options)
        writer.call("pixels", "copy", "features")
        writer.call("attention_mask", "copy", "mask")
