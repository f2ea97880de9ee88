"""Compares stages that `gesso from` makes with the libraries that define them: a row for each class and setting, all
photos, every bit.

    pip install pillow torch torchvision timm transformers ultralytics open_clip_torch
    python3 tests/conformance/converted.py                     in this process
    python3 tests/conformance/converted.py --served            by a real tritonserver, which tests/server/harness.py
                                                               starts

It needs the package `gesso` (or `PYTHONPATH=python` and `GESSO_LIBRARY`); `--served` also `GESSO_PLUGIN`, tritonclient
and nvidia-pytriton. Rows of libraries that are not installed are left out, and their number is printed. The status is 1
if a row differs."""

import argparse
import importlib.metadata
import importlib.util
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


@dataclass(frozen=True)
class Row:
    """A definition, and how it is converted."""

    library: str
    name: str
    #: A function of `gesso.convert`, and what it is given.
    function: str
    given: tuple
    options: tuple = ()

    def make(self, device="cpu"):
        """The converted pipeline."""
        from gesso import convert

        given = self.given[0]() if callable(self.given[0]) else self.given[0]
        return getattr(convert, self.function)(
            given,
            batch_size=8,
            **dict(self.options),
            **({"device": device} if not any(word in self.name for word in ("VideoMAE", *RESIZES_FLOATS)) else {}),
        )


def _flags(**more):
    return {f"do_{name}": value for name, value in more.items()}


# Settings beside each class's own.
HF_SETTINGS = (
    ("ViTImageProcessor", {"resample": 3, "size": 224}),
    ("ViTImageProcessor", {"resample": 0, "size": [180, 260]}),
    ("ViTImageProcessor", {**_flags(normalize=False)}),
    ("ViTImageProcessor", {**_flags(rescale=False)}),
    ("ViTImageProcessor", {**_flags(rescale=False, normalize=False)}),
    ("ViTImageProcessor", {"rescale_factor": 1 / 127.5}),
    ("ViTImageProcessor", {"rescale_factor": 1 / 128, **_flags(normalize=False)}),
    ("ViTImageProcessor", {"size": {"max_height": 150, "max_width": 200}}),
    ("ViTImageProcessor", {"size": {"shortest_edge": 160, "longest_edge": 200}}),
    ("ViTImageProcessor", {**_flags(pad=True), "pad_size": {"height": 256, "width": 230}}),
    ("DeiTImageProcessor", {**_flags(resize=False), "crop_size": 301}),
    ("DeiTImageProcessor", {**_flags(center_crop=False)}),
    ("CLIPImageProcessor", {"size": 336, "crop_size": 336}),
    ("CLIPImageProcessor", {"size": {"shortest_edge": 111}, "crop_size": {"height": 224, "width": 97}}),
    ("CLIPImageProcessor", {"image_mean": 0.5, "image_std": 0.25}),
    ("ConvNextImageProcessor", {"size": {"shortest_edge": 224}}),
    ("ConvNextImageProcessor", {"size": {"shortest_edge": 223}, "crop_pct": 0.95}),
    (
        "BitImageProcessor",
        {"size": {"shortest_edge": 256}, "image_mean": list(IMAGENET["mean"]), "image_std": list(IMAGENET["std"])},
    ),
    ("DINOv3ViTImageProcessor", {**_flags(resize=False, center_crop=True), "crop_size": 224}),
    ("DINOv3ViTImageProcessor", {**_flags(rescale=False, normalize=False)}),
    (
        "DINOv3ViTImageProcessor",
        {"size": {"shortest_edge": 256}, "crop_size": 300, "resample": 3, **_flags(center_crop=True)},
    ),
    ("DINOv3ViTImageProcessor", {"rescale_factor": 1 / 128, **_flags(normalize=False)}),
    ("DetrImageProcessor", {"size": 480, "max_size": 640}),
    (
        "DetrImageProcessor",
        {"size": {"shortest_edge": 300, "longest_edge": 301}, "pad_size": {"height": 301, "width": 333}},
    ),
    ("YolosImageProcessor", {"size": 512, "max_size": 864}),
    ("RTDetrImageProcessor", {**_flags(normalize=True, pad=True), "size": {"shortest_edge": 320, "longest_edge": 400}}),
    ("Mask2FormerImageProcessor", {"size": {"shortest_edge": 320, "longest_edge": 400}, "size_divisor": 0}),
    ("Mask2FormerImageProcessor", {"size": {"height": 384, "width": 300}}),
    ("SamImageProcessor", {"size": {"longest_edge": 333}, "pad_size": {"height": 352, "width": 352}}),
    ("SegformerImageProcessor", {"size": 640, "resample": 3}),
    ("Siglip2ImageProcessor", {"patch_size": 14, "max_num_patches": 500, "resample": 3}),
)


