"""The kernels that decode JPEGs on a device's SMs, on the host: compiled as C++ and run thread by thread
(emulator.h), with every access checked, against libjpeg-turbo. Device tests (tests/gpu/sm.rs) decode ten thousand
files; these need no device."""

import io
import os
import shutil
import subprocess

import numpy as np
import pytest
from batch import LAYOUT, Jpeg, View, tables_of
from emulator import built, needs_compiler, source
from layouts import with_exchanged
from PIL import Image

# Of the source to its namespace.
STAGES = {
    "pairs": "pairs_of",
    "guess": "guess",
    "link": "link",
    "resolve": "resolve",
    "decode": "decode",
    "progressive": "progressive_of",
    "dc": "dc_of",
    "pixels": "pixels_of",
}
STAGES |= {"planes": "planes_of", "upsample": "upsample"}
HEADERS = [
    "common.cuh",
    "shared.cuh",
    "colors.cuh",
    "jpeg.cuh",
    "jpeg_blocks.cuh",
    "jpeg_bits.cuh",
    "jpeg_codes.cuh",
    "jpeg_scan.cuh",
    "jpeg_pass.cuh",
    "jpeg_refine.cuh",
    "jpeg_team.cuh",
    "jpeg_transform.cuh",
    "jpeg_colors.cuh",
]
# Bits of a piece, guesses, how often pieces are halved where they are decoded, threads of a warp that are at work.
CUTS = {
    "one image": (544, 6, 2, (4, 1)),
    "a few images": (544, 6, 1, (20, 7)),
    "small batches": (544, 6, 0, (32, 32)),
    "large batches": (1056, 1, 0, (32, 32)),
}
# As kernels/jpeg.cuh has them.
FINE, UNRESOLVED, TOO_WIDE = 0, 1, 16
MOST_HALVINGS = LAYOUT.MOST_HALVINGS
# Of twelve files, of which every second is damaged.
DAMAGED_BATCHES = int(os.environ.get("GESSO_DAMAGED_BATCHES", 4))

pytestmark = needs_compiler


def compiled(folder):
    """What decodes with all stages, which are compiled in `folder`."""
    text = '#include "jpeg_codes.cuh"\n#include "jpeg_scan.cuh"\n#include "jpeg_colors.cuh"\n'
    for stage, namespace in STAGES.items():
        text += f"namespace {namespace} {{\n{source(f'jpeg_{stage}.cu')}\n}}\n"
    program = built(folder, "jpeg", HEADERS, text)

    def run(jpegs, cut, views=None, together=4):
        """Status and pixels of each."""
        images, arrays = tables_of(jpegs, *cut, views, together)
        answer = np.frombuffer(program(arrays), np.uint8)
        status, pixels = answer[: 4 * len(jpegs)].view(np.uint32), answer[4 * len(jpegs) :]

        def shown(image):
            width, height, start = int(image["width"]), int(image["height"]), int(image["pixels"])
            return pixels[start : start + 3 * width * height].reshape(height, width, 3)

        return status, [shown(image) for image in images]

    return run


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("jpeg"))


