"""Rules for the size of a resized image. Each is written as lines of a pipeline that compute it in float64, in the
order in which its library does, so that it is the same number in every case."""

from dataclasses import dataclass

# What lines may call; `source` writes those that are called.
HELPERS = {
    "whole": '''def whole(value):
    """The nearest whole number, halves to even, as Python's `round`."""
    nearest = math.floor(value + 0.5)
    return nearest - (nearest - value == 0.5) * (nearest - 2 * math.floor(nearest / 2))
''',
    "checked": '''def checked(side):
    """A side without any pixel fails: here 0 would be a side that is left out."""
    return side / (side > 0)
''',
    "bfloat16": '''def bfloat16(values):
    """The nearest numbers that bfloat16 has, halves to even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return (bits + (bits >> 16 & 1) + 0x7FFF & 0xFFFF0000).view(np.float32)
''',
    "exact": '''def exact(value, like):
    """A number as float64: constants of a pipeline are float32, so it is a sum of such."""
    total = like * 0
    for _ in range(3):
        part = float(np.float32(value))
        total, value = total + part, value - part
    return total
''',
}


@dataclass(frozen=True)
class Exact:
    """A height and a width."""

    height: int
    width: int

    @property
    def static(self):
        """Height and width, where they are the same for all images."""
        return self.height, self.width

    @property
    def bound(self):
        """The largest height and width, where there is one."""
        return self.static

    def covers(self, height, width):
        """Whether a window of that size always fits."""
        return self.height >= height and self.width >= width


class Varies:
    """A size that depends on the image's."""

    static = None

    @property
    def bound(self):
        """The largest height and width; None: there is none."""
        return None

    def covers(self, height, width):
        return False


@dataclass(frozen=True)
class Shorter(Varies):
    """torchvision's `Resize(side, max_size=longest)`: a shorter side, the longer one cut to a whole number."""

    side: int
    longest: int = None

    def covers(self, height, width):
        return self.longest is None and self.side >= max(height, width)


@dataclass(frozen=True)
class Bounded(Varies):
    """transformers' `get_size_with_aspect_ratio`: a shorter side, a smaller one where the longer side would be more
    than `longest`."""

    shortest: int
    longest: int
    #: Both sides become multiples of it: "down" as YOLOS, "up" as Mask2Former.
    multiple: int = None
    multiple_rounding: str = "down"
    #: Whether an upright image whose shorter side is right keeps its size.
    keeps_upright: bool = True

    @property
    def bound(self):
        if self.shortest > self.longest:
            return None
        side = self.longest if not self.multiple else -(-self.longest // self.multiple) * self.multiple
        return side, side

    def lines(self):
        keeps = "shorter == side" if self.keeps_upright else "(shorter == side) & is_wide"
        lines = [
            "shorter, longer = math.min(height, width), math.max(height, width)",
            f"is_too_long = longer / shorter * {self.shortest} > {self.longest}",
            f"wanted = is_too_long * ({self.longest} * shorter / longer) + (is_too_long == 0) * {self.shortest}",
            "side = whole(wanted)",
            "is_wide = height <= width",
            f"keeps = {keeps}",
            "other = keeps * longer + (keeps == 0) * math.floor(wanted * longer / shorter)",
            "new_height = is_wide * side + (is_wide == 0) * other",
            "new_width = is_wide * other + (is_wide == 0) * side",
        ]
        if self.multiple:
            function = {"down": "math.floor", "up": "math.ceil"}[self.multiple_rounding]
            lines += [
                f"new_{side} = {function}(new_{side} / {self.multiple}) * {self.multiple}"
                for side in ("height", "width")
            ]
        return lines


@dataclass(frozen=True)
class Longest(Varies):
    """SAM's: a longer side; halves are rounded up."""

    side: int

    @property
    def bound(self):
        return self.side, self.side

    def lines(self):
        return [
            f"scale = {self.side} / math.max(height, width)",
            "new_height = math.floor(height * scale + 0.5)",
            "new_width = math.floor(width * scale + 0.5)",
        ]


@dataclass(frozen=True)
class Within(Varies):
    """The largest size within a height and a width; fractions are cut ("floor", transformers) or rounded ("even",
    Ultralytics)."""

    height: int
    width: int
    rounding: str

    @property
    def bound(self):
        return self.height, self.width

    def lines(self):
        scale = [f"scale = math.min({self.height} / height, {self.width} / width)"]
        if self.rounding == "floor":
            return [*scale, "new_height = math.floor(height * scale)", "new_width = math.floor(width * scale)"]
        return [
            *scale,
            "new_height = math.max(whole(height * scale), 1)",
            "new_width = math.max(whole(width * scale), 1)",
        ]


@dataclass(frozen=True)
class KeepRatio(Varies):
    """timm's `ResizeKeepRatio`: the smallest size that covers a height and a width, or the largest within them."""

    height: int
    width: int
    is_within: bool

    def lines(self):
        choice = "max" if self.is_within else "min"
        return [
            f"ratio = math.{choice}(height / {self.height}, width / {self.width})",
            "new_height = whole(height / ratio)",
            "new_width = whole(width / ratio)",
        ]


# transformers halves from 100 down to less than 1e-5: this often, whatever the image.
_HALVINGS = 24


@dataclass(frozen=True)
class Patches(Varies):
    """SigLIP 2's: sides of whole patches, the largest scale that has at most so many, found by halving as transformers
    finds it."""

    side: int
    most: int

    def lines(self):
        whole = [
            f"new_{side} = math.max(math.ceil({side} * {{}} / {self.side}) * {self.side}, {self.side})"
            for side in ("height", "width")
        ]
        return [
            f"smallest, largest = exact({1e-5 / 10!r}, height), exact(100.0, height)",
            f"for _ in range({_HALVINGS}):",
            "    scale = (smallest + largest) / 2",
            *(f"    {line.format('scale')}" for line in whole),
            f"    fits = (new_height / {self.side}) * (new_width / {self.side}) <= {self.most}",
            "    smallest, largest = fits * scale + (fits == 0) * smallest, fits * largest + (fits == 0) * scale",
            *(line.format("smallest") for line in whole),
        ]
