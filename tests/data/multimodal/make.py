"""Asks image processors and feature extractors of transformers, made from configurations, without weights: writes
answers.json (shapes and checksums) and sounds.npz (values), which tests/python/test_multimodal.py reads.

    pip install transformers==5.24.0 torch==2.15.0 torchvision==0.29.2 pillow==12.0.0 numpy==2.4.6
    python make.py                      all
    python make.py idefics3 llama4      some image processors, beside what is recorded
    python make.py videos               video processors, beside what is recorded

Whisper's features are those of the class's numpy code, and by torch beside them. Video processors are given the frames
that Gesso decodes (`PYTHONPATH=python`, `GESSO_LIBRARY`)."""

import json
import pathlib
import sys
import zlib

import definitions
import numpy as np
import PIL
import torch
import torchvision
import transformers
from PIL import Image

HERE = pathlib.Path(__file__).parent
BACKENDS = {"torchvision": "", "pil": "Pil"}


def asked(processor, pixels):
    """Outputs by name: type, shape and checksum; or the error."""
    try:
        answer = processor(Image.fromarray(pixels), return_tensors="pt")
    except ValueError as error:
        return {"error": str(error)}
    found = {}
    for name, value in answer.items():
        if getattr(value, "dtype", None) == torch.bfloat16:
            value = value.float()
        # Lists are what transformers makes no tensors of.
        value = np.ascontiguousarray(value.numpy() if hasattr(value, "numpy") else value)
        found[name] = [str(value.dtype), list(value.shape), zlib.crc32(value.tobytes())]
    return found


def images(names):
    """The answers of image processors."""
    made = {}
    for name in names:
        fields = definitions.PROCESSORS[name]
        values = {key: value for key, value in fields.items() if key != "image_processor_type"}
        for backend, ending in BACKENDS.items():
            kind = getattr(transformers, fields["image_processor_type"] + ending, None)
            if kind is None:
                continue
            processor, answers = kind(**values), {}
            for height, width in definitions.SIZES:
                if (height, width) == definitions.SIZES[-1] and name in definitions.WITHOUT_THE_LARGEST:
                    continue
                answers[f"{height}x{width}"] = asked(processor, definitions.picture(height, width))
            made[f"{name} {backend}"] = answers
            print(name, backend, flush=True)
    return made


def videos():
    """The answers of all video processors."""
    from gesso import convert

    made = {}
    for name, fields in definitions.VIDEOS.items():
        stage = convert.transformers(fields)
        answer, names = stage.reference(), (stage.stage.output, *stage.stage.extras)
        made[name] = {
            clip: {
                output: [str(value.dtype), list(value.shape), zlib.crc32(np.ascontiguousarray(value).tobytes())]
                for output, value in zip(names, answer(HERE.parent / "video" / clip), strict=True)
            }
            for clip in definitions.CLIPS
        }
        print(name, flush=True)
    return made


def sounds():
    """The answers of all feature extractors: values by name, and of wav2vec 2.0 checksums."""
    values, checksums = {}, {}
    for name, (fields, lengths) in definitions.EXTRACTORS.items():
        options = {key: value for key, value in fields.items() if key != "feature_extractor_type"}
        extractor = getattr(transformers, fields["feature_extractor_type"])(**options)
        for samples in lengths:
            given = definitions.sound(samples)
            answer = {
                key: value[0] for key, value in extractor(given, sampling_rate=16000, return_tensors="np").items()
            }
            if name.startswith("whisper"):
                by_torch, padded = answer["input_features"], np.pad(given, (0, max(0, 16000 - samples)))[:16000]
                answer = {"input_features": extractor._np_extract_fbank_features([padded], "cpu")[0]}
                print(name, samples, "by torch differs by", np.abs(by_torch - answer["input_features"]).max())
            if name == "wav2vec2":
                found = answer["input_values"]
                checksums[str(samples)] = [str(found.dtype), list(found.shape), zlib.crc32(found.tobytes())]
                continue
            values |= {f"{name} {samples} {output}": value for output, value in answer.items()}
    return values, checksums


def main(names):
    packages = (transformers, torch, torchvision, PIL, np)
    versions = {package.__name__: package.__version__ for package in packages}
    path, answers = HERE / "answers.json", {}
    if names:
        answers = json.loads(path.read_text())
        answers.pop("versions")
    else:
        names = [*definitions.PROCESSORS, "videos"]
        values, checksums = sounds()
        np.savez_compressed(HERE / "sounds.npz", **values)
        answers["wav2vec2"] = checksums
    answers |= images([name for name in names if name != "videos"])
    if "videos" in names:
        answers |= videos()
    lines = [f'"versions": {json.dumps(versions)}']
    for name, sizes in answers.items():
        rows = ",\n".join(f"  {json.dumps(size)}: {json.dumps(found)}" for size, found in sizes.items())
        lines.append(f"{json.dumps(name)}: {{\n{rows}\n }}")
    path.write_text("{\n " + ",\n ".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