def picture(width, height, seed):
    """A wave, text-like edges and grain."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    wave = np.stack([np.sin(x / 17 + y / 23), np.sin(x / 31 - y / 13), np.cos(x / 41 + y / 7)], -1)
    edges = ((x // 9 + y // 5) % 7 == 0) * 60
    return (
        (128 + 70 * wave + edges[..., None] + rng.normal(0, rng.uniform(0, 14), (height, width, 3)))
        .clip(0, 255)
        .astype(np.uint8)
    )


def encoded(pixels, mode="RGB", **options):
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, "JPEG", **options)
    return file.getvalue()


def files():
    yield encoded(picture(317, 211, 0), quality=90, subsampling="4:4:4")
    yield encoded(picture(1, 1, 1), quality=90, subsampling="4:2:0")
    yield encoded(picture(17, 300, 2), quality=98, subsampling="4:4:4", optimize=True)
    yield encoded(picture(200, 100, 3), "L", quality=90)
    yield encoded(picture(333, 217, 4), quality=80, subsampling="4:2:2", restart_marker_blocks=4)
    yield encoded(picture(320, 240, 5), quality=75, subsampling="4:2:0", restart_marker_rows=1, optimize=True)
    yield encoded(np.full((120, 400, 3), 90, np.uint8), quality=50, subsampling="4:2:0", optimize=True)
    for seed, (quality, sampling) in enumerate(
        ((40, "4:2:0"), (85, "4:2:0"), (95, "4:2:0"), (92, "4:2:2"), (70, "4:4:4"))
    ):
        yield encoded(picture(250, 180, 6 + seed), quality=quality, subsampling=sampling)


def sampled(file, factors):
    """`file` with other factors of its first component that make as many blocks of an MCU, and so other pixels; and
    their size."""
    frame = file.index(b"\xff\xc0") + 5
    height, width = (int.from_bytes(file[frame + i : frame + i + 2], "big") for i in (0, 2))
    old, (across, down) = divmod(file[frame + 6], 16), factors
    width, height = width * across // old[0], height * down // old[1]
    changed = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return file[:frame] + changed + file[frame + 4 : frame + 6] + bytes([across << 4 | down]) + file[frame + 7 :]


def odd_files():
    """Samplings that Pillow does not write; whole MCUs before their sides are changed."""
    yield sampled(encoded(picture(304, 200, 20), quality=85, subsampling="4:2:2"), (1, 2))
    yield sampled(encoded(picture(304, 208, 21), quality=85, subsampling="4:2:0"), (4, 1))
    yield sampled(encoded(picture(304, 208, 22), quality=85, subsampling="4:2:0"), (1, 4))
    # Chroma of one and of two columns, and what ends in the middle of a word of it.
    for width, sampling in ((2, "4:2:0"), (4, "4:2:0"), (3, "4:2:2"), (6, "4:2:2"), (519, "4:2:0"), (514, "4:2:2")):
        yield encoded(picture(width, 37, width), quality=90, subsampling=sampling)


def decoded(file, mode):
    image = Image.open(io.BytesIO(file))
    image.draft(mode, image.size)
    return np.asarray(image.convert(mode)).astype(int)


def test_two_fields_of_one_size_that_change_places_are_seen(tmp_path, emulator):
    """Rows as Rust makes them, for kernels that have the sides of an MCU the other way round."""
    with_exchanged(tmp_path, "jpeg", "Image", "mcu_width", "mcu_height")
    jpeg = Jpeg(encoded(picture(64, 48, 30), quality=90, subsampling="4:2:2"))
    (status,), (wanted,) = emulator([jpeg], CUTS["large batches"])
    assert status == FINE
    try:
        (status,), (found,) = compiled(tmp_path)([jpeg], CUTS["large batches"])
    except AssertionError as error:
        assert "Sanitizer" in str(error)
        return
    assert status != FINE or not np.array_equal(found, wanted)


@pytest.mark.parametrize("cut", CUTS)
def test_pixels_are_those_of_libjpeg(emulator, cut):
    given = list(files())
    status, found = emulator([Jpeg(file) for file in given], CUTS[cut])
    assert not status.any(), status
    for i, (file, pixels) in enumerate(zip(given, found)):
        jpeg, pixels = Jpeg(file), pixels.astype(int)
        expected = decoded(file, "RGB")
        if jpeg.mcu == (1, 1):
            assert np.array_equal(pixels, expected), f"file {i}"
            continue
        # Pillow interpolates chroma, which is repeated here. So red, green and blue of the pixels that share a chroma
        # sample differ by their luma alone, but where they are cut off; and luma is Pillow's.
        luma = decoded(file, "L")
        across, down = jpeg.mcu
        y, x = np.mgrid[0 : jpeg.height, 0 : jpeg.width]
        first = (y // down * down, x // across * across)
        inside = ((pixels > 0) & (pixels < 255)).all(-1)
        inside &= inside[first]
        apart = (pixels - pixels[first]) - (luma - luma[first])[..., None]
        assert inside.any() or i == 1
        assert not apart[inside].any(), f"file {i}"
        assert np.abs(pixels - expected).mean() < 12, f"file {i}"


@pytest.mark.parametrize("shrink", range(4))
def test_smooth_and_reduced_pixels_are_those_of_libjpeg(emulator, shrink):
    given = [*files(), *odd_files()]
    jpegs = [Jpeg(file) for file in given]
    status, found = emulator(jpegs, CUTS["small batches"], [View(jpeg, True, None, shrink) for jpeg in jpegs])
    assert not status.any(), status
    for i, (file, jpeg, pixels) in enumerate(zip(given, jpegs, found)):
        image = Image.open(io.BytesIO(file))
        image.draft("RGB", [max(1, side >> shrink) for side in image.size])
        expected = np.asarray(image.convert("RGB"))
        # Pillow reduces no side below a pixel.
        if min(jpeg.width, jpeg.height) >> shrink:
            assert pixels.shape == expected.shape and np.array_equal(pixels, expected), f"file {i}"


@pytest.mark.parametrize("seed", range(3))
def test_a_window_is_that_part_of_the_whole(emulator, seed):
    rng = np.random.default_rng(seed)
    jpegs = [Jpeg(file) for file in (*files(), *odd_files())]

    def window(jpeg):
        ends = [sorted(rng.choice(side + 1, 2, replace=False)) for side in (jpeg.width, jpeg.height)]
        return [first for first, _ in ends] + [end - first for first, end in ends]

    windows = [window(jpeg) for jpeg in jpegs]
    for smooth in (False, True):
        whole = emulator(jpegs, CUTS["small batches"], [View(jpeg, smooth) for jpeg in jpegs])[1]
        status, found = emulator(
            jpegs, CUTS["small batches"], [View(jpeg, smooth, part) for jpeg, part in zip(jpegs, windows)]
        )
        assert not status.any(), status
        for i, (pixels, wanted, (x, y, width, height)) in enumerate(zip(found, whole, windows)):
            assert np.array_equal(pixels, wanted[y : y + height, x : x + width]), f"file {i}, {windows[i]}, {smooth}"


def with_steps(file, factor):
    """`file` whose quantisation tables, of 8 bits, say steps `factor` times as large, 255 at most."""
    file, at = bytearray(file), 0
    while (at := file.find(b"\xff\xdb", at + 1)) >= 0:
        for i in range(at + 5, at + 2 + int.from_bytes(file[at + 2 : at + 4], "big")):
            file[i] = min(255, file[i] * factor)
    return bytes(file)


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("shrink", range(4))
def test_numbers_that_no_encoder_makes_are_for_the_host(emulator, smooth, shrink):
    pixels = picture(64, 64, 40)
    # Black and white of the highest contrast are what encoders make.
    pixels[:32] = (np.mgrid[0:32, 0:64].sum(0) // 8 % 2 * 255)[..., None]
    plain = [encoded(pixels, quality=quality, subsampling="4:4:4") for quality in (5, 30, 75, 100)]
    wide = [with_steps(file, 255) for file in plain[2:]]
    jpegs = [Jpeg(file) for file in plain + wide]
    status, _ = emulator(jpegs, CUTS["small batches"], [View(jpeg, smooth, None, shrink) for jpeg in jpegs])
    assert list(status) == [FINE] * len(plain) + [TOO_WIDE] * len(wide)


def thin_files():
    """Of low quality: an MCU has a few bits to a few hundred, a piece many blocks, and a thumbnail few pieces."""
    for seed, (side, quality) in enumerate(((64, 20), (96, 60), (160, 30), (224, 50), (300, 40))):
        waves, flat = picture(side, side * 3 // 4, seed), np.full((side, side, 3), (200, 30, 90), np.uint8)
        flat[side // 5 : side // 2, side // 3 : side // 2 + seed] = (250, 250, 240)
        for sampling in ("4:2:0", "4:4:4"):
            for pixels in (waves, flat):
                yield encoded(pixels, quality=quality, subsampling=sampling, optimize=seed % 2 == 1)


@pytest.mark.parametrize("cut", CUTS)
def test_thin_files_are_resolved(emulator, cut):
    given = list(thin_files())
    jpegs = [Jpeg(file) for file in given]
    status, found = emulator(jpegs, CUTS[cut], [View(jpeg, smooth=True) for jpeg in jpegs])
    assert not status.any(), status
    for i, (file, pixels) in enumerate(zip(given, found)):
        assert np.array_equal(pixels, decoded(file, "RGB")), f"file {i}"


def harm(jpeg, rng):
    """Changes data, or what the header says of it, in a way that no decoder can foresee."""
    data, kind = bytearray(jpeg.data), rng.integers(5)
    if kind == 0:
        for at in rng.integers(0, len(data), rng.integers(1, 30)):
            data[at] = rng.integers(256)
    elif kind == 1:
        at = rng.integers(len(data))
        data[at : at + 200] = bytes([rng.integers(256)]) * len(data[at : at + 200])
    elif kind == 2:
        data[:] = rng.integers(0, 256, len(data), np.uint8).tobytes()
    elif kind == 3:
        first, length = jpeg.segments[-1]
        jpeg.segments[-1] = (first, max(8, int(length * rng.random()) // 8 * 8))
    else:
        shuffled = [
            (counts, bytes(rng.permutation(list(symbols)).astype(np.uint8))) for _, (counts, symbols) in jpeg.tables
        ]
        jpeg.tables = [(kind, table if kind == "dc" else new) for (kind, table), new in zip(jpeg.tables, shuffled)]
    jpeg.data = bytes(data)


def test_damage_stays_with_its_image(emulator):
    given, damaged, noticed = list(files()), 0, 0
    whole, expected = [Jpeg(file) for file in given], {}
    for seed in range(DAMAGED_BATCHES):
        rng, jpegs = np.random.default_rng(seed), [Jpeg(file) for file in given]
        harmed = [i for i in range(len(jpegs)) if i % 2 == seed % 2]
        for i in harmed:
            harm(jpegs[i], rng)
        cut = list(CUTS.values())[seed // 2 % len(CUTS)]
        views = [View(jpeg, smooth=seed % 2 == 1) for jpeg in jpegs]
        status, found = emulator(jpegs, cut, views)
        damaged, noticed = damaged + len(harmed), noticed + np.count_nonzero(status[harmed])
        # What comes of whole files, for each way to cut them and each view.
        if seed % 4 not in expected:
            expected[seed % 4] = emulator(whole, cut, views)[1]
        for i in set(range(len(jpegs))) - set(harmed):
            assert status[i] == FINE and np.array_equal(found[i], expected[seed % 4][i]), f"seed {seed}, file {i}"
    # Bits that were changed can be the code of another picture.
    assert noticed >= 0.6 * damaged


def halved(halvings):
    """A few images, whose pieces are halved so often."""
    bits, guesses, *_ = CUTS["one image"]
    return bits, guesses, halvings, (5, 3)


def test_an_image_that_is_not_resolved_stays_alone(emulator):
    """Blocks of noise are longer than pieces: a guess hardly ever becomes right."""
    noise = np.random.default_rng(2).integers(0, 256, (240, 320, 3), np.uint8)
    given = [
        encoded(noise, quality=100, subsampling="4:2:0"),
        encoded(picture(90, 70, 1), quality=90, subsampling="4:4:4"),
    ]
    jpegs = [Jpeg(file) for file in given]
    for halvings in range(MOST_HALVINGS + 1):
        status, found = emulator(jpegs, halved(halvings))
        assert list(status) == [UNRESOLVED, FINE]
        assert np.array_equal(found[1], decoded(given[1], "RGB"))


@pytest.mark.parametrize("seed", range(2))
def test_sections_of_damaged_pieces_are_decoded_as_whole_ones(emulator, seed):
    rng, jpegs = np.random.default_rng(seed), [Jpeg(file) for file in (*files(), *thin_files())]
    for jpeg in jpegs:
        if rng.random() < 0.8:
            harm(jpeg, rng)
    views = [View(jpeg, smooth=seed % 2 == 1) for jpeg in jpegs]
    status, expected = emulator(jpegs, halved(0), views)
    assert np.any(status == FINE) and np.any(status != FINE)
    for halvings in range(1, MOST_HALVINGS + 1):
        own, found = emulator(jpegs, halved(halvings), views)
        assert np.array_equal(own == FINE, status == FINE)
        for i in np.flatnonzero(status == FINE):
            assert np.array_equal(found[i], expected[i]), f"file {i}"


@pytest.mark.parametrize("restarts", [{}, {"restart_marker_blocks": 777}])
def test_many_blocks_of_threads_share_an_image(emulator, restarts):
    """More than a warp at once takes what the others tell: 34 that find out where pieces begin, 43 of DC values."""
    file = encoded(picture(1000, 700, 3), "L", quality=75, **restarts)
    jpeg, small = Jpeg(file), Jpeg(encoded(picture(90, 70, 1), quality=90, subsampling="4:4:4"))
    bits, guesses, halvings = 96, 1, 1
    assert min(sum(length for _, length in jpeg.segments) // bits, jpeg.mcus) > 32 * LAYOUT.SCAN_THREADS
    status, found = emulator([small, jpeg, small], (bits, guesses, halvings, (32, 32)))
    assert not status.any(), status
    assert np.array_equal(found[1], decoded(file, "RGB"))
    assert np.array_equal(found[0], found[2])


def progressive_files():
    """Of every quality and sampling, thin ones, and those of a few pixels."""
    sides = ((1, 1), (8, 8), (9, 17), (16, 16), (33, 31), (64, 48), (121, 90), (200, 150))
    samplings = ("4:4:4", "4:2:0", "4:2:2")
    for seed, quality in enumerate((1, 10, 30, 50, 75, 85, 92, 97, 100)):
        for more, sampling in enumerate(samplings):
            width, height = sides[(seed + more) % len(sides)]
            yield encoded(picture(width, height, seed), quality=quality, subsampling=sampling, progressive=True)
    for seed, (width, height) in enumerate(sides):
        yield encoded(picture(width, height, seed), "L", quality=80, progressive=True)
    yield encoded(np.full((120, 200, 3), 90, np.uint8), quality=50, subsampling="4:2:0", progressive=True)
    for rows in (1, 2):
        yield encoded(
            picture(90, 70, rows), quality=85, subsampling="4:2:0", progressive=True, restart_marker_rows=rows
        )
    for blocks in (1, 3):
        yield encoded(
            picture(90, 70, 9), quality=85, subsampling="4:2:2", progressive=True, restart_marker_blocks=blocks
        )


# How coefficients come: bands alone, bits alone, one component after the other, in many scans.
SCRIPTS = {
    "bands": "0,1,2: 0-0, 0, 0; 0: 1-1, 0, 0; 0: 2-5, 0, 0; 0: 6-63, 0, 0; 1: 1-63, 0, 0; 2: 1-63, 0, 0;",
    "bits": "0,1,2: 0-0, 0, 3; 0: 1-63, 0, 4; 1: 1-63, 0, 2; 2: 1-63, 0, 1; 0,1,2: 0-0, 3, 2; 0: 1-63, 4, 3;"
    " 0: 1-63, 3, 2; 0: 1-63, 2, 1; 0: 1-63, 1, 0; 1: 1-63, 2, 1; 1: 1-63, 1, 0; 2: 1-63, 1, 0; 0,1,2: 0-0, 2, 1;"
    " 0,1,2: 0-0, 1, 0;",
    "components": "0: 0-0, 0, 1; 1,2: 0-0, 0, 0; 0: 0-0, 1, 0; 0: 1-8, 0, 2; 0: 9-63, 0, 1; 0: 1-8, 2, 1;"
    " 0: 1-63, 1, 0; 1: 1-63, 0, 1; 2: 1-63, 0, 0; 1: 1-20, 1, 0; 1: 21-63, 1, 0;",
    "many": "0,1,2: 0-0, 0, 0;"
    + "".join(f" {c}: {first}-{first + 6}, 0, 0;" for c in (0, 1, 2) for first in range(1, 63, 7)),
}
needs_jpegtran = pytest.mark.skipif(shutil.which("jpegtran") is None, reason="no jpegtran here")


def check_pixels(emulator, given, together=4):
    """Pixels with smooth chroma are Pillow's."""
    jpegs = [Jpeg(file) for file in given]
    views = [View(jpeg, smooth=True) for jpeg in jpegs]
    status, found = emulator(jpegs, CUTS["large batches"], views, together)
    assert not status.any(), status
    for i, (file, pixels) in enumerate(zip(given, found)):
        assert np.array_equal(pixels, decoded(file, "RGB")), f"file {i}"


