"""The first kind of JPEG in TIFF, as writers of it got it wrong, for make_tiff.py."""

import io

import numpy as np
from PIL import Image
from tiff_parts import (
    RGB,
    YCBCR,
    nearest_ycc,
    old,
    rgb_of_gray,
    rgb_of_ycbcr,
    split_jpeg,
    tiff,
    tiff_with_length,
    usual,
)


def old_jpegs(big, whole, stored, apart, one_length, gray):
    """What writers of the first kind of JPEG said wrongly, left out, or put elsewhere."""
    ycc = nearest_ycc(whole)
    shown = rgb_of_ycbcr(ycc)
    in_stream = {273: (4, [8]), 279: (4, [len(whole)]), 513: (4, [8]), 514: (4, [len(whole)])}
    most = usual(8, RGB, 3, _259=6)
    # Red, green and blue are not what libtiff believes; the numbers of samples and bits may be missing.
    yield "old_jpeg_rgb", old(40, 24, [whole], {**most, **in_stream}), shown
    yield "old_jpeg_rgb_tables", old(40, 24, stored, {**most, **apart, **one_length, 530: (3, [2, 2])}), shown
    yield "old_jpeg_bare", old(40, 24, [whole], {**most, **in_stream}, (258, 262, 277)), shown
    yield "old_jpeg_samples", old(40, 24, [whole], {**most, 262: YCBCR, **in_stream}, (277,)), shown
    studio = ycc.astype(np.float32) - np.float32([16, 128, 128])
    studio = (studio * np.float32([255, 127, 127]) / np.float32([219, 112, 112])).astype(int) + [0, 128, 128]
    range_ = {262: YCBCR, 530: (3, [2, 2]), 532: (5, [16, 235, 128, 240, 128, 240])}
    yield "old_jpeg_studio", old(40, 24, [whole], {**most, **in_stream, **range_}), rgb_of_ycbcr(studio)
    out = io.BytesIO()
    Image.fromarray(gray).save(out, "JPEG", quality=90)
    file = out.getvalue()
    tags = {**usual(8, 0, 1, _259=6), 273: (4, [8]), 279: (4, [len(file)]), 513: (4, [8]), 514: (4, [len(file)])}
    inverted = rgb_of_gray(255 - np.array(Image.open(out)))
    yield "old_jpeg_white_is_0", old(23, 17, [file], tags, (277,)), inverted

    # A tile that is wider and higher than the image, without a header.
    out = io.BytesIO()
    full = np.pad(big, ((0, 8), (0, 24), (0, 0)), mode="edge")
    Image.fromarray(full).save(out, "JPEG", quality=90, subsampling=2)
    tile = split_jpeg(out.getvalue())[1]
    spare = len(tile) + len(tile) % 2 - len(stored[0]) - len(stored[0]) % 2
    moved = {tag: (kind, [at + spare for at in values]) for tag, (kind, values) in list(apart.items())[1:4]}
    tags = {**most, **moved, 262: YCBCR, 530: (3, [2, 2]), 322: 64, 323: 32}
    shown = rgb_of_ycbcr(nearest_ycc(out.getvalue())[:24, :40])
    file = tiff(40, 24, [tile, *stored[1:]], {**tags, 324: (4, [8])})
    yield "old_jpeg_tile", tiff_with_length(file, [len(tile)], 325), shown

    # The scan's header is in the strip, or in each of two, with restarts or without; the other headers are apart.
    for label, restarts, each in [("", 0, False), ("_each", 0, True), ("_restarts", 3, False)]:
        parts = []
        for rows in (big, big[:16], big[16:]):
            out = io.BytesIO()
            image = Image.fromarray(rows)
            image.save(out, "JPEG", quality=90, subsampling=2, restart_marker_blocks=restarts)
            parts.append(out.getvalue())
        scan = [part.index(b"\xff\xda") for part in parts]
        head = parts[0][: scan[0]]
        first, second = (part[at:-2] for part, at in zip(parts[1:], scan[1:], strict=True))
        second = second if each else second[14:]
        places = [8 + len(head) + len(head) % 2]
        places.append(places[0] + len(first) + len(first) % 2)
        tags = {**most, 262: YCBCR, 530: (3, [2, 2]), 513: (4, [8]), 514: (4, [len(head)])}
        shown = np.vstack([rgb_of_ycbcr(nearest_ycc(part)) for part in parts[1:]])
        strips = {278: 16, 273: (4, places), 279: (4, [len(first), len(second)])}
        yield f"old_jpeg_strips{label}", old(40, 24, [head, first, second], {**tags, **strips}), shown
        if restarts:
            continue
        data = parts[0][scan[0] :]
        strip = {273: (4, places[:1]), 279: (4, [len(data)])}
        shown = rgb_of_ycbcr(nearest_ycc(parts[0]))
        if not each:
            yield "old_jpeg_scan", old(40, 24, [head, data], {**tags, **strip}), shown