# What version 4 of transformers does otherwise than 5: beginnings of rows.
OF_VERSION_5 = {
    "ChineseCLIPImageProcessor pil": "version 4 crops to a height and a width that its `size` does not have",
    "YolosImageProcessor pil": "version 4 returns no `pixel_mask`",
    "SamImageProcessor torchvision": "version 4 returns other `reshaped_input_sizes`",
    "ViTImageProcessor pil size={": "version 4 takes a height and a width alone",
    "ViTImageProcessor pil do_pad": "version 4 does not pad",
    "VideoMAEImageProcessor torchvision": "version 4 has no such class",
    "ConvNextImageProcessor torchvision size={'shortest_edge': 223}": "version 4 rounds the place of its window to even",
    "Mask2FormerImageProcessor pil size={'shortest_edge': 320": "version 4 makes another size",
}
OF_TORCH_ALONE = ("DINOv3ViTImageProcessor",)
RESIZES_FLOATS = ("DINOv3", "floats")


def hf_rows():
    """Every class with its defaults, and some with other settings; each by torch and by Pillow. Fields are complete,
    for versions of transformers have other defaults."""
    from gesso.convert.hf_classes import CLASSES

    settings = [(name, {}) for name in CLASSES] + list(HF_SETTINGS)
    for name, more in settings:
        for backend in ("torchvision",) if name in OF_TORCH_ALONE else ("torchvision", "pil"):
            words = f"{name} {backend} " + " ".join(f"{key}={value}" for key, value in more.items())
            yield Row(
                "transformers",
                words.strip(),
                "transformers",
                ({"image_processor_type": name, **CLASSES[name][1], **more},),
                (("backend", backend),),
            )
    yield Row(
        "transformers",
        "ViTImageProcessor float16",
        "transformers",
        ({"image_processor_type": "ViTImageProcessor"},),
        (("dtype", "float16"),),
    )
    yield Row(
        "transformers",
        "CLIPImageProcessor HWC",
        "transformers",
        ({"image_processor_type": "CLIPImageProcessor"},),
        (("layout", "HWC"),),
    )


def timm_rows():
    """Crops, interpolations, and sides that differ."""
    for mode in ("center", "squash", "border"):
        for interpolation, part, size in (
            ("bicubic", 0.875, (3, 224, 224)),
            ("bilinear", 0.95, (3, 256, 192)),
            ("nearest", 1.0, (3, 160, 160)),
        ):
            config = {
                "input_size": size,
                "interpolation": interpolation,
                "crop_pct": part,
                "crop_mode": mode,
                **IMAGENET,
            }
            yield Row("timm", f"{mode} {interpolation} {part} {size[1]}x{size[2]}", "timm", (config,))
    for name in ("resnet50.a1_in1k", "vit_base_patch16_224.augreg2_in21k_ft_in1k", "convnext_tiny.in12k_ft_in1k"):
        yield Row("timm", name, "timm", (name,))


def _composed(version):
    """A `Compose` of each version."""

    def one():
        from torchvision import transforms

        return transforms.Compose(
            [
                transforms.Resize([150, 170]),
                transforms.Pad((3, 5, 7, 9), fill=7),
                transforms.CenterCrop(140),
                transforms.ToTensor(),
                transforms.Normalize(*IMAGENET.values()),
            ]
        )

    def two():
        import torch
        from torchvision.transforms import v2

        return v2.Compose(
            [
                v2.ToImage(),
                v2.Resize(200, max_size=333, antialias=True),
                v2.CenterCrop((301, 190)),
                v2.Pad(4, padding_mode="reflect"),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize([0.5], [0.25]),
            ]
        )

    def gray():
        from torchvision import transforms

        return transforms.Compose(
            [transforms.Resize(90), transforms.Grayscale(3), transforms.CenterCrop(80), transforms.ToTensor()]
        )

    def of_floats():
        from torchvision import transforms

        steps = [
            transforms.ToTensor(),
            transforms.Resize(150, antialias=True),
            transforms.CenterCrop((140, 222)),
            transforms.Normalize([0.5], [0.25]),
        ]
        return transforms.Compose(steps)

    return {1: one, 2: two, "gray": gray, "floats": of_floats}[version]


def torchvision_rows():
    """Weights, given images of Pillow and tensors; and `Compose`."""
    names = (
        "ResNet50",
        "ViT_B_16",
        "ConvNeXt_Base",
        "EfficientNet_B0",
        "Swin_T",
        "MaxVit_T",
        "FCN_ResNet50",
        "FasterRCNN_ResNet50_FPN",
    )
    for name in names:
        for takes in ("pil", "tensor") if name in ("ResNet50", "EfficientNet_B0") else ("pil",):
            yield Row(
                "torchvision",
                f"{name}_Weights.DEFAULT {takes}",
                "torchvision",
                (f"{name}_Weights.DEFAULT",),
                (("takes", takes),),
            )
    yield Row("torchvision", "Compose of version 1", "torchvision", (_composed(1),))
    yield Row("torchvision", "Compose of version 2", "torchvision", (_composed(2),))
    yield Row("torchvision", "Compose of version 1, gray", "torchvision", (_composed("gray"),))
    yield Row("torchvision", "Compose of version 1, resizes floats", "torchvision", (_composed("floats"),))