@pytest.mark.parametrize("together", (1, 2, 3, 4))
def test_progressive_files_beside_others_are_those_of_libjpeg(emulator, together):
    check_pixels(emulator, [*progressive_files(), *files()], together)


@needs_jpegtran
@pytest.mark.parametrize("together", (1, 4))
@pytest.mark.parametrize("name", SCRIPTS)
def test_scans_in_any_order_are_those_of_libjpeg(emulator, tmp_path, name, together):
    (tmp_path / "scans").write_text(SCRIPTS[name].replace(";", ";\n"))

    def scanned(file, *options):
        command = ["jpegtran", "-scans", tmp_path / "scans", *options]
        return subprocess.run(command, input=file, capture_output=True, check=True).stdout

    # Between two codes of noise many known coefficients are passed.
    rng, given = np.random.default_rng(7), []
    for quality in (94, 97, 98, 99, 100):
        noise = rng.integers(0, 256, (120, 160, 3), np.uint8)
        given.append(scanned(encoded(noise, quality=quality, subsampling="4:4:4")))
    for seed, (width, height) in enumerate(((1, 1), (17, 9), (64, 48), (150, 110))):
        for sampling in ("4:4:4", "4:2:0", "4:2:2"):
            file = encoded(picture(width, height, seed), quality=(60, 90, 98)[seed % 3], subsampling=sampling)
            given += [scanned(file), scanned(file, "-restart", "5B")]
    check_pixels(emulator, given, together)


