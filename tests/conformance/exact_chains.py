"""Compares whole preprocessings, file to floats, with those of torchvision's weights, timm and transformers, installed
and live.

    pip install pillow torch torchvision timm transformers
    python3 tests/conformance/exact_chains.py --files 500

It needs the libraries, numpy and the package `gesso` (or `PYTHONPATH=python` and `GESSO_LIBRARY`). Draws files of all
kinds: JPEGs that are turned by EXIF, gray, of inks, progressive, with chroma of each kind; PNGs with alpha, palettes
and 16 bits; BMP, GIF, TIFF, WebP. Prints for each preprocessing how many files differ in any bit. The status is 1 if
one does."""

import argparse
import importlib
import io
import struct
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageFile, ImageOps

SMALLEST, LARGEST = 20, 700
EXIF_ORIENTATION = 0x112
# Pillow writes small progressive JPEGs of high quality to a buffer that is too small.
ImageFile.MAXBLOCK = 1 << 20


def blurred(rng, height, width, channels):
    """Smooth noise, as photos are smooth; an array of bytes."""
    part = int(rng.integers(2, 16))
    coarse = rng.integers(0, 256, (height // part + 1, width // part + 1, channels), np.uint8)
    planes = [Image.fromarray(coarse[..., c]).resize((width, height), Image.BICUBIC) for c in range(channels)]
    return np.stack([np.asarray(plane) for plane in planes], axis=2)


def png16(values):
    """A PNG of 16 bits of gray, gray with alpha, colours, or colours with alpha: Pillow writes gray only."""
    height, width, channels = values.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = np.concatenate(
        [np.zeros((height, 1), np.uint8), values.astype(">u2").reshape(height, -1).view(np.uint8)], axis=1
    )

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + chunk(b"IEND", b"")
    )


def jpeg(image, rng, **options):
    """What Pillow saves with any quality and chroma."""
    options = {"quality": int(rng.integers(40, 100)), "subsampling": int(rng.integers(3)), **options}
    return saved(image, "JPEG", **options)


def saved(image, kind, **options):
    """The bytes of a file."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def turned(image, rng):
    """A JPEG whose EXIF turns it."""
    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = int(rng.integers(2, 9))
    return jpeg(image, rng, exif=exif)


def wide(rng, pixels):
    """Samples of 16 bits."""
    return pixels.astype(np.uint16) * 257 ^ rng.integers(0, 256, pixels.shape, np.uint16)


KINDS = {
    "jpeg": lambda rng, pixels: jpeg(Image.fromarray(pixels[..., :3]), rng),
    "jpeg-progressive": lambda rng, pixels: jpeg(Image.fromarray(pixels[..., :3]), rng, progressive=True),
    "jpeg-turned": lambda rng, pixels: turned(Image.fromarray(pixels[..., :3]), rng),
    "jpeg-gray": lambda rng, pixels: saved(Image.fromarray(pixels[..., 0]), "JPEG"),
    "jpeg-cmyk": lambda rng, pixels: saved(Image.fromarray(pixels, "CMYK"), "JPEG"),
    "png": lambda rng, pixels: saved(Image.fromarray(pixels[..., :3]), "PNG"),
    "png-alpha": lambda rng, pixels: saved(Image.fromarray(pixels), "PNG"),
    "png-gray-alpha": lambda rng, pixels: saved(Image.fromarray(pixels[..., :2]), "PNG"),
    "png-palette": lambda rng, pixels: saved(
        Image.fromarray(pixels[..., :3]).quantize(int(rng.integers(2, 257))), "PNG", transparency=1
    ),
    "png-gray-16": lambda rng, pixels: png16(wide(rng, pixels[..., :1])),
    "png-16": lambda rng, pixels: png16(wide(rng, pixels[..., : int(rng.integers(2, 5))])),
    "png-black-white": lambda rng, pixels: saved(Image.fromarray(pixels[..., 0]).convert("1"), "PNG"),
    "bmp": lambda rng, pixels: saved(Image.fromarray(pixels[..., :3]), "BMP"),
    "gif": lambda rng, pixels: saved(Image.fromarray(pixels[..., :3]).quantize(256), "GIF"),
    "tiff": lambda rng, pixels: saved(Image.fromarray(pixels[..., :3]), "TIFF", compression="tiff_lzw"),
    "tiff-cmyk": lambda rng, pixels: saved(Image.fromarray(pixels, "CMYK"), "TIFF"),
    "webp": lambda rng, pixels: saved(Image.fromarray(pixels), "WEBP", lossless=bool(rng.integers(2))),
}
# Photos are mostly of these.
COMMON = ("jpeg", "jpeg-progressive", "jpeg-turned")


def draw_files(folder, count, seed=1):
    """Writes files, all kinds in turn, every other one a common one. Returns their paths."""
    paths, kinds = [], list(KINDS)
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        kind = COMMON[number // 2 % len(COMMON)] if number % 2 else kinds[number // 2 % len(kinds)]
        height, width = (int(side) for side in np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST), 2)))
        path = Path(folder) / f"{number:04}-{kind}"
        path.write_bytes(KINDS[kind](rng, blurred(rng, height, width, 4)))
        paths.append(path)
    return paths


@dataclass(frozen=True)
class Chain:
    """What is done with a file."""

    name: str
    #: The library's: a path becomes floats (channels, height, width).
    reference: object
    resize: object
    crop: int
    filter: str
    mean: tuple
    std: tuple
    arithmetic: str = "pillow"
    normalization: str = "torchvision"
    rounding: str = "even"
    is_turned: bool = False


def pillow_arithmetic():
    """That of the Pillow that is here."""
    return "pillow13" if int(importlib.import_module("PIL").__version__.split(".")[0]) >= 13 else "pillow"


def loaded(path):
    """As `ImageFolder` loads."""
    with Image.open(path) as file:
        return file.convert("RGB")


def torchvision_chains():
    """The transforms that come with weights; some of them also of tensors and with EXIF; and those of version 2."""
    models = importlib.import_module("torchvision.models")
    functional = importlib.import_module("torchvision.transforms.v2.functional")
    names = (
        "ResNet50_Weights.IMAGENET1K_V1",
        "ResNet50_Weights.IMAGENET1K_V2",
        "ViT_B_16_Weights.IMAGENET1K_V1",
        "ConvNeXt_Base_Weights.IMAGENET1K_V1",
        "EfficientNet_B0_Weights.IMAGENET1K_V1",
        "EfficientNet_B4_Weights.IMAGENET1K_V1",
        "Swin_T_Weights.IMAGENET1K_V1",
    )

    def chain(name, read, **more):
        preset = models.get_weight(name).transforms()
        (resize,), (crop,) = preset.resize_size, preset.crop_size
        filters = {"bilinear": "linear", "bicubic": "cubic"}
        kept = {"arithmetic": pillow_arithmetic(), **more}
        label = " ".join([name, *(f"{key}={value}" for key, value in more.items())])
        return Chain(
            label,
            lambda path: preset(read(path)).numpy(),
            resize,
            crop,
            filters[preset.interpolation.value],
            tuple(preset.mean),
            tuple(preset.std),
            **kept,
        )

    def tensor(path):
        return functional.pil_to_tensor(loaded(path))

    def upright(path):
        with Image.open(path) as file:
            return ImageOps.exif_transpose(file).convert("RGB")

    made = [chain(name, loaded) for name in names]
    # They turn tensors of bytes into floats to resize them.
    made += [chain(name, tensor, arithmetic="torchvision-float") for name in (names[0], names[4])]
    return [*made, chain(names[0], upright, is_turned=True), of_version_2()]


def of_version_2():
    """The usual evaluation with `torchvision.transforms.v2`, of tensors of bytes."""
    v2, torch = importlib.import_module("torchvision.transforms.v2"), importlib.import_module("torch")
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    steps = [
        v2.PILToTensor(),
        v2.Resize(256, antialias=True),
        v2.CenterCrop(224),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(mean, std),
    ]
    transform = v2.Compose(steps)
    return Chain(
        "torchvision.transforms.v2",
        lambda path: transform(loaded(path)).numpy(),
        256,
        224,
        "linear",
        mean,
        std,
        "torchvision",
        "torchvision-v2",
    )


def timm_chains():
    """Evaluation at other crops and interpolations."""
    create = importlib.import_module("timm.data").create_transform
    constants = importlib.import_module("timm.data.constants")
    settings = (
        (224, 0.875, "bilinear", "center", "IMAGENET_DEFAULT"),
        (224, 0.95, "bicubic", "center", "IMAGENET_INCEPTION"),
        (288, 1.0, "bicubic", "center", "OPENAI_CLIP"),
        (256, 0.9, "lanczos", "center", "IMAGENET_DEFAULT"),
        (224, 0.9, "bicubic", "squash", "IMAGENET_DEFAULT"),
    )

    def chain(size, part, interpolation, mode, statistics):
        mean, std = (getattr(constants, f"{statistics}_{kind}") for kind in ("MEAN", "STD"))
        transform = create(
            size, is_training=False, interpolation=interpolation, mean=mean, std=std, crop_pct=part, crop_mode=mode
        )
        side = int(size / part)
        return Chain(
            f"timm {size} {part} {interpolation} {mode} {statistics}",
            lambda path: transform(loaded(path)).numpy(),
            [side, side] if mode == "squash" else side,
            size,
            {"bilinear": "linear", "bicubic": "cubic"}.get(interpolation, interpolation),
            tuple(mean),
            tuple(std),
            pillow_arithmetic(),
        )

    return [chain(*each) for each in settings]


def transformers_chains():
    """Image processors of CLIP and ViT, those of numpy and those of torch."""

    def chain(module, name, arithmetic, normalization):
        processor = getattr(importlib.import_module(f"transformers.models.{module}"), name)()
        size, crop = processor.size, processor.crop_size if processor.do_center_crop else processor.size

        def reference(path):
            # Of an image that still says which colour is transparent CLIP's would make that one white.
            image = Image.fromarray(np.asarray(loaded(path)))
            return np.asarray(processor(image, return_tensors="np")["pixel_values"][0])

        resize = size["shortest_edge"] if "shortest_edge" in size else [size["height"], size["width"]]
        filters = {Image.BILINEAR: "linear", Image.BICUBIC: "cubic"}
        mean, std = tuple(processor.image_mean), tuple(processor.image_std)
        return Chain(
            name,
            reference,
            resize,
            crop["height"],
            filters[processor.resample],
            mean,
            std,
            arithmetic,
            normalization,
            "truncate",
        )

    return [
        chain("clip.image_processing_pil_clip", "CLIPImageProcessorPil", pillow_arithmetic(), "torchvision"),
        chain("vit.image_processing_pil_vit", "ViTImageProcessorPil", pillow_arithmetic(), "torchvision"),
        chain("clip.image_processing_clip", "CLIPImageProcessor", "torchvision", "transformers-fast"),
        chain("vit.image_processing_vit", "ViTImageProcessor", "torchvision", "transformers-fast"),
    ]


def pipeline(chain):
    """The same for Gesso."""
    from gesso import fn, pipeline_def, types

    size = {"size": chain.resize} if isinstance(chain.resize, list) else {"resize_shorter": chain.resize}

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def definition():
        encoded = fn.external_source(name="FILE", dtype=types.UINT8, ndim=1)
        images = fn.decoders.image(encoded, adjust_orientation=chain.is_turned, arithmetic="pillow")
        images = fn.resize_crop_mirror(
            images,
            crop=[chain.crop] * 2,
            rounding=chain.rounding,
            arithmetic=chain.arithmetic,
            filter=chain.filter,
            **size,
        )
        return fn.crop_mirror_normalize(images, mean=chain.mean, std=chain.std, arithmetic=chain.normalization)

    return definition()


def main():
    """Compares all chains of the libraries that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", metavar="WORD", help="chains with it in their name")
    options = parser.parse_args()
    import gesso

    chains = []
    for library, make in (
        ("torchvision", torchvision_chains),
        ("timm", timm_chains),
        ("transformers", transformers_chains),
    ):
        try:
            chains += make()
        except ImportError as error:
            print(f"{library}: left out, {error}")
    chains = [chain for chain in chains if options.only in chain.name]
    if not chains:
        sys.exit("no library to compare with is installed, or no chain is named so")
    equal = True
    with tempfile.TemporaryDirectory() as folder:
        paths = draw_files(folder, options.files, options.seed)
        for chain in chains:
            start = time.time()
            found = gesso.compare(pipeline(chain), paths, chain.reference)
            differ = [file for file in found.files if file.differing]
            worst = (
                f", by {found.largest:.3g} at most: {sorted({Path(file.path).name[5:] for file in differ})}"
                if differ
                else ""
            )
            print(
                f"{chain.name}: {len(differ)} of {len(paths)} files differ{worst} ({time.time() - start:.0f} s)",
                flush=True,
            )
            equal &= not differ
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()