def other_rows():
    """Ultralytics and open_clip."""
    for imgsz in (640, (384, 640), 320):
        for rect in (False, True):
            yield Row("ultralytics", f"imgsz={imgsz} rect={rect}", "ultralytics", (imgsz,), (("rect", rect),))
    for mode in ("shortest", "longest", "squash"):
        for size in (224, (224, 256)):
            yield Row("open_clip", f"{mode} {size}", "open_clip", ({"size": size, "resize_mode": mode},))


def rows():
    """All rows."""
    return [*hf_rows(), *timm_rows(), *torchvision_rows(), *other_rows()]


def in_process(made):
    """What runs a converted pipeline here."""
    from gesso._comparison.compare import runner

    return runner(made())


def served(client, name, stage):
    """What asks a server."""
    import tritonclient.grpc as triton

    def answer(data):
        wanted = triton.InferInput(stage.input, [1, *data.shape], "UINT8")
        wanted.set_data_from_numpy(data[None])
        response = client.infer(name, [wanted])
        return [response.as_numpy(output)[0] for output in (stage.output, *stage.extras)]

    return answer


def report(row, made, run, paths, start):
    """Prints a row; returns whether it is equal."""
    from gesso.convert import proof

    found = proof.prove(made, paths, run)
    for name, comparison, misshapen in found.outputs:
        equal = sum(not file.differing for file in comparison.files)
        differ = (
            ""
            if equal == found.files
            else f", by {comparison.largest if comparison.files else 0:.3g} at most, {len(misshapen)} of another shape"
        )
        print(
            f"{row.library} | {row.name} | {name} | {equal} of {found.files}{differ} | {time.time() - start:.1f} s",
            flush=True,
        )
    return found.is_equal


def other_version(row):
    """Why a row of transformers is not one of the installed version's."""
    if row.library != "transformers" or importlib.util.find_spec("transformers") is None:
        return None
    if int(importlib.metadata.version("transformers").split(".")[0]) >= 5:
        return None
    return next((reason for first, reason in OF_VERSION_5.items() if row.name.startswith(first)), None)


def run_all(chosen, paths, device, client=None):
    """Compares rows; returns how many are equal, differ, and are left out. With a client their models are served under
    `row-NUMBER`."""
    equal = differ = left_out = 0
    for number, row in chosen:
        start = time.time()
        if reason := other_version(row):
            print(f"{row.library} | {row.name} | left out: {reason}")
            left_out += 1
            continue
        try:
            made = row.make(device)
            made.reference()
        except ImportError as error:
            print(f"{row.library} | {row.name} | left out: {error}")
            left_out += 1
            continue
        run = served(client, f"row-{number}", made.stage) if client else in_process(made)
        try:
            is_equal = report(row, made, run, paths, start)
        except RuntimeError as error:
            print(f"{row.library} | {row.name} | failed: {error}")
            is_equal = False
        equal, differ = equal + is_equal, differ + (not is_equal)
    return equal, differ, left_out


def write_repository(chosen, folder, device):
    """A model for each row."""
    from gesso.convert import repository

    for number, row in chosen:
        repository.write(row.make(device), Path(folder) / f"row-{number}", f"{row.name}\n", 8)


def main():
    """Compares all rows of the libraries that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", metavar="WORD", help="rows with it in their library or name")
    parser.add_argument(
        "--part", default="1/1", metavar="K/N", help="every N-th row from the K-th on, for several processes"
    )
    parser.add_argument("--device", choices=("cpu", "mixed"), default="cpu", help="mixed: on a GPU")
    parser.add_argument("--served", action="store_true", help="by a real tritonserver")
    options = parser.parse_args()
    from gesso.convert import proof

    first, step = map(int, options.part.split("/"))
    chosen = [(number, row) for number, row in enumerate(rows()) if options.only in f"{row.library} {row.name}"][
        first - 1 :: step
    ]
    with tempfile.TemporaryDirectory() as folder:
        paths = proof.photos(folder, options.photos, options.seed)
        if options.served:
            sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
            import tritonclient.grpc as triton
            from harness import Server

            with tempfile.TemporaryDirectory() as models:
                write_repository(chosen, models, options.device)
                with Server(models) as server, triton.InferenceServerClient(server.grpc_url) as client:
                    equal, differ, left_out = run_all(chosen, paths, options.device, client)
        else:
            equal, differ, left_out = run_all(chosen, paths, options.device)
    print(
        f"{equal + differ} rows, {len(paths)} photos each: {equal} rows equal to the bit, {differ} differ, {left_out} left out"
    )
    sys.exit(0 if equal and not differ else 1)


if __name__ == "__main__":
    main()
