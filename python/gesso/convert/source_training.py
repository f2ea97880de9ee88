"""Writes the steps that only training has: a part of the writer of `source`."""

from typing import Any

from . import description as steps
from .code import Block, Call, Code, literal


class TrainingSteps:
    """What `source` writes where there is a data set."""

    # What the writer has.
    call: Any
    line: Any
    decode_images: Any
    filters: Any
    write_steps: Any
    is_dali: bool
    layout: str
    pixels: str
    body: list

    #: Whether something is done for some images only.
    has_conditions = False

    @property
    def training_handlers(self):
        """The methods of steps."""
        return {
            steps.ReadFolder: self.read_folder,
            steps.RandomResizedCrop: self.random_resized_crop,
            steps.RandomCrop: self.random_crop,
            steps.RandomFlip: self.random_flip,
            steps.Grayscale: self.grayscale,
            steps.Augment: self.augment,
            steps.Sometimes: self.sometimes,
            steps.OneOf: self.one_of,
            steps.Erase: self.erase,
            steps.Mix: self.mix,
        }

    def read_folder(self, step):
        self.call(
            "encoded, labels",
            "readers.file",
            file_root=step.path,
            random_shuffle=True,
            pad_last_batch=True,
            name="reader",
        )
        self.decode_images(False)

    def random_resized_crop(self, step):
        window = {"size": [step.height, step.width], "random_area": step.area, "random_aspect_ratio": step.ratio}
        self.call("images", "random_resized_crop", "images", **window, **self.filters(step))

    def random_crop(self, step):
        self.line("shape = images.shape()")
        for number, (name, side) in enumerate((("top", step.height), ("left", step.width))):
            self.line(f"{name} = math.floor(fn.random.uniform(range=[0, 1]) * (shape[{number}] - {side - 1}))")
        start = Code("fn.cast(fn.stack(top, left), dtype=types.INT32)")
        self.call("images", "slice", "images", start=start, shape=[step.height, step.width], axes=[0, 1])

    def random_flip(self, step):
        chosen = Code(f"fn.random.coin_flip(probability={step.probability!r})")
        self.call(
            "images",
            "flip",
            "images",
            horizontal=0 if step.is_vertical else chosen,
            vertical=chosen if step.is_vertical else None,
        )

    def grayscale(self, step):
        self.line("red, green, blue = (fn.cast(images[:, :, channel], dtype=types.INT32) for channel in range(3))")
        self.line("gray = fn.cast((red * 19595 + green * 38470 + blue * 7471 + 32768) // 65536, dtype=types.UINT8)")
        self.call("gray", "stack", "gray", "gray", "gray", axis=2, axis_name="C")
        if step.probability == 1:
            self.line("images = gray")
        else:
            self.line(f"is_gray = fn.random.coin_flip(probability={step.probability!r}, dtype=types.UINT8)")
            self.line("images = is_gray * gray + (is_gray == 0) * images")

    def augment(self, step):
        if self.is_dali:
            raise steps.ConversionError(f"`exact_augment.{step.function}`: DALI does not have what it is made of")
        given = [literal(each) if isinstance(each, str) else each for each in step.given]
        self.body.append(Call("images", f"exact_augment.{step.function}", ["images", *given], dict(step.options)))

    def block(self, head, inner):
        """Steps below a condition."""
        block, outer, self.has_conditions = Block(head), self.body, True
        self.body = block.body
        self.write_steps(inner)
        if not self.body:
            self.line("images = images")
        self.body = outer
        self.body.append(block)

    def sometimes(self, step):
        self.block(f"if fn.random.coin_flip(probability={step.probability!r}, dtype=types.BOOL):", step.steps)

    def one_of(self, step):
        count, chances = len(step.branches), list(step.probabilities)
        self.line(f"branch = fn.random.choice({count}, p={chances!r})")
        for number, branch in enumerate(step.branches):
            last = number == count - 1
            head = "else:" if last and number else f"{'elif' if number else 'if'} branch == {number}:"
            self.block(head, branch)

    def erase(self, step):
        value = step.value if isinstance(step.value, str) else list(step.value)
        axes = (0, 1) if self.pixels == "images" or self.layout == "HWC" else (1, 2)
        arguments = {"p": step.probability, "scale": step.area, "ratio": step.ratio, "value": value}
        arguments["axes"] = Code(axes) if axes != (0, 1) else None
        self.body.append(Call(self.pixels, "augment.random_erasing", [self.pixels], arguments))

    def mix(self, step):
        ways = [(name, alpha) for name, alpha in step.ways]
        axes = (0, 1) if self.layout == "HWC" else (1, 2)
        arguments = {"num_classes": step.classes, "axes": Code(axes) if axes != (0, 1) else None}
        if len(ways) == 1:
            (name, alpha) = ways[0]
            if name == "mixup":
                del arguments["axes"]
            self.body.append(
                Call("pixels, labels", f"augment.{name}", ["pixels", "labels"], {"alpha": alpha} | arguments)
            )
        else:
            self.body.append(Call("pixels, labels", "augment.mixed", ["pixels", "labels", ways], arguments))
