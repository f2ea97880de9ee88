"""A decoder and the resize behind it are one operator where nobody else sees the decoded images: the same pixels, the
same failures."""

import io
import random

import numpy as np
import pytest
from gesso import Pipeline, fn, types
from PIL import Image

FILTERS = [
    types.INTERP_NN,
    types.INTERP_LINEAR,
    types.INTERP_CUBIC,
    types.INTERP_LANCZOS3,
    types.INTERP_TRIANGULAR,
    types.INTERP_GAUSSIAN,
]


def file(rng):
    """An image of any kind, most of them JPEGs."""
    # Those of more than a megabyte of pixels are resized row by row.
    largest = rng.choice([40, 400, 1200])
    width, height = (rng.randint(largest // 4, largest) for _ in range(2))
    pixels = np.random.default_rng(rng.randint(0, 1 << 30)).integers(
        0, 256, (height // 8 + 1, width // 8 + 1, 3), np.uint8
    )
    image = Image.fromarray(pixels).resize((width, height), Image.BICUBIC)
    kind = rng.choice(["JPEG"] * 6 + ["PNG", "GRAY", "TURNED", "CMYK"])
    out = io.BytesIO()
    if kind == "PNG":
        image.save(out, "PNG")
    else:
        exif = Image.Exif()
        if kind == "TURNED":
            exif[0x0112] = rng.randint(2, 8)
        image = image.convert({"GRAY": "L", "CMYK": "CMYK"}.get(kind, "RGB"))
        progressive, subsampling = rng.random() < 0.3, rng.randint(0, 2)
        image.save(
            out, "JPEG", quality=rng.randint(20, 98), progressive=progressive, subsampling=subsampling, exif=exif
        )
    return np.frombuffer(out.getvalue(), np.uint8)


def arguments(rng):
    """Any resize."""
    made = {"interp_type": rng.choice(FILTERS), "antialias": rng.random() < 0.7}
    kind = rng.choice(["xy", "shorter", "size", "mode"])
    if kind == "xy":
        made |= {"resize_x": rng.randint(1, 300), "resize_y": rng.choice([0, rng.randint(1, 300)])}
    elif kind == "shorter":
        made |= {"resize_shorter": rng.randint(1, 120)}
    elif kind == "size":
        made |= {"size": [rng.randint(1, 200), rng.randint(1, 200)]}
    else:
        made |= {"size": [rng.randint(1, 200), rng.randint(1, 200)], "mode": rng.choice(["not_larger", "not_smaller"])}
    if rng.random() < 0.3:
        ends = [sorted([rng.random(), rng.random()]) for _ in range(2)]
        if rng.random() < 0.5:
            # Flipped: rows cannot come from the top then.
            ends[rng.randint(0, 1)].reverse()
        made |= {"roi_relative": True, "roi_start": [e[0] for e in ends], "roi_end": [e[1] for e in ends]}
    if rng.random() < 0.3:
        made["dtype"] = types.FLOAT
    return made


def answers(decode, made, files, apart):
    """What comes of it, with the decoded images as another output if they are to be seen."""
    pipe = Pipeline(batch_size=len(files), num_threads=2, device_id=None)
    with pipe:
        images = decode(fn.external_source(name="files", dtype=types.UINT8, ndim=1))
        pipe.set_outputs(*([fn.resize(images, **made), images] if apart else [fn.resize(images, **made)]))
    pipe.build()
    pipe.feed_input("files", files)
    resized = pipe.run()[0]
    return [np.array(resized.at(i)) for i in range(len(files))]


def image(rng):
    kind = rng.choice([types.RGB, types.BGR, types.GRAY, types.YCbCr])
    return lambda x: fn.decoders.image(x, output_type=kind)


def image_crop(rng):
    left = rng.random()
    return lambda x: fn.decoders.image_crop(x, crop_h=1.0, crop_w=1.0, crop_pos_x=left)


def image_random_crop(rng):
    seed = rng.randint(1, 9)
    return lambda x: fn.decoders.image_random_crop(x, seed=seed)


DECODERS = {"image": image, "image_crop": image_crop, "image_random_crop": image_random_crop}


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("seed", range(30))
def test_the_same_pixels(decoder, seed):
    rng = random.Random(f"{decoder} {seed}")
    decode, made = DECODERS[decoder](rng), arguments(rng)
    files = [file(rng) for _ in range(6)]
    fused, apart = (answers(decode, made, files, seen) for seen in (False, True))
    for one, other in zip(fused, apart, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other, err_msg=str(made))


@pytest.mark.parametrize("cut", [0.0, 0.3, 0.9])
def test_the_same_failures(cut):
    rng = random.Random(f"cut {cut}")
    damaged = file(rng)
    damaged = damaged[: int(cut * len(damaged))]
    words = []
    for seen in (False, True):
        with pytest.raises(RuntimeError) as raised:
            answers(fn.decoders.image, {"size": [20, 20]}, [damaged], seen)
        words.append(str(raised.value).split("`: ")[-1])
    assert words[0] == words[1]
