"""Records what transformers and numpy answer in place of DALI, which has no operators for vision-language and speech
models: data/multimodal.zip, in the form of record.py.

    pip install transformers==5.24.0 torch==2.15.0 torchvision==0.29.2 pillow==12.0.0 numpy==2.4.6
    python3 record_multimodal.py

Pipelines are made by Gesso's package (`PYTHONPATH=python`, `GESSO_LIBRARY`). Answers are those of the processors' own
functions, or of whole processors made without weights."""

import json
import pathlib
import sys
import zipfile

import numpy as np
import torch
import transformers
from gesso import fn, pipeline_def, types
from transformers.image_processing_utils import get_patch_output_size, select_best_resolution
from transformers.image_transforms import divide_to_patches
from transformers.models.got_ocr2.image_processing_got_ocr2 import get_optimal_tiled_canvas
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "data" / "multimodal"))
import definitions  # noqa: E402

BY = "transformers"
# Float32 values up to 2: a rounding of the last bit.
LAST_BIT = 2.0**-23
CASES = []


def case(name, inputs, outputs, function, tol=0.0, **declared):
    """Records `function` of one input for each of `inputs`, whose answers are `outputs`: a list for each output."""
    sources = {}
    kinds = {"float32": types.FLOAT, "uint8": types.UINT8, "int64": types.INT64}

    @pipeline_def(batch_size=len(outputs[0]), num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipeline():
        for key, samples in inputs.items():
            dtype, ndim = kinds[samples[0].dtype.name], samples[0].ndim
            layout = declared.get("layout") if ndim > 2 else None
            sources[key] = fn.external_source(name=key, dtype=dtype, ndim=ndim, layout=layout)
        made = function(*sources.values())
        return tuple(made) if isinstance(made, list) else made

    CASES.append((name, pipeline().serialize(), inputs, outputs, tol))


def pairs(values):
    return [np.asarray(value, np.int64) for value in values]


SIZES = [size for size in definitions.SIZES if max(size) <= 200 * min(size)]
LISTS = {"sizes": [np.asarray([*size, 3], np.int64) for size in SIZES]}
DRAWN = np.random.default_rng(58).integers(1, 5000, (120, 2))
MORE = {"sizes": [np.asarray(size, np.int64) for size in DRAWN if max(size) <= 200 * min(size)]}


def sizes():
    for name, factor, least, most in (("smart_resize_14", 28, 3136, 1003520), ("smart_resize_16", 32, 65536, 1 << 24)):
        for lists, more in ((LISTS, ""), (MORE, "_many")):
            answers = [smart_resize(int(s[0]), int(s[1]), factor, least, most) for s in lists["sizes"]]
            case(
                name + more,
                lists,
                [pairs(answers)],
                lambda s, f=factor, a=least, b=most: fn.gesso.smart_resize(s, factor=f, min_pixels=a, max_pixels=b),
            )


def grids():
    canvases = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]
    wide = [[384 * rows, 384 * columns] for rows in range(1, 7) for columns in range(1, 7)]
    for name, choices, tile in (("llava_next", canvases, 336), ("llava_onevision", wide, 384)):
        for lists, more in ((LISTS, ""), (MORE, "_many")):
            chosen = [select_best_resolution(tuple(map(int, s[:2])), choices) for s in lists["sizes"]]
            content = [
                get_patch_output_size(np.empty((3, int(s[0]), int(s[1])), np.bool_), canvas, "channels_first")
                for s, canvas in zip(lists["sizes"], chosen)
            ]
            grid = [(height // tile, width // tile) for height, width in chosen]
            flat = [side for choice in choices for side in choice]
            case(
                f"tile_grid_{name}{more}",
                lists,
                [pairs(content), pairs(chosen), pairs(grid)],
                lambda s, f=flat, t=tile: fn.gesso.tile_grid(s, rule="llava-next", tile_size=t, canvases=f),
            )
    for least, most in ((1, 12), (1, 6), (4, 40)):
        for lists, more in ((LISTS, ""), (MORE, "_many")):
            found = [
                get_optimal_tiled_canvas((int(s[0]), int(s[1])), (448, 448), least, most)[::-1] for s in lists["sizes"]
            ]
            canvas = pairs([(448 * rows, 448 * columns) for rows, columns in found])
            case(
                f"tile_grid_internvl_{least}_{most}{more}",
                lists,
                [canvas, canvas, pairs(found)],
                lambda s, a=least, b=most: fn.gesso.tile_grid(
                    s, rule="internvl", tile_size=448, min_tiles=a, max_tiles=b
                ),
            )


def levels(*shape, seed=0):
    """Whole numbers, which are stored in less room."""
    return np.random.default_rng([58, seed, *shape]).integers(0, 12, shape)


def patches():
    cut = transformers.Qwen2VLImageProcessor().patchify
    of_clip = transformers.Qwen2VLVideoProcessor().patchify
    kinds = (
        ("chw", "CHW", 14, 2, [(3, 28, 56), (3, 56, 28), (3, 84, 56)]),
        ("hwc", "HWC", 8, 2, [(16, 32, 3), (48, 16, 3), (16, 16, 3)]),
        ("unmerged", "CHW", 8, 1, [(3, 8, 24), (1, 24, 8), (4, 16, 8)]),
        ("fchw", "FCHW", 8, 2, [(3, 3, 16, 32), (1, 3, 32, 16), (4, 3, 16, 16)]),
        ("fhwc", "FHWC", 8, 2, [(2, 16, 32, 3), (5, 16, 16, 3), (1, 16, 16, 3)]),
    )
    for name, layout, side, merge, shapes in kinds:
        for dtype in (np.float32, np.uint8):
            given = [levels(*shape).astype(dtype) for shape in shapes]
            rows, grid = [], []
            for sample in given:
                planes = np.moveaxis(sample, -1, -3) if layout.endswith("C") else sample
                tensor = torch.from_numpy(np.ascontiguousarray(planes))[None]
                if layout.startswith("F"):
                    found, *counts = of_clip(tensor, side, merge, 2)
                else:
                    found, *counts = cut(tensor, side, merge, 2)
                    counts = [1, *counts]
                rows.append(found[0].numpy())
                grid.append(counts)
            case(
                f"patchify_{name}_{np.dtype(dtype).name}",
                {"pixels": given},
                [rows],
                lambda x, s=side, m=merge: fn.gesso.patchify(x, patch_size=s, merge_size=m, temporal_patch_size=2),
                layout=layout,
            )
            if dtype == np.uint8:
                of_sides = [
                    np.asarray(sample.shape, np.int64)[[layout.index("H"), layout.index("W")]] for sample in given
                ]
                frames = [np.asarray(sample.shape[0] if layout[0] == "F" else 1, np.int64) for sample in given]
                case(
                    f"patch_grid_{name}",
                    {"sizes": of_sides, "frames": frames},
                    [pairs(grid)],
                    lambda x, f, s=side: fn.gesso.patch_grid(x, patch_size=s, frames=f),
                )


def tiles():
    for dtype in (np.uint8, np.float32):
        given = [levels(*shape).astype(dtype) for shape in ((16, 24, 3), (8, 12, 3), (24, 12, 3))]
        over = [levels(8, 12, 3, seed=number).astype(dtype) for number in range(3)]
        planes = [np.moveaxis(image, -1, 0) for image in given]
        cut = [[np.moveaxis(tile, 0, -1) for tile in divide_to_patches(image, (8, 12))] for image in planes]
        for overview in (None, "first", "last", "last-of-several"):
            made = []
            for parts, whole in zip(cut, over):
                first, last = (
                    overview == "first",
                    overview == "last" or overview == "last-of-several" and len(parts) > 1,
                )
                made.append(np.stack([*([whole] if first else []), *parts, *([whole] if last else [])]))
            inputs = {"pixels": given} | ({"whole": over} if overview else {})
            case(
                f"tile_{overview}_{np.dtype(dtype).name}",
                inputs,
                [made],
                lambda *x, o=overview: fn.gesso.tile(*x, tile_size=[8, 12], **({"overview": o} if o else {})),
                layout="HWC",
            )


def sounds():
    for bands, lengths in ((80, (1, 161, 4801)), (128, (15999, 400))):
        extractor = transformers.WhisperFeatureExtractor(feature_size=bands, chunk_length=1)
        given = [definitions.sound(length) for length in lengths]
        padded = [np.pad(signal, (0, max(0, 4800 - len(signal))))[:4800] for signal in given]
        answers = list(extractor._np_extract_fbank_features(padded, "cpu"))
        case(
            f"log_mel_{bands}",
            {"sound": given},
            [answers],
            lambda s, b=bands: fn.gesso.log_mel(s, nfilter=b, samples=4800),
            tol=LAST_BIT,
        )
    extractor = transformers.WhisperFeatureExtractor(n_fft=512, hop_length=100)
    given = [definitions.sound(length) for length in (300, 1601)]
    answers = [extractor._np_extract_fbank_features([signal], "cpu")[0] for signal in given]
    case(
        "log_mel_as_long",
        {"sound": given},
        [answers],
        lambda s: fn.gesso.log_mel(s, nfft=512, window_step=100, samples=0),
        tol=LAST_BIT,
    )
    given = [definitions.sound(length) for length in (1, 7, 8, 9, 127, 128, 129, 136, 137, 1000, 3001)]
    normalized = transformers.Wav2Vec2FeatureExtractor.zero_mean_unit_var_norm(given, None)
    case("unit_variance", {"sound": given}, [normalized], lambda s: fn.gesso.unit_variance(s))


def write():
    arrays, index = {}, []

    def keep(array):  # equal arrays are stored once
        data = np.ascontiguousarray(array).tobytes()
        key = next((key for key, known in arrays.items() if known == data), f"a{len(arrays)}")
        arrays[key] = data
        return dict(key=key, dtype=array.dtype.name, shape=list(array.shape))

    for name, serialized, inputs, outputs, tol in CASES:
        made = dict(name=name, tol=tol, mean=None, pipeline=keep(np.frombuffer(serialized, np.uint8)))
        made["inputs"] = {key: [keep(sample) for sample in samples] for key, samples in inputs.items()}
        made["outputs"] = [[keep(sample) for sample in samples] for samples in outputs]
        index.append(made | {"answered_by": BY})
    path = HERE / "data" / "multimodal.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def write(name, data):  # with a fixed date, so that recording twice gives the same file
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)

        write("index.json", json.dumps({BY: transformers.__version__, "cases": index}, indent=1))
        for key, data in arrays.items():
            write(key, data)
    print(f"multimodal: {len(index)} cases, {path.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    for declare in (sizes, grids, patches, tiles, sounds):
        declare()
    write()