def test_damage_of_progressive_files_stays_with_its_image(emulator):
    given = list(progressive_files())[::4] + list(files())[:3]
    expected = emulator([Jpeg(file) for file in given], CUTS["large batches"])[1]
    damaged, noticed = 0, 0
    for seed in range(DAMAGED_BATCHES):
        rng, jpegs = np.random.default_rng(seed), [Jpeg(file) for file in given]
        harmed = [i for i, jpeg in enumerate(jpegs) if i % 2 == seed % 2 and jpeg.progressive]
        for i in harmed:
            jpeg = jpegs[i]
            if rng.random() < 0.5:
                at = int(rng.integers(len(jpeg.data)))
                jpeg.data = jpeg.data[:at] + rng.integers(0, 256, len(jpeg.data) - at, np.uint8).tobytes()
            else:
                place = int(rng.integers(len(jpeg.segments)))
                first, length = jpeg.segments[place]
                jpeg.segments[place] = first, length // 16 * 8
        status, found = emulator(jpegs, CUTS["large batches"], together=seed % 4 + 1)
        damaged, noticed = damaged + len(harmed), noticed + np.count_nonzero(status[harmed])
        for i in set(range(len(jpegs))) - set(harmed):
            assert status[i] == FINE and np.array_equal(found[i], expected[i]), f"seed {seed}, file {i}"
    assert noticed >= 0.6 * damaged
